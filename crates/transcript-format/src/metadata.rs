//! Entries outside the chain: state of the session. For most kinds the last line counts.

use crate::kind::EntryKind;
use crate::object::{Object, Raw, Str};
use crate::view::{view, views};

views! {
    /// An entry outside the chain, by its type.
    ///
    /// Its session and time, if any, are in the envelope of the entry.
    Metadata by EntryKind {
        /// The last prompt of the person, and the leaf that a resume starts from (LEAF-6).
        LastPrompt {
            /// the prompt, shortened.
            last_prompt: Str<'a> = "lastPrompt";
            /// the leaf; may name an entry that is written later.
            leaf_uuid: Str<'a> = "leafUuid";
            /// whether the leaf was chosen explicitly, not just the last entry (LEAF-11).
            explicit: bool = "explicit";
        }

        /// A title in older clients; usually of a conversation in another file.
        Summary {
            /// the title.
            summary: Str<'a> = "summary";
            /// the leaf of the conversation.
            leaf_uuid: Str<'a> = "leafUuid";
        }

        /// The title that the person gave.
        CustomTitle {
            /// the title.
            custom_title: Str<'a> = "customTitle";
        }

        /// The title that the model gave.
        AiTitle {
            /// the title.
            ai_title: Str<'a> = "aiTitle";
        }

        /// The name of the session among its agents.
        AgentName {
            /// the name.
            agent_name: Str<'a> = "agentName";
        }

        /// The colour of the session among its agents.
        AgentColor {
            /// the colour.
            agent_color: Str<'a> = "agentColor";
        }

        /// The agent that the session runs as.
        AgentSetting {
            /// the agent.
            agent_setting: Str<'a> = "agentSetting";
        }

        /// A tag.
        Tag {
            /// the tag; an empty one clears the tag.
            tag: Str<'a> = "tag";
        }

        /// The mode of the session.
        Mode {
            /// the mode, such as `normal`.
            mode: Str<'a> = "mode";
        }

        /// The permission mode of the session.
        PermissionMode {
            /// the permission mode.
            permission_mode: Str<'a> = "permissionMode";
        }

        /// A prompt entered or left the queue of prompts that wait while the model works.
        QueueOperation {
            /// `enqueue`, `dequeue`, `remove` or `popAll`.
            operation: Str<'a> = "operation";
            /// the prompt; always absent on `dequeue`.
            content: Str<'a> = "content";
        }

        /// The files as they were before a prompt.
        FileHistorySnapshot {
            /// the prompt; a uuid of an entry that follows, not the id of this one.
            message_id: Str<'a> = "messageId";
            /// the files.
            snapshot: FileSnapshot<'a> = "snapshot";
            /// whether an earlier snapshot is replaced, the one of `snapshot.messageId`.
            is_snapshot_update: bool = "isSnapshotUpdate";
        }

        /// One file added to a snapshot (from 2.1.209).
        FileHistoryDelta {
            /// the prompt it belongs to.
            message_id: Str<'a> = "messageId";
            /// the snapshot it is added to.
            snapshot_message_id: Str<'a> = "snapshotMessageId";
            /// the path of the file.
            tracking_path: Str<'a> = "trackingPath";
            /// its backup.
            backup: FileBackup<'a> = "backup";
        }

        /// Tool results that are replaced by shorter ones in requests.
        ContentReplacement {
            /// the replacements.
            replacements: Vec<Replacement<'a>> = "replacements";
        }

        /// The session moved to another folder.
        Relocated {
            /// the folder; takes precedence over `cwd` when sessions are listed.
            relocated_cwd: Str<'a> = "relocatedCwd";
        }

        /// The session entered or left a worktree.
        WorktreeState {
            /// the worktree; `null` when it was left.
            worktree_session: WorktreeSession<'a> = "worktreeSession";
        }

        /// A pull request created in the session.
        PrLink {
            /// its number.
            pr_number: u64 = "prNumber";
            /// its address.
            pr_url: Str<'a> = "prUrl";
            /// its repository.
            pr_repository: Str<'a> = "prRepository";
        }

        /// A page created in the session.
        FrameLink {
            /// its address.
            frame_url: Str<'a> = "frameUrl";
            /// its file.
            path: Str<'a> = "path";
            /// its title.
            title: Str<'a> = "title";
        }

        /// The session can be reached remotely.
        BridgeSession {
            /// the id of the remote session.
            bridge_session_id: Str<'a> = "bridgeSessionId";
            /// the last message that was forwarded.
            last_sequence_num: u64 = "lastSequenceNum";
            /// the account that it belongs to.
            owner_account_uuid: Str<'a> = "ownerAccountUuid";
            /// the organization that it belongs to.
            owner_organization_uuid: Str<'a> = "ownerOrganizationUuid";
        }

        /// The tools that were used so far.
        ToolsUsed {
            /// the tools.
            tools: Vec<Str<'a>> = "tools";
        }

        /// The cost of the session so far; a resumed session continues counting from it.
        CostState {
            /// the cost in US dollars.
            total_cost_usd: f64 = "totalCostUSD";
            /// the milliseconds spent in the API.
            total_api_duration: u64 = "totalAPIDuration";
            /// the same without failed attempts.
            total_api_duration_without_retries: u64 = "totalAPIDurationWithoutRetries";
            /// the milliseconds spent in tools.
            total_tool_duration: u64 = "totalToolDuration";
            /// the milliseconds since the session started.
            total_duration: u64 = "totalDuration";
            /// when the session started, in milliseconds since 1970.
            start_time: u64 = "startTime";
            /// the lines that were added.
            total_lines_added: u64 = "totalLinesAdded";
            /// the lines that were removed.
            total_lines_removed: u64 = "totalLinesRemoved";
            /// the usage by model: read a member as [`ModelUsage`](crate::usage::ModelUsage).
            model_usage: Object<'a> = "modelUsage";
            /// whether the price of a model is unknown.
            has_unknown_model_cost: bool = "hasUnknownModelCost";
        }

        /// A latch of the client; its meaning is not known.
        AtisLatch {
            /// the value.
            atis: Str<'a> = "atis";
        }

        /// A recorded request: its messages are the first `keep` of `base`, then `tail` (REQ-1).
        ApiRequest {
            /// the id that `requestRef` of assistant entries names.
            id: Str<'a> = "id";
            /// what made the request.
            query_source: Str<'a> = "querySource";
            /// the shape: system prompt and tools.
            shape_hash: Str<'a> = "shapeHash";
            /// the parameters of the request.
            params: Object<'a> = "params";
            /// the request that this one extends.
            base: Str<'a> = "base";
            /// how many messages of `base` are sent again.
            keep: u64 = "keep";
            /// the hashes of the messages after those.
            tail: Vec<Str<'a>> = "tail";
            /// the cache breakpoints.
            cache_control: Vec<CacheMark<'a>> = "cacheControl";
            /// a digest of the request; its algorithm is unknown.
            request_digest: Str<'a> = "requestDigest";
        }

        /// One message of a recorded request, by its hash (REQ-1, REQ-2).
        ApiRequestBlob {
            /// the SHA-256 of the message.
            hash: Str<'a> = "hash";
            /// the message.
            message: Raw<'a> = "message";
        }

        /// The system prompt and tools of a recorded request, by their hash.
        ApiRequestShape {
            /// the hash.
            shape_hash: Str<'a> = "shapeHash";
            /// the system prompt and the tools.
            shape: Object<'a> = "shape";
        }

        /// What the session is working on (known from client code only).
        TaskSummary {
            /// the summary.
            summary: Str<'a> = "summary";
        }

        /// A span of the conversation that is replaced by a summary (known from client code only).
        MarbleOrigamiCommit {
            /// the id of the span.
            collapse_id: Str<'a> = "collapseId";
            /// the id of the message that replaces the span.
            summary_uuid: Str<'a> = "summaryUuid";
            /// the text of that message.
            summary_content: Str<'a> = "summaryContent";
            /// the summary alone.
            summary: Str<'a> = "summary";
            /// the first entry of the span.
            first_archived_uuid: Str<'a> = "firstArchivedUuid";
            /// the last entry of the span.
            last_archived_uuid: Str<'a> = "lastArchivedUuid";
        }

        /// Spans that may be replaced later (known from client code only).
        MarbleOrigamiSnapshot {
            /// the spans.
            staged: Vec<Object<'a>> = "staged";
            /// whether the next span is pending.
            armed: bool = "armed";
            /// the number of tokens at the last search for a span.
            last_spawn_tokens: u64 = "lastSpawnTokens";
        }

        /// A speculatively answered prompt that the person then sent (known from client code only).
        SpeculationAccept {
            /// the milliseconds that were saved.
            time_saved_ms: f64 = "timeSavedMs";
        }

        /// An entry that was removed; both SDKs ignore it.
        Tombstone {
            /// the removed entry.
            message: Object<'a> = "message";
        }

        /// A snip; both SDKs ignore it as an entry of its own.
        SnipBoundary {}

        /// The metadata of a subagent, as a line of a session store's stream; never on disk.
        AgentMetadata {
            /// the kind of subagent.
            agent_type: Str<'a> = "agentType";
            /// a short description of the task.
            description: Str<'a> = "description";
            /// the name of a teammate.
            name: Str<'a> = "name";
            /// the model.
            model: Str<'a> = "model";
            /// the tool call that started it.
            tool_use_id: Str<'a> = "toolUseId";
            /// the subagent that started it.
            parent_agent_id: Str<'a> = "parentAgentId";
            /// the nesting depth; 1 directly under the main conversation.
            spawn_depth: u64 = "spawnDepth";
            /// its worktree.
            worktree_path: Str<'a> = "worktreePath";
            /// `foreground` or `background`.
            request_shape: Str<'a> = "requestShape";
            /// whether it cannot ask the person.
            request_non_interactive: bool = "requestNonInteractive";
            /// the kind of task.
            task_kind: Str<'a> = "taskKind";
        }

        /// An engine line: written by this project and ignored by other readers.
        TranscriptEngine {
            /// the version of its format.
            v: u64 = "v";
            /// the entry that it tombstones.
            tombstone: Str<'a> = "tombstone";
        }
    }
}

