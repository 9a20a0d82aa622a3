"""The types of records, written by ``tools/bindings_api.py`` from ``docs/operations.json``.

Records are dictionaries: these types only say what they have. Later versions may add fields and kinds.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union


class ActionRecord(TypedDict):
    """One change of a repair."""

    action: str
    """The name of the action, for example `salvage`."""
    code: str
    """The code of the defect."""
    detail: str
    """A short description."""
    line: int | None
    """The line in the old file; `null` for one that was made."""


class AddedItemRecord(TypedDict):
    """What is added to a conversation."""

    item: int
    """The number of the item beside which it stands."""
    what: str
    """What it is: `prompt`, `result` or `answer`."""


class ApiMessage(TypedDict):
    """A message of the API. What its blocks have is up to the API."""

    content: str | list[dict[str, Any]]
    """A text, or blocks, each with its `type`."""
    role: str
    """`user`, `assistant` or `system`."""


class BadRecord(TypedDict):
    """A damaged line."""

    kind: Literal["bad"]
    """The kind of the record."""
    code: str
    """The code of the finding (`docs/format.md`)."""
    detail: str
    """The defect, for people; never quotes the line."""
    len: int
    """Its length in bytes, without the newline."""
    line: int | None
    """Its number, from 1; `null` if the lines before were not read."""
    offset: int
    """The offset of its first byte in the file."""
    path: str
    """The absolute path of the file."""


class BlockRecord(TypedDict):
    """A block of five hours. The rates are those between its first and its last request."""

    active: bool
    """Whether it continues."""
    costPerHourNanoUsd: int | None
    """The cost of an hour."""
    end: str | None
    """Five hours later."""
    projectedNanoUsd: int | None
    """The cost of the whole block if it continues like this; of an active one only."""
    start: str | None
    """The full hour at which it starts."""
    tokensPerMinute: int | None
    """All tokens of a minute."""


class BoundaryRecord(TypedDict):
    """A compaction."""

    anchor: NamedEntry | None
    """The entry that the preserved ones follow."""
    head: NamedEntry | None
    """The first preserved entry."""
    kept: int | None
    """The number of preserved entries; `null` if the boundary names only the ends of a segment that is on no path."""
    line: int | None
    """The number of its line, from 1; `null` also when the lines before were not read."""
    logicalParent: NamedEntry | None
    """The leaf of the conversation before."""
    missing: int
    """The number of named entries that are not in the file."""
    preTokens: int | None
    """The number of tokens before; `null` if the boundary does not say."""
    tail: NamedEntry | None
    """The last preserved entry."""
    trigger: str | None
    """Its origin: `manual` or `auto`; `null` if the boundary does not say."""
    uuid: str | None
    """Its uuid; `null` for a line without one."""


_BranchRecordKeywords = TypedDict("_BranchRecordKeywords", {"from": "EntryLocation | None"})


class _BranchRecord(_BranchRecordKeywords):
    entries: int
    """The number of its entries."""
    first: EntryLocation
    """Its first entry."""
    id: int
    """Its position in TreeReport::branches, from 0."""
    kind: str
    """`main` on the path to the leaf of `recover`, else `side`."""
    last: EntryLocation
    """Its last entry: the one to pass to `--leaf`."""
    messages: int
    """The number of its messages."""
    parent: int | None
    """The branch that it leaves; `null` for a root."""
    prompts: int
    """The number of prompts that a person typed."""
    start: str
    """Its start: `root`, `child`, `boundary`, `bridge`, `lost`, `sidechain` or `cycle`."""
    tip: bool
    """Whether no other branch continues from it."""


class BranchRecord(_BranchRecord, total=False):
    """A run of entries without a fork."""

    matches: int | None
    """The number of its entries that are selected; absent without options that select entries."""


class _CallRecord(TypedDict):
    kind: Literal["call-opened"] | Literal["call-closed"]
    """The kind of the record."""
    id: str
    """The id of the call."""
    offset: int
    """The offset of the entry that made the change."""
    path: str
    """The absolute path of the file."""


class CallRecord(_CallRecord, total=False):
    """A change that concerns one tool call."""

    name: str | None
    """The name of the tool; only of `call-opened`, and absent if the call has none."""


class ChangeRecord(TypedDict):
    """A change that concerns one entry."""

    kind: Literal["boundary"] | Literal["tombstoned"] | Literal["turn-end"]
    """The kind of the record."""
    offset: int
    """The offset of the entry that made the change."""
    path: str
    """The absolute path of the file."""
    uuid: str | None
    """The uuid of the entry; `null` if it has none."""


_ChangedItemRecordKeywords = TypedDict("_ChangedItemRecordKeywords", {"from": "str | None"})


class _ChangedItemRecord(_ChangedItemRecordKeywords):
    change: str
    """What changes, such as `callId`, `toolName`, `inputWrapped` or `resultMoved`."""
    item: int
    """Its number."""


class ChangedItemRecord(_ChangedItemRecord, total=False):
    """An item that is written with a change."""

    images: int | None
    """The number of images; only for images."""
    to: str | None
    """What it is now; only for ids and names."""


class ClientCostRecord(TypedDict):
    """The cost of a session as a client counted it (`cost-state`), next to our sum. `difference` is theirs minus ours: the part that is not in the transcript."""

    kind: Literal["client"]
    """The kind of the record."""
    differenceNanoUsd: int | None
    """The sum of the client minus ours."""
    models: list[ClientModelRecord]
    """The same for each model."""
    oursNanoUsd: int | None
    """Our cost; `null` if it is not known."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str
    """The session."""
    theirsNanoUsd: int | None
    """The cost that the client counted."""


class ClientModelRecord(TypedDict):
    """The cost of a model as a client counted it, next to our sum."""

    differenceNanoUsd: int | None
    """The sum of the client minus ours."""
    model: str
    """The model."""
    ourTokens: list[int]
    """Ours."""
    oursNanoUsd: int | None
    """Our cost."""
    theirTokens: list[int] | None
    """The tokens that the client counted: input, output, written to and read from the cache."""
    theirsNanoUsd: int | None
    """The cost that the client counted."""


class CommandError(TypedDict):
    """The error of a command."""

    kind: str
    """The kind, such as `bad-command`; `docs/cli.md` has the list."""
    message: str
    """The error in words; never quotes an entry."""
    retry: bool
    """Whether the same command may succeed later."""


class CompactedRecord(TypedDict):
    """The lines that `--compact` moves to an archive."""

    after: int
    """The bytes after."""
    before: int
    """The bytes of the session before."""
    lines: int
    """The number of lines that are moved."""
    types: list[TypeSizeRecord]
    """The same by the type of lines, the type of which most bytes are moved first."""


class CopyRecord(TypedDict):
    """A copy of an entry."""

    line: int | None
    """Its line, from 1."""
    sessionId: str
    """The session that it is in."""
    uuid: str | None
    """Its uuid."""


