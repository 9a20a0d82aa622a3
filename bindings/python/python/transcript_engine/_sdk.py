"""The session functions of ``claude-agent-sdk``, under their names and with their types.

Change the import, and the same calls are fast, bounded in memory, and complete on damaged files. With
``policy="vendor"`` conversations are those that the client itself shows. ``docs/bindings.md`` lists the differences.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ._errors import InvalidError, NotFoundError
from ._records import Records, call, every, parsed, parts, several

Path = str | os.PathLike[str]
Places = Path | Iterable[Path]
"""A session, a file or a folder, or several of them."""
Policy = Literal["recover", "vendor"]
"""The rules that rebuild a conversation: with all that evidence gives back, or exactly as the client does."""
Provider = Literal["messages", "converse", "vertex"]
"""The provider of a request: the Messages API, Converse of Amazon Bedrock, or Claude on Google Vertex AI."""


@dataclass
class SDKSessionInfo:
    """A session, as :func:`list_sessions` returns it. Times are in milliseconds since 1970."""

    session_id: str
    summary: str
    """The title, else the last prompt that the client noted, else the first prompt."""
    last_modified: int
    file_size: int | None = None
    custom_title: str | None = None
    first_prompt: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    tag: str | None = None
    created_at: int | None = None


@dataclass
class ForkSessionResult:
    """The session that :func:`fork_session` made."""

    session_id: str


@dataclass(init=False, eq=False, repr=False)
class SessionMessage:
    """A message of a user or an assistant.

    ``message`` is parsed when it is first used; until then the object keeps the texts of all messages that were read with it
    in memory, half a MiB. ``raw`` is the JSON as it is in the file, also after ``message`` was changed in place.
    """

    type: Literal["user", "assistant", "system"]
    uuid: str
    session_id: str
    message: Any
    """The message of the API: role, content, and what else the client wrote."""
    parent_tool_use_id: str | None
    parent_agent_id: str | None
    parent_uuid: str | None
    timestamp: str | None
    is_compact_summary: bool
    """Whether it is the summary that a compaction left."""
    is_queued_command: bool
    """Whether it is a prompt that was queued while the model was working, which then got it within that turn."""
    origin: Any
    """Its author, such as ``{"kind": "human"}``, or ``None``."""

    def __init__(
        self,
        type: Literal["user", "assistant", "system"],
        uuid: str,
        session_id: str,
        message: Any,
        parent_tool_use_id: str | None = None,
        parent_agent_id: str | None = None,
        parent_uuid: str | None = None,
        timestamp: str | None = None,
        is_compact_summary: bool = False,
        is_queued_command: bool = False,
        origin: Any = None,
    ) -> None:
        self.type = type
        self.uuid = uuid
        self.session_id = session_id
        self.message = message
        self.parent_tool_use_id = parent_tool_use_id
        self.parent_agent_id = parent_agent_id
        self.parent_uuid = parent_uuid
        self.timestamp = timestamp
        self.is_compact_summary = is_compact_summary
        self.is_queued_command = is_queued_command
        self.origin = origin

    def __getattr__(self, name: str) -> Any:
        # Called for what the object does not have: the message before it is first used.
        if name != "message" or "_place" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        # From now on the object keeps its own text, and not those of all messages that were read with it.
        text = self.raw
        message = parsed(text)
        self.__dict__.update(message=message, _texts=text, _place=(0, len(text)))
        return message

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "message":
            # The bytes in the file are no longer those of the message.
            self.__dict__.pop("_place", None)
        super().__setattr__(name, value)

    @property
    def raw(self) -> bytes:
        """The JSON of the message, byte for byte as in the file where it was read from one."""
        if "_place" not in self.__dict__:
            return json.dumps(self.message).encode()
        texts: bytes = self.__dict__["_texts"]
        start, end = self.__dict__["_place"]
        return texts[start:end]

    def __getstate__(self) -> dict[str, Any]:
        _ = self.message
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _fields(self) -> tuple[Any, ...]:
        return (
            self.type,
            self.uuid,
            self.session_id,
            self.message,
            self.parent_tool_use_id,
            self.parent_agent_id,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SessionMessage):
            return NotImplemented
        return self._fields() == other._fields()

    def __repr__(self) -> str:
        names = ("type", "uuid", "session_id", "message", "parent_tool_use_id", "parent_agent_id")
        return f"SessionMessage({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _messages(batch: bytes) -> list[SessionMessage]:
    records, texts = parts(batch)
    found: list[SessionMessage] = []
    new = SessionMessage.__new__
    for kind, uuid, parent_uuid, session_id, timestamp, tool_use_id, agent_id, marks, place in records:
        message = new(SessionMessage)
        given: dict[str, Any] = marks or {}
        message.__dict__.update(
            type=kind,
            uuid=uuid,
            session_id=session_id,
            parent_tool_use_id=tool_use_id,
            parent_agent_id=agent_id,
            parent_uuid=parent_uuid,
            timestamp=timestamp,
            is_compact_summary="isCompactSummary" in given,
            is_queued_command="isQueuedCommand" in given,
            origin=given.get("origin"),
            _place=place,
            _texts=texts,
        )
        found.append(message)
    return found


def _path(path: Path | None) -> str | None:
    return None if path is None else os.fspath(path)


def _count(number: int | None) -> int | None:
    """A number that the native part can have."""
    return None if number is None else max(-(2**62), min(int(number), 2**62))


def list_sessions(
    directory: Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,
    *,
    include_programmatic: bool = True,
    root: Places | None = None,
) -> list[SDKSessionInfo]:
    """List sessions, the one that was changed last first: those of the project at ``directory`` and of the other
    worktrees of its repository, or those of all projects. Without ``include_programmatic`` sessions that programs
    started through an SDK are left out.

    ``root`` is the folder of projects, or the name of a root, or a list of them; by default those that the configuration file says.
    """
    rows = every(
        call(
            "listSessions",
            {
                "directory": _path(directory),
                "limit": _count(limit),
                "offset": _count(offset),
                "includeWorktrees": bool(include_worktrees),
                "includeProgrammatic": bool(include_programmatic),
                "root": several(root),
            },
        )
    )
    return [_info(row) for row in rows]


def get_session_info(
    session_id: str,
    directory: Path | None = None,
    *,
    root: Places | None = None,
) -> SDKSessionInfo | None:
    """Describe one session. ``None`` if there is none with this id, or nothing to call it by."""
    rows = every(call("getSessionInfo", _named(session_id, directory, root)))
    return _info(rows[0]) if rows else None


def _info(row: dict[str, Any]) -> SDKSessionInfo:
    return SDKSessionInfo(
        session_id=row["sessionId"],
        summary=row["summary"],
        last_modified=row["lastModified"],
        file_size=row["fileSize"],
        custom_title=row.get("customTitle"),
        first_prompt=row.get("firstPrompt"),
        git_branch=row.get("gitBranch"),
        cwd=row.get("cwd"),
        tag=row.get("tag"),
        created_at=row.get("createdAt"),
    )


def _named(
    session_id: str,
    directory: Path | None,
    root: Places | None,
    **options: Any,
) -> dict[str, Any]:
    return {"sessionId": session_id, "directory": _path(directory), "root": several(root), **options}


def get_session_messages(
    session_id: str,
    directory: Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    *,
    policy: Policy = "recover",
    compacted: bool = False,
    include_system_messages: bool = False,
    root: Places | None = None,
) -> list[SessionMessage]:
    """Return the messages of a session, oldest first; none if there is no such session.

    ``compacted`` includes those before the last compaction, which the model no longer sees, and
    ``include_system_messages`` system entries between the messages, such as the boundaries of compactions; they have
    no ``message``.
    """
    return list(
        iter_session_messages(
            session_id,
            directory,
            limit,
            offset,
            policy=policy,
            compacted=compacted,
            include_system_messages=include_system_messages,
            root=root,
        )
    )


def iter_session_messages(
    session_id: str,
    directory: Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    *,
    policy: Policy = "recover",
    compacted: bool = False,
    include_system_messages: bool = False,
    root: Places | None = None,
) -> Records[SessionMessage]:
    """Return the messages of a session one by one, as :func:`get_session_messages` does all at once: memory does
    not grow with the bytes of the session. Iterate with ``for`` or ``async for``.
    """
    options = _named(
        session_id,
        directory,
        root,
        limit=_count(limit),
        offset=_count(offset),
        policy=policy,
        compacted=compacted,
        includeSystemMessages=include_system_messages,
    )
    return Records("getSessionMessages", options, _messages)


def list_subagents(
    session_id: str,
    directory: Path | None = None,
    *,
    root: Places | None = None,
) -> list[str]:
    """List the ids of the subagents of a session that have a file of their own."""
    return every(call("listSubagents", _named(session_id, directory, root)))


def get_subagent_messages(
    session_id: str,
    agent_id: str,
    directory: Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    *,
    policy: Policy = "recover",
    include_system_messages: bool = False,
    root: Places | None = None,
) -> list[SessionMessage]:
    """Return the messages of a subagent, oldest first; none if there is no such subagent.

    ``include_system_messages`` is that of :func:`get_session_messages`.
    """
    if not agent_id:
        return []
    options = _named(
        session_id,
        directory,
        root,
        agentId=agent_id,
        limit=_count(limit),
        offset=_count(offset),
        policy=policy,
        includeSystemMessages=include_system_messages,
    )
    return list(Records("getSubagentMessages", options, _messages))


def rename_session(
    session_id: str,
    title: str,
    directory: Path | None = None,
    *,
    root: Places | None = None,
) -> None:
    """Set the title of a session.

    Raises :class:`InvalidError` (a ``ValueError``) for what is not a session id or not a title, and
    :class:`NotFoundError` (a ``FileNotFoundError``) if there is no such session.
    """
    _change("renameSession", session_id, directory, root, what="title", title=title)


def tag_session(
    session_id: str,
    tag: str | None,
    directory: Path | None = None,
    *,
    root: Places | None = None,
) -> None:
    """Set the tag of a session; ``None`` clears it. Raises as :func:`rename_session`."""
    _change("tagSession", session_id, directory, root, what="tag", tag=tag)


def archive_session(session_id: str, directory: Path | None = None, *, root: Places | None = None) -> None:
    """Mark a session as archived: it stays where it is, and a prompt that is written in it later unmarks it. Raises as
    :func:`rename_session`.
    """
    _change("setArchived", session_id, directory, root, what="session", archived=True)


def unarchive_session(session_id: str, directory: Path | None = None, *, root: Places | None = None) -> None:
    """Unmark a session that was marked as archived. Raises as :func:`rename_session`."""
    _change("setArchived", session_id, directory, root, what="session", archived=False)


def delete_session(
    session_id: str,
    directory: Path | None = None,
    *,
    root: Places | None = None,
) -> None:
    """Delete a session with its subagents. Raises as :func:`rename_session`."""
    _change("deleteSession", session_id, directory, root)


def fork_session(
    session_id: str,
    directory: Path | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
    *,
    policy: Policy = "recover",
    root: Places | None = None,
) -> ForkSessionResult:
    """Copy the conversation of a session into a new one, up to and including the entry ``up_to_message_id``.

    Raises as :func:`rename_session`, also when the session has no such entry or nothing to copy.
    """
    if up_to_message_id and not _is_uuid(up_to_message_id):
        raise InvalidError(f"Invalid up_to_message_id: {up_to_message_id}", kind="not-an-id")
    rows = _change(
        "forkSession",
        session_id,
        directory,
        root,
        what="message",
        upToMessageId=up_to_message_id or None,
        title=title,
        policy=policy,
    )
    return ForkSessionResult(session_id=rows[0]["sessionId"])


def _is_uuid(text: str) -> bool:
    digits = text.split("-")
    return [len(part) for part in digits] == [8, 4, 4, 4, 12] and all(
        digit in "0123456789abcdefABCDEF" for part in digits for digit in part
    )


def _change(
    function: str,
    session_id: str,
    directory: Path | None,
    root: Places | None,
    *,
    what: str = "",
    **options: Any,
) -> list[Any]:
    """Run a function that changes a session, with errors in the words of the SDK."""
    try:
        return every(call(function, _named(session_id, directory, root, **options)))
    except NotFoundError as error:
        where = f" in project directory for {directory}" if directory else ""
        if error.path is not None and not os.path.isdir(error.path):
            where = ": no projects directory"
        error.args = (f"Session {session_id} not found{where}",)
        raise
    except InvalidError as error:
        if error.kind == "not-an-id":
            error.args = (f"Invalid session_id: {session_id}",)
        elif error.kind == "blank":
            hint = " (use None to clear)" if what == "tag" else ""
            error.args = (f"{what} must be non-empty{hint}",)
        elif error.kind == "unknown-entry":
            error.args = (f"Message {options['upToMessageId']} not found in session {session_id}",)
        raise
