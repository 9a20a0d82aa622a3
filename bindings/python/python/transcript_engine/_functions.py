"""The operations as functions, written by ``tools/bindings_api.py`` from ``docs/operations.json``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from ._records import Records, call, every, read_json
from ._records import several as _several
from ._sdk import Places, Policy, Provider
from .records import (
    CostRecord,
    ExportedDocument,
    ForkRecord,
    HandOverRecord,
    ItemsRecord,
    MoveReport,
    RedactedText,
    RepairReport,
    ReplayRecord,
    ResumeRefusal,
    ResumeReport,
    SearchRecord,
    SessionRecord,
    TailRecord,
    TreeReport,
    UndoneRepair,
    VerifyRecord,
)

__all__ = [
    "entries",
    "export",
    "follow",
    "fork",
    "hand_over",
    "items",
    "sessions",
    "list_archived",
    "move",
    "redact",
    "repair",
    "request",
    "search",
    "tree",
    "usage",
    "verify",
    "watch",
]

Path = str | os.PathLike[str]


def entries(
    session: Path,
    *,
    context: bool = False,
    policy: Policy = "recover",
    raw_entries: bool = False,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> Records[ReplayRecord]:
    """Returns the conversation of a session: ``session``, its entries, ``end``.

    - ``session``: The session: a path, an id, the start of one, a title, the id of a subagent, or ``latest``.
    - ``context``: Whether only what the model sees is returned: nothing that compactions removed.
    - ``policy``: The rules that choose the conversation: with all that evidence gives back, or exactly as the client
      does.
    - ``raw_entries``: Whether each entry has its whole line.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "context": context,
        "policy": policy,
        "rawEntries": raw_entries,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return Records("entries", options, read_json)