class _CostRow(TypedDict):
    kind: Literal["row"]
    """The kind of the record."""
    by: dict[str, Any]
    """The group of the row: the key of each kind, `null` if it is unknown or none."""
    cacheRead: int
    """Tokens read from the cache."""
    cacheWrite1h: int
    """Tokens written to the cache for an hour."""
    cacheWrite5m: int
    """Tokens written to the cache for five minutes."""
    costNanoUsd: int | None
    """The cost of all calls whose price is known; `null` if none is known."""
    deleted: int
    """The number of requests of deleted sessions (`--keep-sums`)."""
    first: str | None
    """The time of the first request."""
    incomplete: int
    """The number of them without final counts."""
    input: int
    """Input tokens outside of the cache."""
    last: str | None
    """The time of the last request."""
    output: int
    """Tokens of the answers."""
    reportedNanoUsd: int | None
    """The cost that lines of old clients record (`costUSD`)."""
    requests: int
    """The number of requests."""
    schema: int
    """The version of the shape: SCHEMA."""
    unknownModels: list[str]
    """The models whose price is not known."""
    unpricedTokens: int
    """The tokens of calls whose price is not known."""
    webFetch: int
    """Pages that the API fetched."""
    webSearch: int
    """Searches of the web."""


class CostRow(_CostRow, total=False):
    """The sums of a part of the requests."""

    block: BlockRecord | None
    """With `hour5` alone: the block."""
    current: bool | None
    """With `branch`: whether a resume continues this branch."""


class CostTotal(TypedDict):
    """The sums of all rows."""

    kind: Literal["total"]
    """The kind of the record."""
    cacheRead: int
    """Tokens read from the cache."""
    cacheWrite1h: int
    """Tokens written to the cache for an hour."""
    cacheWrite5m: int
    """Tokens written to the cache for five minutes."""
    costNanoUsd: int | None
    """The cost of all calls whose price is known; `null` if none is known."""
    deleted: int
    """The number of requests of deleted sessions (`--keep-sums`)."""
    first: str | None
    """The time of the first request."""
    incomplete: int
    """The number of them without final counts."""
    input: int
    """Input tokens outside of the cache."""
    last: str | None
    """The time of the last request."""
    output: int
    """Tokens of the answers."""
    prices: PricesRecord
    """The table of prices."""
    reportedNanoUsd: int | None
    """The cost that lines of old clients record (`costUSD`)."""
    requests: int
    """The number of requests."""
    schema: int
    """The version of the shape: SCHEMA."""
    unknownModels: list[str]
    """The models whose price is not known."""
    unmatchedSearches: int
    """Searches whose call is not in the file of their result."""
    unpricedTokens: int
    """The tokens of calls whose price is not known."""
    unread: int
    """Damaged entries that could not be read."""
    unreadFiles: int
    """Files that could not be read: if there are any, the cost of all is higher."""
    webFetch: int
    """Pages that the API fetched."""
    webSearch: int
    """Searches of the web."""
    withoutTime: int
    """The number of requests that were omitted because they have no time."""


class Costs(TypedDict):
    """The counts of the client, from the last `cost-state` line. A resumed session continues from these counts (META-3)."""

    apiDurationMs: int | None
    """Milliseconds spent in the API."""
    apiDurationWithoutRetriesMs: int | None
    """Milliseconds spent in the API without attempts that failed."""
    durationMs: int | None
    """Milliseconds in all."""
    hasUnknownModelCost: bool | None
    """Whether the price of a model was unknown, so that the sum is too low."""
    linesAdded: int | None
    """Lines that were added to files."""
    linesRemoved: int | None
    """Lines that were removed."""
    models: list[ModelCosts] | None
    """The counts by model, in the order of the line."""
    startTime: int | None
    """The start, in milliseconds since 1970."""
    toolDurationMs: int | None
    """Milliseconds spent in tools."""
    totalCostUSD: float | None
    """US dollars."""


class DecisionRecord(TypedDict):
    """A step of choosing the path."""

    detail: str
    """The decision with its evidence, for people."""
    kind: str
    """The kind, such as `leaf`; `docs/recover.md` has the list."""
    line: int | None
    """The number of its line, from 1; `null` also when the lines before were not read."""
    uuid: str | None
    """Its uuid; `null` for a line without one."""


class Denial(TypedDict):
    """A call that was denied. A client that resumes the session need not ask again."""

    call: str | None
    """The id of the call."""
    kind: str
    """The kind of the denial: the `toolDenialKind` of the line, or the kind that texts::denial finds in its text."""
    line: int | None
    """The number of the line of the result, from 1; `null` if only the end of the file was read."""
    reason: str | None
    """The reason, in the words of the person or of the classifier."""
    timestamp: str | None
    """Its time, as written in the file."""
    tool: str | None
    """The tool; `null` if the call is not on the path."""


class DifferentMessageRecord(TypedDict):
    """A message of a recorded request that differs."""

    index: int
    """Its place, from 0."""
    line: int | None
    """The line of the entry that it comes from; of a missing message, of the last entry before it."""
    role: str | None
    """`user`, `assistant` or `system`; `null` if it was recorded as a hash alone."""
    uuid: str | None
    """The uuid of that entry."""


class EntryLocation(TypedDict):
    """The entry that a record refers to. Both are `null` if it refers to none."""

    line: int | None
    """The number of its line, from 1; `null` also when the lines before were not read."""
    uuid: str | None
    """Its uuid; `null` for a line without one."""


class EntryPreview(TypedDict):
    """An entry as the command `entries` lists it."""

    contextTokens: int | None
    """The tokens of the context of this answer, as the API counted them."""
    isPrompt: bool
    """Whether it is a prompt of a person."""
    outputTokens: int | None
    """The tokens of this answer, as the API counted them."""
    preview: str
    """The start of its text."""
    role: str | None
    """The role of its message."""
    type: str
    """Its type, such as `user`."""
    uuid: str | None
    """Its uuid; `null` if it has none."""


class _EntryRecord(TypedDict):
    kind: Literal["entry"]
    """The kind of the record."""
    len: int
    """The number of bytes that it takes in the file, without the newline."""
    line: int | None
    """The number of its line, from 1; `null` if the lines before were not read."""
    message: Any
    """Its message, verbatim; `null` if it has none, or if the line cannot be parsed."""
    offset: int
    """The offset of its first byte in the file."""
    parentUuid: str | None
    """The parent that the entry itself names, even if the path reached it in another way; `null` if it names none."""
    subtype: str | None
    """The subtype of a `system` entry; `null` for any other."""
    timestamp: str | None
    """Its time as in the file; `null` if it has none."""
    type: str | None
    """Its type, such as `user`; new values may be added. `null` if the line cannot be parsed."""
    uuid: str | None
    """Its uuid; `null` if it has none."""
    via: list[str]
    """The link that put it onto the path: `parent`, `sibling`, `splice`, `bridge`, `salvage`. Of `tail` what the line alone shows: `salvage`, or `parent` if it names one."""


