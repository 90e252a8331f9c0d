"""Reading shell commands before they run: would the shell eat part of a message.

The commonest complaint in this field: an agent writes ``send bob "see `x` and $(y)"``, its shell runs the backticks,
and the recipient gets a sentence with a hole.
"""

from __future__ import annotations

from agentmail.commands import COMMANDS, VALUE
from agentmail.values import NamedTuple

# How many words of a call come before its message, for the commands whose words are text for somebody.
_PLACES = {"send": 2, "reply": 2, "status": 1}
_WITH_VALUE = {option.name for command in COMMANDS for option in command.options if option.kind == VALUE}
_WRAPPERS = frozenset({"command", "env", "exec", "nohup", "time"})

_ENDS_A_WORD = frozenset(" \t\n;&|()<>")
_EXPANDED = frozenset("_@*#?!$-[")  # what after a $ makes a shell replace it, besides letters, digits, ( and {
_REDIRECTIONS = ("<<<", "<<-", "<<", "<>", "<&", ">&", ">>", ">|", "<", ">")
_ESCAPABLE = '$`"\\'  # in double quotes
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@")


class Word(NamedTuple):
    """A word of a command as the shell would read it, but with nothing run or replaced."""

    text: str
    live: bool  # holds a backtick, $( or $NAME that the shell would run or replace


class Command(NamedTuple):
    """A simple command, and what a here-document or here-string gives it to read."""

    words: tuple[Word, ...]
    stdin: Word | None


class Reading(NamedTuple):
    """The simple commands of a command line."""

    commands: tuple[Command, ...]
    plain: bool  # one simple command at most: nothing live, and no redirection but of its own text


def read(text: str) -> Reading:
    """Split `text` into simple commands."""
    return _Reader(text).read()


def eaten(text: str) -> Command | None:
    """The first call of agentmail in `text` whose message the shell would change, from its subcommand on."""
    for command in read(text).commands:
        call = _call(command)
        if call and any(part.live for part in _message(call)):
            return call
    return None


def safe_form(call: Command) -> str:
    """The same call with its message in a here-document that no shell touches."""
    kept, _ = _split(call)
    message = " ".join(part.text for part in _message(call))
    head = " ".join(["agentmail", *map(_quote, kept)])
    if call.words[0].text == "status":
        return f"{head} {_quote(Word(message, False))}"
    end = _delimiter(message)
    return f"{head} --body-file - <<'{end}'\n{message}\n{end}"


def is_plain_call(text: str) -> bool:
    """Whether `text` is nothing but one call of agentmail, so that a variable may be put before it."""
    reading = read(text)
    return reading.plain and len(reading.commands) == 1 and _is_agentmail(reading.commands[0].words[0])


def calls_unnamed(text: str) -> bool:
    """Whether `text` calls agentmail without saying on whose behalf."""
    for command in read(text).commands:
        words = [word.text for word in command.words]
        named = any(word.startswith(("AGENTMAIL_AGENT=", "--as=")) or word == "--as" for word in words)
        if _call(command) and not named:
            return True
    return False


def _call(command: Command) -> Command | None:
    """The command from the subcommand on if it is a call of agentmail."""
    words = list(command.words)
    while words and (words[0].text in _WRAPPERS or _is_assignment(words[0])):
        words.pop(0)
    if not words or not _is_agentmail(words.pop(0)):
        return None
    options: list[Word] = []
    while words and words[0].text.startswith("--"):
        options.append(words.pop(0))
        if options[-1].text in _WITH_VALUE and words:
            options.append(words.pop(0))
    return command._replace(words=(words[0], *options, *words[1:])) if words else None


def _is_agentmail(word: Word) -> bool:
    return word.text.rpartition("/")[2] == "agentmail"


def _is_assignment(word: Word) -> bool:
    name, equals, _ = word.text.partition("=")
    return bool(equals) and name.isidentifier()


def _message(call: Command) -> list[Word]:
    """The parts of a call's message."""
    _, body = _split(call)
    if not body and call.stdin and call.words[0].text in ("send", "reply"):
        return [call.stdin]
    return body


