"""The exceptions of this package, one class for each kind of failure that a caller may handle."""

from __future__ import annotations

import errno
import json
from typing import Any


class TranscriptError(Exception):
    """Anything that went wrong: ``path`` names the file, and nothing quotes the content of an entry."""

    kind: str
    """The stable name of what went wrong, such as ``not-found`` or ``busy``."""
    path: str | None
    """The file, or the folder that was searched."""
    line: int | None
    """The number of the line, from 1."""
    offset: int | None
    """The offset in the file, in bytes."""
    retryable: bool
    """Whether the same call may succeed later."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "error",
        path: str | None = None,
        line: int | None = None,
        offset: int | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.path = path
        self.line = line
        self.offset = offset
        self.retryable = retryable


class NotFoundError(TranscriptError, FileNotFoundError):
    """There is no such session, file or archive."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.errno, self.filename = errno.ENOENT, self.path

    def __str__(self) -> str:
        return str(self.args[0])


class ExistsError(TranscriptError, FileExistsError):
    """The file to write exists."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.errno, self.filename = errno.EEXIST, self.path

    def __str__(self) -> str:
        return str(self.args[0])


class InvalidError(TranscriptError, ValueError):
    """An argument, an entry or a query cannot be used."""


class BusyError(TranscriptError):
    """Another process writes to the session."""


class NotResumableError(TranscriptError):
    """A client would not continue the session."""


class ClosedError(TranscriptError):
    """The session was closed before."""


class ForkedError(TranscriptError):
    """The object belongs to the parent of this process: open it again."""


class InternalError(TranscriptError):
    """A defect of this package. The session is as it was before the call."""


_CLASSES = {
    one.__name__: one
    for one in (
        TranscriptError,
        NotFoundError,
        ExistsError,
        InvalidError,
        BusyError,
        NotResumableError,
        ClosedError,
        ForkedError,
        InternalError,
    )
}
"""The exceptions by their names. Which kinds of failures each is for is said by the engine."""


def error_of(failure: str) -> TranscriptError:
    """Make the exception of a failure, which is JSON."""
    fields: dict[str, Any] = json.loads(failure)
    message: str = fields.pop("message")
    name: str = fields.pop("class")
    return _CLASSES.get(f"{name}Error", TranscriptError)(message, **fields)
