"""XRLs, arguments and values as text.

Reference: Handley et al. (XORP), section 6.1; percent-encoding: RFC 3986, section 2.1. The grammar is
in the handbook's chapter on XRLs.

| type | in Python |
|---|---|
| i32 u32 i64 u64 | int |
| fp64 | float |
| bool | bool |
| txt, mac | str |
| binary | bytes |
| ip ipv4 ipv6 | ipaddress.IPv4Address or IPv6Address |
| ipnet ipv4net ipv6net | ipaddress.IPv4Interface or IPv6Interface; `.network` is the network |
| id | Id |
| list<T> | list |
| a record | dict |

A network, or text, is taken in place of an interface or an address.
"""

from __future__ import annotations

import decimal
import ipaddress
import math
import re
from dataclasses import dataclass
from typing import Any, Iterable, NamedTuple

from .errors import BadArgs
from .xif import Field, Interface, Method, Type, Version, XifError, is_name

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/@!*$")
_ESCAPED = [chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in range(256)]
_UNESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})?")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f]")

_RANGES = {
    "i32": (-(1 << 31), (1 << 31) - 1),
    "u32": (0, (1 << 32) - 1),
    "i64": (-(1 << 63), (1 << 63) - 1),
    "u64": (0, (1 << 64) - 1),
}
_SIGNED = re.compile(r"[+-]?[0-9]+\Z")
_UNSIGNED = re.compile(r"\+?[0-9]+\Z")
_REAL = re.compile(
    r"[+-]?(?:inf|infinity|nan|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?)\Z", re.IGNORECASE
)
_MAC = re.compile(r"[0-9A-Fa-f]{1,2}(?::[0-9A-Fa-f]{1,2}){5}\Z")
_ID = re.compile(r"([0-9]{1,5}):((?:[0-9A-Fa-f]{2}){0,255})\Z")
_PREFIX = re.compile(r"[0-9]{1,3}\Z")


class Id(NamedTuple):
    """An identifier of another network: an XID, a name prefix. The family says what the bytes mean."""

    family: int
    bytes: bytes

    def __str__(self) -> str:
        return f"{self.family}:{self.bytes.hex()}"


def escape(data: bytes) -> str:
    """Bytes, written so that no separator is among them."""
    return "".join(map(_ESCAPED.__getitem__, data))


