"""Every command: arguments, options, help, examples. Both parsers, the completions and the help come from here.

All values are strings (or flags) at this level; what they mean is checked where the command is carried out, so the
two parsers cannot disagree about it.
"""

from __future__ import annotations

from agentmail.values import NamedTuple

FLAG = "flag"
VALUE = "value"


class Option(NamedTuple):
    """``--name`` or ``--name VALUE``. ``_`` in `key` stands for ``-``.

    The shells complete a value by its `metavar`: NAME is an agent's, PATH a file's; ``a|b`` are the only values.
    """

    key: str
    kind: str
    help: str
    metavar: str = ""

    @property
    def name(self) -> str:
        """As it is written on the command line."""
        return "--" + self.key.replace("_", "-")


class Argument(NamedTuple):
    """A positional argument; `many` takes all that follow. `values` is what a shell can offer for it."""

    key: str
    help: str
    many: bool = False
    values: str = ""  # as in an option's metavar


class Command(NamedTuple):
    """One subcommand."""

    name: str
    module: str  # in agentmail.cli; its function of the command's name carries it out
    help: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        """The name of the function in `module`."""
        return self.name.replace("-", "_") + "_"


AS = Option("as", VALUE, "Speak as this agent.", "NAME")
FORCE = Option("force", FLAG, "Use the name even if it belongs to another live session.")
JSON = Option("json", FLAG, "Print one JSON object on one line.")
SPOOL = Option("spool", VALUE, "The spool file to use.", "PATH")
COMMON = (AS, FORCE, JSON, SPOOL)

FROM = Option("from", VALUE, "Only mail from this agent.", "NAME")
TIMEOUT = Option("timeout", VALUE, "How long to wait, like 90s, 2m or 1h30m.", "DURATION")
TIMEOUT_MS = Option("timeout_ms", VALUE, "How long to wait, in milliseconds; 0 waits without limit.", "N")
AWAIT = Option("await", FLAG, "Wait for the answer and print it.")
BODY_FILE = Option("body_file", VALUE, "Read the message from a file; '-' is stdin.", "PATH")
ONCE = Option("once", VALUE, "Send at most once: a repeated key gives the first receipt again.", "KEY")
LIMIT = Option("limit", VALUE, "At most so many messages.", "N")
VERSION = Option("version", FLAG, "Show the version and exit.")
HELP = Option("help", FLAG, "Show this message and exit.")
MESSAGE = Argument("message", "The message; words are joined by one space. Without it, stdin is read.", many=True)

