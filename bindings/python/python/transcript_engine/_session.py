"""Sessions that are open for writing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, cast

from . import _transcript  # pyright: ignore[reportPrivateUsage]
from ._records import Json, parsed, several, waiting
from ._sdk import Policy, Provider
from .records import Costs, EntryPreview, PathState, RequestRecord, StoryPreview, Usage

Path = str | os.PathLike[str]
Entry = Mapping[str, Any] | str | bytes | bytearray | memoryview
"""An entry: an object, or its JSON, which is written as it is."""
Sync = Literal["none", "each"] | int
"""When written lines are synced to the disk: never by itself, before an append returns, or that many milliseconds
later."""
OnBusy = Literal["fail", "share", "fork"]
"""The action when another process writes to the session."""


if TYPE_CHECKING:
    from typing_extensions import Unpack


class SessionOptions(TypedDict, total=False):
    """The options for opening a session: those of :meth:`Session.create` and the other methods that open one."""

    cwd: Path | None
    """The working folder of entries that name none."""
    version: str | None
    """The client version of entries that name none."""
    git_branch: str | None
    """The git branch of entries that name none."""
    entrypoint: str | None
    """The way in which the client was started, such as ``cli`` or ``sdk-py``, for entries that do not say it."""
    model: str | None
    """The model that requests are for."""
    tools: Iterable[str] | None
    """The names of the tools that requests have: references to others, which a tool search left, are omitted."""
    fit: int | str | None
    """The maximum length of requests: see :func:`transcript.request`."""
    fit_turns: int | None
    """The number of turns at the end that ``fit`` never changes; 2 by default."""
    provider: Provider | None
    """The provider of requests: see :func:`transcript.request`."""
    session_id: str | None
    """The session id of entries that have none; the id of the session by default."""
    policy: Policy
    """The policy by which the conversation is rebuilt; ``recover`` by default."""
    prices: Path | None
    """A file of prices in the form of LiteLLM, for the replies that are counted."""
    sync: Sync | None
    """When written bytes are synced; 100 milliseconds later by default."""
    on_busy: OnBusy
    """The action when another process writes to the session; ``fail`` by default."""
    root: Path | Iterable[Path] | None
    """The folder of projects, or the name of a root; or several of them, of which a new session needs one."""


class Written(NamedTuple):
    """An entry that is in the file."""

    uuid: str | None
    parent_uuid: str | None
    offset: int
    len: int


class Skipped(NamedTuple):
    """Messages of one type that ``record`` did not append, for one reason.

    ``reason`` is ``not-stored``, ``tombstoned`` or ``unknown-entry``, ``first`` the place of the first of them in the
    list, from 0.
    """

    type: str
    reason: str
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]
    first: int


class Recorded(list[Written]):
    """The entries that ``record`` appended, and what it skipped, apart from messages that the session has."""

    skipped: list[Skipped]

    def __init__(self, entries: Iterable[Written], skipped: Iterable[Skipped]) -> None:
        super().__init__(entries)
        self.skipped = list(skipped)


class Compacted(NamedTuple):
    """The entries that a compaction wrote."""

    boundary: Written
    summary: Written


class PromptChanges(NamedTuple):
    """The differences between two system prompts, as names of sections."""

    added: list[str]
    """The sections that only the new prompt has."""
    removed: list[str]
    """The sections that only the old prompt has."""
    changed: list[str]
    """The sections that both have, with different texts."""
    is_rearranged: bool
    """Whether all sections are equal, but not their order or the separator."""


class Resumed(NamedTuple):
    """The state of a session that was resumed."""

    request: RequestRecord
    """``messages`` for the API, ``model``, and whether a strict provider accepts them."""
    added: list[str | None]
    """The uuids of the entries that complete an interrupted turn; they are in the file."""
    forked_from: str | None
    """The session that this one is a copy of, if another process was writing to that."""


def _json(entry: Entry) -> str:
    """An entry in a command. What is JSON already is a string there, so that it cannot end the command."""
    if isinstance(entry, (bytes, bytearray, memoryview)):
        entry = str(entry, "utf-8")
    if isinstance(entry, str):
        return json.dumps(entry, ensure_ascii=False)
    return json.dumps(entry, allow_nan=False, default=_object)


def _object(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"an entry cannot have a {type(value).__name__}")


def _append(
    entry: Entry | None, user: str | None, assistant: Entry | None, client: Mapping[str, Any] | None
) -> str:
    if (entry is None) + (user is None) + (assistant is None) + (client is None) != 3:
        raise TypeError("an entry, user, assistant or client is needed, and only one of them")
    if client is not None:
        return f'"client":{_json(client)}}}'
    if user is not None:
        return f'"user":{json.dumps(user)}}}'
    if assistant is not None:
        return f'"assistant":{_json(assistant)}}}'
    assert entry is not None
    return f'"entry":{_json(entry)}}}'


def _list(entries: Iterable[Entry]) -> str:
    if isinstance(entries, (str, bytes, bytearray, memoryview, Mapping)):
        raise TypeError("a list of entries is needed, not one entry")
    return ",".join(map(_json, entries))


def _written(answer: str) -> list[Written]:
    return [
        Written(entry["uuid"], entry["parentUuid"], entry["offset"], entry["len"])
        for entry in parsed(answer)["entries"]
    ]


def _recorded(answer: str) -> Recorded:
    skipped = parsed(answer).get("skipped", [])
    return Recorded(
        _written(answer), (Skipped(one["type"], one["reason"], one["count"], one["first"]) for one in skipped)
    )


_NAMES = {
    "cwd": "cwd",
    "version": "version",
    "git_branch": "gitBranch",
    "entrypoint": "entrypoint",
    "model": "model",
    "tools": "tools",
    "fit": "fit",
    "fit_turns": "fitTurns",
    "provider": "provider",
    "session_id": "sessionId",
    "policy": "policy",
    "prices": "prices",
    "sync": "sync",
    "on_busy": "onBusy",
    "root": "root",
}
"""The names of :class:`SessionOptions` in a command."""


def _options(mode: str, session: Path | None, options: Mapping[str, Any]) -> str:
    unknown = [name for name in options if name not in _NAMES]
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}")
    values = {_NAMES[name]: value if name == "tools" else _value(value) for name, value in options.items()}
    values |= {"mode": mode, "session": _value(session), "tools": several(options.get("tools"))}
    values["root"] = None if options.get("root") is None else [_value(root) for root in several(options["root"]) or ()]
    return json.dumps({name: value for name, value in values.items() if value is not None})


def _value(value: Any) -> Any:
    """An option as JSON has it: paths are texts."""
    return os.fspath(cast("os.PathLike[str]", value)) if isinstance(value, os.PathLike) else value


def _agent_options(
    agent_id: str, agent_type: str, tool_use_id: str, description: str | None, parent_agent_id: str | None
) -> str:
    options = {
        "agentId": agent_id,
        "agentType": agent_type,
        "toolUseId": tool_use_id,
        "description": description,
        "parentAgentId": parent_agent_id,
    }
    return json.dumps({name: value for name, value in options.items() if value is not None})


class StreamReply:
    """Assembles a message from the events of a streamed reply, wherever the stream is cut."""

    def __init__(self) -> None:
        self._native = _transcript.StreamReply()

    def event(self, event: Mapping[str, Any] | str) -> tuple[str, int | None]:
        """Apply an event. Returns its effect (``start``, ``block-start``, ``delta``, ``block-stop``,
        ``message-delta``, ``stop``, ``error``, ``nothing``) and the number of the block that it concerns.
        """
        return self._native.event(event if isinstance(event, str) else json.dumps(event))

    def push(self, data: bytes | bytearray | memoryview) -> bool:
        """Apply the events in the next bytes of a stream of server-sent events. Returns whether it is over."""
        return self._native.push(bytes(data))

    @property
    def is_over(self) -> bool:
        """Whether the message is complete or the stream ended with an error."""
        return self._native.is_over

    def result(self) -> Json:
        """Return the part of the reply that was received so far: ``state`` (``whole``, ``partial``, ``nothing``),
        ``message``, ``error``, and ``toolCalls`` with ``id``, ``name`` and ``input``.

        Before the reply is whole, ``message`` is ``None`` and ``toolCalls`` is empty; the received part is in
        ``partialMessage`` and ``partialCalls``. Show these, but never run them: their input may be a part of what the
        model wrote. ``partialCalls`` also has a call that the model could not finish, as at its limit of tokens.
        """
        return parsed(self._native.json())

    @property
    def native(self) -> _transcript.StreamReply:
        """For :meth:`Session.append_reply`."""
        return self._native


class _Open:
    """The common part of both kinds of sessions."""

    def __init__(self, opened: tuple[_transcript.Session, str]) -> None:
        self._native, text = opened
        about: Json = parsed(text)
        self._resumed = (
            Resumed(about["request"], about["added"], about["forkedFrom"]) if "request" in about else None
        )
        self._session_id: str | None = about.get("sessionId")
        self._restored: int = about.get("restored", 0)
        self._repair: Json | None = about.get("repair")

    @property
    def path(self) -> str:
        """The file of the session. It does not exist before the first entry."""
        return os.fspath(self._native.path)

    @property
    def session_id(self) -> str:
        """The id of the session: the name of its file, unless it was given another."""
        return self._session_id or self._native.path.stem

    @property
    def resumed(self) -> Resumed | None:
        """Of a session that was resumed: its request, and the entries that were added to the file."""
        return self._resumed

    @property
    def repair(self) -> Json | None:
        """The repair of the end of the file when it was opened, after a kill or a full disk: ``kind`` (``completed``,
        ``cut``, ``sealed``), ``offset``, ``len``, and the file in which cut bytes were ``saved``.
        """
        return self._repair

    @property
    def restored(self) -> int:
        """The number of entries from damaged lines that were written again when the session was opened."""
        return self._restored


class Session(_Open):
    """A session that is open for writing.

    What :meth:`append` returned survives the end of this process, whatever the cause; :meth:`sync` and :meth:`close`
    make it survive a power cut. May be used from several threads. After ``os.fork`` a child must open it again.
    """

    @classmethod
    def create(cls, path: Path | None = None, **options: Unpack[SessionOptions]) -> Session:
        """Create a session, without ``path`` in the project of ``cwd``. Its file appears with the first entry."""
        return cls(_transcript.open(_options("create", path, options)))

    @classmethod
    def open(cls, session: Path, **options: Unpack[SessionOptions]) -> Session:
        """Open a session at the leaf of its conversation. ``session`` is a path, an id, or the start of one."""
        return cls(_transcript.open(_options("open", session, options)))

    @classmethod
    def open_or_create(cls, path: Path, **options: Unpack[SessionOptions]) -> Session:
        """Open the session at ``path``, or create it."""
        return cls(_transcript.open(_options("openOrCreate", path, options)))

    @classmethod
    def resume(cls, session: Path, **options: Unpack[SessionOptions]) -> Session:
        """Open a session and build the request that continues it: :attr:`resumed`. Interrupted calls get results
        first, so that a provider accepts the request.
        """
        return cls(_transcript.open(_options("resume", session, options)))

    def append(
        self,
        entry: Entry | None = None,
        *,
        user: str | None = None,
        assistant: Entry | None = None,
        client: Mapping[str, Any] | None = None,
    ) -> list[Written]:
        """Append an entry, the text of a user, a message of the API, which has an entry for each block, or what a
        person did in a client.

        ``client`` has one name with its fields: ``interrupt`` (``toolUse``), ``rejection`` (``call``, ``by``:
        ``person``, ``subagent`` or ``automatic``, ``reason``), ``cancelled`` (``call``), ``command`` (``name``,
        ``arguments``, ``stdout``, ``stderr``), ``shell`` (``command``, ``stdout``, ``stderr``), ``memoryNote``
        (``text``), ``prompt`` (``references``, ``text``). A command is written with the note before it and its output.

        What no reader would find in the conversation is refused: an entry of a misspelt type or without a message
        (``invalid-entry``), a result for a call that the conversation does not have (``unknown-call``) or that has one
        (``answered-call``).
        """
        return _written(self._native.run('{"op":"append",' + _append(entry, user, assistant, client)))

    def append_all(self, entries: Iterable[Entry]) -> list[Written]:
        """Append entries in one write: all of them or none."""
        return _written(self._native.run(f'{{"op":"appendAll","entries":[{_list(entries)}]}}'))

    def append_reply(self, reply: StreamReply) -> list[Written]:
        """Append the received part of a streamed reply.

        The entries of a partial one are marked, and so is a call whose input is a part: the next request tells the
        model that it did not run.
        """
        return _written(self._native.append_reply(reply.native))

    def append_tool_result(
        self,
        call: str,
        content: str | Iterable[Mapping[str, Any]],
        *,
        is_error: bool = False,
        tool_use_result: Any = None,
    ) -> Written:
        """Append the result of the call with this id: a text, or content blocks of the API.

        ``tool_use_result`` is what the tool returned in its own form, for programs and not for the model.
        """
        return _written(self._native.run(_tool_result(call, content, is_error, tool_use_result)))[0]

    def queue(
        self,
        entry: Entry | None = None,
        *,
        user: str | None = None,
        assistant: Entry | None = None,
        client: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Queue what :meth:`append` takes: it is written within 100 ms, before later appends. Returns its uuid."""
        answer = self._native.run('{"op":"queue",' + _append(entry, user, assistant, client))
        return parsed(answer)["uuid"]

    def record(self, messages: Iterable[Entry]) -> Recorded:
        """Append the messages whose uuid the session does not have yet, in one write.

        Messages that a ``tombstone`` in the list names are removed from the conversation in the same write, or not
        appended.
        """
        return _recorded(self._native.run(f'{{"op":"record","messages":[{_list(messages)}]}}'))

    def compact(
        self,
        summary: str,
        *,
        trigger: Literal["manual", "auto"] = "manual",
        preserved: Iterable[str | int] = (),
        keep_turns: int | None = None,
        pre_tokens: int = 0,
    ) -> Compacted:
        """Restart the conversation with a summary. The entries ``preserved``, or the last ``keep_turns`` turns, stay in
        the context word for word. More turns are kept where a call and its result would be separated otherwise.
        """
        command = _compact(summary, trigger, preserved, keep_turns, pre_tokens)
        return Compacted(*_written(self._native.run(command)))

    def rewind(self, to: str | int | None) -> None:
        """Continue from an entry, named by its uuid, the start of one, or its line; ``None`` from the start."""
        self._native.run(json.dumps({"op": "rewind", "to": to}))

    def tombstone(self, uuid: str | int) -> None:
        """Remove the last entry of the conversation."""
        self._native.run(json.dumps({"op": "tombstone", "uuid": uuid}))

    def fork(self, *, at: str | int | None = None, title: str | None = None, out: Path | None = None) -> str:
        """Copy the conversation, up to the entry ``at``, into a new session. Returns its path."""
        return parsed(self._native.run_long(_fork(at, title, out)))["path"]

    def set_title(self, title: str) -> None:
        """Set the title of the session; an empty one clears it."""
        self._native.run(json.dumps({"op": "title", "title": title}))

    def set_tag(self, tag: str | None) -> None:
        """Set the tag of the session; ``None`` clears it."""
        self._native.run(json.dumps({"op": "tag", "tag": tag}))

    def set_context(self, *, git_branch: str | None = None, entrypoint: str | None = None) -> None:
        """Set the git branch or the entrypoint of later entries that name none; an empty text for none. What is
        ``None`` stays as it is.
        """
        self._native.run(_context(git_branch, entrypoint))

    def record_prompt(self, sections: Mapping[str, str], *, separator: str | None = None) -> Written | None:
        """Record the system prompt of the next turn, the text of each section once. Returns ``None``, and writes nothing,
        if it is the one that was recorded last in the conversation.

        ``sections`` are those that are sent, by their names: ``base``, ``model``, ``memory``, ``git``, ``files``,
        ``tools``, then others in their order. Those of white space only are not sent. ``separator`` is the text between
        them, an empty line by default.
        """
        return _recorded_prompt(self._native.run_long(_prompt("prompt", sections, separator)))

    def prompt_changes(
        self, sections: Mapping[str, str], *, separator: str | None = None
    ) -> PromptChanges | None:
        """Compare a system prompt with the one that was recorded last in the conversation, such as after a resume;
        ``None`` if none was. See :meth:`record_prompt`.
        """
        return _prompt_changes(self._native.run_long(_prompt("changes", sections, separator)))

    def complete_calls(self, text: str) -> list[Written]:
        """Give each call that has no result yet one with this text, marked as an error, as after an interruption."""
        return _written(self._native.run_long(json.dumps({"op": "completeCalls", "text": text})))

    def end_turn(self, prompt: str | None = None) -> None:
        """End a turn: note where the conversation ends, and the settings that readers look for at the end. Once
        something was counted (:meth:`count`), also the counts.
        """
        self._native.run(_end_turn(prompt))

    def count(
        self,
        *,
        reply: Mapping[str, Any] | None = None,
        api_ms: float = 0,
        failed_api_ms: float = 0,
        tool_ms: float = 0,
        lines_added: int = 0,
        lines_removed: int = 0,
    ) -> Costs:
        """Count what the session costs. Returns the counts, as :meth:`counters` does.

        ``reply`` is a message of the API, with its ``model`` and ``usage``: count each reply once. ``api_ms`` is how
        long its request took, ``failed_api_ms`` how long requests took that failed. The counts continue from those in
        the file, also in a fork, and :meth:`end_turn` writes them to it.
        """
        return parsed(self._native.run(_count(reply, api_ms, failed_api_ms, tool_ms, lines_added, lines_removed)))[
            "counters"
        ]

    def counters(self) -> Costs:
        """Return the counts as they are now: those of the file, and those that were added since."""
        return parsed(self._native.run('{"op":"counters"}'))["counters"]

    def state(self) -> PathState:
        """Return the state of the session at the end of its conversation, from the file as it is now: ``files`` that
        the model knows, ``denials``, ``todos``, ``costs``, ``title`` and more, as ``state`` of
        :func:`transcript.request`.
        """
        return parsed(self._native.run_long('{"op":"state"}'))["state"]

    def request(self) -> RequestRecord:
        """Build the request for the next answer from the file as it is now: ``model``, ``messages``, ``resumable``,
        ``accepted``, and as :func:`transcript.request` has them, ``synthetic`` and ``omitted``: what the messages have
        that no entry says, such as a note that a call is still running, and the entries that are not sent.
        """
        return parsed(self._native.run_long('{"op":"request"}'))["request"]

    def entries(self) -> list[EntryPreview]:
        """List the entries of the conversation, oldest first, with previews of their texts."""
        return parsed(self._native.run_long('{"op":"entries"}'))["list"]

    def story(self) -> list[StoryPreview]:
        """List the entries of the whole conversation, with those that compactions removed, as :meth:`entries` does:
        ``chapter`` counts the compactions before an entry, ``inContext`` says whether the model sees it.
        """
        return parsed(self._native.run_long('{"op":"story"}'))["story"]

    def find_entry(self, name: str | int) -> str:
        """Return the uuid of the entry that is named by the start of its uuid or by its line. A whole uuid is not looked
        up.
        """
        return parsed(self._native.run_long(json.dumps({"op": "findEntry", "name": name})))["uuid"]

    def usage(self) -> list[Usage]:
        """Return the tokens of all answers in the file, by model."""
        return parsed(self._native.run_long('{"op":"usage"}'))["models"]

    @property
    def leaf(self) -> str | None:
        """The uuid of the entry that the next one follows."""
        return parsed(self._native.run('{"op":"leaf"}'))["uuid"]

    def agent(
        self,
        agent_id: str,
        agent_type: str,
        tool_use_id: str,
        *,
        description: str | None = None,
        parent_agent_id: str | None = None,
    ) -> Session:
        """Open the session of a subagent, in a file of its own."""
        options = _agent_options(agent_id, agent_type, tool_use_id, description, parent_agent_id)
        return Session((self._native.agent(options), "{}"))

    def sync(self) -> None:
        """Wait until everything so far would survive a power cut."""
        self._native.run('{"op":"sync"}')

    def close(self) -> None:
        """Sync and close. A second call does nothing."""
        self._native.run('{"op":"close"}')

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _tool_result(
    call: str, content: str | Iterable[Mapping[str, Any]], is_error: bool, tool_use_result: Any
) -> str:
    result = {
        "call": call,
        "content": content if isinstance(content, str) else list(content),
        "isError": is_error,
        "toolUseResult": tool_use_result,
    }
    return json.dumps({"op": "append", "toolResult": result}, allow_nan=False, default=_object)