view! {
    /// The state of files at one time.
    FileSnapshot {
        /// the prompt that the snapshot was made for.
        message_id: Str<'a> = "messageId";
        /// when it was made.
        timestamp: Str<'a> = "timestamp";
        /// the backups by path: read a member as [`FileBackup`].
        tracked_file_backups: Object<'a> = "trackedFileBackups";
    }

    /// The backup of one file.
    FileBackup {
        /// the name of the backup; `null` when there was no such file.
        backup_file_name: Str<'a> = "backupFileName";
        /// when it was made.
        backup_time: Str<'a> = "backupTime";
        /// its number, from 1.
        version: u64 = "version";
        /// the folder that the path leads to.
        real_parent_dir: Str<'a> = "realParentDir";
    }

    /// A tool result that was replaced.
    Replacement {
        /// the kind of what was replaced.
        kind: Str<'a> = "kind";
        /// the tool call.
        tool_use_id: Str<'a> = "toolUseId" | "toolUseID";
        /// the text that replaces it.
        replacement: Str<'a> = "replacement";
    }

    /// A worktree that the session works in.
    WorktreeSession {
        /// the folder before.
        original_cwd: Str<'a> = "originalCwd";
        /// the folder that the person was in.
        pre_enter_original_cwd: Str<'a> = "preEnterOriginalCwd";
        /// the branch before.
        original_branch: Str<'a> = "originalBranch";
        /// the commit before.
        original_head_commit: Str<'a> = "originalHeadCommit";
        /// the folder of the worktree.
        worktree_path: Str<'a> = "worktreePath";
        /// its name.
        worktree_name: Str<'a> = "worktreeName";
        /// its branch.
        worktree_branch: Str<'a> = "worktreeBranch";
        /// the session.
        session_id: Str<'a> = "sessionId";
    }

    /// A cache breakpoint of a request.
    CacheMark {
        /// its place: keys and indexes from the top of the request.
        path: Vec<Raw<'a>> = "path";
        /// the breakpoint.
        value: Raw<'a> = "value";
    }
}