class EntryRecord(_EntryRecord, total=False):
    """An entry. In the output of `replay` it is one of the path; in that of `tail` it may be any line with an object, including titles, modes and other metadata."""

    checkpoint: str | None
    """The position after this entry, to continue there; only of the operations `follow` and `watch`."""
    entry: Any
    """The whole entry, verbatim; only with `--raw-entries`, and absent if the line cannot be parsed."""
    inContext: bool | None
    """Whether the model sees the entry when the conversation continues; absent in the output of `tail`."""
    path: str | None
    """The absolute path of the file; only in the output of `tail`."""
    sidechain: bool
    """Whether it belongs to a subagent in the file of another conversation; only in the output of `tail`, and absent otherwise."""


class ExportedDocument(TypedDict):
    """A document that was written."""

    path: str
    """Its file."""
    redactions: int
    """The number of secrets that were replaced."""


class Failure(TypedDict):
    """The error of a function. Names the file and never quotes the content of an entry."""

    kind: str
    """The stable name of what went wrong, such as `not-found` or `busy`."""
    line: int | None
    """The number of the line, from 1."""
    message: str
    """The message, for people."""
    offset: int | None
    """The offset in the file, in bytes."""
    path: str | None
    """The file, or the folder that was searched."""
    retryable: bool
    """Whether the same call may succeed later."""


class FileHistory(TypedDict):
    """The files as they were before a prompt."""

    files: list[str]
    """The paths of the tracked files. They are shared: most prompts have the same ones."""
    messageId: str
    """The uuid of the prompt."""
    timestamp: str | None
    """When the snapshot was taken."""


class FindingRecord(TypedDict):
    """A defect of the file."""

    code: str
    """The code, such as `L-TORN-TAIL`; `docs/findings.md` explains each."""
    detail: str
    """The defect, in words; never quotes the file."""
    len: int
    """The number of bytes that it is about."""
    line: int | None
    """The number of the line, from 1; `null` if the lines before were not read."""
    offset: int
    """The offset of the first byte that it is about."""
    severity: str
    """`note` or `damage`."""


class ForkRecord(TypedDict):
    """A copy of a conversation: the only object of `fork --json`."""

    kind: str
    """Always `fork`."""
    path: str
    """The path of its file."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str
    """The id of the new session."""
    source: str
    """The path of the file that was copied; `-` for standard input."""


class ForkedSession(TypedDict):
    """The copy of a session."""

    sessionId: str
    """Its id."""


class _FoundSession(TypedDict):
    kind: Literal["session"]
    """The kind of the record."""
    hits: int
    """The number of hits, without copies."""
    modified: str | None
    """The time of its last message, as `list --json` has it."""
    path: str
    """The path of its file; without a file, the path where it would be."""
    project: str
    """The name of its project folder."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str
    """The name of its file without `.jsonl`."""
    title: str | None
    """Its title, else its first prompt."""


class FoundSession(_FoundSession, total=False):
    """A session with hits."""

    root: str | None
    """The name of the root of the session, if several roots are in use."""


class GoneRecord(TypedDict):
    """A file that does not have its name any more."""

    kind: Literal["gone"]
    """The kind of the record."""
    offset: int
    """The position up to which it was read, in bytes."""
    path: str
    """The absolute path that the file had."""
    torn: int
    """The number of bytes after its last newline."""


class HandOverRecord(TypedDict):
    """A session that is handed over to another agent, or converted to a file."""

    command: list[str]
    """The words of the command that continues the session; none if no command does."""
    cwd: str
    """The working folder of the new session, in which its agent must be started."""
    environment: dict[str, str]
    """The variables that the command needs."""
    files: list[WrittenFileRecord]
    """The files that are new or longer, that with the conversation first; none for standard output."""
    home: str | None
    """The home folder of the agent that gets the session; `null` for a file."""
    kind: str
    """Always `handOver`."""
    redactions: int | None
    """The number of secrets that were replaced; `null` if none were looked for."""
    report: HandOverReport
    """What is omitted, changed and added."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str
    """The id of the new session. It depends on the time: a session that is handed over again gets another one."""
    source: str
    """The path of the session that is handed over."""
    sourceAgent: str
    """The agent that had the session, or the format of its file."""
    sourceSessionId: str | None
    """The id of the session that is handed over."""
    target: str
    """The agent that gets the session, or the format of the file."""
    title: str | None
    """The title of the new session."""
    written: bool
    """Whether it is written; else this is what would be."""


class HandOverReport(TypedDict):
    """What a hand-over omits, changes and adds. What it does not list arrives as it was. Items are named by their numbers, from 0, as in the list `live` of `replay --format items`."""

    added: list[AddedItemRecord]
    """What is added, by the hand-over or by the agent when it continues the session."""
    carried: int
    """The number of those that are written, whole or in part."""
    changed: list[ChangedItemRecord]
    """The items that are written with a change, in their order; several changes of one item are several entries."""
    counts: dict[str, int]
    """How often each thing of the lists below happens, by its name."""
    items: int
    """The number of items of the conversation."""
    models: list[str]
    """The models that wrote parts of it. No agent receives them: each continues with its own."""
    omitted: list[OmittedItemRecord]
    """The items that are not written, in their order."""
    signatures: int
    """The number of thoughts that their maker signed or encrypted. Other makers refuse them."""
    usage: int
    """The number of items whose tokens are known. They are not written: the agent would add them to its own."""


class HealthRecord(TypedDict):
    """The state of a session: the messages that it shows, and whether a provider accepts them."""

    conversation: int
    """The messages of the conversation."""
    lint: PolicyLintRecord
    """Whether a strict provider accepts the request of each policy."""
    visible: VisibleRecord
    """The number of them that each policy shows."""


class _HitRecord(TypedDict):
    kind: Literal["hit"]
    """The kind of the record."""
    also: list[CopyRecord]
    """The copies of the entry, in other sessions or in the same one."""
    block: int | None
    """The number of its block, from 0; `null` outside of messages."""
    field: str
    """The part of the entry that the snippet is from: `prompt`, `text`, `thinking`, `tool_input`, `tool_result`, `title`, `summary`, `attachment` or `queued`."""
    inContext: bool
    """Whether the model sees the entry when the conversation continues."""
    line: int | None
    """The line of the entry, from 1; `null` for a stored result that belongs to no entry."""
    live: bool
    """Whether the entry is part of the conversation; `false` if it was rewound to before it."""
    match: list[Any] | None
    """The first match: where it starts and ends in the snippet, in characters. `null` without words."""
    offset: int
    """The place of the entry in its file, in bytes."""
    path: str
    """The path of the file of the entry: that of the session or of a subagent."""
    project: str
    """The name of the project folder."""
    role: str | None
    """The author of the entry: `user`, `assistant`, `tool` or `system`; `null` for metadata."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str
    """The name of the file of the session without `.jsonl`."""
    snippet: str
    """The text around the match."""
    timestamp: str | None
    """The time of the entry."""
    title: str | None
    """The title of the session, else its first prompt."""
    uuid: str | None
    """The uuid of the entry."""


