"""Which process is which: identities that survive the reuse of a pid, and that nobody misreads elsewhere.

An identity is ``boot/namespace/pid/start``: a pid says nothing after a reboot, in another pid namespace, or once its
number was given to another process.
"""

from __future__ import annotations

import os
import sys

_LINUX = sys.platform == "linux"
_cache: dict[str, str] = {}


def identify(pid: int) -> str | None:
    """The identity of the living process `pid`, or None."""
    found = _parent_and_start(pid)
    return f"{_here()}/{pid}/{found[1]}" if found else None


def is_alive(process: str) -> bool | None:
    """Whether the identified process lives; None if that cannot be seen from here (another pid namespace)."""
    boot, namespace, pid, start = process.split("/")
    here = _here().split("/")
    if boot != here[0]:
        return False
    if namespace != here[1]:
        return None
    found = _parent_and_start(int(pid))
    return found is not None and found[1] == start


def pid_of(process: str) -> int:
    """The pid in an identity."""
    return int(process.split("/")[2])


def lineage() -> list[str]:
    """The identities of this process and its ancestors, the nearest first, as far as they can be seen.

    This process too: a shell may have replaced itself by its last command.
    """
    here = _here()
    chain: list[str] = []
    pid = os.getpid()
    while pid > 0 and len(chain) < 64:
        found = _parent_and_start(pid)
        if found is None:
            break
        chain.append(f"{here}/{pid}/{found[1]}")
        pid = found[0]
    return chain


def name_of(process: str) -> str:
    """The program's name of an identified living process, or an empty string."""
    pid = pid_of(process)
    if _LINUX:
        return _read(f"/proc/{pid}/comm").strip()
    import psutil  # type: ignore[import-untyped,unused-ignore]

    try:
        return str(psutil.Process(pid).name())
    except psutil.Error:
        return ""


def has_terminal(process: str, terminal: str) -> bool | None:
    """Whether the identified process is in the foreground of the device `terminal`; None if that cannot be seen."""
    if not _LINUX:
        return None
    fields = _read(f"/proc/{pid_of(process)}/stat").rpartition(")")[2].split()
    try:
        device = os.stat(terminal).st_rdev
    except OSError:
        return None
    if len(fields) < 20:
        return False
    group, number, foreground = (int(field) for field in (fields[2], fields[4], fields[5]))
    return group == foreground and device == os.makedev(number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00)


def session_leader() -> str | None:
    """The identity of the leader of this process's session: the shell of a terminal, the job of a cron.

    None if it cannot be seen, or is this process itself, whose end is the end of a command only.
    """
    leader = os.getsid(0)
    return identify(leader) if leader not in (0, os.getpid()) else None


def _here() -> str:
    """``boot/namespace`` of this process."""
    if "here" not in _cache:
        if _LINUX:
            boot = _read("/proc/sys/kernel/random/boot_id").strip()[:8]
            try:
                namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
            except OSError:
                namespace = "0"
        else:
            import psutil

            boot, namespace = str(int(psutil.boot_time())), "0"
        _cache["here"] = f"{boot}/{namespace}"
    return _cache["here"]


def _parent_and_start(pid: int) -> tuple[int, str] | None:
    if _LINUX:
        # The name, field 2, may hold anything but is the last with a parenthesis; fields 4 and 22 count from it.
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if len(fields) < 20 or fields[0] in "ZX":
            return None
        return int(fields[1]), fields[19]
    import psutil

    try:
        process = psutil.Process(pid)
        return process.ppid(), f"{process.create_time():.2f}"
    except psutil.Error:
        return None


def _read(path: str) -> str:
    # A plain `open` builds a text decoder for each of the five to ten files of a chain of ancestors.
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(fd, 4096).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
