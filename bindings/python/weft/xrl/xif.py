"""Interface files: what a component offers, read from their text.

The language is that of `interfaces/*.xif`; the handbook's chapter on XRLs shows it. A text that is
none raises XifError, which says where.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: The words of the types that are neither lists nor records.
WORDS = frozenset(
    "i32 u32 i64 u64 fp64 bool txt binary mac ip ipv4 ipv6 ipnet ipv4net ipv6net id handle".split()
)

_MOST_METHODS = 4096
_MOST_FIELDS = 255
_DEEPEST_LIST = 4
#: Records in records; values are read by recursion.
_DEEPEST_RECORD = 16

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_VERSION = re.compile(r"([0-9]{1,5})\.([0-9]{1,5})\Z")
_TOKEN = re.compile(
    r"\s+|//(?!/)[^\n]*"
    r"|(?P<doc>///[^\n]*)|(?P<arrow>->)|(?P<mark>[/{};:?&\[\]<>])"
    r"|(?P<word>(?:[A-Za-z0-9_.]|-(?!>))+)"
)


class XifError(ValueError):
    """A text is no interface; says what is wrong, and in which line."""


@dataclass(frozen=True)
class Type:
    """The type of an argument."""

    #: A word of WORDS, `list`, or `record`.
    kind: str
    #: Of a list: the type of its elements.
    element: Type | None = None
    #: Of a record: its name.
    name: str = ""

    def __str__(self) -> str:
        return f"list<{self.element}>" if self.kind == "list" else self.name or self.kind

    @property
    def record(self) -> str | None:
        """The record that the type is, or that its elements are."""
        return self.element.record if self.element else self.name or None

    @staticmethod
    def of(word: str, depth: int = _DEEPEST_LIST) -> Type | None:
        """The type of a word such as `u32` or `list<txt>`; every other name is that of a record."""
        if word.startswith("list<") and word.endswith(">"):
            element = Type.of(word[5:-1], depth - 1) if depth else None
            return Type("list", element) if element else None
        if word in WORDS:
            return Type(word)
        return Type("record", name=word) if is_name(word) else None


@dataclass(frozen=True)
class Field:
    """An argument, a return argument or a field of a record."""

    name: str
    type: Type
    optional: bool = False

    def __str__(self) -> str:
        text = f"{self.name}:{self.type}"
        return f"[{text}]" if self.optional else text


@dataclass(frozen=True)
class Record:
    """A fixed sequence of fields."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Method:
    """A method."""

    name: str
    args: tuple[Field, ...]
    returns: tuple[Field, ...]
    doc: str = ""


@dataclass(frozen=True, order=True)
class Version:
    """The version of an interface."""

    major: int
    minor: int

    def answers(self, wanted: Version) -> bool:
        """Whether a component of this version answers a caller who asks for `wanted`."""
        return self.major == wanted.major and self.minor >= wanted.minor

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @staticmethod
    def parse(text: str) -> Version:
        """Reads `1.0`."""
        found = _VERSION.match(text)
        if not found or not text.isascii() or max(map(int, found.groups())) > 0xFFFF:
            raise XifError(f"`{text}` is no version; one looks like `1.0`")
        return Version(int(found[1]), int(found[2]))


@dataclass(frozen=True)
class Interface:
    """An interface."""

    name: str
    version: Version
    records: dict[str, Record]
    methods: dict[str, Method]
    #: The text that it was read from.
    text: str = field(default="", repr=False, compare=False)
    doc: str = ""

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"

    @staticmethod
    def parse(text: str) -> Interface:
        """Reads an interface file."""
        return _Parser(text).interface()