def unescape(text: str) -> bytes:
    """The bytes that escaped text stands for."""
    if _FORBIDDEN.search(text):
        raise BadArgs("a blank or control character; write %20 for a blank")

    def one(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            raise BadArgs("two hexadecimal digits must follow `%`")
        return bytes((int(found[1], 16),))

    try:
        return _UNESCAPE.sub(one, text.encode())
    except UnicodeEncodeError:
        raise BadArgs("the text is not UTF-8") from None


# Values to text.


def write_value(kind: Type, value: Any, interface: Interface, inside: bool = False) -> str:
    """The text of a value; `inside` says that it is part of another one."""
    if kind.kind == "list":
        return _write_list(kind, value, interface, inside)
    if kind.kind == "record":
        return _write_record(kind, value, interface)
    try:
        return _write_plain(kind.kind, value)
    except (TypeError, ValueError, UnicodeError):
        raise BadArgs(f"{value!r:.200} is no {kind}") from None


def _write_list(kind: Type, value: Any, interface: Interface, inside: bool) -> str:
    assert kind.element is not None
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
        raise BadArgs(f"{value!r:.200} is no {kind}")
    pieces = [write_value(kind.element, one, interface, True) for one in value]
    text = ",".join(pieces)
    if pieces and not pieces[-1]:
        # Only so is a last, empty text told from none.
        text += ","
    return f"[{text}]" if inside else text


def _write_record(kind: Type, value: Any, interface: Interface) -> str:
    record = interface.records[kind.name]
    names = [field.name for field in record.fields]
    if not isinstance(value, dict) or set(value) != set(names):
        raise BadArgs(f"a {kind} is a dict with {', '.join(names)}; found {value!r:.200}")
    fields = (
        f"{field.name}={write_value(field.type, value[field.name], interface, True)}"
        for field in record.fields
    )
    return f"({';'.join(fields)})"


def _write_plain(kind: str, value: Any) -> str:
    if kind in _RANGES:
        low, high = _RANGES[kind]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError
        return str(int(value))
    if kind == "fp64":
        if isinstance(value, bool):
            raise ValueError
        return _real_text(float(value))
    if kind == "bool":
        if not isinstance(value, bool):
            raise ValueError
        return "true" if value else "false"
    if kind == "txt":
        if not isinstance(value, str):
            raise ValueError
        return escape(value.encode())
    if kind == "binary":
        if isinstance(value, (str, int)):
            raise ValueError
        return escape(bytes(value))
    if kind == "id":
        family, data = value
        return str(_id(f"{int(family)}:{bytes(data).hex()}"))
    if kind == "handle":
        raise BadArgs("a descriptor cannot be written as text")
    return plain_text(_read_plain(kind, str(value)))


def _real_text(value: float) -> str:
    """A number without exponent, in the fewest digits that tell it from all others."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else str(value)
    text = format(decimal.Decimal(repr(value)), "f")
    return text.removesuffix(".0")


def plain_text(value: Any) -> str:
    """The text of an address, a prefix or anything else whose text has no separators."""
    if isinstance(value, (ipaddress.IPv4Interface, ipaddress.IPv6Interface)):
        return f"{plain_text(value.ip)}/{value.network.prefixlen}"
    if isinstance(value, ipaddress.IPv6Address) and value.ipv4_mapped:
        return f"::ffff:{value.ipv4_mapped}"
    return str(value)


# Text to values.


def read_value(kind: Type, text: str, interface: Interface, inside: bool = False) -> Any:
    """The value that a text stands for; BadArgs says what is wrong."""
    if kind.kind == "list":
        return _read_list(kind, text, interface, inside)
    if kind.kind == "record":
        return _read_record(kind, text, interface)
    if kind.kind == "handle":
        raise BadArgs("a descriptor cannot be written as text")
    data = unescape(text)
    if kind.kind == "binary":
        return data
    try:
        plain = data.decode()
        return _read_plain(kind.kind, plain)
    except UnicodeDecodeError:
        raise BadArgs("the value is not UTF-8") from None
    except ValueError:
        raise BadArgs(f"`{plain:.200}` is no {kind}") from None


def _read_list(kind: Type, text: str, interface: Interface, inside: bool) -> list[Any]:
    assert kind.element is not None
    if inside:
        if len(text) < 2 or text[0] != "[" or text[-1] != "]":
            raise BadArgs("a list inside a value stands in brackets")
        text = text[1:-1]
    return [read_value(kind.element, piece, interface, True) for piece in _split(text, ",")]


def _read_record(kind: Type, text: str, interface: Interface) -> dict[str, Any]:
    record = interface.records[kind.name]
    form = ";".join(f"{field.name}=…" for field in record.fields)
    if len(text) < 2 or text[0] != "(" or text[-1] != ")":
        raise BadArgs(f"a {kind} is written as ({form})")
    pieces = _split(text[1:-1], ";")
    if len(pieces) != len(record.fields):
        raise BadArgs(f"a {kind} is written as ({form})")
    value = {}
    for field, piece in zip(record.fields, pieces):
        name, equals, rest = piece.partition("=")
        if name != field.name or not equals:
            raise BadArgs(f"expected `{field.name}=`; a {kind} is written as ({form})")
        value[name] = read_value(field.type, rest, interface, True)
    return value


def _read_plain(kind: str, text: str) -> Any:
    if kind == "txt":
        return text
    if kind in _RANGES:
        low, high = _RANGES[kind]
        pattern = _UNSIGNED if kind[0] == "u" else _SIGNED
        # Leading zeros are allowed, but nothing that would take long to read.
        digits = text.lstrip("+-").lstrip("0")
        if not pattern.match(text) or len(digits) > 20 or not low <= int(text) <= high:
            raise ValueError
        return int(text)
    if kind == "fp64":
        if not _REAL.match(text):
            raise ValueError
        return float(text)
    if kind == "bool":
        return {"true": True, "false": False}[text] if text in ("true", "false") else _wrong()
    if kind == "mac":
        if not _MAC.match(text):
            raise ValueError
        return ":".join(f"{int(part, 16):02x}" for part in text.split(":"))
    if kind == "id":
        return _id(text)
    return _address(kind, text)


def _wrong() -> Any:
    raise ValueError


def _id(text: str) -> Id:
    found = _ID.match(text)
    if not found or int(found[1]) > 0xFFFF:
        raise ValueError
    return Id(int(found[1]), bytes.fromhex(found[2]))


_ADDRESSES = {
    "ip": ipaddress.ip_address,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "ipnet": ipaddress.ip_interface,
    "ipv4net": ipaddress.IPv4Interface,
    "ipv6net": ipaddress.IPv6Interface,
}


def _address(kind: str, text: str) -> Any:
    if kind.endswith("net"):
        _, slash, length = text.partition("/")
        if not slash or not _PREFIX.match(length):
            raise ValueError
    if len(text) > 64 or not text.isascii() or "%" in text:
        raise ValueError
    return _ADDRESSES[kind](text)


def _split(text: str, separator: str) -> list[str]:
    """The pieces between separators that stand outside of brackets."""
    pieces, start, depth = [], 0, 0
    for found in re.finditer(r"[()\[\],;]", text):
        char = found[0]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
            if depth < 0:
                raise BadArgs(f"`{char}` without a beginning")
        elif char == separator and not depth:
            pieces.append(text[start : found.start()])
            start = found.end()
    if depth:
        raise BadArgs("a bracket is not closed")
    # What is empty behind the last separator is no element, so that an empty list is empty text.
    if start < len(text):
        pieces.append(text[start:])
    return pieces


# Arguments.


class Argument(NamedTuple):
    """One argument in text."""

    name: str
    type: Type
    #: As it stands in the text; None in a specification.
    value: str | None

    def __str__(self) -> str:
        text = f"{self.name}:{self.type}"
        return text if self.value is None else f"{text}={self.value}"


def parse_arguments(text: str) -> list[Argument]:
    """Reads `name:type=value&…`."""
    args: dict[str, Argument] = {}
    for piece in text.split("&") if text else ():
        front, equals, value = piece.partition("=")
        name, colon, word = front.partition(":")
        if not colon:
            raise BadArgs("an argument is `name:type=value`, such as `as:u32=65001`")
        kind = Type.of(word)
        if not is_name(name) or kind is None:
            raise BadArgs(f"`{front:.200}` is no name and type of an argument")
        if name in args:
            raise BadArgs(f"the argument `{name}` is there twice")
        args[name] = Argument(name, kind, value if equals else None)
    return list(args.values())


def read_arguments(
    text: str, fields: Iterable[Field], interface: Interface, newer: bool = False
) -> dict[str, Any]:
    """The values that arguments in text stand for. What is left out is None. Arguments that are not
    known are an error, unless they may be those of a `newer` version."""
    fields = tuple(fields)
    args = {arg.name: arg for arg in parse_arguments(text)}
    unknown = set(args) - {field.name for field in fields}
    if unknown and not newer:
        names = "&".join(map(str, fields)) or "none"
        raise BadArgs(f"there is no argument `{min(unknown)}`; the arguments are: {names}")
    values: dict[str, Any] = {}
    for field in fields:
        arg = args.get(field.name)
        if arg is None:
            if not field.optional:
                raise BadArgs(f"the argument `{field}` is missing")
            values[field.name] = None
        elif arg.type != field.type:
            raise BadArgs(f"`{field.name}` is a {field.type}, not a {arg.type}")
        elif arg.value is None:
            raise BadArgs(f"`{field.name}` has no value")
        else:
            values[field.name] = read_value(field.type, arg.value, interface)
    return values


def write_arguments(
    values: dict[str, Any], fields: Iterable[Field], interface: Interface
) -> str:
    """Arguments as text `name:type=value&…`; what may be left out may be missing or None."""
    fields = tuple(fields)
    unknown = set(values) - {field.name for field in fields}
    if unknown:
        names = "&".join(map(str, fields)) or "none"
        raise BadArgs(f"there is no argument `{min(unknown)}`; the arguments are: {names}")
    pieces = []
    for field in fields:
        value = values.get(field.name)
        if value is None:
            if not field.optional:
                raise BadArgs(f"the argument `{field}` is missing")
            continue
        pieces.append(f"{field.name}:{field.type}={write_value(field.type, value, interface)}")
    return "&".join(pieces)


@dataclass(frozen=True)
class Xrl:
    """An XRL that the Finder has to resolve."""

    target: str
    interface: str
    version: Version
    method: str
    #: The arguments, as they stand in the text.
    arguments: str = ""

    @property
    def path(self) -> str:
        """`interface/1.0/method`"""
        return f"{self.interface}/{self.version}/{self.method}"

    @staticmethod
    def parse(text: str) -> Xrl:
        """Reads `finder://target/interface/1.0/method?arguments`; ValueError says what is wrong."""
        front, _, _returns = text.partition("->")
        head, _, arguments = front.partition("?")
        protocol, separator, rest = head.partition("://")
        parts = rest.split("/")
        if protocol != "finder" or not separator or len(parts) != 4:
            raise ValueError("an XRL is finder://target/interface/version/method?arguments")
        target, interface, version, method = parts
        if not target or not target.isprintable() or " " in target:
            raise ValueError("the target is empty or has blanks")
        for name in (interface, method):
            if not is_name(name):
                raise ValueError(f"`{name}` is no name of an interface or a method")
        parse_arguments(arguments)
        try:
            return Xrl(target, interface, Version.parse(version), method, arguments)
        except XifError as error:
            raise ValueError(str(error)) from None


def find_method(interfaces: Iterable[Interface], path: str) -> tuple[Interface, Method] | None:
    """The method that a path `interface/version/method` names."""
    name, _, rest = path.partition("/")
    version, _, method = rest.partition("/")
    try:
        wanted = Version.parse(version)
    except XifError:
        return None
    for one in interfaces:
        if one.name == name and one.version.answers(wanted) and method in one.methods:
            return one, one.methods[method]
    return None
