/**
 * The types of records, written by `tools/bindings_api.py` from `docs/operations.json`. Later versions may add fields and
 * kinds.
 */

/** One change of a repair. */
export interface ActionRecord {
  /** The name of the action, for example `salvage`. */
  action: string;
  /** The code of the defect. */
  code: string;
  /** A short description. */
  detail: string;
  /** The line in the old file; `null` for one that was made. */
  line: number | null;
}

/** What is added to a conversation. */
export interface AddedItemRecord {
  /** The number of the item beside which it stands. */
  item: number;
  /** What it is: `prompt`, `result` or `answer`. */
  what: string;
}

/** A message of the API. What its blocks have is up to the API. */
export interface ApiMessage {
  /** A text, or blocks, each with its `type`. */
  content: string | (Record<string, unknown>)[];
  /** `user`, `assistant` or `system`. */
  role: string;
}

/** A damaged line. */
export interface BadRecord {
  /** The kind of the record. */
  kind: 'bad';
  /** The code of the finding (`docs/format.md`). */
  code: string;
  /** The defect, for people; never quotes the line. */
  detail: string;
  /** Its length in bytes, without the newline. */
  len: number;
  /** Its number, from 1; `null` if the lines before were not read. */
  line: number | null;
  /** The offset of its first byte in the file. */
  offset: number;
  /** The absolute path of the file. */
  path: string;
}

/** A block of five hours. The rates are those between its first and its last request. */
export interface BlockRecord {
  /** Whether it continues. */
  active: boolean;
  /** The cost of an hour. */
  costPerHourNanoUsd: number | null;
  /** Five hours later. */
  end: string | null;
  /** The cost of the whole block if it continues like this; of an active one only. */
  projectedNanoUsd: number | null;
  /** The full hour at which it starts. */
  start: string | null;
  /** All tokens of a minute. */
  tokensPerMinute: number | null;
}

/** A compaction. */
export interface BoundaryRecord {
  /** The entry that the preserved ones follow. */
  anchor: NamedEntry | null;
  /** The first preserved entry. */
  head: NamedEntry | null;
  /** The number of preserved entries; `null` if the boundary names only the ends of a segment that is on no path. */
  kept: number | null;
  /** The number of its line, from 1; `null` also when the lines before were not read. */
  line: number | null;
  /** The leaf of the conversation before. */
  logicalParent: NamedEntry | null;
  /** The number of named entries that are not in the file. */
  missing: number;
  /** The number of tokens before; `null` if the boundary does not say. */
  preTokens: number | null;
  /** The last preserved entry. */
  tail: NamedEntry | null;
  /** Its origin: `manual` or `auto`; `null` if the boundary does not say. */
  trigger: string | null;
  /** Its uuid; `null` for a line without one. */
  uuid: string | null;
}

/** A run of entries without a fork. */
export interface BranchRecord {
  /** The number of its entries. */
  entries: number;
  /** Its first entry. */
  first: EntryLocation;
  /** The entry of that branch that it continues from. */
  from: EntryLocation | null;
  /** Its position in TreeReport::branches, from 0. */
  id: number;
  /** `main` on the path to the leaf of `recover`, else `side`. */
  kind: string;
  /** Its last entry: the one to pass to `--leaf`. */
  last: EntryLocation;
  /** The number of its entries that are selected; absent without options that select entries. */
  matches?: number | null;
  /** The number of its messages. */
  messages: number;
  /** The branch that it leaves; `null` for a root. */
  parent: number | null;
  /** The number of prompts that a person typed. */
  prompts: number;
  /** Its start: `root`, `child`, `boundary`, `bridge`, `lost`, `sidechain` or `cycle`. */
  start: string;
  /** Whether no other branch continues from it. */
  tip: boolean;
}

/** A change that concerns one tool call. */
export interface CallRecord {
  /** The kind of the record. */
  kind: 'call-opened' | 'call-closed';
  /** The id of the call. */
  id: string;
  /** The name of the tool; only of `call-opened`, and absent if the call has none. */
  name?: string | null;
  /** The offset of the entry that made the change. */
  offset: number;
  /** The absolute path of the file. */
  path: string;
}

/** A change that concerns one entry. */
export interface ChangeRecord {
  /** The kind of the record. */
  kind: 'boundary' | 'tombstoned' | 'turn-end';
  /** The offset of the entry that made the change. */
  offset: number;
  /** The absolute path of the file. */
  path: string;
  /** The uuid of the entry; `null` if it has none. */
  uuid: string | null;
}

/** An item that is written with a change. */
export interface ChangedItemRecord {
  /** What changes, such as `callId`, `toolName`, `inputWrapped` or `resultMoved`. */
  change: string;
  /** What it was; only for ids and names. */
  from?: string | null;
  /** The number of images; only for images. */
  images?: number | null;
  /** Its number. */
  item: number;
  /** What it is now; only for ids and names. */
  to?: string | null;
}

/** The cost of a session as a client counted it (`cost-state`), next to our sum. `difference` is theirs minus ours: the part that is not in the transcript. */
export interface ClientCostRecord {
  /** The kind of the record. */
  kind: 'client';
  /** The sum of the client minus ours. */
  differenceNanoUsd: number | null;
  /** The same for each model. */
  models: ClientModelRecord[];
  /** Our cost; `null` if it is not known. */
  oursNanoUsd: number | null;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The session. */
  sessionId: string;
  /** The cost that the client counted. */
  theirsNanoUsd: number | null;
}

/** The cost of a model as a client counted it, next to our sum. */
export interface ClientModelRecord {
  /** The sum of the client minus ours. */
  differenceNanoUsd: number | null;
  /** The model. */
  model: string;
  /** Ours. */
  ourTokens: number[];
  /** Our cost. */
  oursNanoUsd: number | null;
  /** The tokens that the client counted: input, output, written to and read from the cache. */
  theirTokens: number[] | null;
  /** The cost that the client counted. */
  theirsNanoUsd: number | null;
}

/** The error of a command. */
export interface CommandError {
  /** The kind, such as `bad-command`; `docs/cli.md` has the list. */
  kind: string;
  /** The error in words; never quotes an entry. */
  message: string;
  /** Whether the same command may succeed later. */
  retry: boolean;
}

/** The lines that `--compact` moves to an archive. */
export interface CompactedRecord {
  /** The bytes after. */
  after: number;
  /** The bytes of the session before. */
  before: number;
  /** The number of lines that are moved. */
  lines: number;
  /** The same by the type of lines, the type of which most bytes are moved first. */
  types: TypeSizeRecord[];
}

/** A copy of an entry. */
export interface CopyRecord {
  /** Its line, from 1. */
  line: number | null;
  /** The session that it is in. */
  sessionId: string;
  /** Its uuid. */
  uuid: string | null;
}

/** A line of `usage --json`: rows in the order of their keys, what the clients counted, and the total. */
export type CostRecord = CostRow | ClientCostRecord | CostTotal | StatusRecord;