class HitRecord(_HitRecord, total=False):
    """An entry that a search found."""

    agentId: str | None
    """The same, under its former name."""
    root: str | None
    """The name of the root of the session, if several roots are in use."""
    storedResult: str | None
    """The file of the result that the snippet is from, if it is not in the entry."""
    subagentId: str | None
    """The subagent."""
    tool: str | None
    """The tool of a call or of a result."""


class ItemsRecord(TypedDict):
    """A session of any agent as items."""

    branches: list[list[SessionItem]]
    """The items of each branch and subagent."""
    compacted: list[SessionItem]
    """The items that summaries took the place of."""
    kind: str
    """Always `items`."""
    live: list[SessionItem]
    """The items that go to the model with the next prompt, in their order."""
    schema: int
    """The version of the shape: SCHEMA."""


class KnownFile(TypedDict):
    """A file that the model knows, by its last access. What no line contains is `null`. A client that resumes a session needs it for tools that change only files that were read, and for notes about files that have changed since: compare timestamp with the time of the file. The text itself is not kept."""

    access: FileAccess
    """Whether the last access read or wrote it."""
    call: str | None
    """The id of the call; `null` if the client added the text by itself, as for a mentioned file."""
    inContext: bool
    """Whether the text is still in the context: no compaction and no microcompaction has removed it."""
    isWhole: bool
    """Whether it was shown, or wrote, the whole file. After a change of a part: whether it knew the whole file before."""
    line: int | None
    """The number of its line, from 1; `null` if only the end of the file was read."""
    numLines: int | None
    """The number of lines that it was shown."""
    path: str
    """The path as the line has it, usually an absolute one."""
    startLine: int | None
    """The first line of the file that the model was shown, from 1. A change of a file keeps the range that was known before it."""
    timestamp: str | None
    """Its time, as written in the file."""
    totalLines: int | None
    """The number of lines of the whole file."""
    uuid: str | None
    """The uuid of the entry with the result or the attachment."""


class LeafRecord(TypedDict):
    """The leaf of a policy."""

    branch: int | None
    """The id of its branch; `null` if it is on none."""
    detail: str
    """The reason in words."""
    entries: int
    """The number of entries of the path to it."""
    line: int | None
    """The number of its line, from 1; `null` also when the lines before were not read."""
    reason: str
    """The reason why it was chosen: `last-tip`, `last-entry`, `newest`, `pinned` or `after-pin`."""
    uuid: str | None
    """Its uuid; `null` for a line without one."""


class LeavesRecord(TypedDict):
    """The leaf of each policy; `null` if there is no conversation."""

    recover: LeafRecord | None
    """The leaf of policy `recover`."""
    vendor: LeafRecord | None
    """The leaf of policy `vendor`."""


class LintRecord(TypedDict):
    """Whether a strict provider would accept a request."""

    ok: bool
    """Whether the session is resumable and there are no problems."""
    problems: list[ProblemRecord]
    """The problems for which a strict provider refuses the request, in the order of the messages."""
    warnings: list[ProblemRecord]
    """The problems for which some providers may refuse it, in the order of the messages."""


class ModelCosts(TypedDict):
    """The counts of the client for one model."""

    cacheCreationEphemeral1hInputTokens: int | None
    """The tokens written to the cache for an hour."""
    cacheCreationEphemeral5mInputTokens: int | None
    """The tokens written to the cache for five minutes."""
    cacheCreationInputTokens: int | None
    """Input tokens written to the cache."""
    cacheReadInputTokens: int | None
    """Input tokens read from the cache."""
    costUSD: float | None
    """US dollars."""
    inputTokens: int | None
    """Input tokens outside of the cache."""
    model: str
    """The model."""
    outputTokens: int | None
    """Tokens of the answers."""
    thinkingTokens: int | None
    """The output tokens that were spent on thinking."""
    webSearchRequests: int | None
    """Searches of the web by the API."""


class ModelFallback(TypedDict):
    """A change to another model because the one that was asked refused."""

    fallbackModel: str | None
    """The model that continued."""
    line: int | None
    """The number of the line, from 1; `null` if only the end of the file was read."""
    originalModel: str | None
    """The model that refused."""
    timestamp: str | None
    """Its time, as written in the file."""
    trigger: str | None
    """The reason, such as `refusal`."""


class MoveReport(TypedDict):
    """The only object of `move --json`."""

    kind: str
    """Always `move`."""
    left: list[str]
    """Sessions of other folders next to them, and folders that belong to no session."""
    moved: list[MovedSession]
    """The sessions that were moved or copied; with `--dry-run`, that would be."""
    refused: list[RefusedSession]
    """The sessions that were not."""
    schema: int
    """The version of the shape: SCHEMA."""


_MovedRecordKeywords = TypedDict("_MovedRecordKeywords", {"from": "str | None"})


class MovedRecord(_MovedRecordKeywords):
    """The conversation continues on another branch. Without a uuid, an entry is `null`."""

    kind: Literal["moved"]
    """The kind of the record."""
    fork: str | None
    """The last entry that both branches have; `null` if the conversation starts a new root."""
    offset: int
    """The offset of the entry that made the change."""
    path: str
    """The absolute path of the file."""
    to: str | None
    """The new leaf."""


_MovedSessionKeywords = TypedDict("_MovedSessionKeywords", {"from": "str"})


class MovedSession(_MovedSessionKeywords):
    """A session in a new place."""

    cwd: str
    """The working folder that the session names now."""
    sessionId: str
    """The id of the session; of a copy, its new id."""
    to: str
    """The file now; equal to from if only the recorded folder had to change."""


class NamedEntry(TypedDict):
    """A reference to an entry."""

    resolves: bool
    """Whether the file has an entry with that uuid."""
    uuid: str
    """The uuid."""


class NotCopiedRecord(TypedDict):
    """A file beside a session that was not copied with it."""

    path: str
    """Its path."""
    reason: str
    """The reason."""


class _OmissionRecord(TypedDict):
    line: int | None
    """The number of its line, from 1; `null` also when the lines before were not read."""
    reason: str
    """The reason, such as `unanswered-call`; `docs/cli.md` has the list."""
    uuid: str | None
    """Its uuid; `null` for a line without one."""