def is_name(word: str) -> bool:
    """Whether a word is a name: a letter, then letters, digits and `_` or `-`."""
    return bool(_NAME.match(word))


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._cut(text))
        self.index = 0
        #: How deep the records so far are nested.
        self.depths: dict[str, int] = {}
        self.records: dict[str, Record] = {}

    @staticmethod
    def _cut(text: str):
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found or not found[0].strip().isascii() and found.lastgroup not in ("doc", None):
                raise XifError(f"line {text.count(chr(10), 0, at) + 1}: unexpected {text[at]!r}")
            if found.lastgroup:
                yield found.lastgroup, found[0], at
            at = found.end()
        yield "end", "the end of the text", len(text)

    def error(self, what: str) -> XifError:
        at = self.tokens[self.index][2]
        return XifError(f"line {self.text.count(chr(10), 0, at) + 1}: {what}")

    @property
    def next(self) -> str:
        return self.tokens[self.index][1]

    def takes(self, token: str) -> bool:
        same = self.next == token and self.tokens[self.index][0] != "end"
        self.index += same
        return same

    def expect(self, token: str) -> None:
        if not self.takes(token):
            raise self.error(f"expected `{token}`, found `{self.next}`")

    def name(self, what: str) -> str:
        kind, word, _ = self.tokens[self.index]
        if kind != "word" or not is_name(word):
            raise self.error(f"expected the name of {what}, found `{word}`")
        self.index += 1
        return word

    def doc(self) -> str:
        lines = []
        while self.tokens[self.index][0] == "doc":
            lines.append(self.next[3:].strip())
            self.index += 1
        return "\n".join(lines)

    def interface(self) -> Interface:
        doc = self.doc()
        self.expect("interface")
        name = self.name("the interface")
        self.expect("/")
        try:
            version = Version.parse(self.next)
        except XifError as error:
            raise self.error(str(error)) from None
        self.index += 1
        self.expect("{")
        methods: dict[str, Method] = {}
        while not self.takes("}"):
            self.item(methods)
        if self.tokens[self.index][0] != "end":
            raise self.error(f"expected the end of the text, found `{self.next}`")
        return Interface(name, version, self.records, methods, self.text, doc)

    def item(self, methods: dict[str, Method]) -> None:
        doc = self.doc()
        if self.takes("record"):
            return self.record()
        name = self.name("a method")
        args = self.fields() if self.takes("?") else ()
        returns = self.fields() if self.takes("->") else ()
        self.expect(";")
        if name in methods or len(methods) == _MOST_METHODS:
            raise self.error(f"the method `{name}` is there already, or one of too many")
        methods[name] = Method(name, args, returns, doc)
        return None

    def record(self) -> None:
        name = self.name("the record")
        if name in self.records or name in WORDS:
            raise self.error(f"`{name}` is a type already")
        self.expect("{")
        fields: list[Field] = []
        while not self.takes("}"):
            self.doc()
            one = self.field(fields)
            self.expect(";")
            if one.type.kind in ("list", "handle"):
                raise self.error(f"the field `{one.name}` is a {one.type}, which records hold not")
            fields.append(one)
        depth = 1 + max((self.depths.get(one.type.name, 0) for one in fields), default=0)
        if not fields or depth > _DEEPEST_RECORD:
            raise self.error(f"the record `{name}` has no fields, or is nested too deeply")
        self.depths[name] = depth
        self.records[name] = Record(name, tuple(fields))

    def fields(self) -> tuple[Field, ...]:
        fields: list[Field] = []
        while True:
            optional = self.takes("[")
            if not optional and fields and fields[-1].optional:
                raise self.error("an argument after an optional one must be optional, too")
            one = self.field(fields)
            if optional:
                self.expect("]")
            fields.append(Field(one.name, one.type, optional))
            if not self.takes("&"):
                return tuple(fields)

    def field(self, others: list[Field]) -> Field:
        name = self.name("an argument")
        if any(other.name == name for other in others) or len(others) == _MOST_FIELDS:
            raise self.error(f"`{name}` is there already, or one of too many")
        self.expect(":")
        return Field(name, self.type(_DEEPEST_LIST))

    def type(self, depth: int) -> Type:
        word = self.name("a type")
        if word == "list":
            if not depth:
                raise self.error("lists are nested too deeply")
            self.expect("<")
            element = self.type(depth - 1)
            self.expect(">")
            return Type("list", element)
        if word not in WORDS and word not in self.records:
            raise self.error(f"`{word}` is neither a type nor a record defined before")
        return Type(word) if word in WORDS else Type("record", name=word)
