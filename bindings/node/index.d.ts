/**
 * Sessions of agents, kept as JSON Lines: read them, continue them, write them.
 *
 * The session functions of `@anthropic-ai/claude-agent-sdk` are here under their names; `Session` writes, `follow`
 * reads what others write, and `search`, `usage`, `verify`, `repair` and `exportSession` are the commands of `transcript`.
 */

/** The rules that rebuild a conversation: with all that evidence gives back, or exactly as the client does. */
export type Policy = 'recover' | 'vendor';

/** The provider of a request: the Messages API, Converse of Amazon Bedrock, or Claude on Google Vertex AI. */
export type Provider = 'messages' | 'converse' | 'vertex';

/** A path, or the `file:` URL of one. */
export type Path = string | URL;

export * from './lib/functions.js';
import type { RootOptions } from './lib/functions.js';

export type * from './records.js';
import type { Costs, EntryPreview, PathState, PromptChangesRecord, RequestRecord, StoryPreview, Usage } from './records.js';

/** The cost of a session, over resumes. */
export type Counters = Costs;
/** An entry of a conversation, with a preview of its text. */
export type SessionEntry = EntryPreview;
/** An entry of the whole conversation, with those that compactions removed. */
export type StoryEntry = StoryPreview;
/** The request that continues a session. */
export type SessionRequest = RequestRecord;
/** The state of a session at the end of its conversation. What no line contains is null. */
export type SessionState = PathState;
/** The differences between two system prompts, as names of sections. */
export type PromptChanges = PromptChangesRecord;

/** The version of the package. */
export const version: string;

/** Anything that went wrong: `path` names the file, and nothing quotes the content of an entry. */
export class TranscriptError extends Error {
  /** The stable name of what went wrong, such as `not-found` or `busy`. */
  readonly kind: string;
  /** The file, or the folder that was searched. */
  readonly path: string | null;
  /** The number of the line, from 1. */
  readonly line: number | null;
  /** The offset in the file, in bytes. */
  readonly offset: number | null;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
}

/** There is no such session, file or archive. */
export class NotFoundError extends TranscriptError {}
/** The file to write exists. */
export class ExistsError extends TranscriptError {}
/** An argument, an entry or a query cannot be used. */
export class InvalidError extends TranscriptError {}
/** Another process writes to the session. */
export class BusyError extends TranscriptError {}
/** A client would not continue the session. */
export class NotResumableError extends TranscriptError {}
/** The session was closed before. */
export class ClosedError extends TranscriptError {}
/** A defect of this package. The session is as it was before the call. */
export class InternalError extends TranscriptError {}

/**
 * Records that a function finds, as they are found. The function runs on a thread of its own, at most 16 MiB
 * ahead; the end of a `for await` loop, `close()`, or aborting the signal of its options ends it.
 */