class OmissionRecord(_OmissionRecord, total=False):
    """An entry that is not sent, or only in part."""

    evidence: EntryLocation | None
    """The entry that is the evidence, such as the error of the API that names an image; absent if there is none."""


class OmittedItemRecord(TypedDict):
    """An item that is not written."""

    item: int
    """Its number."""
    kind: str
    """Its kind, as in items, such as `reasoning`."""
    reason: str
    """Why it is not written: `reasoning`, `context`, `resultWithoutCall`, `repeatedResult` or `empty`."""


class OpenRecord(TypedDict):
    """A file that was opened."""

    kind: Literal["open"]
    """The kind of the record."""
    offset: int
    """The first byte that is read."""
    path: str
    """The absolute path of the file."""


class PathState(TypedDict):
    """The settings of a session at the end of its path. What no line contains is `null`. Most of it comes from the entries of the path. Metadata lines count for the whole file, as they do not show which branch they belong to."""

    agentColor: str | None
    """Its colour among them."""
    agentName: str | None
    """The name of the session among its agents."""
    agentSetting: str | None
    """The agent that the session runs as."""
    commits: int | None
    """The number of commits that the client recognised in the output of commands (`gitOperation`), without amended ones. Clients before 2.1.156 record none, and commits by other means than a command of the session are not known. Includes those before the last compaction."""
    costs: Costs | None
    """The counts of the client itself, over resumes and subagents."""
    cwd: str | None
    """The working folder of the last entry of the path that names one."""
    denials: list[Denial] | None
    """The calls that were denied, in the order of their results."""
    entrypoint: str | None
    """The entrypoint of the client that wrote the last entry, such as `cli` or `sdk-py`."""
    fileHistory: list[FileHistory] | None
    """The files that a client can restore, for each prompt of the path that has a snapshot."""
    files: list[KnownFile] | None
    """The files that the model has read or written, each once, those accessed last at the end. Those from before the last compaction are not in the context any more."""
    gitBranch: str | None
    """The git branch of cwd; `HEAD` outside of a repository."""
    lastInteraction: str | None
    """The time of the last message of the path, as written in the file."""
    mode: str | None
    """The mode, such as `normal`."""
    model: str | None
    """The model of the last real answer."""
    modelFallback: ModelFallback | None
    """The last change to another model because one refused."""
    modelOverride: str | None
    """The model that the last command `/model` chose: its argument, else the name that the client showed. `null` after a return to the default, and when a model was chosen outside of the session."""
    models: list[str] | None
    """The models that answered, in order of first use."""
    originalCwd: str | None
    """The working folder of the first entry of the file that names one."""
    permissionMode: str | None
    """The permission mode, from an entry of the path or a `permission-mode` line, whichever is last in the file."""
    pullRequests: list[PullRequest] | None
    """The pull requests that the session created, each once."""
    queuedPrompts: list[QueuedPrompt] | None
    """The prompts that were queued while the model worked and never sent, oldest first; empty when all were sent. Clients queue notices about finished background tasks as well."""
    relocatedCwd: str | None
    """The folder that the session was moved to: a client that lists its sessions uses it before the others."""
    tag: str | None
    """The tag."""
    timedTurns: int | None
    """The number of these turns."""
    title: str | None
    """The title, by the rule of TitleLines as in lists."""
    titleSource: TitleSource | None
    """The origin of the title."""
    todos: list[Todo] | None
    """The to-do list at the end of the path; empty when it was cleared. Its state from before a compaction is known again from the first entry that repeats it."""
    turnDurationMs: int | None
    """The milliseconds that turns of the path took, as far as recorded."""
    version: str | None
    """The version of the client that wrote the last entry."""
    versions: list[str] | None
    """The versions on the path, in order of first use."""
    worktree: Worktree | None
    """The worktree that the session works in; `null` also after it left the worktree."""


class PolicyLintRecord(TypedDict):
    """Whether a strict provider accepts the request of each policy."""

    recover: bool
    """That under policy `recover`."""
    vendor: bool
    """That of the client."""


class PricesRecord(TypedDict):
    """The source of the prices."""

    date: str
    """The date of the table."""
    digest: str
    """Its digest."""


class ProblemRecord(TypedDict):
    """A rule that a request breaks."""

    detail: str
    """The rule in words."""
    line: int | None
    """The number of its line, from 1; `null` also when the lines before were not read."""
    message: int | None
    """The number of the message, from 0; `null` for the whole request."""
    rule: str
    """The rule, such as `emptied-thinking`."""
    uuid: str | None
    """Its uuid; `null` for a line without one."""


class PromptChangesRecord(TypedDict):
    """The differences between two system prompts, as names of sections."""

    added: list[str]
    """The sections that only the new prompt has, in its order."""
    changed: list[str]
    """The sections that both have, with different texts, in the order of the new prompt."""
    isRearranged: bool
    """Whether the texts of both are different although all sections are equal: their order changed, or the separator."""
    removed: list[str]
    """The sections that only the old prompt has, in its order."""


class PullRequest(TypedDict):
    """A pull request that the session created."""

    number: int | None
    """Its number."""
    repository: str | None
    """Its repository."""
    timestamp: str | None
    """When it was first named."""
    url: str | None
    """Its address."""


class QueuedPrompt(TypedDict):
    """A prompt that waits to be sent."""

    content: str | None
    """Its text."""
    timestamp: str | None
    """When it was queued."""


class RebuiltRequestsRecord(TypedDict):
    """The number of recorded requests that are reproduced from the entries alone."""

    recorded: int
    """The number of recorded requests."""
    reproduced: int
    """The number with the same messages when they are built from the entries alone."""
    versions: list[VersionRequestsRecord]
    """The same for each version of a client, ordered by version."""


class RedactedText(TypedDict):
    """A text without its secrets."""

    kinds: dict[str, int]
    """The number of secrets of each kind."""
    text: str
    """The text, with the kind of each secret in its place."""


class RefusedSession(TypedDict):
    """A session that was not moved."""

    detail: str
    """More about it: the file in the way, or the error of the system."""
    path: str
    """The path of its file."""
    reason: str
    """The reason: `exists`, `busy`, `unusable` or `failed`."""
    sessionId: str
    """Its id."""


class _RepairReport(TypedDict):
    after: HealthRecord
    """The state of the repaired session."""
    before: HealthRecord
    """The state of the session."""
    kind: str
    """Always `repair`."""
    path: str
    """The path of the session."""
    plan: list[ActionRecord]
    """The changes; empty when there is nothing to repair."""
    schema: int
    """The version of the shape: SCHEMA."""


