"""Refuses to be imported in a sub-interpreter of CPython: the native part keeps state of the process."""

from __future__ import annotations

import importlib
import sys
from typing import cast


def _number(interpreter: object) -> object:
    if isinstance(interpreter, tuple):
        return cast("tuple[object, ...]", interpreter)[0]
    return interpreter


def _is_main() -> bool:
    # Internal modules of CPython since 3.8, the first since 3.13. Their ids may be tuples.
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters = importlib.import_module(name)
            current, main = interpreters.get_current(), interpreters.get_main()
        except (ImportError, AttributeError):
            continue
        return bool(_number(current) == _number(main))
    return True


if sys.implementation.name == "cpython" and not _is_main():
    raise ImportError(
        "transcript cannot be used in a sub-interpreter: import it in the main interpreter, or in a process of its own"
    )