export class Records<T> implements AsyncIterableIterator<T> {
  private constructor();
  next(): Promise<IteratorResult<T, undefined>>;
  return(value?: unknown): Promise<IteratorResult<T, undefined>>;
  /** Waits until the function has started: what is written after that to the files that it follows is returned. */
  ready(): Promise<this>;
  /** Ends the function. A caller that waits gets no more records. */
  close(): void;
  /** Lets the process end while it waits for records, as timers do. */
  unref(): this;
  /** Keeps the process alive while it waits for records, as by default. */
  ref(): this;
  /** Waits for all records that are left. */
  toArray(): Promise<T[]>;
  [Symbol.asyncIterator](): this;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The common options of the functions of the SDK. */
export interface SdkOptions extends RootOptions {
  /** The folder of a project; its sessions and those of its other worktrees are found. All projects by default. */
  dir?: Path;
}

export interface ListSessionsOptions extends SdkOptions {
  limit?: number;
  offset?: number;
  /** Whether the other worktrees of the repository count as the project; true by default. */
  includeWorktrees?: boolean;
  /** Whether sessions that programs started through an SDK are included; true by default. */
  includeProgrammatic?: boolean;
}

/** A session. Times are in milliseconds since 1970. */
export interface SDKSessionInfo {
  sessionId: string;
  /** The title, else the last prompt that the client noted, else the first prompt. */
  summary: string;
  lastModified: number;
  fileSize?: number;
  customTitle?: string;
  firstPrompt?: string;
  gitBranch?: string;
  cwd?: string;
  tag?: string;
  createdAt?: number;
  /** Whether it is archived: `false` also if a prompt was written in it since, absent if it never was. */
  archived?: boolean;
}

export interface GetSessionMessagesOptions extends SdkOptions {
  limit?: number;
  offset?: number;
  policy?: Policy;
  /** Whether messages before the last compaction, which the model no longer sees, are included. */
  compacted?: boolean;
  /** Whether system entries between the messages are included, such as the boundaries of compactions; they have no `message`. */
  includeSystemMessages?: boolean;
  signal?: AbortSignal;
}

/** A message of a user or an assistant, or a system entry. */
export interface SessionMessage {
  type: 'user' | 'assistant' | 'system';
  uuid: string;
  /** The entry that comes before it in the conversation; `null` for the first. */
  parent_uuid: string | null;
  session_id: string;
  /** The message of the API: role, content, and what else the client wrote. */
  message: unknown;
  parent_tool_use_id: string | null;
  parent_agent_id: string | null;
  timestamp?: string | null;
  /** Whether it is the summary that a compaction left. */
  isCompactSummary?: boolean;
  /** Whether clients mark it as not meant for people. */
  is_meta?: boolean;
  /** Whether it is a prompt that was queued while the model was working, which then got it within that turn. */
  isQueuedCommand?: boolean;
  /** Its author, such as `{ kind: 'human' }`. */
  origin?: unknown;
}

/**
 * A message whose body is parsed when it is first used. Until then it keeps the texts of all messages that were read with it in
 * memory, half a MiB.
 */
export class LazyMessage implements SessionMessage {
  private constructor();
  readonly type: 'user' | 'assistant' | 'system';
  readonly uuid: string;
  readonly parent_uuid: string | null;
  readonly session_id: string;
  readonly timestamp: string | null;
  readonly parent_tool_use_id: string | null;
  readonly parent_agent_id: string | null;
  readonly isCompactSummary?: boolean;
  readonly is_meta?: boolean;
  readonly isQueuedCommand?: boolean;
  readonly origin?: unknown;
  get message(): unknown;
  /** A copy of the JSON of the message as it is in the file: numbers beyond 2^53 are exact here. */
  get raw(): Uint8Array;
  toJSON(): SessionMessage;
}

export type SessionMutationOptions = SdkOptions;
export type GetSessionInfoOptions = SdkOptions;
export type GetSubagentMessagesOptions = GetSessionMessagesOptions;

export interface ForkSessionResult {
  sessionId: string;
}

export interface ListSubagentsOptions extends SdkOptions {
  limit?: number;
  offset?: number;
}

export interface ForkSessionOptions extends SdkOptions {
  /** The last entry to copy. */
  upToMessageId?: string;
  /** The title of the copy; that of the session with ` (fork)` by default. */
  title?: string;
  policy?: Policy;
}

/** Lists sessions, the one that was changed last first. */
export function listSessions(options?: ListSessionsOptions): Promise<SDKSessionInfo[]>;
/** Describes one session; `undefined` if there is none with this id, or nothing to call it by. */
export function getSessionInfo(sessionId: string, options?: SdkOptions): Promise<SDKSessionInfo | undefined>;
/** Returns the messages of a session, oldest first; none if there is no such session. */
export function getSessionMessages(sessionId: string, options?: GetSessionMessagesOptions): Promise<SessionMessage[]>;
/** Returns the messages of a session one by one: memory does not grow with the bytes of the session. */
export function iterSessionMessages(sessionId: string, options?: GetSessionMessagesOptions): Records<LazyMessage>;
/** Lists the ids of the subagents of a session that have a file of their own. */
export function listSubagents(sessionId: string, options?: ListSubagentsOptions): Promise<string[]>;
/** Returns the messages of a subagent, oldest first; none if there is no such subagent. */
export function getSubagentMessages(
  sessionId: string,
  agentId: string,
  options?: GetSessionMessagesOptions,
): Promise<SessionMessage[]>;
/** Sets the title of a session. */
export function renameSession(sessionId: string, title: string, options?: SdkOptions): Promise<void>;
/** Sets the tag of a session; `null` clears it. */
export function tagSession(sessionId: string, tag: string | null, options?: SdkOptions): Promise<void>;
/** Marks a session as archived: it stays where it is, and a prompt that is written in it later unmarks it. */
export function archiveSession(sessionId: string, options?: SdkOptions): Promise<void>;
/** Unmarks a session that was marked as archived. */
export function unarchiveSession(sessionId: string, options?: SdkOptions): Promise<void>;
/** Deletes a session with its subagents. */
export function deleteSession(sessionId: string, options?: SdkOptions): Promise<void>;
/** Copies the conversation of a session into a new one. */
export function forkSession(sessionId: string, options?: ForkSessionOptions): Promise<ForkSessionResult>;

/** The JSON of an object, which is written as it is. */
export type JsonText = string | ArrayBufferView | ArrayBuffer;
/** An entry: an object with its type, or its JSON. */
export type Entry = { type: string; [field: string]: unknown } | JsonText;
/** A message of the API, or its JSON. */
export type ApiReply = { role: string; content: unknown; [field: string]: unknown } | JsonText;

/** The content of `append`: the text of a user, a message of the API, an action of a person in a client, or an entry. */
export type Added = { user: string } | { assistant: ApiReply } | { client: ClientAction } | Entry;

/** An action of a person in a client, other than a plain prompt. */
export type ClientAction =
  /** Stopped the turn; with `toolUse` while a tool ran or waited for permission. */
  | { interrupt: { toolUse?: boolean } }
  /** Did not permit a call, with feedback; or a subagent or the automatic mode did not. */
  | { rejection: { call: string; by: 'person' | 'subagent' | 'automatic'; reason?: string } }
  /** Cancelled a call in a dialog that is not about a tool. */
  | { cancelled: { call: string } }
  /** Ran a slash command of the client: an entry for the note before it, for the command, and for its output. */
  | { command: { name: string; arguments?: string; stdout?: string; stderr?: string } }
  /** Ran a command in a shell; the entries are like those of a slash command. */
  | { shell: { command: string; stdout?: string; stderr?: string } }
  /** Added a note to the memory. */
  | { memoryNote: { text: string } }
  /** Wrote a prompt with references before its text. */
  | { prompt: { references: Reference[]; text: string } };

/** A reference before the text of a prompt. */
export type Reference =
  | { kind: 'file'; path: string }
  | { kind: 'web'; url: string; title?: string }
  | { kind: 'folder'; path: string; files: number }
  | { kind: 'symbol'; name: string; type: string; file: string; line: number }
  | { kind: 'terminal'; lines: number; isError?: boolean }
  | { kind: 'problems'; count: number; severity?: string }
  | { kind: 'git'; what: string }
  | { kind: 'selection' }
  | { kind: 'workspace' };

/** An entry that is in the file. */
export interface Written {
  uuid: string | null;
  parentUuid: string | null;
  /** The offset of its first byte in the file. */
  offset: number;
  /** Its length in bytes, without the newline. */
  len: number;
}

/** Messages of one type that `record` did not append, for one reason. */
export interface Skipped {
  type: string;
  /** `tombstoned` messages are named by a tombstone in the list, or are tombstones that were written before. */
  reason: 'not-stored' | 'tombstoned' | 'unknown-entry';
  count: number;
  /** The place of the first of them in the list, from 0. */
  first: number;
}

/** The entries that `record` appended, and what it skipped, apart from messages that the session has. */
export interface Recorded extends Array<Written> {
  skipped: Skipped[];
}

export interface Resumed {
  request: SessionRequest;
  /** The uuids of the entries that complete an interrupted turn; they are in the file. */
  added: (string | null)[];
  /** The session that this one is a copy of, if another process was writing to that. */
  forkedFrom: string | null;
}

export interface SessionOptions extends RootOptions {
  /** The working folder of entries that name none. */
  cwd?: Path;
  /** The client version of entries that name none. */
  version?: string;
  /** The git branch of entries that name none. */
  gitBranch?: string;
  /** The way in which the client was started, such as `cli` or `sdk-ts`, for entries that do not say it. */
  entrypoint?: string;
  /** The model that requests are for. */
  model?: string;
  /** The maximum length of requests: see `RequestOptions.fit`. */
  fit?: number | string;
  /** The number of turns at the end that `fit` never changes; 2 by default. */
  fitTurns?: number;
  /** The provider of requests: see `RequestOptions.provider`. */
  provider?: Provider;
  /** A file of prices in the form of LiteLLM, for the replies that are counted. */
  prices?: Path;
  /** The names of the tools that requests have: references to others, which a tool search left, are omitted. */
  tools?: string[];
  sessionId?: string;
  policy?: Policy;
  /** When bytes are synced: `none`, `each`, or at most this number of milliseconds later (100 by default). */
  sync?: 'none' | 'each' | number;
  /** The action when another process writes to the session; `fail` by default. */
  onBusy?: 'fail' | 'share' | 'fork';
}

/** The options of the result of a tool call, apart from its content. */
export interface ToolResultOptions {
  /** Whether the call failed. */
  isError?: boolean;
  /** The output of the tool in its own form, for programs and not for the model. */
  toolUseResult?: unknown;
}

/** The numbers to add to the counters of a session. */
export interface Counted {
  /** A message of the API, with its `model` and `usage`. Count each reply once. */
  reply?: object;
  /** The duration of its request. */
  apiMs?: number;
  /** The duration of requests that failed. */
  failedApiMs?: number;
  /** The duration of tools. */
  toolMs?: number;
  linesAdded?: number;
  linesRemoved?: number;
}

/**
 * The sections of a system prompt that are sent, by their names: `base`, `model`, `memory`, `git`, `files`, `tools`, then
 * others. Those of white space only are not sent.
 */
export type PromptSections = Record<string, string>;

/** The options that join the sections of a system prompt. */
export interface PromptOptions {
  /** The text between sections; an empty line by default. */
  separator?: string;
}

/** Assembles a message from the events of a streamed reply, wherever the stream is cut. */
export class StreamReply {
  /** Applies an event. Returns its effect and the number of the block that it concerns. */
  event(event: object | string): { name: string; block?: number };
  /** Applies the events in the next bytes of a stream of server-sent events. Returns whether the reply is over. */
  push(bytes: ArrayBufferView | ArrayBuffer | string): boolean;
  /** Whether the message is complete or the stream ended with an error. */
  get isOver(): boolean;
  /**
   * Returns the part of the reply that was received so far. Before the reply is whole, `message` is null and `toolCalls`
   * is empty; the received part is in `partialMessage` and `partialCalls`.
   */
  result(): {
    state: 'whole' | 'partial' | 'nothing';
    message: Record<string, unknown> | null;
    partialMessage: Record<string, unknown> | null;
    error: Record<string, unknown> | null;
    /** The calls to run. */
    toolCalls: ToolCall[];
    /**
     * Calls that must not run: their input may be a part of what the model wrote. Also of a whole reply, if the
     * model could not finish a call, as at its limit of tokens.
     */
    partialCalls: ToolCall[];
  };
}

/** A call of a tool in a reply. */
export interface ToolCall {
  id: string;
  name: string;
  input: unknown;
}

/**
 * A session that is open for writing. What `append` resolved survives the end of this process, whatever the cause;
 * `sync` and `close` make it survive a power cut. Calls run in their order; appends that wait together are one write.
 */
export class Session {
  private constructor();
  /** Creates a session, without a path in the project of `cwd`. Its file appears with the first entry. */
  static create(path?: Path, options?: SessionOptions): Promise<Session>;
  /** Opens a session at the leaf of its conversation, by its path, its id, or the start of one. */
  static open(session: Path, options?: SessionOptions): Promise<Session>;
  /** Opens the session at a path, or creates it. */
  static openOrCreate(path: Path, options?: SessionOptions): Promise<Session>;
  /** Opens a session and builds the request that continues it. Interrupted calls get results first. */
  static resume(session: Path, options?: SessionOptions): Promise<Session>;
  /** The file of the session. It does not exist before the first entry. */
  get path(): string;
  /** The id of the session: the name of its file. */
  get sessionId(): string;
  /** Of a session that was resumed: its request, and the entries that were added to the file. */
  get resumed(): Resumed | undefined;
  /** The repair of the end of the file when it was opened, after a kill or a full disk. */
  get repair(): { kind: 'completed' | 'cut' | 'sealed' | 'other'; offset?: number; len?: number; saved?: string } | null;
  /** The number of entries from damaged lines that were written again when the session was opened. */
  get restored(): number;
  /**
   * Appends an entry, the text of a user, a message of the API, which has an entry for each block, or what a person
   * did in a client (`client`), such as an interrupt or a command of a shell with its output. What no reader
   * would find in the conversation is refused: an entry of a misspelt type or without a message (`invalid-entry`), a
   * result for a call that the conversation does not have (`unknown-call`) or that has one (`answered-call`).
   */
  append(entry: Added): Promise<Written[]>;
  /** Appends entries in one write: all of them or none. */
  appendAll(entries: Iterable<Entry>): Promise<Written[]>;
  /**
   * Appends the received part of a streamed reply. The entries of a partial one are marked, and so is a call whose input
   * is a part: the next request tells the model that it did not run.
   */
  appendReply(reply: StreamReply): Promise<Written[]>;
  /** Appends the result of the call with this id: a text, or content blocks of the API. */
  appendToolResult(call: string, content: string | object[], options?: ToolResultOptions): Promise<Written>;
  /** Queues an entry: it is written within 100 ms, before later appends. Resolves to its uuid. */
  queue(entry: Added): Promise<string | null>;
  /**
   * Appends the messages whose uuid the session does not have yet, in one write. Messages that a `tombstone` in the list
   * names are removed from the conversation in the same write, or not appended.
   */
  record(messages: Iterable<Entry>): Promise<Recorded>;
  /**
   * Restarts the conversation with a summary. The entries `preserved`, or the last `keepTurns` turns, stay in the context
   * word for word. More turns are kept where a call and its result would be separated otherwise.
   */
  compact(
    summary: string,
    options?: { trigger?: 'manual' | 'auto'; preserved?: (string | number)[]; keepTurns?: number; preTokens?: number },
  ): Promise<{ boundary: Written; summary: Written }>;
  /** Continues from an entry, named by its uuid, the start of one, or its line; `null` from the start. */
  rewind(to: string | number | null): Promise<void>;
  /** Removes the last entry of the conversation; `record` removes several in one write. */
  tombstone(uuid: string | number): Promise<void>;
  /** Copies the conversation, up to the entry `at`, into a new session. Resolves to its path. */
  fork(options?: { at?: string | number; title?: string; out?: Path }): Promise<string>;
  /** Sets the title of the session; an empty one clears it. */
  setTitle(title: string): Promise<void>;
  /** Sets the tag of the session; `null` clears it. */
  setTag(tag: string | null): Promise<void>;
  /** Sets the git branch or the entrypoint of later entries that name none; an empty text for none. */
  setContext(context: { gitBranch?: string; entrypoint?: string }): Promise<void>;
  /**
   * Records the system prompt of the next turn, the text of each section once. Resolves to null, and writes nothing, if it
   * is the one that was recorded last in the conversation.
   */
  recordPrompt(sections: PromptSections, options?: PromptOptions): Promise<Written | null>;
  /**
   * Compares a system prompt with the one that was recorded last in the conversation, such as after a resume; null if none
   * was.
   */
  promptChanges(sections: PromptSections, options?: PromptOptions): Promise<PromptChanges | null>;
  /** Gives each call that has no result yet one with this text, marked as an error, as after an interruption. */
  completeCalls(text: string): Promise<Written[]>;
  /**
   * Counts what the session costs, and resolves to the counts. They continue from those in the file, also in a fork,
   * and `endTurn` writes them to it.
   */
  count(counted: Counted): Promise<Counters>;
  /** Resolves to the counts as they are now: those of the file, and those that were added since. */
  counters(): Promise<Counters>;
  /** Resolves to the state of the session at the end of its conversation, from the file as it is now. */
  state(): Promise<SessionState>;
  /**
   * Ends a turn: notes where the conversation ends, and the settings that readers look for at the end. Once something
   * was counted, also the counts.
   */
  endTurn(prompt?: string): Promise<void>;
  /** Builds the request for the next answer from the file as it is now. */
  request(): Promise<SessionRequest>;
  /** Lists the entries of the conversation, oldest first, with previews of their texts. */
  entries(): Promise<SessionEntry[]>;
  /**
   * Lists the entries of the whole conversation, with those that compactions removed: `chapter` counts the compactions
   * before an entry, `inContext` says whether the model sees it.
   */
  story(): Promise<StoryEntry[]>;
  /**
   * Resolves to the uuid of the entry that is named by the start of its uuid or by its line. A whole uuid is not looked up.
   */
  findEntry(name: string | number): Promise<string>;
  /** Returns the tokens of all answers in the file, by model. */
  usage(): Promise<Usage[]>;
  /** The uuid of the entry that the next one follows. */
  leaf(): Promise<string | null>;
  /** Opens the session of a subagent, in a file of its own. */
  agent(options: {
    agentId: string;
    agentType: string;
    toolUseId: string;
    description?: string;
    parentAgentId?: string;
  }): Promise<Session>;
  /** Waits until everything so far would survive a power cut. */
  sync(): Promise<void>;
  /** Syncs and closes. A second call does nothing. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