def _split(call: Command) -> tuple[list[Word], list[Word]]:
    """(subcommand, recipient and options; the words of the message), without where the message is read from."""
    positional: list[Word] = []
    options: list[Word] = []
    words = list(call.words)
    while words:
        word = words.pop(0)
        if word.text == "--":
            positional += words
            break
        if not word.text.startswith("--"):
            positional.append(word)
            continue
        taken = [word, words.pop(0)] if word.text in _WITH_VALUE and words else [word]
        if word.text.partition("=")[0] != "--body-file":
            options += taken
    places = _PLACES.get(call.words[0].text, len(positional))
    return positional[:places] + options, positional[places:]


def _delimiter(text: str) -> str:
    """A word that ends a here-document with `text` in it.

    It begins as no line does that has other than ASCII letters: there, dash 0.5.12 loses a byte.
    """
    lines = text.split("\n")
    taken = {line[:1] for line in lines if not line.isascii()}
    end = next(letter for letter in "EXZQ0123456789_" if letter not in taken or letter == "_") + "OF"
    while end in lines:
        end += "_"
    return end


def _quote(word: Word) -> str:
    """The word as one writes it for a shell; what is live in it stays so."""
    if word.live:
        return f'"{word.text}"'
    if word.text and _SAFE.issuperset(word.text):
        return word.text
    return "'" + word.text.replace("'", "'\\''") + "'"


