"""XRLs from Python: calling the components of a node, and being one.

    from weft.xrl import Node

    with Node("/run/weft/r1") as node:
        for process in node.call("manager", "manager/1.0/processes")["processes"]:
            print(process["instance"], process["state"])

`Component` makes a component of a program. The handbook's chapter on XRLs has more.
"""

from .calls import Pending
from .component import Component
from .errors import (
    BadArgs,
    CommandFailed,
    ErrorCode,
    InternalError,
    NoFinder,
    NoSuchMethod,
    ReplyTimedOut,
    ResolveFailed,
    SendFailed,
    SendFailedTransient,
    XrlError,
)
from .inherit import Inherited, InheritError, inherited
from .node import Node
from .statement import ConfigError, Statement, parse_statements
from .text import Id, Xrl
from .xif import Interface, XifError

__all__ = [
    "BadArgs",
    "CommandFailed",
    "Component",
    "ConfigError",
    "ErrorCode",
    "Id",
    "InheritError",
    "Inherited",
    "Interface",
    "InternalError",
    "Node",
    "NoFinder",
    "NoSuchMethod",
    "Pending",
    "ReplyTimedOut",
    "ResolveFailed",
    "SendFailed",
    "SendFailedTransient",
    "Statement",
    "XifError",
    "Xrl",
    "XrlError",
    "inherited",
    "parse_statements",
]