/** The sums of a part of the requests. */
export interface CostRow {
  /** The kind of the record. */
  kind: 'row';
  /** With `hour5` alone: the block. */
  block?: BlockRecord | null;
  /** The group of the row: the key of each kind, `null` if it is unknown or none. */
  by: Record<string, unknown>;
  /** Tokens read from the cache. */
  cacheRead: number;
  /** Tokens written to the cache for an hour. */
  cacheWrite1h: number;
  /** Tokens written to the cache for five minutes. */
  cacheWrite5m: number;
  /** The cost of all calls whose price is known; `null` if none is known. */
  costNanoUsd: number | null;
  /** With `branch`: whether a resume continues this branch. */
  current?: boolean | null;
  /** The number of requests of deleted sessions (`--keep-sums`). */
  deleted: number;
  /** The time of the first request. */
  first: string | null;
  /** The number of them without final counts. */
  incomplete: number;
  /** Input tokens outside of the cache. */
  input: number;
  /** The time of the last request. */
  last: string | null;
  /** Tokens of the answers. */
  output: number;
  /** The cost that lines of old clients record (`costUSD`). */
  reportedNanoUsd: number | null;
  /** The number of requests. */
  requests: number;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The models whose price is not known. */
  unknownModels: string[];
  /** The tokens of calls whose price is not known. */
  unpricedTokens: number;
  /** Pages that the API fetched. */
  webFetch: number;
  /** Searches of the web. */
  webSearch: number;
}

/** The sums of all rows. */
export interface CostTotal {
  /** The kind of the record. */
  kind: 'total';
  /** Tokens read from the cache. */
  cacheRead: number;
  /** Tokens written to the cache for an hour. */
  cacheWrite1h: number;
  /** Tokens written to the cache for five minutes. */
  cacheWrite5m: number;
  /** The cost of all calls whose price is known; `null` if none is known. */
  costNanoUsd: number | null;
  /** The number of requests of deleted sessions (`--keep-sums`). */
  deleted: number;
  /** The time of the first request. */
  first: string | null;
  /** The number of them without final counts. */
  incomplete: number;
  /** Input tokens outside of the cache. */
  input: number;
  /** The time of the last request. */
  last: string | null;
  /** Tokens of the answers. */
  output: number;
  /** The table of prices. */
  prices: PricesRecord;
  /** The cost that lines of old clients record (`costUSD`). */
  reportedNanoUsd: number | null;
  /** The number of requests. */
  requests: number;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The models whose price is not known. */
  unknownModels: string[];
  /** Searches whose call is not in the file of their result. */
  unmatchedSearches: number;
  /** The tokens of calls whose price is not known. */
  unpricedTokens: number;
  /** Damaged entries that could not be read. */
  unread: number;
  /** Files that could not be read: if there are any, the cost of all is higher. */
  unreadFiles: number;
  /** Pages that the API fetched. */
  webFetch: number;
  /** Searches of the web. */
  webSearch: number;
  /** The number of requests that were omitted because they have no time. */
  withoutTime: number;
}

/** The counts of the client, from the last `cost-state` line. A resumed session continues from these counts (META-3). */
export interface Costs {
  /** Milliseconds spent in the API. */
  apiDurationMs: number | null;
  /** Milliseconds spent in the API without attempts that failed. */
  apiDurationWithoutRetriesMs: number | null;
  /** Milliseconds in all. */
  durationMs: number | null;
  /** Whether the price of a model was unknown, so that the sum is too low. */
  hasUnknownModelCost: boolean | null;
  /** Lines that were added to files. */
  linesAdded: number | null;
  /** Lines that were removed. */
  linesRemoved: number | null;
  /** The counts by model, in the order of the line. */
  models: ModelCosts[] | null;
  /** The start, in milliseconds since 1970. */
  startTime: number | null;
  /** Milliseconds spent in tools. */
  toolDurationMs: number | null;
  /** US dollars. */
  totalCostUSD: number | null;
}

/** A step of choosing the path. */
export interface DecisionRecord {
  /** The decision with its evidence, for people. */
  detail: string;
  /** The kind, such as `leaf`; `docs/recover.md` has the list. */
  kind: string;
  /** The number of its line, from 1; `null` also when the lines before were not read. */
  line: number | null;
  /** Its uuid; `null` for a line without one. */
  uuid: string | null;
}

/** A call that was denied. A client that resumes the session need not ask again. */
export interface Denial {
  /** The id of the call. */
  call: string | null;
  /** The kind of the denial: the `toolDenialKind` of the line, or the kind that texts::denial finds in its text. */
  kind: string;
  /** The number of the line of the result, from 1; `null` if only the end of the file was read. */
  line: number | null;
  /** The reason, in the words of the person or of the classifier. */
  reason: string | null;
  /** Its time, as written in the file. */
  timestamp: string | null;
  /** The tool; `null` if the call is not on the path. */
  tool: string | null;
}

/** A message of a recorded request that differs. */
export interface DifferentMessageRecord {
  /** Its place, from 0. */
  index: number;
  /** The line of the entry that it comes from; of a missing message, of the last entry before it. */
  line: number | null;
  /** `user`, `assistant` or `system`; `null` if it was recorded as a hash alone. */
  role: string | null;
  /** The uuid of that entry. */
  uuid: string | null;
}

/** The entry that a record refers to. Both are `null` if it refers to none. */
export interface EntryLocation {
  /** The number of its line, from 1; `null` also when the lines before were not read. */
  line: number | null;
  /** Its uuid; `null` for a line without one. */
  uuid: string | null;
}

/** An entry as the command `entries` lists it. */
export interface EntryPreview {
  /** The tokens of the context of this answer, as the API counted them. */
  contextTokens: number | null;
  /** Whether it is a prompt of a person. */
  isPrompt: boolean;
  /** The tokens of this answer, as the API counted them. */
  outputTokens: number | null;
  /** The start of its text. */
  preview: string;
  /** The role of its message. */
  role: string | null;
  /** Its type, such as `user`. */
  type: string;
  /** Its uuid; `null` if it has none. */
  uuid: string | null;
}

