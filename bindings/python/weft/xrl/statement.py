"""The configuration language, as far as a component needs it to read its own statement.

A statement is one or more words, ended by `;` or followed by statements in braces. Comments run from
`#` or `//` to the end of the line, or from `/*` to `*/`. The handbook's chapters on files say more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import CommandFailed

_TOKEN = re.compile(
    r"\s+|#[^\n]*|//[^\n]*|/\*.*?\*/"
    r'|(?P<mark>[{};])|"(?P<string>(?:[^"\\\n]|\\.)*)"|(?P<word>[A-Za-z0-9\-:./*>%!@=+_,]+)',
    re.DOTALL,
)
_ESCAPE = re.compile(r'\\(?:(["\\nrt])|u\{([0-9A-Fa-f]{1,6})\}|.)', re.DOTALL)
_PLAIN = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_DEEPEST = 64


class ConfigError(CommandFailed):
    """A mistake in a configuration, with its place; as an answer it is COMMAND_FAILED."""


@dataclass
class Statement:
    """One statement."""

    words: list[str]
    #: What stands in its braces; empty without.
    block: list[Statement] = field(default_factory=list)
    #: Where it stands, as `file:line:column`.
    place: str = ""

    def error(self, what: str) -> ConfigError:
        """A mistake in this statement."""
        return ConfigError(f"{self.place}: {what}")


def parse_statements(text: str, source: str = "the text", line: int = 1) -> list[Statement]:
    """Reads statements of a text that begins in line `line` of the file `source`. Raises ConfigError."""
    top = Statement([])
    open_ones, words, place, at = [top], [], "", 0

    def where() -> str:
        start = text.rfind("\n", 0, at) + 1
        return f"{source}:{line + text.count(chr(10), 0, at)}:{at - start + 1}"

    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise ConfigError(f"{where()}: unexpected {text[at]!r}")
        if found.lastgroup in ("word", "string"):
            place = place if words else where()
            words.append(_unescape(found["string"], where()) if found["word"] is None else found["word"])
        elif found["mark"] == "}":
            if words or len(open_ones) == 1:
                raise ConfigError(f"{where()}: unexpected `}}`")
            open_ones.pop()
        elif found["mark"]:
            if not words:
                raise ConfigError(f"{where()}: a statement begins with a word")
            statement = Statement(words, place=place)
            open_ones[-1].block.append(statement)
            words = []
            if found["mark"] == "{":
                open_ones.append(statement)
            if len(open_ones) > _DEEPEST:
                raise ConfigError(f"{where()}: the blocks are nested too deeply")
        at = found.end()
    if words or len(open_ones) > 1:
        raise ConfigError(f"{where()}: the text ends inside a statement")
    return top.block


def _unescape(text: str, place: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1]:
            return _PLAIN[found[1]]
        if found[2] and int(found[2], 16) <= 0x10FFFF and not 0xD800 <= int(found[2], 16) < 0xE000:
            return chr(int(found[2], 16))
        raise ConfigError(f"{place}: `{found[0]}` is no escape of a string")

    return _ESCAPE.sub(one, text)
