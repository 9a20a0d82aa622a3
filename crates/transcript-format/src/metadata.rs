//! Entries outside the chain: state of the session. Of most of them the last one counts.

use crate::kind::EntryKind;
use crate::object::{Object, Raw, Str};
use crate::view::{view, views};

views! {
    /// An entry outside the chain, by its type (sdk.md 2, corpus.md 7.2, rig.md 2).
    ///
    /// The session and the time, where there is one, are in the envelope of the entry.
    Metadata by EntryKind {
        /// What the person wrote last, and the leaf that a resume starts from.
        LastPrompt {
            /// the prompt, shortened.
            last_prompt: Str<'a> = "lastPrompt";
            /// the leaf; may name an entry that is written later (sdk.md 2).
            leaf_uuid: Str<'a> = "leafUuid";
            /// whether the leaf was chosen, not just the last entry.
            explicit: bool = "explicit";
        }

        /// A title in older clients; as a rule of a conversation in another file.
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
            /// the tag; empty when it was cleared.
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

        /// A prompt was queued while the model worked, or left the queue.
        QueueOperation {
            /// `enqueue`, `dequeue`, `remove` or `popAll`.
            operation: Str<'a> = "operation";
            /// the prompt; never there on `dequeue` (corpus.md 5).
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

        /// One file that joined a snapshot (from 2.1.209).
        FileHistoryDelta {
            /// the prompt that it belongs to.
            message_id: Str<'a> = "messageId";
            /// the snapshot that it joins.
            snapshot_message_id: Str<'a> = "snapshotMessageId";
            /// the path of the file.
            tracking_path: Str<'a> = "trackingPath";
            /// its backup.
            backup: FileBackup<'a> = "backup";
        }

        /// Tool results that were replaced by shorter ones in what the model sees.
        ContentReplacement {
            /// the replacements.
            replacements: Vec<Replacement<'a>> = "replacements";
        }

        /// The session moved to another folder.
        Relocated {
            /// the folder; counts before `cwd` when sessions are listed.
            relocated_cwd: Str<'a> = "relocatedCwd";
        }

        /// The session entered or left a worktree.
        WorktreeState {
            /// the worktree; `null` when it was left.
            worktree_session: WorktreeSession<'a> = "worktreeSession";
        }

        /// A pull request that came out of the session.
        PrLink {
            /// its number.
            pr_number: u64 = "prNumber";
            /// its address.
            pr_url: Str<'a> = "prUrl";
            /// its repository.
            pr_repository: Str<'a> = "prRepository";
        }

        /// A page that came out of the session.
        FrameLink {
            /// its address.
            frame_url: Str<'a> = "frameUrl";
            /// its file.
            path: Str<'a> = "path";
            /// its title.
            title: Str<'a> = "title";
        }

        /// The session can be reached from elsewhere.
        BridgeSession {
            /// the session there.
            bridge_session_id: Str<'a> = "bridgeSessionId";
            /// the last message that was passed on.
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

        /// What the session cost so far; a resumed session counts on from here.
        CostState {
            /// the cost in US dollars.
            total_cost_usd: f64 = "totalCostUSD";
            /// the milliseconds spent in the API.
            total_api_duration: u64 = "totalAPIDuration";
            /// the same without attempts that failed.
            total_api_duration_without_retries: u64 = "totalAPIDurationWithoutRetries";
            /// the milliseconds spent in tools.
            total_tool_duration: u64 = "totalToolDuration";
            /// the milliseconds since the start.
            total_duration: u64 = "totalDuration";
            /// the start, in milliseconds since 1970.
            start_time: u64 = "startTime";
            /// the lines that were added.
            total_lines_added: u64 = "totalLinesAdded";
            /// the lines that were removed.
            total_lines_removed: u64 = "totalLinesRemoved";
            /// the use by model: read a member as [`ModelUsage`](crate::usage::ModelUsage).
            model_usage: Object<'a> = "modelUsage";
            /// whether the price of a model is not known.
            has_unknown_model_cost: bool = "hasUnknownModelCost";
        }

        /// A latch of the client; its meaning is not known.
        AtisLatch {
            /// the value.
            atis: Str<'a> = "atis";
        }

        /// A request to the API: its messages are the first `keep` ones of `base` and then `tail`.
        ApiRequest {
            /// the id that `requestRef` of assistant entries names.
            id: Str<'a> = "id";
            /// what made the request.
            query_source: Str<'a> = "querySource";
            /// the shape: system prompt and tools.
            shape_hash: Str<'a> = "shapeHash";
            /// the parameters of the request.
            params: Object<'a> = "params";
            /// the request that this one goes on with.
            base: Str<'a> = "base";
            /// how many messages of `base` are sent again.
            keep: u64 = "keep";
            /// the hashes of the messages after those.
            tail: Vec<Str<'a>> = "tail";
            /// the cache breakpoints.
            cache_control: Vec<CacheMark<'a>> = "cacheControl";
            /// a digest of the request; how it is made is not known.
            request_digest: Str<'a> = "requestDigest";
        }

        /// One message of a request, by its hash (rig.md 2).
        ApiRequestBlob {
            /// the SHA-256 of the message.
            hash: Str<'a> = "hash";
            /// the message.
            message: Raw<'a> = "message";
        }

        /// The system prompt and tools of a request, by their hash.
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
            /// the id of the message that stands for the span.
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
            /// whether the next one is waited for.
            armed: bool = "armed";
            /// the tokens when the last one was looked for.
            last_spawn_tokens: u64 = "lastSpawnTokens";
        }

        /// A prompt that was answered before it was sent (known from client code only).
        SpeculationAccept {
            /// the milliseconds that were saved.
            time_saved_ms: f64 = "timeSavedMs";
        }

        /// An entry that was removed; neither SDK heeds it (sdk.md 2).
        Tombstone {
            /// the removed entry.
            message: Object<'a> = "message";
        }

        /// A cut; neither SDK heeds it as an entry of its own (sdk.md 2).
        SnipBoundary {}

        /// The metadata file of a subagent, in the streams of a session store; never on disk.
        AgentMetadata {
            /// the kind of subagent.
            agent_type: Str<'a> = "agentType";
            /// the task in a few words.
            description: Str<'a> = "description";
            /// the name of a teammate.
            name: Str<'a> = "name";
            /// the model.
            model: Str<'a> = "model";
            /// the tool call that started it.
            tool_use_id: Str<'a> = "toolUseId";
            /// the subagent that started it.
            parent_agent_id: Str<'a> = "parentAgentId";
            /// how deep it is nested; 1 under the main conversation.
            spawn_depth: u64 = "spawnDepth";
            /// its worktree.
            worktree_path: Str<'a> = "worktreePath";
            /// `foreground` or `background`.
            request_shape: Str<'a> = "requestShape";
            /// whether it may not ask the person.
            request_non_interactive: bool = "requestNonInteractive";
            /// the kind of task.
            task_kind: Str<'a> = "taskKind";
        }

        /// A line of this engine (design.md 3.9).
        TranscriptEngine {
            /// the version of its form.
            v: u64 = "v";
            /// the entry that no longer counts.
            tombstone: Str<'a> = "tombstone";
        }
    }
}

view! {
    /// Files as they were at one time.
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
        /// what was replaced.
        kind: Str<'a> = "kind";
        /// the tool call.
        tool_use_id: Str<'a> = "toolUseId" | "toolUseID";
        /// what stands there instead.
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
        /// where it stands: keys and indexes from the top of the request.
        path: Vec<Raw<'a>> = "path";
        /// the breakpoint.
        value: Raw<'a> = "value";
    }
}