/** An entry. In the output of `replay` it is one of the path; in that of `tail` it may be any line with an object, including titles, modes and other metadata. */
export interface EntryRecord {
  /** The kind of the record. */
  kind: 'entry';
  /** The position after this entry, to continue there; only of the operations `follow` and `watch`. */
  checkpoint?: string | null;
  /** The whole entry, verbatim; only with `--raw-entries`, and absent if the line cannot be parsed. */
  entry?: unknown;
  /** Whether the model sees the entry when the conversation continues; absent in the output of `tail`. */
  inContext?: boolean | null;
  /** The number of bytes that it takes in the file, without the newline. */
  len: number;
  /** The number of its line, from 1; `null` if the lines before were not read. */
  line: number | null;
  /** Its message, verbatim; `null` if it has none, or if the line cannot be parsed. */
  message: unknown;
  /** The offset of its first byte in the file. */
  offset: number;
  /** The parent that the entry itself names, even if the path reached it in another way; `null` if it names none. */
  parentUuid: string | null;
  /** The absolute path of the file; only in the output of `tail`. */
  path?: string | null;
  /** Whether it belongs to a subagent in the file of another conversation; only in the output of `tail`, and absent otherwise. */
  sidechain?: boolean;
  /** The subtype of a `system` entry; `null` for any other. */
  subtype: string | null;
  /** Its time as in the file; `null` if it has none. */
  timestamp: string | null;
  /** Its type, such as `user`; new values may be added. `null` if the line cannot be parsed. */
  type: string | null;
  /** Its uuid; `null` if it has none. */
  uuid: string | null;
  /** The link that put it onto the path: `parent`, `sibling`, `splice`, `bridge`, `salvage`. Of `tail` what the line alone shows: `salvage`, or `parent` if it names one. */
  via: string[];
}

/** The uuids of the entries of a path, oldest first; `null` for an entry without one. For a report that is about to be written, they are made one by one. */
export type EntryUuids = (string | null)[];

/** A document that was written. */
export interface ExportedDocument {
  /** Its file. */
  path: string;
  /** The number of secrets that were replaced. */
  redactions: number;
}

/** The error of a function. Names the file and never quotes the content of an entry. */
export interface Failure {
  /** The stable name of what went wrong, such as `not-found` or `busy`. */
  kind: string;
  /** The number of the line, from 1. */
  line: number | null;
  /** The message, for people. */
  message: string;
  /** The offset in the file, in bytes. */
  offset: number | null;
  /** The file, or the folder that was searched. */
  path: string | null;
  /** Whether the same call may succeed later. */
  retryable: boolean;
}

/** The kind of access by which the model knows a file. */
export type FileAccess = 'read' | 'write';

/** The files as they were before a prompt. */
export interface FileHistory {
  /** The paths of the tracked files. They are shared: most prompts have the same ones. */
  files: string[];
  /** The uuid of the prompt. */
  messageId: string;
  /** When the snapshot was taken. */
  timestamp: string | null;
}

/** A defect of the file. */
export interface FindingRecord {
  /** The code, such as `L-TORN-TAIL`; `docs/findings.md` explains each. */
  code: string;
  /** The defect, in words; never quotes the file. */
  detail: string;
  /** The number of bytes that it is about. */
  len: number;
  /** The number of the line, from 1; `null` if the lines before were not read. */
  line: number | null;
  /** The offset of the first byte that it is about. */
  offset: number;
  /** `note` or `damage`. */
  severity: string;
}

/** A copy of a conversation: the only object of `fork --json`. */
export interface ForkRecord {
  /** Always `fork`. */
  kind: string;
  /** The path of its file. */
  path: string;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The id of the new session. */
  sessionId: string;
  /** The path of the file that was copied; `-` for standard input. */
  source: string;
}

/** The copy of a session. */
export interface ForkedSession {
  /** Its id. */
  sessionId: string;
}

/** A session with hits. */
export interface FoundSession {
  /** The kind of the record. */
  kind: 'session';
  /** The number of hits, without copies. */
  hits: number;
  /** The time of its last message, as `list --json` has it. */
  modified: string | null;
  /** The path of its file; without a file, the path where it would be. */
  path: string;
  /** The name of its project folder. */
  project: string;
  /** The name of the root of the session, if several roots are in use. */
  root?: string | null;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The name of its file without `.jsonl`. */
  sessionId: string;
  /** Its title, else its first prompt. */
  title: string | null;
}

/** A file that does not have its name any more. */
export interface GoneRecord {
  /** The kind of the record. */
  kind: 'gone';
  /** The position up to which it was read, in bytes. */
  offset: number;
  /** The absolute path that the file had. */
  path: string;
  /** The number of bytes after its last newline. */
  torn: number;
}

/** A session that is handed over to another agent, or converted to a file. */
export interface HandOverRecord {
  /** The words of the command that continues the session; none if no command does. */
  command: string[];
  /** The working folder of the new session, in which its agent must be started. */
  cwd: string;
  /** The variables that the command needs. */
  environment: Record<string, string>;
  /** The files that are new or longer, that with the conversation first; none for standard output. */
  files: WrittenFileRecord[];
  /** The home folder of the agent that gets the session; `null` for a file. */
  home: string | null;
  /** Always `handOver`. */
  kind: string;
  /** The number of secrets that were replaced; `null` if none were looked for. */
  redactions: number | null;
  /** What is omitted, changed and added. */
  report: HandOverReport;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The id of the new session. It depends on the time: a session that is handed over again gets another one. */
  sessionId: string;
  /** The path of the session that is handed over. */
  source: string;
  /** The agent that had the session, or the format of its file. */
  sourceAgent: string;
  /** The id of the session that is handed over. */
  sourceSessionId: string | null;
  /** The agent that gets the session, or the format of the file. */
  target: string;
  /** The title of the new session. */
  title: string | null;
  /** Whether it is written; else this is what would be. */
  written: boolean;
}

/** What a hand-over omits, changes and adds. What it does not list arrives as it was. Items are named by their numbers, from 0, as in the list `live` of `replay --format items`. */
export interface HandOverReport {
  /** What is added, by the hand-over or by the agent when it continues the session. */
  added: AddedItemRecord[];
  /** The number of those that are written, whole or in part. */
  carried: number;
  /** The items that are written with a change, in their order; several changes of one item are several entries. */
  changed: ChangedItemRecord[];
  /** How often each thing of the lists below happens, by its name. */
  counts: Record<string, number>;
  /** The number of items of the conversation. */
  items: number;
  /** The models that wrote parts of it. No agent receives them: each continues with its own. */
  models: string[];
  /** The items that are not written, in their order. */
  omitted: OmittedItemRecord[];
  /** The number of thoughts that their maker signed or encrypted. Other makers refuse them. */
  signatures: number;
  /** The number of items whose tokens are known. They are not written: the agent would add them to its own. */
  usage: number;
}

/** The state of a session: the messages that it shows, and whether a provider accepts them. */
export interface HealthRecord {
  /** The messages of the conversation. */
  conversation: number;
  /** Whether a strict provider accepts the request of each policy. */
  lint: PolicyLintRecord;
  /** The number of them that each policy shows. */
  visible: VisibleRecord;
}

