// The operations as functions, written by `tools/bindings_api.py` from `docs/operations.json`.

import type { Path, Policy, Provider, Records } from '../index.js';
import type {
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
} from '../records.js';

/** The store in which sessions are looked up. */
export interface RootOptions {
  /**
   * The folder of projects, or the name of a root in the configuration file; or a list of them. By default the roots
   * that the file says, else the folder of Claude Code.
   */
  root?: Path | Path[];
}

/** The archive from which sessions are read. */
export interface ArchiveOptions extends RootOptions {
  /**
   * The folder of an archive or its address in a bucket, or `true` for that of each root: sessions whose files are gone
   * are read from it.
   */
  archive?: boolean | Path;
  /** The file with the keys of an encrypted archive. */
  identity?: Path;
}

/** The sessions to read. */
export interface SelectionOptions extends ArchiveOptions {
  /** Ids of sessions, files and folders; all sessions if there are none. */
  in?: Path | Path[];
  /** Only the sessions of the project at this path. */
  project?: Path;
  /** Whether what is known about the files is kept in the cache folder, and used. Default: `true`. */
  cache?: boolean;
}

/** Options of `entries`. */
export interface EntriesOptions extends ArchiveOptions {
  /** Whether only what the model sees is returned: nothing that compactions removed. */
  context?: boolean;
  /**
   * The rules that choose the conversation: with all that evidence gives back, or exactly as the client does. Default:
   * `recover`.
   */
  policy?: Policy;
  /** Whether each entry has its whole line. */
  rawEntries?: boolean;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
  /** Ends the function when it is aborted. */
  signal?: AbortSignal;
}