class RepairReport(_RepairReport, total=False):
    """The plan or result of a repair, with the state of the session before and after: the only object of `repair --json`."""

    compacted: CompactedRecord | None
    """The lines that are moved to the archive; only with `--compact`, and if there are any."""
    cwd: str | None
    """The folder in which a client continues the session, or the copy that was written; missing if no client finds that file by its id."""
    notCopied: list[NotCopiedRecord]
    """The files in the folder of the session that were not copied to that of the repaired one."""
    old: str | None
    """The path of the old file, if it was replaced."""
    out: str | None
    """The path of the repaired session, if it was written."""
    refused: str | None
    """The reason why the session is not repaired, if it is not."""


_ReplayBranchKeywords = TypedDict("_ReplayBranchKeywords", {"from": "str | None"})


class ReplayBranch(_ReplayBranchKeywords):
    """A branch that leaves the path. The entries that follow are those that were not printed before."""

    kind: Literal["branch"]
    """The kind of the record."""
    leaf: str | None
    """The uuid of its last entry."""


class ReplayEnd(TypedDict):
    """The end of a replay."""

    kind: Literal["end"]
    """The kind of the record."""
    decisions: int
    """The number of decisions that led to the path."""
    findings: int
    """The number of findings about the file and the path."""


class _ReplayHead(TypedDict):
    kind: Literal["session"]
    """The kind of the record."""
    entries: int
    """The number of objects on them that may count as entries."""
    leaf: str | None
    """The uuid of the last entry of the path; `null` if there is no conversation."""
    lines: int
    """The number of physical lines of the whole file."""
    path: str
    """The path of the file; `-` for standard input."""
    policy: str
    """The policy that chose the path: `recover` or `vendor`."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str | None
    """The id of the session; `null` if no entry names one."""


class ReplayHead(_ReplayHead, total=False):
    """The session of a replay."""

    chapters: int | None
    """The number of chapters: the parts of the conversation that compactions ended, and the one since the last compaction. Absent with `--in-context`."""


class ReplaySidechain(TypedDict):
    """A subagent in the file of another conversation."""

    kind: Literal["sidechain"]
    """The kind of the record."""
    agent: str | None
    """Its id; `null` in files of old clients."""


class _RequestDifferenceRecord(TypedDict):
    line: int | None
    """The number of the line that records the request, from 1."""
    offset: int
    """The offset of that line."""
    path: str
    """The path of the file."""
    reason: str
    """`missing-message`, `extra-message`, `different-hash`, `no-conversation` or `unusable-body`."""
    request: str | None
    """The id of the request."""


class RequestDifferenceRecord(_RequestDifferenceRecord, total=False):
    """A recorded request that is not reproduced."""

    message: DifferentMessageRecord | None
    """The first message that differs."""


class RequestRecord(TypedDict):
    """The request that continues an open session."""

    accepted: bool
    """Whether a strict provider accepts the messages, and they fit the context window of the model if that is known."""
    messages: list[ApiMessage]
    """The messages, in the form of the API."""
    model: str | None
    """The model."""
    omitted: list[OmissionRecord]
    """As ResumeReport::omitted."""
    provider: str
    """The provider that gets the request."""
    resumable: bool
    """Whether there is a conversation to continue."""
    synthetic: list[SyntheticRecord]
    """As ResumeReport::synthetic."""
    tokens: TokensRecord
    """The length of the request."""


class ResetRecord(TypedDict):
    """A file that is printed again from its start."""

    kind: Literal["reset"]
    """The kind of the record."""
    offset: int
    """The position in the old file up to which it had been read, in bytes."""
    path: str
    """The absolute path of the file."""
    reason: str
    """The cause: `truncated` or `replaced`."""


class ResumeRefusal(TypedDict):
    """The answer of `resume --json` for a file that is not a transcript. It can also be parsed as a ResumeReport."""

    kind: str
    """Always `resume`."""
    leaf: str | None
    """Always `null`."""
    model: str | None
    """Always `null`."""
    path: str
    """The path of the file; `-` for standard input."""
    policy: str
    """The policy that was asked for: `recover` or `vendor`."""
    reason: str
    """The format of the file, in words."""
    resumable: Literal[False]
    """Always false."""
    schema: int
    """The version of the shape: SCHEMA."""
    scope: str
    """Always `file`."""
    sessionId: str | None
    """Always `null`."""


class _ResumeReport(TypedDict):
    decisions: list[DecisionRecord]
    """The decisions that led to the path, in the order in which they were made."""
    entries: EntryUuids
    """The uuids of the entries of the path, oldest first."""
    findings: list[FindingRecord]
    """The findings about the file and the path, by offset."""
    kind: str
    """Always `resume`."""
    leaf: str | None
    """The uuid of the last entry of the path; `null` if there is no conversation."""
    lint: LintRecord
    """Whether a strict provider would accept the request."""
    messages: list[ApiMessage]
    """The messages of the next request, oldest first, verbatim. A report that is about to be written has none: see write."""
    model: str | None
    """The model that the request is meant for; `null` if no model ever answered."""
    omitted: list[OmissionRecord]
    """The entries of the path that are not sent, or only in part."""
    path: str
    """The path of the file; `-` for standard input."""
    policy: str
    """The policy that chose the path: `recover` or `vendor`."""
    provider: str
    """The provider that accepts the request: `messages`, `converse` or `vertex`."""
    resumable: bool
    """Whether a client would continue the session. If not, there are no messages."""
    schema: int
    """The version of the shape: SCHEMA."""
    scope: str
    """The scope of findings and state: `file`, or `tail` if the end of the file was enough for the conversation."""
    sessionId: str | None
    """The id of the session; `null` if no entry names one."""
    state: PathState
    """The state of the session at the leaf."""
    synthetic: list[SyntheticRecord]
    """The blocks that are not in the file, in the order of the messages within each rule."""
    tokens: TokensRecord
    """The tokens of the request."""
    usage: UsageRecord
    """The tokens of the answers."""


class ResumeReport(_ResumeReport, total=False):
    """The state and the request with which a client continues a session: the only object of `resume --json`. Everything from `provider` on is empty when the file is of another format (ResumeRefusal)."""

    reason: str | None
    """The reason why it is not resumable, for people; absent if it is."""


class RootRecord(TypedDict):
    """The start of a branch that no link of the file connects with a parent."""

    branch: int
    """The id of the branch."""
    kind: str
    """The start of the branch: its BranchRecord::start."""
    line: int | None
    """The number of its line, from 1; `null` also when the lines before were not read."""
    parentUuid: str | None
    """The parent that the entry names; `null` if it names none."""
    uuid: str | None
    """Its uuid; `null` for a line without one."""


class SearchEnd(TypedDict):
    """The end of a search. The numbers do not depend on `--limit`; but in the order of time, sessions after the last needed one are not searched."""

    kind: Literal["end"]
    """The kind of the record."""
    bytes: int
    """The number of bytes that were searched."""
    hits: int
    """The number of hits, without copies."""
    scanned: int
    """The number of sessions that were searched."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessions: int
    """The number of sessions with hits."""
    unread: int
    """The number of damaged lines and of files that could not be searched."""