/** An entry that a search found. */
export interface HitRecord {
  /** The kind of the record. */
  kind: 'hit';
  /** The same, under its former name. */
  agentId?: string | null;
  /** The copies of the entry, in other sessions or in the same one. */
  also: CopyRecord[];
  /** The number of its block, from 0; `null` outside of messages. */
  block: number | null;
  /** The part of the entry that the snippet is from: `prompt`, `text`, `thinking`, `tool_input`, `tool_result`, `title`, `summary`, `attachment` or `queued`. */
  field: string;
  /** Whether the model sees the entry when the conversation continues. */
  inContext: boolean;
  /** The line of the entry, from 1; `null` for a stored result that belongs to no entry. */
  line: number | null;
  /** Whether the entry is part of the conversation; `false` if it was rewound to before it. */
  live: boolean;
  /** The first match: where it starts and ends in the snippet, in characters. `null` without words. */
  match: unknown[] | null;
  /** The place of the entry in its file, in bytes. */
  offset: number;
  /** The path of the file of the entry: that of the session or of a subagent. */
  path: string;
  /** The name of the project folder. */
  project: string;
  /** The author of the entry: `user`, `assistant`, `tool` or `system`; `null` for metadata. */
  role: string | null;
  /** The name of the root of the session, if several roots are in use. */
  root?: string | null;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The name of the file of the session without `.jsonl`. */
  sessionId: string;
  /** The text around the match. */
  snippet: string;
  /** The file of the result that the snippet is from, if it is not in the entry. */
  storedResult?: string | null;
  /** The subagent. */
  subagentId?: string | null;
  /** The time of the entry. */
  timestamp: string | null;
  /** The title of the session, else its first prompt. */
  title: string | null;
  /** The tool of a call or of a result. */
  tool?: string | null;
  /** The uuid of the entry. */
  uuid: string | null;
}

/** A session of any agent as items. */
export interface ItemsRecord {
  /** The items of each branch and subagent. */
  branches: SessionItem[][];
  /** The items that summaries took the place of. */
  compacted: SessionItem[];
  /** Always `items`. */
  kind: string;
  /** The items that go to the model with the next prompt, in their order. */
  live: SessionItem[];
  /** The version of the shape: SCHEMA. */
  schema: number;
}

/** A file that the model knows, by its last access. What no line contains is `null`. A client that resumes a session needs it for tools that change only files that were read, and for notes about files that have changed since: compare timestamp with the time of the file. The text itself is not kept. */
export interface KnownFile {
  /** Whether the last access read or wrote it. */
  access: FileAccess;
  /** The id of the call; `null` if the client added the text by itself, as for a mentioned file. */
  call: string | null;
  /** Whether the text is still in the context: no compaction and no microcompaction has removed it. */
  inContext: boolean;
  /** Whether it was shown, or wrote, the whole file. After a change of a part: whether it knew the whole file before. */
  isWhole: boolean;
  /** The number of its line, from 1; `null` if only the end of the file was read. */
  line: number | null;
  /** The number of lines that it was shown. */
  numLines: number | null;
  /** The path as the line has it, usually an absolute one. */
  path: string;
  /** The first line of the file that the model was shown, from 1. A change of a file keeps the range that was known before it. */
  startLine: number | null;
  /** Its time, as written in the file. */
  timestamp: string | null;
  /** The number of lines of the whole file. */
  totalLines: number | null;
  /** The uuid of the entry with the result or the attachment. */
  uuid: string | null;
}

/** The leaf of a policy. */
export interface LeafRecord {
  /** The id of its branch; `null` if it is on none. */
  branch: number | null;
  /** The reason in words. */
  detail: string;
  /** The number of entries of the path to it. */
  entries: number;
  /** The number of its line, from 1; `null` also when the lines before were not read. */
  line: number | null;
  /** The reason why it was chosen: `last-tip`, `last-entry`, `newest`, `pinned` or `after-pin`. */
  reason: string;
  /** Its uuid; `null` for a line without one. */
  uuid: string | null;
}

/** The leaf of each policy; `null` if there is no conversation. */
export interface LeavesRecord {
  /** The leaf of policy `recover`. */
  recover: LeafRecord | null;
  /** The leaf of policy `vendor`. */
  vendor: LeafRecord | null;
}

/** Whether a strict provider would accept a request. */
export interface LintRecord {
  /** Whether the session is resumable and there are no problems. */
  ok: boolean;
  /** The problems for which a strict provider refuses the request, in the order of the messages. */
  problems: ProblemRecord[];
  /** The problems for which some providers may refuse it, in the order of the messages. */
  warnings: ProblemRecord[];
}

/** The counts of the client for one model. */
export interface ModelCosts {
  /** The tokens written to the cache for an hour. */
  cacheCreationEphemeral1hInputTokens: number | null;
  /** The tokens written to the cache for five minutes. */
  cacheCreationEphemeral5mInputTokens: number | null;
  /** Input tokens written to the cache. */
  cacheCreationInputTokens: number | null;
  /** Input tokens read from the cache. */
  cacheReadInputTokens: number | null;
  /** US dollars. */
  costUSD: number | null;
  /** Input tokens outside of the cache. */
  inputTokens: number | null;
  /** The model. */
  model: string;
  /** Tokens of the answers. */
  outputTokens: number | null;
  /** The output tokens that were spent on thinking. */
  thinkingTokens: number | null;
  /** Searches of the web by the API. */
  webSearchRequests: number | null;
}

/** A change to another model because the one that was asked refused. */
export interface ModelFallback {
  /** The model that continued. */
  fallbackModel: string | null;
  /** The number of the line, from 1; `null` if only the end of the file was read. */
  line: number | null;
  /** The model that refused. */
  originalModel: string | null;
  /** Its time, as written in the file. */
  timestamp: string | null;
  /** The reason, such as `refusal`. */
  trigger: string | null;
}

/** The only object of `move --json`. */
export interface MoveReport {
  /** Always `move`. */
  kind: string;
  /** Sessions of other folders next to them, and folders that belong to no session. */
  left: string[];
  /** The sessions that were moved or copied; with `--dry-run`, that would be. */
  moved: MovedSession[];
  /** The sessions that were not. */
  refused: RefusedSession[];
  /** The version of the shape: SCHEMA. */
  schema: number;
}

/** The conversation continues on another branch. Without a uuid, an entry is `null`. */
export interface MovedRecord {
  /** The kind of the record. */
  kind: 'moved';
  /** The last entry that both branches have; `null` if the conversation starts a new root. */
  fork: string | null;
  /** The previous leaf. */
  from: string | null;
  /** The offset of the entry that made the change. */
  offset: number;
  /** The absolute path of the file. */
  path: string;
  /** The new leaf. */
  to: string | null;
}

/** A session in a new place. */
export interface MovedSession {
  /** The working folder that the session names now. */
  cwd: string;
  /** The file before. */
  from: string;
  /** The id of the session; of a copy, its new id. */
  sessionId: string;
  /** The file now; equal to from if only the recorded folder had to change. */
  to: string;
}

/** A reference to an entry. */
export interface NamedEntry {
  /** Whether the file has an entry with that uuid. */
  resolves: boolean;
  /** The uuid. */
  uuid: string;
}

/** A file beside a session that was not copied with it. */
export interface NotCopiedRecord {
  /** Its path. */
  path: string;
  /** The reason. */
  reason: string;
}

