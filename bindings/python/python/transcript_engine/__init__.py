"""Sessions of agents, kept as JSON Lines: read them, continue them, write them.

The functions of ``claude-agent-sdk`` are here under their names; :class:`Session` writes, :func:`follow` reads what
others write, and :func:`search`, :func:`usage`, :func:`verify`, :func:`repair` and :func:`export` are the commands of
the same names. ``docs/operations.md`` lists the options of all functions.
"""

from . import _interpreter as _interpreter  # First: the native part must not be loaded where it is refused.
from ._errors import (
    BusyError,
    ClosedError,
    ExistsError,
    ForkedError,
    InternalError,
    InvalidError,
    NotFoundError,
    NotResumableError,
    TranscriptError,
)
from . import _functions
from ._functions import *
from ._records import Records
from ._sdk import (
    ForkSessionResult,
    Policy,
    Provider,
    SDKSessionInfo,
    SessionMessage,
    archive_session,
    delete_session,
    fork_session,
    get_session_info,
    get_session_messages,
    get_subagent_messages,
    iter_session_messages,
    list_sessions,
    list_subagents,
    rename_session,
    tag_session,
    unarchive_session,
)
from ._session import (
    AsyncSession,
    Compacted,
    PromptChanges,
    Recorded,
    Resumed,
    Session,
    SessionOptions,
    Skipped,
    StreamReply,
    Written,
)
from ._transcript import version as __version__

__all__ = [
    "AsyncSession",
    "BusyError",
    "ClosedError",
    "Compacted",
    "ExistsError",
    "ForkSessionResult",
    "ForkedError",
    "InternalError",
    "InvalidError",
    "NotFoundError",
    "NotResumableError",
    "Policy",
    "PromptChanges",
    "Provider",
    "Recorded",
    "Records",
    "Resumed",
    "SDKSessionInfo",
    "Session",
    "SessionMessage",
    "SessionOptions",
    "Skipped",
    "StreamReply",
    "TranscriptError",
    "Written",
    "__version__",
    "archive_session",
    "delete_session",
    "fork_session",
    "get_session_info",
    "get_session_messages",
    "get_subagent_messages",
    "iter_session_messages",
    "list_sessions",
    "list_subagents",
    "rename_session",
    "tag_session",
    "unarchive_session",
]
__all__ += _functions.__all__
