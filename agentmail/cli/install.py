"""``install`` on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentmail import as_json
from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.errors import BadInput
from agentmail.install import files, harnesses, plan, trust
from agentmail.isolation import admit_third_party
from agentmail.spool import open_spool

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmail.install.edits import Edit
    from agentmail.install.files import Change
    from agentmail.install.plan import Harness, Place


def install_(call: Call) -> int:
    """``agentmail install``."""
    kind = call.text("harness")
    if call.flag("project") and call.flag("user"):
        raise BadInput("--project and --user are two levels; name one of them")
    if kind is None:
        return _list(call)
    harness = harnesses.known(kind)
    if call.flag("trust") and kind != "codex":
        raise BadInput("--trust is for codex; the other harnesses do not ask for it")
    if call.flag("trust") and call.flag("uninstall"):
        raise BadInput("--trust and --uninstall contradict each other; use one of them")
    place = harnesses.place_of(call.flag("project"), call.text("spool"))
    if call.flag("uninstall"):
        return _uninstall(call, harness, place)
    return _install(call, harness, place)


def _install(call: Call, harness: Harness, place: Place) -> int:
    if call.flag("trust"):
        trust.require_program()
    dry = call.flag("dry_run")
    changes = plan.install(harness.edits(place))
    if not dry:
        admit_third_party()
        open_spool(place.spool)  # sandboxes need its directory to exist
        for change in changes:
            files.carry_out(change)
    notes = harness.notes(place)
    if call.flag("trust"):
        notes = [note for note in notes if "--trust" not in note]
        if dry:
            notes.append(
                "--trust would also store the trust in the hooks; Codex tells their hashes once they are written"
            )
        else:
            changes = _merged(changes, _carry_out([trust.granted(place)], plan.install))
    return _report(call, harness, place, changes, notes + harnesses.path_warning())


def _uninstall(call: Call, harness: Harness, place: Place) -> int:
    shared = harnesses.shared_paths(harness, place)
    edits = [edit for edit in harness.edits(place) if edit.path not in shared]
    own = {edit.path for edit in edits}
    if harness.kind == "codex":
        edits = trust.withdrawn(edits, place)
    changes = plan.uninstall(edits)
    if not call.flag("dry_run"):
        for change in changes:
            files.carry_out(change)
            if change.path in own:
                files.forget_backup(change.path)
            if change.outcome == "removed":
                files.sweep(change.path, harness.base(place))
    notes = [f"{path} stays: another harness reads it too" for path in sorted(shared)]
    return _report(call, harness, place, changes, notes)


def _carry_out(edits: list[Edit], make: Callable[[list[Edit]], list[Change]]) -> list[Change]:
    changes = make(edits)
    for change in changes:
        files.carry_out(change)
    return changes


def _merged(first: list[Change], then: list[Change]) -> list[Change]:
    """One change for each file, from what it was at first."""
    later = {change.path: change for change in then}
    merged = [change._replace(new=later.pop(change.path).new) if change.path in later else change for change in first]
    return merged + list(later.values())


def _report(call: Call, harness: Harness, place: Place, changes: list[Change], notes: list[str]) -> int:
    dry = call.flag("dry_run")
    level = "project" if place.project else "user"
    if call.flag("json"):
        parts = [_record(change, dry) for change in changes]
        text = as_json.dump(
            "install", harness=harness.kind, level=level, dryRun=dry or None, files=parts, notes=notes or None
        )
        output.write(text)
        return 0
    lines = [f"{harness.title}, {'in ' + place.project if place.project else 'for the user'}:"]
    lines += [_line(change, dry) for change in changes]
    lines += [f"note: {note}" for note in notes]
    if dry:
        lines += [change.diff().rstrip("\n") for change in changes if change.diff()]
    output.write("\n".join(lines))
    return 0


def _line(change: Change, dry: bool) -> str:
    what = change.outcome
    if dry and what not in ("unchanged", "absent"):
        what = f"would be {what}"
    kept = f" (the original is kept as {change.path}{files.BACKUP})" if change.backup and not dry else ""
    return f"- {change.path}: {what}{kept}"


def _record(change: Change, dry: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"path": change.path, "outcome": change.outcome}
    if change.backup:
        record["backup"] = change.path + files.BACKUP
    if dry:
        record["diff"] = change.diff()
    return record


def _list(call: Call) -> int:
    """The harnesses: which are here, and where we are installed."""
    if any(call.flag(flag) for flag in ("project", "user", "dry_run", "uninstall", "trust")):
        raise BadInput(f"name the harness: {', '.join(harnesses.HARNESSES)}")
    user = harnesses.place_of(False, call.text("spool"))
    try:
        project = harnesses.place_of(True, call.text("spool"))
    except BadInput:
        project = None  # in the home directory there is only one level
    rows = [
        {
            "harness": harness.kind,
            "title": harness.title,
            "present": harnesses.is_present(harness, user),
            "user": harnesses.is_there(harness, user),
            "project": project is not None and harnesses.is_there(harness, project),
        }
        for harness in harnesses.HARNESSES.values()
    ]
    if call.flag("json"):
        output.write(as_json.dump("install", harnesses=rows))
        return 0
    output.write("\n".join(_row(row) for row in rows))
    return 0


def _row(row: dict[str, Any]) -> str:
    levels = [name for level, name in (("user", "for the user"), ("project", "in this project")) if row[level]]
    seen = "present" if row["present"] else "not seen"
    where = f"installed {' and '.join(levels)}" if levels else "not installed"
    return f"- {row['harness']} ({row['title']}): {seen}, {where}"