/** An entry that is not sent, or only in part. */
export interface OmissionRecord {
  /** The entry that is the evidence, such as the error of the API that names an image; absent if there is none. */
  evidence?: EntryLocation | null;
  /** The number of its line, from 1; `null` also when the lines before were not read. */
  line: number | null;
  /** The reason, such as `unanswered-call`; `docs/cli.md` has the list. */
  reason: string;
  /** Its uuid; `null` for a line without one. */
  uuid: string | null;
}

/** An item that is not written. */
export interface OmittedItemRecord {
  /** Its number. */
  item: number;
  /** Its kind, as in items, such as `reasoning`. */
  kind: string;
  /** Why it is not written: `reasoning`, `context`, `resultWithoutCall`, `repeatedResult` or `empty`. */
  reason: string;
}

/** A file that was opened. */
export interface OpenRecord {
  /** The kind of the record. */
  kind: 'open';
  /** The first byte that is read. */
  offset: number;
  /** The absolute path of the file. */
  path: string;
}

/** The settings of a session at the end of its path. What no line contains is `null`. Most of it comes from the entries of the path. Metadata lines count for the whole file, as they do not show which branch they belong to. */
export interface PathState {
  /** Its colour among them. */
  agentColor: string | null;
  /** The name of the session among its agents. */
  agentName: string | null;
  /** The agent that the session runs as. */
  agentSetting: string | null;
  /** The number of commits that the client recognised in the output of commands (`gitOperation`), without amended ones. Clients before 2.1.156 record none, and commits by other means than a command of the session are not known. Includes those before the last compaction. */
  commits: number | null;
  /** The counts of the client itself, over resumes and subagents. */
  costs: Costs | null;
  /** The working folder of the last entry of the path that names one. */
  cwd: string | null;
  /** The calls that were denied, in the order of their results. */
  denials: Denial[] | null;
  /** The entrypoint of the client that wrote the last entry, such as `cli` or `sdk-py`. */
  entrypoint: string | null;
  /** The files that a client can restore, for each prompt of the path that has a snapshot. */
  fileHistory: FileHistory[] | null;
  /** The files that the model has read or written, each once, those accessed last at the end. Those from before the last compaction are not in the context any more. */
  files: KnownFile[] | null;
  /** The git branch of cwd; `HEAD` outside of a repository. */
  gitBranch: string | null;
  /** The time of the last message of the path, as written in the file. */
  lastInteraction: string | null;
  /** The mode, such as `normal`. */
  mode: string | null;
  /** The model of the last real answer. */
  model: string | null;
  /** The last change to another model because one refused. */
  modelFallback: ModelFallback | null;
  /** The model that the last command `/model` chose: its argument, else the name that the client showed. `null` after a return to the default, and when a model was chosen outside of the session. */
  modelOverride: string | null;
  /** The models that answered, in order of first use. */
  models: string[] | null;
  /** The working folder of the first entry of the file that names one. */
  originalCwd: string | null;
  /** The permission mode, from an entry of the path or a `permission-mode` line, whichever is last in the file. */
  permissionMode: string | null;
  /** The pull requests that the session created, each once. */
  pullRequests: PullRequest[] | null;
  /** The prompts that were queued while the model worked and never sent, oldest first; empty when all were sent. Clients queue notices about finished background tasks as well. */
  queuedPrompts: QueuedPrompt[] | null;
  /** The folder that the session was moved to: a client that lists its sessions uses it before the others. */
  relocatedCwd: string | null;
  /** The tag. */
  tag: string | null;
  /** The number of these turns. */
  timedTurns: number | null;
  /** The title, by the rule of TitleLines as in lists. */
  title: string | null;
  /** The origin of the title. */
  titleSource: TitleSource | null;
  /** The to-do list at the end of the path; empty when it was cleared. Its state from before a compaction is known again from the first entry that repeats it. */
  todos: Todo[] | null;
  /** The milliseconds that turns of the path took, as far as recorded. */
  turnDurationMs: number | null;
  /** The version of the client that wrote the last entry. */
  version: string | null;
  /** The versions on the path, in order of first use. */
  versions: string[] | null;
  /** The worktree that the session works in; `null` also after it left the worktree. */
  worktree: Worktree | null;
}

/** Whether a strict provider accepts the request of each policy. */
export interface PolicyLintRecord {
  /** That under policy `recover`. */
  recover: boolean;
  /** That of the client. */
  vendor: boolean;
}

/** The source of the prices. */
export interface PricesRecord {
  /** The date of the table. */
  date: string;
  /** Its digest. */
  digest: string;
}

/** A rule that a request breaks. */
export interface ProblemRecord {
  /** The rule in words. */
  detail: string;
  /** The number of its line, from 1; `null` also when the lines before were not read. */
  line: number | null;
  /** The number of the message, from 0; `null` for the whole request. */
  message: number | null;
  /** The rule, such as `emptied-thinking`. */
  rule: string;
  /** Its uuid; `null` for a line without one. */
  uuid: string | null;
}

/** The differences between two system prompts, as names of sections. */
export interface PromptChangesRecord {
  /** The sections that only the new prompt has, in its order. */
  added: string[];
  /** The sections that both have, with different texts, in the order of the new prompt. */
  changed: string[];
  /** Whether the texts of both are different although all sections are equal: their order changed, or the separator. */
  isRearranged: boolean;
  /** The sections that only the old prompt has, in its order. */
  removed: string[];
}

/** A pull request that the session created. */
export interface PullRequest {
  /** Its number. */
  number: number | null;
  /** Its repository. */
  repository: string | null;
  /** When it was first named. */
  timestamp: string | null;
  /** Its address. */
  url: string | null;
}

/** A prompt that waits to be sent. */
export interface QueuedPrompt {
  /** Its text. */
  content: string | null;
  /** When it was queued. */
  timestamp: string | null;
}

/** The number of recorded requests that are reproduced from the entries alone. */
export interface RebuiltRequestsRecord {
  /** The number of recorded requests. */
  recorded: number;
  /** The number with the same messages when they are built from the entries alone. */
  reproduced: number;
  /** The same for each version of a client, ordered by version. */
  versions: VersionRequestsRecord[];
}

/** A text without its secrets. */
export interface RedactedText {
  /** The number of secrets of each kind. */
  kinds: Record<string, number>;
  /** The text, with the kind of each secret in its place. */
  text: string;
}

/** A session that was not moved. */
export interface RefusedSession {
  /** More about it: the file in the way, or the error of the system. */
  detail: string;
  /** The path of its file. */
  path: string;
  /** The reason: `exists`, `busy`, `unusable` or `failed`. */
  reason: string;
  /** Its id. */
  sessionId: string;
}

