"""Reading shell commands before they run: would the shell eat part of a message.

The commonest complaint in this field: an agent writes ``send bob "see `x` and $(y)"``, its shell runs the backticks,
and the recipient gets a sentence with a hole.
"""

from __future__ import annotations

from agentmail.values import NamedTuple

# Commands whose words are text for somebody.
_WRITES = frozenset({"send", "reply", "status"})
_BODY_STARTS = {"send": 2, "reply": 2, "status": 1}
_EXPANDED = tuple("({_@*?!$")  # what after a $ makes the shell replace it, besides letters and digits
_WITH_VALUE = frozenset(
    {"--as", "--spool", "--body-file", "--reply-to", "--timeout", "--timeout-ms", "--once", "--from", "--display"}
)


class Word(NamedTuple):
    """A word of a command as the shell would read it, but with nothing run or replaced."""

    text: str
    live: bool  # holds a backtick, $( or $NAME that the shell would run or replace


class Reading(NamedTuple):
    """The simple commands of a command line."""

    commands: tuple[tuple[Word, ...], ...]
    plain: bool  # one simple command, without redirections, expansions or anything else


def read(text: str) -> Reading:
    """Split `text` into simple commands. Here-documents with a quoted delimiter are skipped; others are a word."""
    return _Reader(text).read()


def eaten(text: str) -> tuple[Word, ...] | None:
    """The words of the first call of agentmail in `text` whose message the shell would change, or None."""
    for command in read(text).commands:
        words = _call(command)
        if words and words[0].text in _WRITES and any(word.live for word in words[1:]):
            return words
    return None


def safe_form(words: tuple[Word, ...]) -> str:
    """The same call with its message in a here-document that no shell touches."""
    kept: list[str] = []
    body: list[str] = []
    positional = 0
    start = _BODY_STARTS[words[0].text]
    value_of_option = False
    for word in words:
        is_option = word.text.startswith("--") and not value_of_option
        if positional >= start and not is_option and not value_of_option:
            body.append(word.text)
            continue
        kept.append(word.text)
        if not is_option and not value_of_option:
            positional += 1
        value_of_option = is_option and word.text in _WITH_VALUE
    end = "EOF"
    while end in "\n".join(body).splitlines():
        end += "_"
    if words[0].text == "status":
        return "agentmail status '" + " ".join(body).replace("'", "'\\''") + "'"
    return f"agentmail {' '.join(kept)} --body-file - <<'{end}'\n{' '.join(body)}\n{end}"


def is_plain_call(text: str) -> bool:
    """Whether `text` is nothing but one call of agentmail, so that a variable may be put before it."""
    reading = read(text)
    return reading.plain and len(reading.commands) == 1 and reading.commands[0][0].text == "agentmail"


def _call(command: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words after ``agentmail`` if the simple command is a call of it; options before the subcommand left out."""
    words = list(command)
    while words and "=" in words[0].text and words[0].text.split("=")[0].isidentifier():
        words.pop(0)
    if not words or words[0].text.rpartition("/")[2] != "agentmail":
        return ()
    words.pop(0)
    while words and words[0].text.startswith("--"):
        option = words.pop(0).text
        if option in _WITH_VALUE and words:
            words.pop(0)
    return tuple(words)


class _Reader:
    """One pass over the characters; knows quotes, escapes, separators, redirections and here-documents."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.commands: list[tuple[Word, ...]] = []
        self.words: list[Word] = []
        self.letters: list[str] | None = None  # of the word being read; None between words
        self.live = False
        self.plain = True
        self.delimiters: list[tuple[str, bool]] = []  # of here-documents whose text begins at the next line

    def read(self) -> Reading:
        while self.at < len(self.text):
            self._step(self.text[self.at])
        self._end_command()
        return Reading(tuple(self.commands), self.plain)

    def _step(self, letter: str) -> None:
        if letter in " \t":
            self._end_word()
        elif letter == "\n":
            self._end_word()
            self.at += 1
            self._skip_here_documents()
            self._separate()
            return
        elif letter in ";&|()":
            self._separate()
        elif letter in "<>":
            self._redirect()
            return
        elif letter == "#" and self.letters is None:
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
            self.plain = False
            return
        elif letter == "'":
            self._single_quoted()
        elif letter == '"':
            self._double_quoted()
        elif letter == "\\":
            self._add(self.text[self.at + 1 : self.at + 2])
            self.at += 1
        else:
            self._expandable(letter)
        self.at += 1

    def _single_quoted(self) -> None:
        end = self.text.find("'", self.at + 1)
        end = len(self.text) if end < 0 else end
        self._add(self.text[self.at + 1 : end])
        self.at = end

    def _double_quoted(self) -> None:
        self._add("")
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            letter = self.text[self.at]
            if letter == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                self.at += 1
                self._add(self.text[self.at])
            else:
                self._expandable(letter)
            self.at += 1

    def _expandable(self, letter: str) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if letter == "`" or (letter == "$" and (following.isalnum() or following in _EXPANDED)):
            self.live = True
            self.plain = False
        self._add(letter)

    def _add(self, letters: str) -> None:
        if self.letters is None:
            self.letters = []
        self.letters.append(letters)

    def _redirect(self) -> None:
        if self.letters and "".join(self.letters).isdigit():
            self.letters = None  # the 2 of 2>&1
        self._end_word()
        self.plain = False
        here = self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at)
        while self.at < len(self.text) and self.text[self.at] in "<>&-":
            self.at += 1
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in " \t\n;&|()<>":
            self.at += 1
        if here:
            delimiter = self.text[start : self.at]
            quoted = any(mark in delimiter for mark in "'\"\\")
            self.delimiters.append((delimiter.replace("'", "").replace('"', "").replace("\\", ""), quoted))

    def _skip_here_documents(self) -> None:
        for delimiter, quoted in self.delimiters:
            lines = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = end + 1
                if line.lstrip("\t") == delimiter:
                    break
                lines.append(line)
            body = "\n".join(lines)
            inner = _Reader('"' + body.replace('"', '\\"') + '"')
            if not quoted:
                inner.at = 0
                inner._double_quoted()
                self.words.append(Word(body, inner.live))
        self.delimiters = []

    def _separate(self) -> None:
        self._end_command()
        if self.text[self.at :].strip():
            self.plain = False

    def _end_word(self) -> None:
        if self.letters is not None:
            self.words.append(Word("".join(self.letters), self.live))
        self.letters, self.live = None, False

    def _end_command(self) -> None:
        self._end_word()
        if self.words:
            self.commands.append(tuple(self.words))
        self.words = []