def _compact(
    summary: str,
    trigger: Literal["manual", "auto"],
    preserved: Iterable[str | int],
    keep_turns: int | None,
    pre_tokens: int,
) -> str:
    command = {
        "op": "compact",
        "summary": summary,
        "trigger": trigger,
        "preserved": list(preserved),
        "keepTurns": keep_turns,
        "preTokens": pre_tokens,
    }
    return json.dumps(command)


def _fork(at: str | int | None, title: str | None, out: Path | None) -> str:
    options = {"at": at, "title": title, "out": None if out is None else os.fspath(out)}
    given = {name: value for name, value in options.items() if value is not None}
    return json.dumps({"op": "fork", **given})


def _end_turn(prompt: str | None) -> str:
    return json.dumps({"op": "endTurn"} if prompt is None else {"op": "endTurn", "prompt": prompt})


def _context(git_branch: str | None, entrypoint: str | None) -> str:
    context = {"gitBranch": git_branch, "entrypoint": entrypoint}
    given = {name: value for name, value in context.items() if value is not None}
    return json.dumps({"op": "context", **given})


def _prompt(op: str, sections: Mapping[str, str], separator: str | None) -> str:
    named = [{"name": name, "text": text} for name, text in sections.items()]
    return json.dumps({"op": op, "sections": named, "separator": separator})