/** The plan or result of a repair, with the state of the session before and after: the only object of `repair --json`. */
export interface RepairReport {
  /** The state of the repaired session. */
  after: HealthRecord;
  /** The state of the session. */
  before: HealthRecord;
  /** The lines that are moved to the archive; only with `--compact`, and if there are any. */
  compacted?: CompactedRecord | null;
  /** The folder in which a client continues the session, or the copy that was written; missing if no client finds that file by its id. */
  cwd?: string | null;
  /** Always `repair`. */
  kind: string;
  /** The files in the folder of the session that were not copied to that of the repaired one. */
  notCopied?: NotCopiedRecord[];
  /** The path of the old file, if it was replaced. */
  old?: string | null;
  /** The path of the repaired session, if it was written. */
  out?: string | null;
  /** The path of the session. */
  path: string;
  /** The changes; empty when there is nothing to repair. */
  plan: ActionRecord[];
  /** The reason why the session is not repaired, if it is not. */
  refused?: string | null;
  /** The version of the shape: SCHEMA. */
  schema: number;
}

/** A branch that leaves the path. The entries that follow are those that were not printed before. */
export interface ReplayBranch {
  /** The kind of the record. */
  kind: 'branch';
  /** Its parent among the entries printed before; `null` if it has its own root. */
  from: string | null;
  /** The uuid of its last entry. */
  leaf: string | null;
}

/** The end of a replay. */
export interface ReplayEnd {
  /** The kind of the record. */
  kind: 'end';
  /** The number of decisions that led to the path. */
  decisions: number;
  /** The number of findings about the file and the path. */
  findings: number;
}

/** The session of a replay. */
export interface ReplayHead {
  /** The kind of the record. */
  kind: 'session';
  /** The number of chapters: the parts of the conversation that compactions ended, and the one since the last compaction. Absent with `--in-context`. */
  chapters?: number | null;
  /** The number of objects on them that may count as entries. */
  entries: number;
  /** The uuid of the last entry of the path; `null` if there is no conversation. */
  leaf: string | null;
  /** The number of physical lines of the whole file. */
  lines: number;
  /** The path of the file; `-` for standard input. */
  path: string;
  /** The policy that chose the path: `recover` or `vendor`. */
  policy: string;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The id of the session; `null` if no entry names one. */
  sessionId: string | null;
}

/** A line of `replay --json`, in this order: `Session`, the entries, each branch or subagent followed by its entries, `End`. */
export type ReplayRecord = ReplayHead | EntryRecord | ReplayBranch | ReplaySidechain | ReplayEnd;

/** A subagent in the file of another conversation. */
export interface ReplaySidechain {
  /** The kind of the record. */
  kind: 'sidechain';
  /** Its id; `null` in files of old clients. */
  agent: string | null;
}

/** A recorded request that is not reproduced. */
export interface RequestDifferenceRecord {
  /** The number of the line that records the request, from 1. */
  line: number | null;
  /** The first message that differs. */
  message?: DifferentMessageRecord | null;
  /** The offset of that line. */
  offset: number;
  /** The path of the file. */
  path: string;
  /** `missing-message`, `extra-message`, `different-hash`, `no-conversation` or `unusable-body`. */
  reason: string;
  /** The id of the request. */
  request: string | null;
}

/** The request that continues an open session. */
export interface RequestRecord {
  /** Whether a strict provider accepts the messages, and they fit the context window of the model if that is known. */
  accepted: boolean;
  /** The messages, in the form of the API. */
  messages: ApiMessage[];
  /** The model. */
  model: string | null;
  /** As ResumeReport::omitted. */
  omitted: OmissionRecord[];
  /** The provider that gets the request. */
  provider: string;
  /** Whether there is a conversation to continue. */
  resumable: boolean;
  /** As ResumeReport::synthetic. */
  synthetic: SyntheticRecord[];
  /** The length of the request. */
  tokens: TokensRecord;
}

/** A file that is printed again from its start. */
export interface ResetRecord {
  /** The kind of the record. */
  kind: 'reset';
  /** The position in the old file up to which it had been read, in bytes. */
  offset: number;
  /** The absolute path of the file. */
  path: string;
  /** The cause: `truncated` or `replaced`. */
  reason: string;
}

/** The answer of `resume --json` for a file that is not a transcript. It can also be parsed as a ResumeReport. */
export interface ResumeRefusal {
  /** Always `resume`. */
  kind: string;
  /** Always `null`. */
  leaf: string | null;
  /** Always `null`. */
  model: string | null;
  /** The path of the file; `-` for standard input. */
  path: string;
  /** The policy that was asked for: `recover` or `vendor`. */
  policy: string;
  /** The format of the file, in words. */
  reason: string;
  /** Always false. */
  resumable: false;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** Always `file`. */
  scope: string;
  /** Always `null`. */
  sessionId: string | null;
}

/** The state and the request with which a client continues a session: the only object of `resume --json`. Everything from `provider` on is empty when the file is of another format (ResumeRefusal). */
export interface ResumeReport {
  /** The decisions that led to the path, in the order in which they were made. */
  decisions: DecisionRecord[];
  /** The uuids of the entries of the path, oldest first. */
  entries: EntryUuids;
  /** The findings about the file and the path, by offset. */
  findings: FindingRecord[];
  /** Always `resume`. */
  kind: string;
  /** The uuid of the last entry of the path; `null` if there is no conversation. */
  leaf: string | null;
  /** Whether a strict provider would accept the request. */
  lint: LintRecord;
  /** The messages of the next request, oldest first, verbatim. A report that is about to be written has none: see write. */
  messages: ApiMessage[];
  /** The model that the request is meant for; `null` if no model ever answered. */
  model: string | null;
  /** The entries of the path that are not sent, or only in part. */
  omitted: OmissionRecord[];
  /** The path of the file; `-` for standard input. */
  path: string;
  /** The policy that chose the path: `recover` or `vendor`. */
  policy: string;
  /** The provider that accepts the request: `messages`, `converse` or `vertex`. */
  provider: string;
  /** The reason why it is not resumable, for people; absent if it is. */
  reason?: string | null;
  /** Whether a client would continue the session. If not, there are no messages. */
  resumable: boolean;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The scope of findings and state: `file`, or `tail` if the end of the file was enough for the conversation. */
  scope: string;
  /** The id of the session; `null` if no entry names one. */
  sessionId: string | null;
  /** The state of the session at the leaf. */
  state: PathState;
  /** The blocks that are not in the file, in the order of the messages within each rule. */
  synthetic: SyntheticRecord[];
  /** The tokens of the request. */
  tokens: TokensRecord;
  /** The tokens of the answers. */
  usage: UsageRecord;
}

/** The start of a branch that no link of the file connects with a parent. */
export interface RootRecord {
  /** The id of the branch. */
  branch: number;
  /** The start of the branch: its BranchRecord::start. */
  kind: string;
  /** The number of its line, from 1; `null` also when the lines before were not read. */
  line: number | null;
  /** The parent that the entry names; `null` if it names none. */
  parentUuid: string | null;
  /** Its uuid; `null` for a line without one. */
  uuid: string | null;
}