class _SessionItem(TypedDict):
    kind: str
    """`user`, `assistant`, `reasoning`, `tool_call`, `tool_result`, `summary` or `context`."""


class SessionItem(_SessionItem, total=False):
    """A message, or one block of it."""

    callId: str | None
    """The id of the call that it makes or answers."""
    error: bool | None
    """Whether the call failed."""
    images: int | None
    """The number of images."""
    input: Any
    """The input of the call: an object, or a text."""
    name: str | None
    """The name of the tool."""
    output: str | None
    """The text of the result."""
    text: str | None
    """The text."""


class _SessionRecord(TypedDict):
    branch: str | None
    """The git branch of the last entry."""
    bytes: int
    """The length of the file, in bytes."""
    costNanoUsd: int | None
    """The cost of the session and its subagents, in nano-dollars, if `usage` has read it since its last change and knows all prices."""
    created: str | None
    """The time of the first line that has one."""
    cwd: str | None
    """The working folder: the one that the session moved to, else the one it started in."""
    firstPrompt: str | None
    """The first prompt of a person, on one line and truncated to 200 UTF-16 units."""
    forked: str | None
    """When the session was forked, if no message was added since."""
    hasFile: bool
    """Whether the file exists. If only files of subagents are left, folder, branch and times are those of the last subagent."""
    inArchive: bool
    """Whether the session is read from the archive, as its file is gone."""
    kind: str
    """Always `session`."""
    lastPrompt: str | None
    """The last prompt, likewise."""
    messageCount: int | None
    """The number of entries of the conversation, where it is known without reading the whole file."""
    model: str | None
    """The model of the last answer, if it is near the end of the file."""
    modified: str | None
    """The time of the last message; of the file if it has no message."""
    path: str
    """The path of the file; without a file, the path where it would be."""
    project: str
    """The name of the folder of the file."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str
    """The name of the file without `.jsonl`."""
    state: str | None
    """Its state: `finished`, `waiting`, `open-call` or `stalled`."""
    subagents: int
    """The number of subagents with a file of their own."""
    tag: str | None
    """The tag."""
    title: str | None
    """The title."""
    titleSource: TitleSource | None
    """The origin of the title."""


class SessionRecord(_SessionRecord, total=False):
    """A session: a line of `list --json`. What the file does not have is `null`."""

    agent: str | None
    """The agent that wrote it, such as `codex`; absent for Claude Code."""
    agents: list[str]
    """The ids of the subagents with a file of their own, with `--sidechains`."""
    machine: str | None
    """The machine that captured it, if it is in an archive that several machines share."""
    root: str | None
    """The name of the root that it is in, if several roots are in use."""


class SidechainRecord(TypedDict):
    """A subagent in the file of another conversation."""

    agent: str | None
    """Its id; `null` in files of old clients."""
    entries: int
    """The number of its entries."""
    first: EntryLocation
    """The first of them."""


class SkippedMessages(TypedDict):
    """Messages of one type that a `record` did not write, for one reason."""

    count: int
    """Their number."""
    first: int
    """The place of the first of them in the list of messages, from 0."""
    reason: str
    """`not-stored`, `tombstoned` or `unknown-entry`."""
    type: str
    """Their type, such as `stream_event`."""


class StatusRecord(TypedDict):
    """The answer of `--statusline`."""

    kind: Literal["status"]
    """The kind of the record."""
    contextTokens: int | None
    """The tokens of its context."""
    maxContextTokens: int | None
    """The largest context of its model."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str | None
    """The session."""
    sessionNanoUsd: int | None
    """Its cost."""
    todayNanoUsd: int | None
    """The cost of all requests of today."""


class StoryPreview(TypedDict):
    """An entry as the command `story` lists it."""

    chapter: int
    """The number of its chapter, from 0. Each one after the first starts with the boundary of a compaction."""
    contextTokens: int | None
    """The tokens of the context of this answer, as the API counted them."""
    inContext: bool
    """Whether the model sees it when the conversation continues."""
    isPrompt: bool
    """Whether it is a prompt of a person."""
    outputTokens: int | None
    """The tokens of this answer, as the API counted them."""
    preview: str
    """The start of its text."""
    role: str | None
    """The role of its message."""
    type: str
    """Its type, such as `user`."""
    uuid: str | None
    """Its uuid; `null` if it has none."""


class SyntheticRecord(TypedDict):
    """A block that is not in the file."""

    block: Any
    """The block."""
    kind: str
    """The kind, such as `missing-result`; `docs/cli.md` has the list."""
    line: int | None
    """The number of its line, from 1; `null` also when the lines before were not read."""
    persist: bool
    """Whether the client writes it to the file before it continues."""
    role: str
    """The role of its message: `user`, `assistant` or `system`."""
    uuid: str | None
    """Its uuid; `null` for a line without one."""


class Todo(TypedDict):
    """One item of the list. What no line contains is `null`."""

    activeForm: str | None
    """The text shown while it is in progress."""
    content: str | None
    """The task."""
    id: str | None
    """Its id. Tasks have one, and the items of the oldest lists."""
    status: str | None
    """`pending`, `in_progress` or `completed`; a task has none before its first change."""


class TokensRecord(TypedDict):
    """The tokens of a request, estimated. Only the API knows the exact number."""

    margin: int
    """The safety margin when the request is compared with its limits; in over, but not in the numbers above: a third of the messages, if the request was made to fit and no answer shows how much the estimate is too low; otherwise 0."""
    messages: int
    """The tokens of the messages alone."""
    over: int | None
    """The excess in tokens of the request, with margin, over the window or over the limit that it was made to fit; `null` if it is not, or if the window is not known."""
    recorded: int | None
    """The tokens of the last answer of the conversation and its request, as the API counted them; `null` if no answer has the counts."""
    request: int
    """The tokens of the request: of its messages and, as far as the last answer shows what they took, of the system prompt and the tools."""
    unknown: int
    """The number of blocks that cannot be estimated, such as PDFs; they are not in the numbers above."""
    window: int | None
    """The context window of the model that the request is meant for; `null` if it is not known, or if an answer took more."""