/** Options of `exportSession`. */
export interface ExportOptions extends ArchiveOptions {
  /** Names whose values are replaced, too, or words. */
  also?: string[];
  /** Whether a page has no subagents, branches, thinking and lines. */
  conversationOnly?: boolean;
  /** Whether e-mail addresses are replaced, too. */
  emails?: boolean;
  /** Whether a file that exists is replaced. */
  force?: boolean;
  /** The form of the document: a self-contained HTML page, or Markdown. Default: `html`. */
  format?: 'html' | 'markdown';
  /** Kinds, names and values that are kept. */
  keep?: string[];
  /** Whether a page has the lines of the session, which `transcript import` reads. Default: `true`. */
  lines?: boolean;
  /** Whether the names of people in paths are replaced, too. */
  names?: boolean;
  /** Whether nothing in a page is compressed, so that all of it can be read without scripts. */
  plain?: boolean;
  /**
   * The rules that choose the conversation: with all that evidence gives back, or exactly as the client does. Default:
   * `recover`.
   */
  policy?: Policy;
  /** Whether what looks like a secret is replaced. Default: `true`. */
  redact?: boolean;
  /** Whether subagents are added to Markdown; a page has them, folded. */
  sidechains?: boolean;
  /** Whether thinking is added to Markdown; a page has it, folded. */
  thinking?: boolean;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `follow`. */
export interface FollowOptions extends ArchiveOptions {
  /** Whether what entries change in the conversation is returned, too. */
  changes?: boolean;
  /** The start: `start`, `end`, or the `checkpoint` of an entry after which to continue. Default: `start`. */
  start?: string;
  /** Starts with this number of the last entries instead. */
  last?: number;
  /** Whether it ends at the end of the file. */
  once?: boolean;
  /** Whether each entry has its whole line. */
  rawEntries?: boolean;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
  /** Ends the function when it is aborted. */
  signal?: AbortSignal;
}

/** Options of `fork`. */
export interface ForkOptions extends ArchiveOptions {
  /**
   * The last entry of the copy, which may be on any branch: the number of its line, its uuid, or the start of that. The
   * last entry of the conversation by default.
   */
  at?: string;
  /** The new file; by default in the project of the session, named after the new id. */
  out?: Path;
  /** The rules that choose the conversation. Default: `recover`. */
  policy?: Policy;
  /** The title of the copy; by default that of the session with "(fork)". */
  title?: string;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `handOver`. */
export interface HandOverOptions extends ArchiveOptions {
  /** The entry of the conversation after which the rest is omitted. */
  at?: string;
  /** The working folder of the new session; that of the session by default, or else the present one. */
  cwd?: string;
  /** The last entry of the conversation, which may be on another branch: its uuid, the start of one, or its line. */
  leaf?: string;
  /**
   * The rules that choose the conversation: with all that evidence gives back, or exactly as the agent does. Default:
   * `recover`.
   */
  policy?: Policy;
  /** Whether what looks like a secret is replaced. */
  redact?: boolean;
  /**
   * The home folder of the agent that gets it, such as `~/.codex`, which must exist; that of this user by default. A
   * file in a format needs a folder.
   */
  targetHome?: string;
  /** The title of the new session; that of the session by default. */
  title?: string;
  /** Whether the new session is written; else the record says what would be. No file is overwritten. */
  write?: boolean;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `items`. */
export interface ItemsOptions extends ArchiveOptions {
  /** The rules that choose the conversation. Default: `recover`. */
  policy?: Policy;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `list`. */
export interface ListOptions extends ArchiveOptions {
  /** Whether sessions of the archive whose files are gone are listed as well. */
  all?: boolean;
  /** Lists the sessions of the archive, and only these. */
  archived?: boolean;
  /** Only sessions whose last entry was written on this branch of git. */
  branch?: string;
  /** Puts sessions together; not by default. */
  by?: 'project';
  /** The maximum number of sessions: the first ones in the order. All by default. */
  limit?: number;
  /** Only sessions of the project at this path, in any of its worktrees. */
  project?: Path;
  /** Whether the ids of subagents are returned, as `agents`. */
  sidechains?: boolean;
  /** Only sessions with a message from this time on: `2026-01-31`, `2026-01-31T12:00:00Z`, `2h`, `3d`, `yesterday`. */
  since?: string;
  /** The order of the sessions. */
  sort?: 'modified' | 'created' | 'size' | 'messages' | 'title';
  /** Only sessions in one of these states; all by default. */
  state?: string[];
  /**
   * Only sessions whose title, tag, first or last prompt, folder, branch of git or id contains this text, ignoring
   * case.
   */
  text?: string;
  /** Only sessions that were started up to this time. */
  until?: string;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `listArchived`. */
export interface ListArchivedOptions extends ArchiveOptions {
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `move`. */
export interface MoveOptions extends RootOptions {
  /** Leaves the sessions where they are, and writes copies with new ids. */
  copy?: boolean;
  /** Changes nothing, and returns what would be moved. */
  dryRun?: boolean;
  /** Undoes the same move. Not with `copy`. */
  undo?: boolean;
}

/** Options of `redact`. */
export interface RedactOptions {
  /** Names whose values are replaced, too, or words. */
  also?: string[];
  /** Whether e-mail addresses are replaced, too. */
  emails?: boolean;
  /** Kinds, names and values that are kept. */
  keep?: string[];
  /** Whether the text is a line of a transcript, which stays JSON. */
  line?: boolean;
  /** Whether the names of people in paths are replaced, too. */
  names?: boolean;
}

/** Options of `repair`. */
export interface RepairOptions extends ArchiveOptions {
  /**
   * Whether lines that no resume needs are moved to an archive beside the repaired session, too. Not with `newSession`.
   */
  compact?: boolean;
  /** Whether the repaired session gets the place of the old one, which is kept as `SESSION.jsonl.before-repair`. */
  keepId?: boolean;
  /**
   * Whether the repaired session is written as a copy with a new session id, and new ids of its entries; without `out`
   * it is next to the original.
   */
  newSession?: boolean;
  /** The new file for the repaired session. */
  out?: Path;
  /**
   * Whether the file that `keepId` replaced is restored, instead of a repair; the repaired one is kept as
   * `SESSION.jsonl.repaired`.
   */
  undo?: boolean;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `request`. */
export interface RequestOptions extends ArchiveOptions {
  /** The version of the client whose rules hold, such as `2.1.331`; that of the last line with one by default. */
  clientVersion?: string;
  /**
   * Omits the oldest media, results and turns until the messages have at most this number of tokens (a number, or a
   * text such as `150k`), or until the request fits the context window of the model of this name. Not under the policy
   * `vendor`.
   */
  fit?: number | string;
  /** The number of turns at the end that `fit` never changes; 2 by default. */
  fitTurns?: number;
  /** Whether the whole file is read, also where its end is enough. */
  full?: boolean;
  /**
   * The last entry of the conversation to continue: its uuid, the start of one, or its line. The leaf of the policy by
   * default.
   */
  leaf?: string;
  /** The model that gets the request; that of the last answer by default. */
  model?: string;
  /**
   * The rules that choose the conversation: with all that evidence gives back, or exactly as the client does. Default:
   * `recover`.
   */
  policy?: Policy;
  /** The next message of the user. */
  prompt?: string;
  /**
   * The provider that gets the request and accepts it: `messages` (the Messages API, the default), `converse` (Converse
   * of Amazon Bedrock) or `vertex` (Claude on Google Vertex AI). The messages have the form of the Messages API in any
   * case; to convert them is up to the caller. Not under the policy `vendor`.
   */
  provider?: Provider;
  /** The names of the tools of the request: references to others, which a tool search left, are omitted. */
  tools?: string[];
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `search`. */
export interface SearchOptions extends SelectionOptions {
  /** Only entries that were written on this branch of git. */
  branch?: string;
  /** The number of lines of the text before and after the match in a snippet, which has 160 characters by default. */
  context?: number;
  /** The maximum number of hits, or of sessions with the output `files`; all by default. */
  limit?: number;
  /** The output: each hit, the sessions with hits, or only their number in `end`. Default: `hits`. */
  output?: 'hits' | 'files' | 'count';
  /** Only entries of one of these roles: `user`, `assistant`, `system` or `tool`. */
  role?: string[];
  /**
   * Only entries from this time on: a time as in RFC 3339, a date, `today`, `yesterday`, or a duration before now, such
   * as `3d`.
   */
  since?: string;
  /**
   * The order of the hits: the best first, or the session that was changed last and in it the last entry. Default:
   * `rank`.
   */
  sort?: 'rank' | 'time';
  /** Only entries that contain this text, ignoring case. */
  text?: string;
  /** Only calls of one of these tools, and their results. */
  tool?: string[];
  /** Only entries up to this time, in the same forms as `since`. */
  until?: string;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
  /** Ends the function when it is aborted. */
  signal?: AbortSignal;
}

/** Options of `tree`. */
export interface TreeOptions extends ArchiveOptions {
  /** Counts only entries that were written on this branch of git. */
  branch?: string;
  /** The maximum number of branches in which entries are counted: those whose last entries are the last of the file. */
  last?: number;
  /**
   * The rules by which a session of another agent is read. A record of Claude Code's sessions has the leaf of each
   * policy in any case. Default: `recover`.
   */
  policy?: Policy;
  /** Only a session of the project at this path. */
  project?: Path;
  /** Counts only entries with one of these roles, as `matches` of each branch. */
  role?: string[];
  /** Counts only entries from this time on: `2026-01-31`, `2026-01-31T12:00:00Z`, `2h`, `3d`, `yesterday`. */
  since?: string;
  /** Counts only entries that contain this text, ignoring case. */
  text?: string;
  /** Counts only calls of one of these tools, and their results. */
  tool?: string[];
  /** Counts only entries up to this time. */
  until?: string;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `usage`. */
export interface UsageOptions extends SelectionOptions {
  /**
   * The grouping of the rows: `day`, `week`, `month`, `hour5`, `root`, `project`, `session`, `model`, `maker` (the
   * agent), `subagent`, `subagent-type`, `branch`, `git-branch`, `compaction` or `tool`; several for their
   * combinations. Without any there is only the total.
   */
  by?: string[];
  /** The maximum number of rows: the latest, or those that cost most. The total is that of all. */
  limit?: number;
  /** A file of prices in the form of LiteLLM, which replace those that are part of the program. */
  prices?: Path;
  /**
   * Only requests from this time on: a time as in RFC 3339, a date, `today`, `yesterday`, or a duration before now,
   * such as `3d`.
   */
  since?: string;
  /** The time zone of days, weeks and months; that of the system by default. */
  timezone?: string;
  /** Only requests up to this time, in the same forms as `since`. */
  until?: string;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `verify`. */
export interface VerifyOptions extends ArchiveOptions {
  /** Whether every request that a client recorded in the file is built again, and compared. */
  requests?: boolean;
  /** Sessions of a folder are reported that the client deletes within this number of days; 7 by default. */
  sweep?: number;
  /**
   * The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its
   * home folder. By default Claude Code and all agents that are found on the machine.
   */
  agent?: string | string[];
}

/** Options of `watch`. */
export interface WatchOptions extends RootOptions {
  /** Whether what entries change in the conversation is returned, too. */
  changes?: boolean;
  /** The start: `start`, `end`, or the `checkpoint` of an entry after which to continue. Default: `end`. */
  start?: string;
  /** Folders of projects, and sessions; all sessions of the store if there are none. */
  in?: Path | Path[];
  /** Starts with this number of the last entries instead. */
  last?: number;
  /** Whether it ends at the ends of the files. */
  once?: boolean;
  /** Whether each entry has its whole line. */
  rawEntries?: boolean;
  /** Ends the function when it is aborted. */
  signal?: AbortSignal;
}

/** Returns the conversation of a session: `session`, its entries, `end`. */
export function entries(session: Path, options?: EntriesOptions): Records<ReplayRecord>;

/**
 * Writes the conversation of a session to a file, without what looks like a secret. A page has the conversation and,
 * folded, its subagents, branches and thinking. Fails with `exists` if the file exists, unless `force` is true.
 */
export function exportSession(session: Path, out: Path, options?: ExportOptions): Promise<ExportedDocument>;

/**
 * Follows a session while it is written: each entry once, in order, as soon as its line is complete. A file that does
 * not exist yet is waited for.
 */
export function follow(session: Path, options?: FollowOptions): Records<TailRecord>;

/** Copies one conversation into a new session, which has only its entries, with new ids. The session is not changed. */
export function fork(session: Path, options?: ForkOptions): Promise<ForkRecord>;

/**
 * Hands the conversation of a session of any agent over to another agent, as a new session that the agent lists, opens
 * and continues. Without `write` nothing is written: the record is what would be, and what would be lost. Nothing is
 * overwritten. docs/handover.md says what arrives.
 */
export function handOver(session: Path, to: 'claude-code' | 'codex' | 'pi' | 'qwen' | 'gemini' | 'copilot' | 'atif' | 'acp', options?: HandOverOptions): Promise<HandOverRecord>;

/**
 * Returns a session of any agent as items, which no provider has for itself alone: what goes to the model, its
 * branches, and what compactions took away.
 */
export function items(session: Path, options?: ItemsOptions): Promise<ItemsRecord>;

/**
 * The sessions of all projects or of one, the last conversation first, with what a list shows of each. Reads only the
 * start and the end of each file.
 */
export function list(options?: ListOptions): Promise<SessionRecord[]>;

/** Lists the sessions of an archive; without `archive` of that of this user. */
export function listArchived(options?: ListArchivedOptions): Promise<SessionRecord[]>;

/**
 * Moves the sessions of a folder that was moved or renamed, and of folders below it, to the project of the new folder,
 * with their subagents and side files. Nothing is overwritten. After an interruption the same call finishes the move.
 * The folders themselves are not touched.
 */
export function move(oldFolder: Path, newFolder: Path, options?: MoveOptions): Promise<MoveReport>;

/**
 * Returns a text in which `[redacted: KIND]` replaces secrets, and the number of each kind. docs/redaction.md has the
 * rules.
 */
export function redact(text: string, options?: RedactOptions): Promise<RedactedText>;

/** Repairs a session. Without `out`, `newSession` or `keepId` nothing is written: the record is what would be done. */
export function repair(session: Path, options: RepairOptions & { undo: true }): Promise<UndoneRepair>;
export function repair(session: Path, options?: RepairOptions): Promise<RepairReport>;

/**
 * Returns the request that continues a session: the `messages` for the API, and how they came about. Writes nothing. A
 * file of another format is not an error: the record then has a `reason`, and `resumable` is false.
 */
export function request(session: Path, options?: RequestOptions): Promise<ResumeReport | ResumeRefusal>;

/** Finds entries in all sessions, or in some: records `hit`, then `end`. */
export function search(query: string, options?: SearchOptions): Records<SearchRecord>;

/**
 * The branches of a session: prompts that were rewound or edited, compactions, subagents, and the leaf of each policy.
 */
export function tree(session: Path, options?: TreeOptions): Promise<TreeReport>;

/** Returns the cost of sessions: a record `row` for each combination of the kinds in `by`, then `total`. */
export function usage(options?: UsageOptions): Promise<CostRecord[]>;

/**
 * Reports what is wrong with sessions, and what a resume would lose: a record for each session of a folder, for a file,
 * or for a session that is named by its id and each of its subagents.
 */
export function verify(session: Path, options?: VerifyOptions): Promise<VerifyRecord[]>;

/** Follows many sessions, also those that are created later, and subagents. */
export function watch(options?: WatchOptions): Records<TailRecord>;