def _recorded_prompt(answer: str) -> Written | None:
    return next(iter(_written(answer)), None)


def _prompt_changes(answer: str) -> PromptChanges | None:
    changes = parsed(answer).get("changes")
    if changes is None:
        return None
    return PromptChanges(changes["added"], changes["removed"], changes["changed"], changes["isRearranged"])


def _count(
    reply: Mapping[str, Any] | None,
    api_ms: float,
    failed_api_ms: float,
    tool_ms: float,
    lines_added: int,
    lines_removed: int,
) -> str:
    command = {
        "op": "count",
        "reply": reply,
        "apiMs": api_ms,
        "failedApiMs": failed_api_ms,
        "toolMs": tool_ms,
        "linesAdded": lines_added,
        "linesRemoved": lines_removed,
    }
    return json.dumps(command, allow_nan=False, default=_object)


class AsyncSession(_Open):
    """A session for asyncio and trio: as :class:`Session`, with methods to await. Nothing blocks the event loop.

    Commands run in the order in which they were called, on a few threads for all sessions of the process; appends that wait
    together are one write. To cancel a task does not undo what its call has begun.
    """

    @classmethod
    async def create(cls, path: Path | None = None, **options: Unpack[SessionOptions]) -> AsyncSession:
        """As :meth:`Session.create`."""
        return await cls._open("create", path, options)

    @classmethod
    async def open(cls, session: Path, **options: Unpack[SessionOptions]) -> AsyncSession:
        """As :meth:`Session.open`."""
        return await cls._open("open", session, options)

    @classmethod
    async def open_or_create(cls, path: Path, **options: Unpack[SessionOptions]) -> AsyncSession:
        """As :meth:`Session.open_or_create`."""
        return await cls._open("openOrCreate", path, options)

    @classmethod
    async def resume(cls, session: Path, **options: Unpack[SessionOptions]) -> AsyncSession:
        """As :meth:`Session.resume`."""
        return await cls._open("resume", session, options)

    @classmethod
    async def _open(cls, mode: str, session: Path | None, options: SessionOptions) -> AsyncSession:
        command = _options(mode, session, options)
        return cls(await waiting(lambda done: _transcript.open_then(command, done)))

    async def _run(self, command: str) -> str:
        return await waiting(lambda done: self._native.ask(command, done))

    async def append(
        self,
        entry: Entry | None = None,
        *,
        user: str | None = None,
        assistant: Entry | None = None,
        client: Mapping[str, Any] | None = None,
    ) -> list[Written]:
        """As :meth:`Session.append`."""
        return _written(await self._run('{"op":"append",' + _append(entry, user, assistant, client)))

    async def append_all(self, entries: Iterable[Entry]) -> list[Written]:
        """As :meth:`Session.append_all`."""
        return _written(await self._run(f'{{"op":"appendAll","entries":[{_list(entries)}]}}'))

    async def append_reply(self, reply: StreamReply) -> list[Written]:
        """As :meth:`Session.append_reply`."""
        native = reply.native
        return _written(await waiting(lambda done: self._native.append_reply_then(native, done)))

    async def append_tool_result(
        self,
        call: str,
        content: str | Iterable[Mapping[str, Any]],
        *,
        is_error: bool = False,
        tool_use_result: Any = None,
    ) -> Written:
        """As :meth:`Session.append_tool_result`."""
        return _written(await self._run(_tool_result(call, content, is_error, tool_use_result)))[0]

    async def queue(
        self,
        entry: Entry | None = None,
        *,
        user: str | None = None,
        assistant: Entry | None = None,
        client: Mapping[str, Any] | None = None,
    ) -> str | None:
        """As :meth:`Session.queue`."""
        answer = await self._run('{"op":"queue",' + _append(entry, user, assistant, client))
        return parsed(answer)["uuid"]

    async def record(self, messages: Iterable[Entry]) -> Recorded:
        """As :meth:`Session.record`."""
        return _recorded(await self._run(f'{{"op":"record","messages":[{_list(messages)}]}}'))

    async def compact(
        self,
        summary: str,
        *,
        trigger: Literal["manual", "auto"] = "manual",
        preserved: Iterable[str | int] = (),
        keep_turns: int | None = None,
        pre_tokens: int = 0,
    ) -> Compacted:
        """As :meth:`Session.compact`."""
        command = _compact(summary, trigger, preserved, keep_turns, pre_tokens)
        return Compacted(*_written(await self._run(command)))

    async def rewind(self, to: str | int | None) -> None:
        """As :meth:`Session.rewind`."""
        await self._run(json.dumps({"op": "rewind", "to": to}))

    async def tombstone(self, uuid: str | int) -> None:
        """As :meth:`Session.tombstone`."""
        await self._run(json.dumps({"op": "tombstone", "uuid": uuid}))

    async def fork(self, *, at: str | int | None = None, title: str | None = None, out: Path | None = None) -> str:
        """As :meth:`Session.fork`."""
        return parsed(await self._run(_fork(at, title, out)))["path"]

    async def set_title(self, title: str) -> None:
        """As :meth:`Session.set_title`."""
        await self._run(json.dumps({"op": "title", "title": title}))

    async def set_tag(self, tag: str | None) -> None:
        """As :meth:`Session.set_tag`."""
        await self._run(json.dumps({"op": "tag", "tag": tag}))

    async def set_context(self, *, git_branch: str | None = None, entrypoint: str | None = None) -> None:
        """As :meth:`Session.set_context`."""
        await self._run(_context(git_branch, entrypoint))

    async def record_prompt(
        self, sections: Mapping[str, str], *, separator: str | None = None
    ) -> Written | None:
        """As :meth:`Session.record_prompt`."""
        return _recorded_prompt(await self._run(_prompt("prompt", sections, separator)))

    async def prompt_changes(
        self, sections: Mapping[str, str], *, separator: str | None = None
    ) -> PromptChanges | None:
        """As :meth:`Session.prompt_changes`."""
        return _prompt_changes(await self._run(_prompt("changes", sections, separator)))

    async def complete_calls(self, text: str) -> list[Written]:
        """As :meth:`Session.complete_calls`."""
        return _written(await self._run(json.dumps({"op": "completeCalls", "text": text})))

    async def end_turn(self, prompt: str | None = None) -> None:
        """As :meth:`Session.end_turn`."""
        await self._run(_end_turn(prompt))

    async def count(
        self,
        *,
        reply: Mapping[str, Any] | None = None,
        api_ms: float = 0,
        failed_api_ms: float = 0,
        tool_ms: float = 0,
        lines_added: int = 0,
        lines_removed: int = 0,
    ) -> Costs:
        """As :meth:`Session.count`."""
        command = _count(reply, api_ms, failed_api_ms, tool_ms, lines_added, lines_removed)
        return parsed(await self._run(command))["counters"]

    async def counters(self) -> Costs:
        """As :meth:`Session.counters`."""
        return parsed(await self._run('{"op":"counters"}'))["counters"]

    async def state(self) -> PathState:
        """As :meth:`Session.state`."""
        return parsed(await self._run('{"op":"state"}'))["state"]

    async def request(self) -> RequestRecord:
        """As :meth:`Session.request`."""
        return parsed(await self._run('{"op":"request"}'))["request"]

    async def entries(self) -> list[EntryPreview]:
        """As :meth:`Session.entries`."""
        return parsed(await self._run('{"op":"entries"}'))["list"]

    async def story(self) -> list[StoryPreview]:
        """As :meth:`Session.story`."""
        return parsed(await self._run('{"op":"story"}'))["story"]

    async def find_entry(self, name: str | int) -> str:
        """As :meth:`Session.find_entry`."""
        return parsed(await self._run(json.dumps({"op": "findEntry", "name": name})))["uuid"]

    async def usage(self) -> list[Usage]:
        """As :meth:`Session.usage`."""
        return parsed(await self._run('{"op":"usage"}'))["models"]

    async def leaf(self) -> str | None:
        """As :attr:`Session.leaf`."""
        return parsed(await self._run('{"op":"leaf"}'))["uuid"]

    async def agent(
        self,
        agent_id: str,
        agent_type: str,
        tool_use_id: str,
        *,
        description: str | None = None,
        parent_agent_id: str | None = None,
    ) -> AsyncSession:
        """As :meth:`Session.agent`."""
        options = _agent_options(agent_id, agent_type, tool_use_id, description, parent_agent_id)
        return AsyncSession(await waiting(lambda done: self._native.agent_then(options, done)))

    async def sync(self) -> None:
        """As :meth:`Session.sync`."""
        await self._run('{"op":"sync"}')

    async def close(self) -> None:
        """As :meth:`Session.close`."""
        await self._run('{"op":"close"}')

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