/** The end of a search. The numbers do not depend on `--limit`; but in the order of time, sessions after the last needed one are not searched. */
export interface SearchEnd {
  /** The kind of the record. */
  kind: 'end';
  /** The number of bytes that were searched. */
  bytes: number;
  /** The number of hits, without copies. */
  hits: number;
  /** The number of sessions that were searched. */
  scanned: number;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The number of sessions with hits. */
  sessions: number;
  /** The number of damaged lines and of files that could not be searched. */
  unread: number;
}

/** A line of `search --json`: hits, or with `--files` sessions, the best first; then `End`. */
export type SearchRecord = HitRecord | FoundSession | SearchEnd;

/** A message, or one block of it. */
export interface SessionItem {
  /** The id of the call that it makes or answers. */
  callId?: string | null;
  /** Whether the call failed. */
  error?: boolean | null;
  /** The number of images. */
  images?: number | null;
  /** The input of the call: an object, or a text. */
  input?: unknown;
  /** `user`, `assistant`, `reasoning`, `tool_call`, `tool_result`, `summary` or `context`. */
  kind: string;
  /** The name of the tool. */
  name?: string | null;
  /** The text of the result. */
  output?: string | null;
  /** The text. */
  text?: string | null;
}

/** A session: a line of `list --json`. What the file does not have is `null`. */
export interface SessionRecord {
  /** The agent that wrote it, such as `codex`; absent for Claude Code. */
  agent?: string | null;
  /** The ids of the subagents with a file of their own, with `--sidechains`. */
  agents?: string[];
  /** The git branch of the last entry. */
  branch: string | null;
  /** The length of the file, in bytes. */
  bytes: number;
  /** The cost of the session and its subagents, in nano-dollars, if `usage` has read it since its last change and knows all prices. */
  costNanoUsd: number | null;
  /** The time of the first line that has one. */
  created: string | null;
  /** The working folder: the one that the session moved to, else the one it started in. */
  cwd: string | null;
  /** The first prompt of a person, on one line and truncated to 200 UTF-16 units. */
  firstPrompt: string | null;
  /** When the session was forked, if no message was added since. */
  forked: string | null;
  /** Whether the file exists. If only files of subagents are left, folder, branch and times are those of the last subagent. */
  hasFile: boolean;
  /** Whether the session is read from the archive, as its file is gone. */
  inArchive: boolean;
  /** Always `session`. */
  kind: string;
  /** The last prompt, likewise. */
  lastPrompt: string | null;
  /** The machine that captured it, if it is in an archive that several machines share. */
  machine?: string | null;
  /** The number of entries of the conversation, where it is known without reading the whole file. */
  messageCount: number | null;
  /** The model of the last answer, if it is near the end of the file. */
  model: string | null;
  /** The time of the last message; of the file if it has no message. */
  modified: string | null;
  /** The path of the file; without a file, the path where it would be. */
  path: string;
  /** The name of the folder of the file. */
  project: string;
  /** The name of the root that it is in, if several roots are in use. */
  root?: string | null;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The name of the file without `.jsonl`. */
  sessionId: string;
  /** Its state: `finished`, `waiting`, `open-call` or `stalled`. */
  state: string | null;
  /** The number of subagents with a file of their own. */
  subagents: number;
  /** The tag. */
  tag: string | null;
  /** The title. */
  title: string | null;
  /** The origin of the title. */
  titleSource: TitleSource | null;
}

/** A subagent in the file of another conversation. */
export interface SidechainRecord {
  /** Its id; `null` in files of old clients. */
  agent: string | null;
  /** The number of its entries. */
  entries: number;
  /** The first of them. */
  first: EntryLocation;
}

/** Messages of one type that a `record` did not write, for one reason. */
export interface SkippedMessages {
  /** Their number. */
  count: number;
  /** The place of the first of them in the list of messages, from 0. */
  first: number;
  /** `not-stored`, `tombstoned` or `unknown-entry`. */
  reason: string;
  /** Their type, such as `stream_event`. */
  type: string;
}

/** The answer of `--statusline`. */
export interface StatusRecord {
  /** The kind of the record. */
  kind: 'status';
  /** The tokens of its context. */
  contextTokens: number | null;
  /** The largest context of its model. */
  maxContextTokens: number | null;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The session. */
  sessionId: string | null;
  /** Its cost. */
  sessionNanoUsd: number | null;
  /** The cost of all requests of today. */
  todayNanoUsd: number | null;
}

/** An entry as the command `story` lists it. */
export interface StoryPreview {
  /** The number of its chapter, from 0. Each one after the first starts with the boundary of a compaction. */
  chapter: number;
  /** The tokens of the context of this answer, as the API counted them. */
  contextTokens: number | null;
  /** Whether the model sees it when the conversation continues. */
  inContext: boolean;
  /** Whether it is a prompt of a person. */
  isPrompt: boolean;
  /** The tokens of this answer, as the API counted them. */
  outputTokens: number | null;
  /** The start of its text. */
  preview: string;
  /** The role of its message. */
  role: string | null;
  /** Its type, such as `user`. */
  type: string;
  /** Its uuid; `null` if it has none. */
  uuid: string | null;
}

/** A block that is not in the file. */
export interface SyntheticRecord {
  /** The block. */
  block: unknown;
  /** The kind, such as `missing-result`; `docs/cli.md` has the list. */
  kind: string;
  /** The number of its line, from 1; `null` also when the lines before were not read. */
  line: number | null;
  /** Whether the client writes it to the file before it continues. */
  persist: boolean;
  /** The role of its message: `user`, `assistant` or `system`. */
  role: string;
  /** Its uuid; `null` for a line without one. */
  uuid: string | null;
}

/** A line of `tail --json`, in the order of the events. Records of changes (`--changes`, from `Moved` on) follow the entry that made them. */
export type TailRecord = EntryRecord | OpenRecord | BadRecord | ResetRecord | GoneRecord | MovedRecord | ChangeRecord | CallRecord;

/** The origin of a title. */
export type TitleSource = 'custom' | 'ai' | 'summary';

/** One item of the list. What no line contains is `null`. */
export interface Todo {
  /** The text shown while it is in progress. */
  activeForm: string | null;
  /** The task. */
  content: string | null;
  /** Its id. Tasks have one, and the items of the oldest lists. */
  id: string | null;
  /** `pending`, `in_progress` or `completed`; a task has none before its first change. */
  status: string | null;
}

