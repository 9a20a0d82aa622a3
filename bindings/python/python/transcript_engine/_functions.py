"""The commands ``replay``, ``resume``, ``tail``, ``search``, ``usage``, ``verify``, ``repair`` and ``export`` as functions, and ``redact``.

Records are those that the commands print with ``--json``; ``docs/cli.md`` describes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from ._records import Records, call, every, names as _names, read_json
from ._sdk import Policy, Provider
from .records import (
    CostRecord,
    ExportedDocument,
    RedactedText,
    RepairReport,
    ReplayRecord,
    ResumeReport,
    SearchRecord,
    SessionRecord,
    TailRecord,
    UndoneRepair,
    VerifyRecord,
)

Path = str | os.PathLike[str]
Places = Path | Iterable[Path]
"""A session, a file or a folder, or several of them."""


def _path(path: Path | None) -> str | None:
    return None if path is None else os.fspath(path)


def _archive(archive: bool | Path) -> bool | str:
    return archive if isinstance(archive, bool) else os.fspath(archive)


def entries(
    session: Path,
    *,
    policy: Policy = "recover",
    context: bool = False,
    raw_entries: bool = False,
    root: Path | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> Records[ReplayRecord]:
    """Return the conversation of a session as records: ``session``, the entries, ``end``.

    ``session`` is a path, an id, or the start of one. ``context`` returns only what the model sees, ``raw_entries``
    adds each whole line. With ``archive`` (``True``, or the folder) a session whose file is gone is read from there.
    """
    options = {
        "session": os.fspath(session),
        "policy": policy,
        "context": context,
        "rawEntries": raw_entries,
        "root": _path(root),
        "archive": _archive(archive),
        "identity": _path(identity),
    }
    return Records("entries", options, read_json)


def request(
    session: Path,
    *,
    policy: Policy = "recover",
    prompt: str | None = None,
    model: str | None = None,
    tools: Iterable[str] | None = None,
    client_version: str | None = None,
    leaf: str | None = None,
    fit: int | str | None = None,
    fit_turns: int | None = None,
    provider: Provider | None = None,
    full: bool = False,
    root: Path | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> ResumeReport:
    """Return what continues a session: ``messages`` for the API, and how they came about. Writes nothing.

    ``tools`` names the tools of the request: references to others, which a tool search left, are omitted.
    ``client_version`` is the version of the client whose rules hold; by default that of the last line with one.
    ``fit`` omits the oldest media, results and turns until the messages have at most this many tokens (a number,
    or a text such as ``150k``), or until the request fits the context window of this model; the last ``fit_turns``
    turns, 2 by default, stay as they are.
    ``provider`` is who gets the request and accepts it: ``messages`` (the Messages API, the default), ``converse``
    (Amazon Bedrock) or ``vertex`` (Google Vertex AI). The messages have the form of the Messages API in any case; to
    convert them is up to the caller.
    """
    options = {
        "session": os.fspath(session),
        "policy": policy,
        "prompt": prompt,
        "model": model,
        "tools": _names(tools),
        "clientVersion": client_version,
        "leaf": leaf,
        "fit": fit,
        "fitTurns": fit_turns,
        "provider": provider,
        "full": full,
        "root": _path(root),
        "archive": _archive(archive),
        "identity": _path(identity),
    }
    return every(call("request", options))[0]


def follow(
    session: Path,
    *,
    start: str = "start",
    last: int | None = None,
    changes: bool = False,
    once: bool = False,
    raw_entries: bool = False,
    root: Path | None = None,
) -> Records[TailRecord]:
    """Follow a session while it is written: each entry once, in order, as soon as its line is complete.

    ``start`` is ``start``, ``end``, or the ``checkpoint`` of an entry after which to continue; ``last`` starts with
    that many entries. ``changes`` adds what entries change in the conversation. ``once`` ends at the end of the file.
    """
    options = {
        "session": os.fspath(session),
        "from": start,
        "last": last,
        "changes": changes,
        "once": once,
        "rawEntries": raw_entries,
        "root": _path(root),
    }
    return Records("follow", options, read_json)


def watch(
    *places: Path,
    start: str = "end",
    last: int | None = None,
    changes: bool = False,
    raw_entries: bool = False,
    root: Path | None = None,
) -> Records[TailRecord]:
    """Follow many sessions: those in these folders, and these sessions; without any, all. Sessions that are created
    later, and subagents, are included.
    """
    options = {
        "in": [os.fspath(place) for place in places],
        "from": start,
        "last": last,
        "changes": changes,
        "rawEntries": raw_entries,
        "root": _path(root),
    }
    return Records("watch", options, read_json)


def _places(places: Places) -> list[str]:
    """A text is a place, and not the places that its letters name."""
    if isinstance(places, (str, os.PathLike)):
        places = [places]
    return [os.fspath(place) for place in places]


def _selection(
    places: Places,
    project: Path | None,
    root: Path | None,
    archive: bool | Path,
    identity: Path | None,
    cache: bool,
) -> dict[str, Any]:
    return {
        "in": _places(places),
        "project": _path(project),
        "root": _path(root),
        "archive": _archive(archive),
        "identity": _path(identity),
        "cache": cache,
    }


def search(
    query: str,
    places: Places = (),
    *,
    text: str | None = None,
    role: str | Iterable[str] = (),
    tool: str | Iterable[str] = (),
    since: str | None = None,
    until: str | None = None,
    branch: str | None = None,
    limit: int | None = None,
    sort: Literal["rank", "time"] = "rank",
    context: int | None = None,
    output: Literal["hits", "files", "count"] = "hits",
    project: Path | None = None,
    root: Path | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
    cache: bool = True,
) -> Records[SearchRecord]:
    """Find entries in all sessions, or in those at ``places``: records ``hit``, then ``end``.

    ``docs/search.md`` describes the query. ``text`` (whatever its case), ``role``, ``tool``, ``since``, ``until`` and
    ``branch`` (of git) are its filters as options. ``context`` adds that many lines before and after the match.
    ``output`` is what is returned: each hit, the sessions with hits, or only their number in ``end``.
    """
    options = {
        "query": query,
        "text": text,
        "role": _names(role),
        "tool": _names(tool),
        "since": since,
        "until": until,
        "branch": branch,
        "limit": limit,
        "sort": sort,
        "context": context,
        "output": output,
        **_selection(places, project, root, archive, identity, cache),
    }
    return Records("search", options, read_json)


def usage(
    places: Places = (),
    *,
    by: str | Iterable[str] = (),
    since: str | None = None,
    until: str | None = None,
    timezone: str | None = None,
    prices: Path | None = None,
    project: Path | None = None,
    root: Path | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
    cache: bool = True,
) -> list[CostRecord]:
    """Return what sessions cost: a record ``row`` for each combination of the kinds ``by``, then ``total``."""
    options = {
        "by": [by] if isinstance(by, str) else list(by),
        "since": since,
        "until": until,
        "timezone": timezone,
        "prices": _path(prices),
        **_selection(places, project, root, archive, identity, cache),
    }
    return every(call("usage", options))


def verify(
    session: Path,
    *,
    requests: bool = False,
    sweep: int | None = None,
    root: Path | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> list[VerifyRecord]:
    """Say what is wrong with sessions, and what a resume would lose: a record for each session of a folder, for a
    file, or for a session that is named by its id and its subagents.
    """
    options = {
        "session": os.fspath(session),
        "requests": requests,
        "sweep": sweep,
        "root": _path(root),
        "archive": _archive(archive),
        "identity": _path(identity),
    }
    return every(call("verify", options))


def repair(
    session: Path,
    *,
    out: Path | None = None,
    new_session: bool = False,
    keep_id: bool = False,
    compact: bool = False,
    undo: bool = False,
    root: Path | None = None,
) -> RepairReport | UndoneRepair:
    """Repair a session. Without ``out``, ``new_session`` or ``keep_id`` nothing is written: the record says what
    would be done.
    """
    options = {
        "session": os.fspath(session),
        "out": _path(out),
        "newSession": new_session,
        "keepId": keep_id,
        "compact": compact,
        "undo": undo,
        "root": _path(root),
    }
    return every(call("repair", options))[0]


def export(
    session: Path,
    out: Path,
    *,
    format: Literal["html", "markdown"] = "html",
    force: bool = False,
    policy: Policy = "recover",
    redact: bool = True,
    emails: bool = False,
    names: bool = False,
    also: Sequence[str] = (),
    keep: Sequence[str] = (),
    thinking: bool = False,
    sidechains: bool = False,
    conversation_only: bool = False,
    lines: bool = True,
    plain: bool = False,
    root: Path | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> ExportedDocument:
    """Write the conversation of a session as a document, without what looks like a secret unless ``redact`` is false.

    A page has the conversation and, folded, its subagents, branches and thinking, unless ``conversation_only`` is true;
    ``lines`` adds those of the session, which ``transcript import`` reads, and with ``plain`` nothing is compressed, so
    that all of it can be read without scripts. ``thinking`` and ``sidechains`` add these to Markdown. ``emails`` and
    ``names`` (of people, in paths) are replaced, too, and so are the values of the names in ``also``; ``keep`` has kinds,
    names and values that stay.

    Raises :class:`ExistsError` if the file exists, unless ``force`` is true.
    """
    options = {
        "session": os.fspath(session),
        "out": os.fspath(out),
        "format": format,
        "force": force,
        "policy": policy,
        "redact": redact,
        "emails": emails,
        "names": names,
        "also": list(also),
        "keep": list(keep),
        "thinking": thinking,
        "sidechains": sidechains,
        "conversationOnly": conversation_only,
        "lines": lines,
        "plain": plain,
        "root": _path(root),
        "archive": _archive(archive),
        "identity": _path(identity),
    }
    return every(call("export", options))[0]


def redact(
    text: str,
    *,
    line: bool = False,
    emails: bool = False,
    names: bool = False,
    also: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> RedactedText:
    """Return a text in which ``[redacted: KIND]`` replaces secrets, and the number of each kind: ``text`` and ``kinds``.

    ``line`` says that the text is a line of a transcript, which stays JSON. docs/redaction.md has the rules.
    """
    options = {
        "text": text,
        "line": line,
        "emails": emails,
        "names": names,
        "also": list(also),
        "keep": list(keep),
    }
    return every(call("redact", options))[0]


def list_archived(
    archive: bool | Path = True,
    *,
    identity: Path | None = None,
) -> list[SessionRecord]:
    """List the sessions of an archive: the one of this user, or the one in a folder."""
    options = {"archive": _archive(archive), "identity": _path(identity)}
    return every(call("listArchived", options))