class _Open:
    """A command that is still being read."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.stdin: Word | None = None


class _Document(NamedTuple):
    """A here-document whose text begins at the next line."""

    command: _Open
    delimiter: str
    quoted: bool  # no shell touches it
    indented: bool  # <<-


class _Reader:
    """One pass over the characters; knows quotes, escapes, separators, redirections and here-documents."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.commands: list[_Open] = []
        self.command = _Open()
        self.plain = True
        self.documents: list[_Document] = []
        self.letters: list[str] = []  # of the word being read
        self.live = False
        self.inside = 0  # up to here quotes and separators belong to a substitution
        self.parentheses: dict[int, int] | None = None

    def read(self) -> Reading:
        while self.at < len(self.text):
            self._step(self.text[self.at])
        self._end_command()
        commands = tuple(Command(tuple(command.words), command.stdin) for command in self.commands)
        return Reading(commands, self.plain)

    def _step(self, letter: str) -> None:
        if letter in " \t" or self.text.startswith("\\\n", self.at):
            self.at += 1 if letter != "\\" else 2
        elif letter == "\n":
            self.at += 1
            self._read_documents()
            self._separate()
        elif letter in ";&|()":
            self.at += 1
            self._separate()
        elif letter in "<>":
            self._redirect()
        elif letter == "#":
            self.plain = False
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        else:
            start = self.at
            word = self._word()
            self.plain &= not word.live
            if not (self.text[start : self.at].isdigit() and self.text[self.at : self.at + 1] in ("<", ">")):
                self.command.words.append(word)  # and not the 2 of 2>&1

    def _word(self) -> Word:
        self.letters, self.live = [], False
        while self.at < len(self.text):
            letter = self.text[self.at]
            if self.at < self.inside:
                self._letter()
            elif letter in _ENDS_A_WORD:
                break
            elif letter == "'":
                self._single_quoted()
            elif letter == '"':
                self._double_quoted()
            elif letter == "\\":
                self._escape(self.text[self.at + 1 : self.at + 2])
            elif self.text.startswith("$'", self.at):
                self._ansi_quoted()
            else:
                self._letter()
        return Word("".join(self.letters), self.live)

    def _single_quoted(self) -> None:
        end = self.text.find("'", self.at + 1)
        end = len(self.text) if end < 0 else end
        self.letters.append(self.text[self.at + 1 : end])
        self.at = end + 1

    def _double_quoted(self) -> None:
        self.at += 1
        while self.at < len(self.text) and (self.text[self.at] != '"' or self.at < self.inside):
            self._letter_or_escape(_ESCAPABLE)
        self.at += 1

    def _ansi_quoted(self) -> None:
        """``$'…'``: what it says is not worked out, only where it ends."""
        start = self.at
        self.at += 2
        while self.at < len(self.text) and self.text[self.at] != "'":
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.letters.append(self.text[start + 2 : self.at])
        self.at += 1

    def _letter_or_escape(self, escapable: str) -> None:
        if self.text[self.at] == "\\":
            self._escape(escapable)
        elif not self._document_in_quotes():
            self._letter()

    def _escape(self, escapable: str) -> None:
        """A backslash and what follows it: it stands for itself before anything that is not `escapable`."""
        following = self.text[self.at + 1 : self.at + 2]
        if following != "\n":  # else the line goes on
            self.letters.append(following if following and following in escapable else "\\" + following)
        self.at += 2

    def _letter(self) -> None:
        end = self._end_of_expansion() if self.at >= self.inside else 0
        if end:
            self.live, self.inside = True, end
        self.letters.append(self.text[self.at])
        self.at += 1

    def _end_of_expansion(self) -> int:
        """Where what the shell would run or replace from here on ends; 0 if it would leave this letter alone."""
        letter, following = self.text[self.at], self.text[self.at + 1 : self.at + 2]
        if letter == "`":
            return max(self._closing_backtick(), self.at) + 1
        if letter != "$":
            return 0
        if following == "(":
            return self._closing_parenthesis() + 1
        if following == "{":
            return max(self.text.find("}", self.at), self.at) + 1
        return self.at + 1 if following in _EXPANDED or (following.isascii() and following.isalnum()) else 0

    def _closing_backtick(self) -> int:
        end = self.text.find("`", self.at + 1)
        while end > 0 and self.text[end - 1] == "\\":
            end = self.text.find("`", end + 1)
        return end

    def _closing_parenthesis(self) -> int:
        """Of the ``$(`` here; the $ itself if there is none."""
        if self.parentheses is None:  # all pairs in one go: a search for each would take long where none closes
            self.parentheses, opened = {}, []
            for position, letter in enumerate(self.text):
                if letter == "(":
                    opened.append(position)
                elif letter == ")" and opened:
                    self.parentheses[opened.pop()] = position
        return self.parentheses.get(self.at + 1, self.at)

    def _document_in_quotes(self) -> bool:
        """Take ``$(cat <<'EOF' …)``, which many agents write and no shell touches; whether it was one."""
        opening = "$(cat <<"
        if self.at < self.inside or not self.text.startswith(opening, self.at):
            return False
        line, _, rest = self.text[self.at + len(opening) :].partition("\n")
        mark = line.strip()
        if len(mark) < 3 or mark[0] != mark[-1] or mark[0] not in "'\"":
            return False
        body, found, after = ("\n" + rest).partition(f"\n{mark[1:-1]}\n")
        if not found or not after.lstrip().startswith(")"):
            return False
        self.letters.append(body[1:].rstrip("\n"))
        self.at = len(self.text) - len(after) + after.index(")") + 1
        return True

    def _redirect(self) -> None:
        operator = next(mark for mark in _REDIRECTIONS if self.text.startswith(mark, self.at))
        self.at += len(operator)
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        start = self.at
        word = self._word()
        if operator == "<<<":
            self.command.stdin = word
            self.plain &= not word.live
        elif operator.startswith("<<"):
            quoted = any(mark in self.text[start : self.at] for mark in "'\"\\")
            self.documents.append(_Document(self.command, word.text, quoted, operator == "<<-"))
        elif not (operator.endswith("&") and word.text.isdigit()):
            self.plain = False

    def _read_documents(self) -> None:
        for document in self.documents:
            lines = []
            for line in self.text[self.at :].split("\n"):
                self.at += len(line) + 1
                line = line.lstrip("\t") if document.indented else line
                if line == document.delimiter:
                    break
                lines.append(line)
            body = "\n".join(lines)
            word = Word(body, False) if document.quoted else _Reader(body).document()
            document.command.stdin = word
            self.plain &= not word.live
        self.documents = []

    def document(self) -> Word:
        """All of the text as a here-document with an unquoted delimiter."""
        while self.at < len(self.text):
            self._letter_or_escape("$`\\")
        return Word("".join(self.letters), self.live)

    def _separate(self) -> None:
        self._end_command()
        if self.text[self.at :].strip():
            self.plain = False

    def _end_command(self) -> None:
        if self.command.words:
            self.commands.append(self.command)
            self.command = _Open()