def export(
    session: Path,
    out: Path,
    *,
    also: str | Iterable[str] = (),
    conversation_only: bool = False,
    emails: bool = False,
    force: bool = False,
    format: Literal["html", "markdown"] = "html",
    keep: str | Iterable[str] = (),
    lines: bool = True,
    names: bool = False,
    plain: bool = False,
    policy: Policy = "recover",
    redact: bool = True,
    sidechains: bool = False,
    thinking: bool = False,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> ExportedDocument:
    """Writes the conversation of a session to a file, without what looks like a secret. A page has the conversation
    and, folded, its subagents, branches and thinking. Fails with ``exists`` if the file exists, unless ``force`` is
    true.

    - ``session``: The session: a path, an id, the start of one, a title, the id of a subagent, or ``latest``.
    - ``out``: The file to write.
    - ``also``: Names whose values are replaced, too, or words.
    - ``conversation_only``: Whether a page has no subagents, branches, thinking and lines.
    - ``emails``: Whether e-mail addresses are replaced, too.
    - ``force``: Whether a file that exists is replaced.
    - ``format``: The form of the document: a self-contained HTML page, or Markdown.
    - ``keep``: Kinds, names and values that are kept.
    - ``lines``: Whether a page has the lines of the session, which ``transcript import`` reads.
    - ``names``: Whether the names of people in paths are replaced, too.
    - ``plain``: Whether nothing in a page is compressed, so that all of it can be read without scripts.
    - ``policy``: The rules that choose the conversation: with all that evidence gives back, or exactly as the client
      does.
    - ``redact``: Whether what looks like a secret is replaced.
    - ``sidechains``: Whether subagents are added to Markdown; a page has them, folded.
    - ``thinking``: Whether thinking is added to Markdown; a page has it, folded.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "out": out,
        "also": _several(also),
        "conversationOnly": conversation_only,
        "emails": emails,
        "force": force,
        "format": format,
        "keep": _several(keep),
        "lines": lines,
        "names": names,
        "plain": plain,
        "policy": policy,
        "redact": redact,
        "sidechains": sidechains,
        "thinking": thinking,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("export", options))[0]


def follow(
    session: Path,
    *,
    changes: bool = False,
    start: str = "start",
    last: int | None = None,
    once: bool = False,
    raw_entries: bool = False,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> Records[TailRecord]:
    """Follows a session while it is written: each entry once, in order, as soon as its line is complete. A file that
    does not exist yet is waited for.

    - ``session``: The session: a path, an id, the start of one, a title, the id of a subagent, or ``latest``.
    - ``changes``: Whether what entries change in the conversation is returned, too.
    - ``start``: The start: ``start``, ``end``, or the ``checkpoint`` of an entry after which to continue.
    - ``last``: Starts with this number of the last entries instead.
    - ``once``: Whether it ends at the end of the file.
    - ``raw_entries``: Whether each entry has its whole line.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "changes": changes,
        "from": start,
        "last": last,
        "once": once,
        "rawEntries": raw_entries,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return Records("follow", options, read_json)


def fork(
    session: Path,
    *,
    at: str | None = None,
    out: Path | None = None,
    policy: Policy = "recover",
    title: str | None = None,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> ForkRecord:
    """Copies one conversation into a new session, which has only its entries, with new ids. The session is not changed.

    - ``session``: The session.
    - ``at``: The last entry of the copy, which may be on any branch: the number of its line, its uuid, or the start of
      that. The last entry of the conversation by default.
    - ``out``: The new file; by default in the project of the session, named after the new id.
    - ``policy``: The rules that choose the conversation.
    - ``title``: The title of the copy; by default that of the session with "(fork)".
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "at": at,
        "out": out,
        "policy": policy,
        "title": title,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("fork", options))[0]


def hand_over(
    session: Path,
    to: Literal["claude-code", "codex", "pi", "qwen", "gemini", "copilot", "atif", "acp"],
    *,
    at: str | None = None,
    cwd: str | None = None,
    leaf: str | None = None,
    policy: Policy = "recover",
    redact: bool = False,
    target_home: str | None = None,
    title: str | None = None,
    write: bool = False,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> HandOverRecord:
    """Hands the conversation of a session of any agent over to another agent, as a new session that the agent lists,
    opens and continues. Without ``write`` nothing is written: the record is what would be, and what would be lost.
    Nothing is overwritten. docs/handover.md says what arrives.

    - ``session``: The session of any agent: a path, an id, the start of one, a title, the id of a subagent, or
      ``latest``; or a file in ATIF or ACP.
    - ``to``: The agent that gets it, or the format of a file.
    - ``at``: The entry of the conversation after which the rest is omitted.
    - ``cwd``: The working folder of the new session; that of the session by default, or else the present one.
    - ``leaf``: The last entry of the conversation, which may be on another branch: its uuid, the start of one, or its
      line.
    - ``policy``: The rules that choose the conversation: with all that evidence gives back, or exactly as the agent
      does.
    - ``redact``: Whether what looks like a secret is replaced.
    - ``target_home``: The home folder of the agent that gets it, such as ``~/.codex``, which must exist; that of this
      user by default. A file in a format needs a folder.
    - ``title``: The title of the new session; that of the session by default.
    - ``write``: Whether the new session is written; else the record says what would be. No file is overwritten.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "to": to,
        "at": at,
        "cwd": cwd,
        "leaf": leaf,
        "policy": policy,
        "redact": redact,
        "targetHome": target_home,
        "title": title,
        "write": write,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("handOver", options))[0]


def items(
    session: Path,
    *,
    policy: Policy = "recover",
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> ItemsRecord:
    """Returns a session of any agent as items, which no provider has for itself alone: what goes to the model, its
    branches, and what compactions took away.

    - ``session``: The session.
    - ``policy``: The rules that choose the conversation.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "policy": policy,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("items", options))[0]


def sessions(
    *,
    all: bool = False,
    archived: bool = False,
    branch: str | None = None,
    by: Literal["project"] | None = None,
    limit: int | None = None,
    project: Path | None = None,
    sidechains: bool = False,
    since: str | None = None,
    sort: Literal["modified", "created", "size", "messages", "title"] | None = None,
    state: str | Iterable[str] | None = None,
    text: str | None = None,
    until: str | None = None,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> list[SessionRecord]:
    """The sessions of all projects or of one, the last conversation first, with what a list shows of each. Reads only
    the start and the end of each file.

    - ``all``: Whether sessions of the archive whose files are gone are listed as well.
    - ``archived``: Lists the sessions of the archive, and only these.
    - ``branch``: Only sessions whose last entry was written on this branch of git.
    - ``by``: Puts sessions together; not by default.
    - ``limit``: The maximum number of sessions: the first ones in the order. All by default.
    - ``project``: Only sessions of the project at this path, in any of its worktrees.
    - ``sidechains``: Whether the ids of subagents are returned, as ``agents``.
    - ``since``: Only sessions with a message from this time on: ``2026-01-31``, ``2026-01-31T12:00:00Z``, ``2h``,
      ``3d``, ``yesterday``.
    - ``sort``: The order of the sessions.
    - ``state``: Only sessions in one of these states; all by default.
    - ``text``: Only sessions whose title, tag, first or last prompt, folder, branch of git or id contains this text,
      ignoring case.
    - ``until``: Only sessions that were started up to this time.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "all": all,
        "archived": archived,
        "branch": branch,
        "by": by,
        "limit": limit,
        "project": project,
        "sidechains": sidechains,
        "since": since,
        "sort": sort,
        "state": _several(state),
        "text": text,
        "until": until,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("list", options))


def list_archived(
    archive: bool | Path = True,
    *,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    identity: Path | None = None,
) -> list[SessionRecord]:
    """Lists the sessions of an archive; without ``archive`` of that of this user.

    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("listArchived", options))


def move(
    old: Path,
    new: Path,
    *,
    copy: bool = False,
    dry_run: bool = False,
    undo: bool = False,
    root: Places | None = None,
) -> MoveReport:
    """Moves the sessions of a folder that was moved or renamed, and of folders below it, to the project of the new
    folder, with their subagents and side files. Nothing is overwritten. After an interruption the same call finishes
    the move. The folders themselves are not touched.

    - ``old``: The folder in which the sessions worked.
    - ``new``: The folder in which they are to go on.
    - ``copy``: Leaves the sessions where they are, and writes copies with new ids.
    - ``dry_run``: Changes nothing, and returns what would be moved.
    - ``undo``: Undoes the same move. Not with ``copy``.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    """
    options = {
        "old": old,
        "new": new,
        "copy": copy,
        "dryRun": dry_run,
        "undo": undo,
        "root": _several(root),
    }
    return every(call("move", options))[0]


def redact(
    text: str,
    *,
    also: str | Iterable[str] = (),
    emails: bool = False,
    keep: str | Iterable[str] = (),
    line: bool = False,
    names: bool = False,
) -> RedactedText:
    """Returns a text in which ``[redacted: KIND]`` replaces secrets, and the number of each kind. docs/redaction.md has
    the rules.

    - ``text``: The text.
    - ``also``: Names whose values are replaced, too, or words.
    - ``emails``: Whether e-mail addresses are replaced, too.
    - ``keep``: Kinds, names and values that are kept.
    - ``line``: Whether the text is a line of a transcript, which stays JSON.
    - ``names``: Whether the names of people in paths are replaced, too.
    """
    options = {
        "text": text,
        "also": _several(also),
        "emails": emails,
        "keep": _several(keep),
        "line": line,
        "names": names,
    }
    return every(call("redact", options))[0]


def repair(
    session: Path,
    *,
    compact: bool = False,
    keep_id: bool = False,
    new_session: bool = False,
    out: Path | None = None,
    undo: bool = False,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> RepairReport | UndoneRepair:
    """Repairs a session. Without ``out``, ``new_session`` or ``keep_id`` nothing is written: the record is what would
    be done.

    - ``session``: The session: a path, an id, the start of one, a title, the id of a subagent, or ``latest``.
    - ``compact``: Whether lines that no resume needs are moved to an archive beside the repaired session, too. Not with
      ``new_session``.
    - ``keep_id``: Whether the repaired session gets the place of the old one, which is kept as
      ``SESSION.jsonl.before-repair``.
    - ``new_session``: Whether the repaired session is written as a copy with a new session id, and new ids of its
      entries; without ``out`` it is next to the original.
    - ``out``: The new file for the repaired session.
    - ``undo``: Whether the file that ``keep_id`` replaced is restored, instead of a repair; the repaired one is kept as
      ``SESSION.jsonl.repaired``.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "compact": compact,
        "keepId": keep_id,
        "newSession": new_session,
        "out": out,
        "undo": undo,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("repair", options))[0]


