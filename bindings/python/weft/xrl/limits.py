"""Ranges that the arguments of a call must be in.

Reference: Handley et al. (XORP), section 7. The Finder sends rules with each key that it gives a caller:

    rules = rule *( blank rule )
    rule  = argument [ "." field ] "=" range *( "|" range )
    range = number ".." number | prefix | text with "*" | value

Every element of a list must be in a range. An argument that is left out breaks no rule.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Iterator

from .errors import BadArgs
from .text import write_value
from .xif import Interface, Method, Type

_NUMBER = re.compile(r"[+-]?[0-9]{1,39}\Z")
_NET = re.compile(r"[0-9A-Fa-f:.]+/[0-9]{1,3}\Z")


class Limits:
    """The rules for one caller and one method."""

    def __init__(self, text: str, method: Method, interface: Interface) -> None:
        """Reads rules; BadArgs says which one does not fit the method."""
        self._interface = interface
        self._rules = [_Rule(rule, method, interface) for rule in text.split()]

    def check(self, values: dict[str, Any]) -> None:
        """Checks the arguments of a call; BadArgs says which one is outside."""
        for rule in self._rules:
            value = values.get(rule.argument)
            if value is not None:
                rule.check(value, self._interface)


class _Rule:
    def __init__(self, rule: str, method: Method, interface: Interface) -> None:
        self.name, equals, ranges = rule.partition("=")
        if not equals:
            raise BadArgs(f"the rule `{rule}` has no range; it is `argument=range`")
        self.argument, _, self.field = self.name.partition(".")
        kinds = {field.name: field.type for field in method.args}
        if self.argument not in kinds:
            raise BadArgs(f"the rule `{rule}`: `{method.name}` has no argument `{self.argument}`")
        self.type = kinds[self.argument]
        name = self.type.record
        record = interface.records[name] if name else None
        if record and self.field not in (field.name for field in record.fields):
            raise BadArgs(f"the rule `{rule}`: name a field of `{record.name}`")
        if self.field and not record:
            raise BadArgs(f"the rule `{rule}`: `{self.argument}` has no fields")
        self.ranges = [_range(text) for text in ranges.split("|")]

    def check(self, value: Any, interface: Interface) -> None:
        for text in self._texts(self.type, value, interface):
            if not any(holds(text) for holds in self.ranges):
                raise BadArgs(f"`{self.name}` may not be {text:.200} for this caller")

    def _texts(self, kind: Type, value: Any, interface: Interface) -> Iterator[str]:
        """The texts of a value that the rule is about, as the other side would write them."""
        if kind.kind == "list":
            assert kind.element is not None
            for one in value:
                yield from self._texts(kind.element, one, interface)
        elif kind.kind == "record":
            fields = {field.name: field.type for field in interface.records[kind.name].fields}
            yield write_value(fields[self.field], value[self.field], interface, True)
        else:
            yield write_value(kind, value, interface, True)


def _range(text: str):
    low, dots, high = text.partition("..")
    if dots and _NUMBER.match(low) and _NUMBER.match(high):
        first, last = int(low), int(high)
        return lambda found: bool(_NUMBER.match(found)) and first <= int(found) <= last
    net = _network(text)
    if net is not None:
        return lambda found: _is_inside(net, found)
    if "*" in text:
        parts = text.split("*")
        return lambda found: _is_like(found, parts)
    return lambda found: found == text


def _network(text: str):
    try:
        return ipaddress.ip_network(text, strict=False) if _NET.match(text) else None
    except ValueError:
        return None


def _is_inside(net, text: str) -> bool:
    try:
        inner = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return inner.version == net.version and inner.subnet_of(net)


def _is_like(text: str, parts: list[str]) -> bool:
    """Whether a text is made of `parts` in this order, with anything between them."""
    if not text.startswith(parts[0]):
        return False
    at = len(parts[0])
    for part in parts[1:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return text[at:].endswith(parts[-1])
