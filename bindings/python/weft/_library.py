"""The C libraries of weft, as ctypes sees them."""

import ctypes
import math
import operator
import os

#: The longest time that C can be told, in milliseconds: 24 days.
_LONGEST_TIME = 2**31 - 1


def load(name, variable, signatures):
    """The library called ``name``, or the one that the environment's ``variable`` names; ``signatures`` has
    the type of the result and those of the arguments of each function."""
    try:
        library = ctypes.CDLL(os.environ.get(variable, name))
    except OSError as error:
        raise ImportError(
            f"a C library of weft cannot be loaded ({error}): install {name}, or name it in {variable}"
        ) from error
    for function, (result, arguments) in signatures.items():
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    return library


def milliseconds(timeout):
    """C's form of a timeout: None waits for ever, as infinity does, and a part of a millisecond counts as a
    whole one."""
    if timeout is None or timeout == math.inf:
        return -1
    if timeout <= 0:
        return 0
    return min(-int(-timeout * 1000 // 1), _LONGEST_TIME)


def patience(timeout):
    """C's form of the time to wait for somebody who may not be there: None is what is usual, and nobody
    waits for ever."""
    return _LONGEST_TIME if timeout == math.inf else milliseconds(timeout)


def number(value, most, what):
    """An integer that C takes as it is: ctypes would cut off what does not fit."""
    value = operator.index(value)
    if not 0 <= value <= most:
        raise ValueError(f"{what} {value} is not among 0 to {most}")
    return value


def c_string(value, what):
    """A text, or the name of a file, that C takes as it is: there it would end at the first NUL."""
    value = os.fsencode(value)
    if 0 in value:
        raise ValueError(f"{what} has a NUL in it")
    return value