def request(
    session: Path,
    *,
    client_version: str | None = None,
    fit: int | str | None = None,
    fit_turns: int | None = None,
    full: bool = False,
    leaf: str | None = None,
    model: str | None = None,
    policy: Policy = "recover",
    prompt: str | None = None,
    provider: Provider | None = None,
    tools: str | Iterable[str] | None = None,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> ResumeReport | ResumeRefusal:
    """Returns the request that continues a session: the ``messages`` for the API, and how they came about. Writes
    nothing. A file of another format is not an error: the record then has a ``reason``, and ``resumable`` is false.

    - ``session``: The session: a path, an id, the start of one, a title, the id of a subagent, or ``latest``.
    - ``client_version``: The version of the client whose rules hold, such as ``2.1.331``; that of the last line with
      one by default.
    - ``fit``: Omits the oldest media, results and turns until the messages have at most this number of tokens (a
      number, or a text such as ``150k``), or until the request fits the context window of the model of this name. Not
      under the policy ``vendor``.
    - ``fit_turns``: The number of turns at the end that ``fit`` never changes; 2 by default.
    - ``full``: Whether the whole file is read, also where its end is enough.
    - ``leaf``: The last entry of the conversation to continue: its uuid, the start of one, or its line. The leaf of the
      policy by default.
    - ``model``: The model that gets the request; that of the last answer by default.
    - ``policy``: The rules that choose the conversation: with all that evidence gives back, or exactly as the client
      does.
    - ``prompt``: The next message of the user.
    - ``provider``: The provider that gets the request and accepts it: ``messages`` (the Messages API, the default),
      ``converse`` (Converse of Amazon Bedrock) or ``vertex`` (Claude on Google Vertex AI). The messages have the form
      of the Messages API in any case; to convert them is up to the caller. Not under the policy ``vendor``.
    - ``tools``: The names of the tools of the request: references to others, which a tool search left, are omitted.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "clientVersion": client_version,
        "fit": fit,
        "fitTurns": fit_turns,
        "full": full,
        "leaf": leaf,
        "model": model,
        "policy": policy,
        "prompt": prompt,
        "provider": provider,
        "tools": _several(tools),
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("request", options))[0]


def search(
    query: str,
    places: Places = (),
    *,
    branch: str | None = None,
    cache: bool = True,
    context: int | None = None,
    limit: int | None = None,
    output: Literal["hits", "files", "count"] = "hits",
    project: Path | None = None,
    role: str | Iterable[str] = (),
    since: str | None = None,
    sort: Literal["rank", "time"] = "rank",
    text: str | None = None,
    tool: str | Iterable[str] = (),
    until: str | None = None,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> Records[SearchRecord]:
    """Finds entries in all sessions, or in some: records ``hit``, then ``end``.

    - ``query``: The query: words, phrases, and filters such as ``role:user``. docs/search.md describes it.
    - ``branch``: Only entries that were written on this branch of git.
    - ``cache``: Whether the search uses the cache folder, and adds to it.
    - ``context``: The number of lines of the text before and after the match in a snippet, which has 160 characters by
      default.
    - ``places``: Ids of sessions, files and folders; all sessions if there are none.
    - ``limit``: The maximum number of hits, or of sessions with the output ``files``; all by default.
    - ``output``: The output: each hit, the sessions with hits, or only their number in ``end``.
    - ``project``: Only the sessions of the project at this path.
    - ``role``: Only entries of one of these roles: ``user``, ``assistant``, ``system`` or ``tool``.
    - ``since``: Only entries from this time on: a time as in RFC 3339, a date, ``today``, ``yesterday``, or a duration
      before now, such as ``3d``.
    - ``sort``: The order of the hits: the best first, or the session that was changed last and in it the last entry.
    - ``text``: Only entries that contain this text, ignoring case.
    - ``tool``: Only calls of one of these tools, and their results.
    - ``until``: Only entries up to this time, in the same forms as ``since``.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "query": query,
        "branch": branch,
        "cache": cache,
        "context": context,
        "in": _several(places),
        "limit": limit,
        "output": output,
        "project": project,
        "role": _several(role),
        "since": since,
        "sort": sort,
        "text": text,
        "tool": _several(tool),
        "until": until,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return Records("search", options, read_json)


def tree(
    session: Path,
    *,
    branch: str | None = None,
    last: int | None = None,
    policy: Policy = "recover",
    project: Path | None = None,
    role: str | Iterable[str] | None = None,
    since: str | None = None,
    text: str | None = None,
    tool: str | Iterable[str] = (),
    until: str | None = None,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> TreeReport:
    """The branches of a session: prompts that were rewound or edited, compactions, subagents, and the leaf of each
    policy.

    - ``session``: The session.
    - ``branch``: Counts only entries that were written on this branch of git.
    - ``last``: The maximum number of branches in which entries are counted: those whose last entries are the last of
      the file.
    - ``policy``: The rules by which a session of another agent is read. A record of Claude Code's sessions has the leaf
      of each policy in any case.
    - ``project``: Only a session of the project at this path.
    - ``role``: Counts only entries with one of these roles, as ``matches`` of each branch.
    - ``since``: Counts only entries from this time on: ``2026-01-31``, ``2026-01-31T12:00:00Z``, ``2h``, ``3d``,
      ``yesterday``.
    - ``text``: Counts only entries that contain this text, ignoring case.
    - ``tool``: Counts only calls of one of these tools, and their results.
    - ``until``: Counts only entries up to this time.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "branch": branch,
        "last": last,
        "policy": policy,
        "project": project,
        "role": _several(role),
        "since": since,
        "text": text,
        "tool": _several(tool),
        "until": until,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("tree", options))[0]


def usage(
    places: Places = (),
    *,
    by: str | Iterable[str] = (),
    cache: bool = True,
    limit: int | None = None,
    prices: Path | None = None,
    project: Path | None = None,
    since: str | None = None,
    timezone: str | None = None,
    until: str | None = None,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> list[CostRecord]:
    """Returns the cost of sessions: a record ``row`` for each combination of the kinds in ``by``, then ``total``.

    - ``by``: The grouping of the rows: ``day``, ``week``, ``month``, ``hour5``, ``root``, ``project``, ``session``,
      ``model``, ``maker`` (the agent), ``subagent``, ``subagent-type``, ``branch``, ``git-branch``, ``compaction`` or
      ``tool``; several for their combinations. Without any there is only the total.
    - ``cache``: Whether what is known about the files is kept in the cache folder, and used.
    - ``places``: Ids of sessions, files and folders; all sessions if there are none.
    - ``limit``: The maximum number of rows: the latest, or those that cost most. The total is that of all.
    - ``prices``: A file of prices in the form of LiteLLM, which replace those that are part of the program.
    - ``project``: Only the sessions of the project at this path.
    - ``since``: Only requests from this time on: a time as in RFC 3339, a date, ``today``, ``yesterday``, or a duration
      before now, such as ``3d``.
    - ``timezone``: The time zone of days, weeks and months; that of the system by default.
    - ``until``: Only requests up to this time, in the same forms as ``since``.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "by": _several(by),
        "cache": cache,
        "in": _several(places),
        "limit": limit,
        "prices": prices,
        "project": project,
        "since": since,
        "timezone": timezone,
        "until": until,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("usage", options))


def verify(
    session: Path,
    *,
    requests: bool = False,
    sweep: int | None = None,
    root: Places | None = None,
    agent: str | str | Iterable[str] | None = None,
    archive: bool | Path = False,
    identity: Path | None = None,
) -> list[VerifyRecord]:
    """Reports what is wrong with sessions, and what a resume would lose: a record for each session of a folder, for a
    file, or for a session that is named by its id and each of its subagents.

    - ``session``: A session with its subagents, a file, or a folder: a path, an id, the start of one, a title, or
      ``latest``.
    - ``requests``: Whether every request that a client recorded in the file is built again, and compared.
    - ``sweep``: Sessions of a folder are reported that the client deletes within this number of days; 7 by default.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    - ``agent``: The agent whose sessions are meant, such as ``codex`` or ``claude-code``, or a list of them. With
      ``root``, that is its home folder. By default Claude Code and all agents that are found on the machine.
    - ``archive``: The folder of an archive or its address in a bucket, or ``True`` for that of each root: sessions
      whose files are gone are read from it.
    - ``identity``: The file with the keys of an encrypted archive.
    """
    options = {
        "session": session,
        "requests": requests,
        "sweep": sweep,
        "root": _several(root),
        "agent": _several(agent),
        "archive": archive,
        "identity": identity,
    }
    return every(call("verify", options))


def watch(
    *places: Path,
    changes: bool = False,
    start: str = "end",
    last: int | None = None,
    once: bool = False,
    raw_entries: bool = False,
    root: Places | None = None,
) -> Records[TailRecord]:
    """Follows many sessions, also those that are created later, and subagents.

    - ``changes``: Whether what entries change in the conversation is returned, too.
    - ``start``: The start: ``start``, ``end``, or the ``checkpoint`` of an entry after which to continue.
    - ``places``: Folders of projects, and sessions; all sessions of the store if there are none.
    - ``last``: Starts with this number of the last entries instead.
    - ``once``: Whether it ends at the ends of the files.
    - ``raw_entries``: Whether each entry has its whole line.
    - ``root``: The folder of projects, or the name of a root in the configuration file; or a list of them. By default
      the roots that the file says, else the folder of Claude Code.
    """
    options = {
        "changes": changes,
        "from": start,
        "in": _several(places),
        "last": last,
        "once": once,
        "rawEntries": raw_entries,
        "root": _several(root),
    }
    return Records("watch", options, read_json)
