//! Entries outside the chain: state of the session. For most kinds the last line counts.

use crate::kind::EntryKind;
use crate::object::{Object, Raw, Str};
use crate::schema::schema;

schema! {
    /// The state of files at one time.
    FileSnapshot {
        message_id: Str<'a> = "messageId", "the prompt that the snapshot was made for";
        timestamp: Str<'a> = "timestamp", "when it was made";
        tracked_file_backups: Object<'a> = "trackedFileBackups", "the backups by path: read a member as `FileBackup`";
    }

    /// The backup of one file.
    FileBackup {
        backup_file_name: Str<'a> = "backupFileName", "the name of the backup; `null` when there was no such file";
        backup_time: Str<'a> = "backupTime", "when it was made";
        version: u64 = "version", "its number, from 1";
    }

    /// A tool result that was replaced.
    Replacement {
        kind: Str<'a> = "kind", "the kind of the replaced content";
        tool_use_id: Str<'a> = "toolUseId" | "toolUseID", "the tool call";
        replacement: Str<'a> = "replacement", "the text that replaces it";
    }

    /// A worktree that the session works in.
    WorktreeSession {
        original_cwd: Str<'a> = "originalCwd", "the folder before";
        pre_enter_original_cwd: Str<'a> = "preEnterOriginalCwd", "the folder that the person was in";
        original_branch: Str<'a> = "originalBranch", "the branch before";
        original_head_commit: Str<'a> = "originalHeadCommit", "the commit before";
        worktree_path: Str<'a> = "worktreePath", "the folder of the worktree";
        worktree_name: Str<'a> = "worktreeName", "its name";
        worktree_branch: Str<'a> = "worktreeBranch", "its branch";
        session_id: Str<'a> = "sessionId", "the session";
    }

    /// A system prompt that turns were sent with.
    RecordedPrompt {
        hash: Str<'a> = "hash", "the SHA-256 of the whole text";
        sections: Vec<RecordedSection<'a>> = "sections", "the sections in their order";
    }

    /// A section of a system prompt that turns were sent with.
    RecordedSection {
        name: Str<'a> = "name", "its name";
        hash: Str<'a> = "hash", "the SHA-256 of its text; a key of `texts` of this line or another one";
        tokens: u64 = "tokens", "its estimated tokens";
    }

    /// A cache breakpoint of a request.
    CacheMark {
        path: Vec<Raw<'a>> = "path", "its place: keys and indexes from the top of the request";
        value: Raw<'a> = "value", "the breakpoint";
    }

    enum Metadata "An entry outside the chain, by its type. Its session and time, if any, are in the envelope of the entry." by EntryKind {
        /// The last prompt of the person, and the leaf that a resume starts from (LEAF-6).
        LastPrompt {
            last_prompt: Str<'a> = "lastPrompt", "the prompt, shortened";
            leaf_uuid: Str<'a> = "leafUuid", "the leaf; may name an entry that is written later";
            explicit: bool = "explicit", "whether the leaf was chosen explicitly, not just the last entry (LEAF-11)";
        }

        /// A title in older clients; usually of a conversation in another file.
        Summary {
            summary: Str<'a> = "summary", "the title";
            leaf_uuid: Str<'a> = "leafUuid", "the leaf of the conversation";
        }

        /// The title that the person gave.
        CustomTitle { custom_title: Str<'a> = "customTitle", "the title"; }

        /// The title that the model gave.
        AiTitle { ai_title: Str<'a> = "aiTitle", "the title"; }

        /// The name of the session among its agents.
        AgentName { agent_name: Str<'a> = "agentName", "the name"; }

        /// The colour of the session among its agents.
        AgentColor { agent_color: Str<'a> = "agentColor", "the colour"; }

        /// The agent that the session runs as.
        AgentSetting { agent_setting: Str<'a> = "agentSetting", "the agent"; }

        /// A tag.
        Tag { tag: Str<'a> = "tag", "the tag; an empty one clears the tag"; }

        /// The mode of the session.
        Mode { mode: Str<'a> = "mode", "the mode, such as `normal`"; }

        /// The permission mode of the session.
        PermissionMode { permission_mode: Str<'a> = "permissionMode", "the permission mode"; }

        /// A prompt entered or left the queue of prompts that wait while the model works.
        QueueOperation {
            operation: Str<'a> = "operation", "`enqueue`, `dequeue`, `remove` or `popAll`";
            content: Str<'a> = "content", "the prompt; always absent on `dequeue`";
        }

        /// The files as they were before a prompt.
        FileHistorySnapshot {
            message_id: Str<'a> = "messageId", "the prompt; a uuid of an entry that follows, not the id of this one";
            snapshot: FileSnapshot<'a> = "snapshot", "the files";
            is_snapshot_update: bool = "isSnapshotUpdate", "whether an earlier snapshot is replaced, the one of `snapshot.messageId`";
        }

        /// One file added to a snapshot (from 2.1.209).
        FileHistoryDelta {
            message_id: Str<'a> = "messageId", "the prompt it belongs to";
            snapshot_message_id: Str<'a> = "snapshotMessageId", "the snapshot it is added to";
            tracking_path: Str<'a> = "trackingPath", "the path of the file";
            backup: FileBackup<'a> = "backup", "its backup";
        }

        /// Tool results that are replaced by shorter ones in requests.
        ContentReplacement {
            replacements: Vec<Replacement<'a>> = "replacements", "the replacements";
        }

        /// The session moved to another folder.
        Relocated {
            relocated_cwd: Str<'a> = "relocatedCwd", "the folder; takes precedence over `cwd` when sessions are listed";
        }

        /// The session entered or left a worktree.
        WorktreeState {
            worktree_session: WorktreeSession<'a> = "worktreeSession", "the worktree; `null` when it was left";
        }

        /// A pull request created in the session.
        PrLink {
            pr_number: u64 = "prNumber", "its number";
            pr_url: Str<'a> = "prUrl", "its address";
            pr_repository: Str<'a> = "prRepository", "its repository";
        }

        /// A page created in the session.
        FrameLink {
            frame_url: Str<'a> = "frameUrl", "its address";
            path: Str<'a> = "path", "its file";
            title: Str<'a> = "title", "its title";
        }

        /// The session can be reached remotely.
        BridgeSession {
            bridge_session_id: Str<'a> = "bridgeSessionId", "the id of the remote session";
            last_sequence_num: u64 = "lastSequenceNum", "the last message that was forwarded";
        }

        /// The tools that were used so far.
        ToolsUsed { tools: Vec<Str<'a>> = "tools", "the tools"; }

        /// The cost of the session so far; a resumed session continues counting from it.
        CostState {
            total_cost_usd: f64 = "totalCostUSD", "the cost in US dollars";
            total_api_duration: u64 = "totalAPIDuration", "the milliseconds spent in the API";
            total_api_duration_without_retries: u64 = "totalAPIDurationWithoutRetries", "the same without failed attempts";
            total_tool_duration: u64 = "totalToolDuration", "the milliseconds spent in tools";
            total_duration: u64 = "totalDuration", "the milliseconds since the session started";
            start_time: u64 = "startTime", "when the session started, in milliseconds since 1970";
            total_lines_added: u64 = "totalLinesAdded", "the lines that were added";
            total_lines_removed: u64 = "totalLinesRemoved", "the lines that were removed";
            model_usage: Object<'a> = "modelUsage", "the usage by model: read a member as `ModelUsage`";
            has_unknown_model_cost: bool = "hasUnknownModelCost", "whether the price of a model is unknown";
        }

        /// A latch of the client; its meaning is not known.
        AtisLatch { atis: Str<'a> = "atis", "the value"; }

        /// A recorded request: its messages are the first `keep` of `base`, then `tail` (REQ-1).
        ApiRequest {
            id: Str<'a> = "id", "the id that `requestRef` of assistant entries names";
            query_source: Str<'a> = "querySource", "what made the request";
            shape_hash: Str<'a> = "shapeHash", "the shape: system prompt and tools";
            params: Object<'a> = "params", "the parameters of the request";
            base: Str<'a> = "base", "the request that this one extends";
            keep: u64 = "keep", "how many messages of `base` are sent again";
            tail: Vec<Str<'a>> = "tail", "the hashes of the messages after those";
            cache_control: Vec<CacheMark<'a>> = "cacheControl", "the cache breakpoints";
            request_digest: Str<'a> = "requestDigest", "a digest of the request; its algorithm is unknown";
        }

        /// One message of a recorded request, by its hash (REQ-1, REQ-2).
        ApiRequestBlob {
            hash: Str<'a> = "hash", "the SHA-256 of the message";
            message: Raw<'a> = "message", "the message";
        }

        /// The system prompt and tools of a recorded request, by their hash.
        ApiRequestShape {
            shape_hash: Str<'a> = "shapeHash", "the hash";
            shape: Object<'a> = "shape", "the system prompt and the tools";
        }

        /// The metadata of a subagent, as a line of a session store's stream; never on disk.
        AgentMetadata {
            agent_type: Str<'a> = "agentType", "the kind of subagent";
            description: Str<'a> = "description", "a short description of the task";
            name: Str<'a> = "name", "the name of a teammate";
            model: Str<'a> = "model", "the model";
            tool_use_id: Str<'a> = "toolUseId", "the tool call that started it";
            parent_agent_id: Str<'a> = "parentAgentId", "the subagent that started it";
            spawn_depth: u64 = "spawnDepth", "the nesting depth; 1 directly under the main conversation";
            worktree_path: Str<'a> = "worktreePath", "its worktree";
            request_shape: Str<'a> = "requestShape", "`foreground` or `background`";
            request_non_interactive: bool = "requestNonInteractive", "whether it cannot ask the person";
            task_kind: Str<'a> = "taskKind", "the kind of task";
        }

        /// An engine line: written by this project and ignored by other readers.
        TranscriptEngine {
            v: u64 = "v", "the version of its format";
            tombstone: Str<'a> = "tombstone", "the entry that it tombstones";
            tombstones: Vec<Str<'a>> = "tombstones", "the entries that it tombstones, if they are several";
            prompt: RecordedPrompt<'a> = "prompt", "the system prompt of the turns up to the next such line";
            after: Str<'a> = "after", "the last entry of the conversation when the prompt was recorded; `null` at the start";
            texts: Object<'a> = "texts", "texts of sections of system prompts by their SHA-256, each once in a file";
        }
    }
}