/** The tokens of a request, estimated. Only the API knows the exact number. */
export interface TokensRecord {
  /** The safety margin when the request is compared with its limits; in over, but not in the numbers above: a third of the messages, if the request was made to fit and no answer shows how much the estimate is too low; otherwise 0. */
  margin: number;
  /** The tokens of the messages alone. */
  messages: number;
  /** The excess in tokens of the request, with margin, over the window or over the limit that it was made to fit; `null` if it is not, or if the window is not known. */
  over: number | null;
  /** The tokens of the last answer of the conversation and its request, as the API counted them; `null` if no answer has the counts. */
  recorded: number | null;
  /** The tokens of the request: of its messages and, as far as the last answer shows what they took, of the system prompt and the tools. */
  request: number;
  /** The number of blocks that cannot be estimated, such as PDFs; they are not in the numbers above. */
  unknown: number;
  /** The context window of the model that the request is meant for; `null` if it is not known, or if an answer took more. */
  window: number | null;
}

/** The branches of a session: the only object of `tree --json`. */
export interface TreeReport {
  /** The compactions, in file order. */
  boundaries: BoundaryRecord[];
  /** The branches, by where they start in the file. Their ids are their positions here. */
  branches: BranchRecord[];
  /** The number of objects on them that may count as entries. */
  entries: number;
  /** Always `tree`. */
  kind: string;
  /** The leaf of each policy. */
  leaves: LeavesRecord;
  /** The number of physical lines of the file. */
  lines: number;
  /** The path of the file; `-` for standard input. */
  path: string;
  /** The starts of the branches that no link of the file connects with a parent. */
  roots: RootRecord[];
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The id of the session; `null` if no entry names one. */
  sessionId: string | null;
  /** The subagents in the file, in the order of their first entry. */
  sidechains: SidechainRecord[];
}

/** The lines of one type before and after a compaction. */
export interface TypeSizeRecord {
  /** The bytes after. */
  after: number;
  /** The bytes before. */
  before: number;
  /** The number of lines that are moved. */
  lines: number;
  /** The type; empty for unknown ones. */
  type: string;
}

/** A repair that was undone. */
export interface UndoneRepair {
  /** Always `undo`. */
  kind: string;
  /** The file, as it was before the repair. */
  path: string;
  /** The path of the repaired file now. */
  repaired: string;
  /** The version of the shape: SCHEMA. */
  schema: number;
}

/** The usage of the answers of one model. What none of them reports is `null`, never 0. */
export interface Usage {
  /** The number of answers. */
  answers: number;
  /** Input tokens written to the cache. Some clients report only the numbers for each lifetime; then it is the sum of those. */
  cacheCreationInputTokens: number | null;
  /** Input tokens read from the cache. */
  cacheReadInputTokens: number | null;
  /** Price in US dollars, in files of old clients (`costUSD`). */
  costUSD: number | null;
  /** Milliseconds that the answers took, in files of old clients (`durationMs`). */
  durationMs: number | null;
  /** Tokens written to the cache for an hour. */
  ephemeral1hInputTokens: number | null;
  /** Tokens written to the cache for five minutes. */
  ephemeral5mInputTokens: number | null;
  /** Input tokens outside of the cache. */
  inputTokens: number | null;
  /** The model; `null` for answers that name none. */
  model: string | null;
  /** Tokens of the answers. */
  outputTokens: number | null;
  /** Searches of the web by the API. */
  webSearchRequests: number | null;
}

/** The tokens of the answers. */
export interface UsageRecord {
  /** The counts by model, ordered by name. */
  models: Usage[];
  /** The scope of the counts: `path`. */
  scope: string;
}

/** A finding of `verify --json`. */
export interface VerifyFindingRecord {
  /** The code, such as `L-TORN-TAIL`; `docs/findings.md` explains each. */
  code: string;
  /** The finding, in words; never quotes the file. */
  detail: string;
  /** The number of bytes that it is about. */
  len: number;
  /** The number of the line, from 1; `null` if it is about no single line. */
  line: number | null;
  /** The offset of the first byte that it is about. */
  offset: number;
  /** `note` or `damage`. */
  severity: string;
  /** The uuid of the entry that starts there. */
  uuid?: string | null;
}

/** The findings of one session: a line of `verify --json`. */
export interface VerifyRecord {
  /** The agent that wrote the session, such as `codex`; absent for Claude Code. */
  agent?: string | null;
  /** The number of messages of the conversation. */
  conversation: number;
  /** The number of objects on them that may count as entries. */
  entries: number;
  /** Everything that is wrong or worth knowing, by offset; what is about no line comes first. */
  findings: VerifyFindingRecord[];
  /** The number of messages of other conversations that either policy shows. */
  foreign: number;
  /** Always `verify`. */
  kind: string;
  /** The number of physical lines. */
  lines: number;
  /** Whether a strict provider accepts the request of each policy. */
  lint: PolicyLintRecord;
  /** The path of the file; `-` for standard input. */
  path: string;
  /** The requests that the file records about itself; only with `--requests`. */
  requests?: RebuiltRequestsRecord | null;
  /** The version of the shape: SCHEMA. */
  schema: number;
  /** The id of the session; `null` if no entry names one. */
  sessionId: string | null;
  /** Whether the file is in the stream form, as the output of the SDK (`stream-json`) is; `vendor` then means the same as `recover`. */
  streamForm?: boolean;
  /** `clean`, `noted`, `damaged` or `lossy`. */
  verdict: string;
  /** The number of these that each policy shows. */
  visible: VisibleRecord;
}

/** The number of recorded requests of one version of a client that are reproduced. */
export interface VersionRequestsRecord {
  /** The first that is not reproduced. */
  first?: RequestDifferenceRecord | null;
  /** The number of recorded requests. */
  recorded: number;
  /** The number of reproduced requests. */
  reproduced: number;
  /** The number of requests that extend one that is not in the file, so that they cannot be compared. */
  unknown: number;
  /** The version; `null` if the lines name none. */
  version: string | null;
}

/** A number of messages under each policy. */
export interface VisibleRecord {
  /** Under policy `recover`. */
  recover: number;
  /** Under policy `vendor`, that of the client. */
  vendor: number;
}

/** A worktree that a session works in. */
export interface Worktree {
  /** Its branch. */
  branch: string | null;
  /** Its name. */
  name: string | null;
  /** The branch before. */
  originalBranch: string | null;
  /** The folder before the session entered it. */
  originalCwd: string | null;
  /** The commit before. */
  originalHeadCommit: string | null;
  /** Its folder. */
  path: string | null;
}

/** An entry that was written. */
export interface WrittenEntry {
  /** Its length in bytes, without the newline. */
  len: number;
  /** The offset of its first byte in the file. */
  offset: number;
  /** Its parent; `null` for metadata and for the first entry. */
  parentUuid: string | null;
  /** Its uuid; `null` for metadata. */
  uuid: string | null;
}

/** A file of a session that is handed over. */
export interface WrittenFileRecord {
  /** The number of bytes that are written, or by which it gets longer. */
  bytes: number;
  /** Whether there was no such file. */
  isNew: boolean;
  /** Its path. */
  path: string;
}

/** A copy of a session that is written instead of it. */
export interface WrittenFork {
  /** The path of its file. */
  path: string;
  /** The id of the new session. */
  sessionId: string;
}