COMMANDS = (
    Command(
        "send",
        "sending",
        "Send a message to an agent, to all live ones, or to a channel.",
        (Argument("to", "An agent's name, 'all', or a channel as +NAME.", values="NAME|all"), MESSAGE),
        (
            BODY_FILE,
            Option("reply_to", VALUE, "The message that this one answers.", "ID"),
            AWAIT,
            TIMEOUT,
            TIMEOUT_MS,
            ONCE,
            Option("hold", FLAG, "Keep the mail for a name that has not registered yet."),
            *COMMON,
        ),
        (
            "agentmail send bob which port does the server use",
            'agentmail send bob "which port?" --await --timeout 5m',
            "agentmail send all back in ten minutes",
            "git diff | agentmail send reviewer",
        ),
    ),
    Command(
        "wait",
        "receiving",
        "Wait for one message and print it.",
        (),
        (
            FROM,
            Option("channel", VALUE, "A post in this channel instead of a message to you.", "CHANNEL"),
            TIMEOUT,
            TIMEOUT_MS,
            Option("exit_code", FLAG, "Exit with 124 if no message came in time."),
            Option("idle", VALUE, "Until this agent ends its turn, or its session, instead of for mail.", "NAME"),
            *COMMON,
        ),
        ("agentmail wait", "agentmail wait --from bob --timeout 10m --exit-code"),
    ),
    Command(
        "inbox",
        "receiving",
        "Print and consume all pending messages.",
        (),
        (
            Option("peek", FLAG, "Consume nothing."),
            FROM,
            LIMIT,
            Option("unhandled", FLAG, "Also those read earlier that were neither answered nor acknowledged."),
            *COMMON,
        ),
        ("agentmail inbox", "agentmail inbox --peek --json"),
    ),
    Command(
        "list",
        "agents",
        "Show the other agents: status, unread mail, last activity, what they work on.",
        (),
        (Option("all", FLAG, "Include yourself."), *COMMON),
        ("agentmail list", "agentmail list --json"),
    ),
    Command(
        "reply",
        "sending",
        "Answer a message; the recipient is its sender.",
        (Argument("id", "The id, or the number in your mailbox, of the message."), MESSAGE),
        (BODY_FILE, AWAIT, TIMEOUT, TIMEOUT_MS, ONCE, *COMMON),
        ("agentmail reply 3 it listens on 8080",),
    ),
    Command(
        "ack",
        "sending",
        "Mark messages as handled without answering them.",
        (Argument("ids", "Ids, or numbers in your mailbox.", many=True),),
        COMMON,
        ("agentmail ack 3 4 5",),
    ),
    Command(
        "status",
        "agents",
        "Tell the others what you work on, or show what you told them.",
        (Argument("text", "What you work on; 300 characters at most.", many=True),),
        COMMON,
        ('agentmail status "fixing the login tests"', "agentmail status"),
    ),
    Command(
        "register",
        "agents",
        "Give this session a name.",
        (Argument("name", "The name; without it, the one derived from the directory."),),
        (
            Option("display", VALUE, "A name for people to read.", "TEXT"),
            Option("parent", VALUE, "The agent that this one works for.", "NAME"),
            Option("state", VALUE, "Say that a turn begins (running) or ended (idle).", "running|idle"),
            Option("wake", VALUE, "The command that wakes you when mail comes while you are idle.", "COMMAND"),
            Option("revive", VALUE, "The command that starts your session again when it has ended.", "COMMAND"),
            Option("autoreply", VALUE, "The command that answers for you while you cannot.", "COMMAND"),
            Option("sync", FLAG, "Mid-turn you reach no step boundary: let the autoreply command answer then."),
            *COMMON,
        ),
        ("agentmail register alice", "agentmail register builder --display 'Build agent' --parent alice"),
    ),
    Command("whoami", "agents", "Show which agent you are, and why.", (), COMMON, ("agentmail whoami",)),
    Command(
        "park",
        "agents",
        "End your session; your mail is kept for the next one.",
        (),
        COMMON,
        ("agentmail park",),
    ),
    Command(
        "abort",
        "agents",
        "Remove an agent for good; its unread mail is dropped.",
        (Argument("name", "The agent to remove.", values="NAME"),),
        COMMON,
        ("agentmail abort bob",),
    ),
    Command(
        "show",
        "history",
        "Show a message and what became of it for each recipient.",
        (Argument("id", "The id, or the number in your mailbox, of the message."),),
        COMMON,
        ("agentmail show 3",),
    ),
    Command(
        "log",
        "history",
        "Show messages that you sent or got; consumes nothing.",
        (),
        (
            Option("with", VALUE, "Only those exchanged with this agent.", "NAME"),
            Option("channel", VALUE, "The posts of this channel.", "CHANNEL"),
            LIMIT,
            Option("all", FLAG, "Everybody's messages."),
            *COMMON,
        ),
        ("agentmail log --limit 20", "agentmail log --with bob", "agentmail log --channel relay"),
    ),
    Command(
        "channel",
        "channels",
        "Join or leave a channel, or list them; everybody is in 'relay', always.",
        (
            Argument("action", "join, leave or list.", values="join|leave|list"),
            Argument("name", "The channel; the first to join makes it."),
        ),
        COMMON,
        ("agentmail channel list", "agentmail channel join frontend", "agentmail send +frontend the build is green"),
    ),
    Command(
        "hook",
        "hook",
        "What a harness's hooks call: reads an event on stdin, answers with mail. Never fails.",
        (Argument("harness", "claude, codex, gemini, opencode or omp."),),
        (Option("until_mail", FLAG, "Block while the session is idle; end with status 2 when mail comes."), SPOOL),
        ("agentmail hook claude < event.json",),
    ),
    Command(
        "install",
        "install",
        "Install into a harness: hooks, allow rules, instructions. Alone, list the harnesses.",
        (Argument("harness", "claude, codex, gemini, opencode or omp.", values="claude|codex|gemini|opencode|omp"),),
        (
            Option("user", FLAG, "For all projects of the user; the default."),
            Option("project", FLAG, "For the project around the current directory only."),
            Option("dry_run", FLAG, "Show what would change, as a diff; write nothing."),
            Option("uninstall", FLAG, "Take out what was installed, and nothing else."),
            Option("trust", FLAG, "Codex: also trust the hooks, as its /hooks would."),
            JSON,
            SPOOL,
        ),
        ("agentmail install", "agentmail install claude", "agentmail install codex --project --dry-run"),
    ),
    Command(
        "config",
        "admin",
        "Show the spool's settings, or change one.",
        (Argument("name", "The setting."), Argument("value", "Its new value.")),
        COMMON,
        ("agentmail config", "agentmail config cap 500", "agentmail config overflow refuse"),
    ),
    Command(
        "completions",
        "completions",
        "Print the completions of a shell, for it to load.",
        (Argument("shell", "bash, zsh or fish.", values="bash|zsh|fish"),),
        (),
        (
            "agentmail completions bash > ~/.local/share/bash-completion/completions/agentmail",
            'agentmail completions zsh > "${fpath[1]}/_agentmail"',
            "agentmail completions fish > ~/.config/fish/completions/agentmail.fish",
        ),
    ),
    Command(
        "cleanup",
        "admin",
        "Remove old history, for cron; unread mail stays.",
        (),
        (
            Option("older_than", VALUE, "How old, like 30d or 12h; else the setting keep_days.", "DURATION"),
            Option("max_messages", VALUE, "Also what is beyond the newest N.", "N"),
            Option("unread", FLAG, "Also mail that nobody has read."),
            Option("vacuum", FLAG, "Give the free space back to the disk."),
            Option("dry_run", FLAG, "Only say what would go."),
            JSON,
            SPOOL,
        ),
        ("agentmail cleanup --older-than 30d", "agentmail cleanup --max-messages 100000 --vacuum"),
    ),
    Command(
        "demo",
        "demo",
        "Watch two agents exchange a question and an answer through a temporary spool.",
        (),
        (),
        ("agentmail demo",),
    ),
)

BY_NAME = {command.name: command for command in COMMANDS}
