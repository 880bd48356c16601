"""The C libraries of weft, as ctypes sees them."""

import ctypes
import os


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
    """C's form of a timeout: None waits for ever, and a part of a millisecond counts as a whole one."""
    if timeout is None:
        return -1
    return min(max(0, -int(-timeout * 1000 // 1)), 2**31 - 1)