class TreeReport(TypedDict):
    """The branches of a session: the only object of `tree --json`."""

    boundaries: list[BoundaryRecord]
    """The compactions, in file order."""
    branches: list[BranchRecord]
    """The branches, by where they start in the file. Their ids are their positions here."""
    entries: int
    """The number of objects on them that may count as entries."""
    kind: str
    """Always `tree`."""
    leaves: LeavesRecord
    """The leaf of each policy."""
    lines: int
    """The number of physical lines of the file."""
    path: str
    """The path of the file; `-` for standard input."""
    roots: list[RootRecord]
    """The starts of the branches that no link of the file connects with a parent."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str | None
    """The id of the session; `null` if no entry names one."""
    sidechains: list[SidechainRecord]
    """The subagents in the file, in the order of their first entry."""


class TypeSizeRecord(TypedDict):
    """The lines of one type before and after a compaction."""

    after: int
    """The bytes after."""
    before: int
    """The bytes before."""
    lines: int
    """The number of lines that are moved."""
    type: str
    """The type; empty for unknown ones."""


class UndoneRepair(TypedDict):
    """A repair that was undone."""

    kind: str
    """Always `undo`."""
    path: str
    """The file, as it was before the repair."""
    repaired: str
    """The path of the repaired file now."""
    schema: int
    """The version of the shape: SCHEMA."""


class Usage(TypedDict):
    """The usage of the answers of one model. What none of them reports is `null`, never 0."""

    answers: int
    """The number of answers."""
    cacheCreationInputTokens: int | None
    """Input tokens written to the cache. Some clients report only the numbers for each lifetime; then it is the sum of those."""
    cacheReadInputTokens: int | None
    """Input tokens read from the cache."""
    costUSD: float | None
    """Price in US dollars, in files of old clients (`costUSD`)."""
    durationMs: int | None
    """Milliseconds that the answers took, in files of old clients (`durationMs`)."""
    ephemeral1hInputTokens: int | None
    """Tokens written to the cache for an hour."""
    ephemeral5mInputTokens: int | None
    """Tokens written to the cache for five minutes."""
    inputTokens: int | None
    """Input tokens outside of the cache."""
    model: str | None
    """The model; `null` for answers that name none."""
    outputTokens: int | None
    """Tokens of the answers."""
    webSearchRequests: int | None
    """Searches of the web by the API."""


class UsageRecord(TypedDict):
    """The tokens of the answers."""

    models: list[Usage]
    """The counts by model, ordered by name."""
    scope: str
    """The scope of the counts: `path`."""


class _VerifyFindingRecord(TypedDict):
    code: str
    """The code, such as `L-TORN-TAIL`; `docs/findings.md` explains each."""
    detail: str
    """The finding, in words; never quotes the file."""
    len: int
    """The number of bytes that it is about."""
    line: int | None
    """The number of the line, from 1; `null` if it is about no single line."""
    offset: int
    """The offset of the first byte that it is about."""
    severity: str
    """`note` or `damage`."""


class VerifyFindingRecord(_VerifyFindingRecord, total=False):
    """A finding of `verify --json`."""

    uuid: str | None
    """The uuid of the entry that starts there."""


class _VerifyRecord(TypedDict):
    conversation: int
    """The number of messages of the conversation."""
    entries: int
    """The number of objects on them that may count as entries."""
    findings: list[VerifyFindingRecord]
    """Everything that is wrong or worth knowing, by offset; what is about no line comes first."""
    foreign: int
    """The number of messages of other conversations that either policy shows."""
    kind: str
    """Always `verify`."""
    lines: int
    """The number of physical lines."""
    lint: PolicyLintRecord
    """Whether a strict provider accepts the request of each policy."""
    path: str
    """The path of the file; `-` for standard input."""
    schema: int
    """The version of the shape: SCHEMA."""
    sessionId: str | None
    """The id of the session; `null` if no entry names one."""
    verdict: str
    """`clean`, `noted`, `damaged` or `lossy`."""
    visible: VisibleRecord
    """The number of these that each policy shows."""


class VerifyRecord(_VerifyRecord, total=False):
    """The findings of one session: a line of `verify --json`."""

    agent: str | None
    """The agent that wrote the session, such as `codex`; absent for Claude Code."""
    requests: RebuiltRequestsRecord | None
    """The requests that the file records about itself; only with `--requests`."""
    streamForm: bool
    """Whether the file is in the stream form, as the output of the SDK (`stream-json`) is; `vendor` then means the same as `recover`."""


class _VersionRequestsRecord(TypedDict):
    recorded: int
    """The number of recorded requests."""
    reproduced: int
    """The number of reproduced requests."""
    unknown: int
    """The number of requests that extend one that is not in the file, so that they cannot be compared."""
    version: str | None
    """The version; `null` if the lines name none."""


class VersionRequestsRecord(_VersionRequestsRecord, total=False):
    """The number of recorded requests of one version of a client that are reproduced."""

    first: RequestDifferenceRecord | None
    """The first that is not reproduced."""


class VisibleRecord(TypedDict):
    """A number of messages under each policy."""

    recover: int
    """Under policy `recover`."""
    vendor: int
    """Under policy `vendor`, that of the client."""


class Worktree(TypedDict):
    """A worktree that a session works in."""

    branch: str | None
    """Its branch."""
    name: str | None
    """Its name."""
    originalBranch: str | None
    """The branch before."""
    originalCwd: str | None
    """The folder before the session entered it."""
    originalHeadCommit: str | None
    """The commit before."""
    path: str | None
    """Its folder."""


class WrittenEntry(TypedDict):
    """An entry that was written."""

    len: int
    """Its length in bytes, without the newline."""
    offset: int
    """The offset of its first byte in the file."""
    parentUuid: str | None
    """Its parent; `null` for metadata and for the first entry."""
    uuid: str | None
    """Its uuid; `null` for metadata."""


class WrittenFileRecord(TypedDict):
    """A file of a session that is handed over."""

    bytes: int
    """The number of bytes that are written, or by which it gets longer."""
    isNew: bool
    """Whether there was no such file."""
    path: str
    """Its path."""


class WrittenFork(TypedDict):
    """A copy of a session that is written instead of it."""

    path: str
    """The path of its file."""
    sessionId: str
    """The id of the new session."""


CostRecord = Union[CostRow, ClientCostRecord, CostTotal, StatusRecord]
"""A line of `usage --json`: rows in the order of their keys, what the clients counted, and the total."""

EntryUuids = list[str | None]
"""The uuids of the entries of a path, oldest first; `null` for an entry without one. For a report that is about to be written, they are made one by one."""

FileAccess = Literal["read", "write"]
"""The kind of access by which the model knows a file."""

ReplayRecord = Union[ReplayHead, EntryRecord, ReplayBranch, ReplaySidechain, ReplayEnd]
"""A line of `replay --json`, in this order: `Session`, the entries, each branch or subagent followed by its entries, `End`."""

SearchRecord = Union[HitRecord, FoundSession, SearchEnd]
"""A line of `search --json`: hits, or with `--files` sessions, the best first; then `End`."""

TailRecord = Union[EntryRecord, OpenRecord, BadRecord, ResetRecord, GoneRecord, MovedRecord, ChangeRecord, CallRecord]
"""A line of `tail --json`, in the order of the events. Records of changes (`--changes`, from `Moved` on) follow the entry that made them."""

TitleSource = Literal["custom", "ai", "summary"]
"""The origin of a title."""
