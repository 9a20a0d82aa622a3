//! The request that continues a session.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use transcript_format::client_version::ClientVersion;
use transcript_reader::{Bodies, ErrorKind, Source};
use transcript_render::explain;
use transcript_resume::request::{self, Request};
use transcript_resume::{PathState, Tree, Usage};
use transcript_session::{Fit, History, Policy, Provider, ReadEnd, context_window};

use crate::context::{Context, PolicyName};
use crate::conversation_end::ConversationEnd;
use crate::failure::Failure;
use crate::fit::{self, Limit};
use crate::provider;
use crate::sink::{Result, Sink, shown};
use crate::wire::{ResumeRefusal, ResumeReport, TokensRecord};

/// The request that continues a session: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestOptions {
    /// The session: a path, an id, the start of one, a title, the id of a subagent, or `latest`.
    session: PathBuf,
    /// The rules that choose the conversation: with all that evidence gives back, or exactly as the client does.
    #[serde(default)]
    policy: PolicyName,
    /// The next message of the user.
    prompt: Option<String>,
    /// The model that gets the request; that of the last answer by default.
    model: Option<String>,
    /// The names of the tools of the request: references to others, which a tool search left, are omitted.
    tools: Option<Vec<String>>,
    /// The version of the client whose rules hold, such as `2.1.331`; that of the last line with one by default.
    client_version: Option<String>,
    /// The last entry of the conversation to continue: its uuid, the start of one, or its line. The leaf of the policy by
    /// default.
    leaf: Option<String>,
    /// Omits the oldest media, results and turns until the messages have at most this number of tokens (a number, or a text
    /// such as `150k`), or until the request fits the context window of the model of this name. Not under the policy `vendor`.
    fit: Option<Limit>,
    /// The number of turns at the end that `fit` never changes; 2 by default.
    fit_turns: Option<usize>,
    /// The provider that gets the request and accepts it: `messages` (the Messages API, the default), `converse` (Converse of Amazon Bedrock)
    /// or `vertex` (Claude on Google Vertex AI). The messages have the form of the Messages API in any case; to convert them is
    /// up to the caller. Not under the policy `vendor`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["messages", "converse", "vertex", null])))]
    provider: Option<String>,
    /// Whether the whole file is read, also where its end is enough.
    #[serde(default)]
    full: bool,
}

/// The settings of a request.
#[derive(Clone, Debug)]
pub struct RequestSettings {
    /// The rules.
    pub policy: Policy,
    /// The end of the conversation.
    pub end: ConversationEnd,
    /// The next message of the user.
    pub prompt: Option<String>,
    /// The model that gets the request; that of the last answer by default.
    pub model: Option<String>,
    /// The names of the tools of the request.
    pub tools: Option<Vec<String>>,
    /// The version of the client whose rules hold.
    pub client_version: Option<ClientVersion>,
    /// The maximum length.
    pub fit: Option<Fit>,
    /// The provider that accepts it.
    pub provider: Provider,
    /// Reads the whole file, also where its end is enough.
    pub full: bool,
    /// Whether the state of the session and its usage are omitted.
    pub only_messages: bool,
}

/// A request, and what it was made from.
#[derive(Debug)]
pub struct BuiltRequest<'h> {
    /// The session, or its end.
    pub history: &'h History,
    /// Its tree.
    pub tree: Tree<'h>,
    /// The request.
    pub request: Request,
    /// The state of the session at the end; empty if only the messages were wanted.
    pub state: PathState,
    /// The token counts of the answers; empty if only the messages were wanted.
    pub usage: Vec<Usage>,
    /// The reason why the end of the file was not enough; `None` if it was, or was not tried.
    pub reason: Option<&'static str>,
    /// The maximum length.
    pub fit: Option<Fit>,
}

impl BuiltRequest<'_> {
    /// Returns the context window of the model of the request, in tokens; `None` if it is not known.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        context_window(self.request.model.as_deref()?)
    }

    /// Returns the length of the request, and its excess over the limit.
    #[must_use]
    pub fn tokens(&self) -> TokensRecord {
        TokensRecord::new(&self.request.tokens(), self.window(), self.fit)
    }

    /// Writes the record of the request, with its messages.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn write(&self, sink: &mut dyn Sink) -> Result<()> {
        let (tree, request) = (&self.tree, &self.request);
        let findings = explain::findings(tree, &request.path);
        let is_terminal = sink.is_terminal();
        sink.long_json(&mut |out| {
            let describe = |decision: &_| explain::describe(tree.index(), decision);
            let state = (&self.state, &*self.usage);
            ResumeReport::new(self.history, tree, request, state, &findings, describe)
                .with_limits(request, self.window(), self.fit)
                .write(out, &request.messages, |json| shown(is_terminal, json))
        })
    }
}

/// Makes the request that continues a session, and gives it to `then`. Reads the end of the file if that is enough, else the
/// whole file.
///
/// # Errors
/// When the session cannot be read, or an entry is named that it does not have; those of `then`.
pub fn with_request<T, E>(
    context: &Context,
    source: Source,
    settings: &RequestSettings,
    then: impl FnOnce(BuiltRequest<'_>) -> std::result::Result<T, E>,
) -> std::result::Result<T, E>
where
    E: From<Failure>,
{
    let failed = |error: transcript_session::Error| E::from(Failure::from(error));
    if settings.full || settings.end.is_named() {
        let history = context.read(source).map_err(failed)?;
        return then(settings.build(&history)?);
    }
    let (source, reason) = match History::read_end(source).map_err(failed)? {
        ReadEnd::Enough(history) => {
            let built = settings.build(&history)?;
            if history.is_enough_for(&built.request) {
                return then(built);
            }
            drop(built);
            let reason = "the body of an entry is unusable";
            (history.into_source(), reason)
        }
        ReadEnd::ReadAll(source, reason) => (source, reason.words()),
    };
    let history = context.read(source).map_err(failed)?;
    let mut built = settings.build(&history)?;
    built.reason = Some(reason);
    then(built)
}

/// Makes the record of the request that continues a session.
pub(crate) fn request(
    options: &RequestOptions,
    context: &Context,
    sink: &mut dyn Sink,
) -> Result<()> {
    let settings = options.settings()?;
    context.follow_policy(settings.policy);
    let path = context.find(&options.session, None)?.path;
    let source = match open(context, &path) {
        Ok(source) => source,
        Err(error) => {
            let Some(reason) = other_format(&error) else {
                return Err(error.into());
            };
            return sink.record(&ResumeRefusal::new(&path, settings.policy, reason));
        }
    };
    with_request(context, source, &settings, |built| built.write(sink))
}

fn open(context: &Context, path: &Path) -> std::result::Result<Source, transcript_reader::Error> {
    let source = Source::open_on(context.read_disk(), path)?;
    source.check_messages()?;
    Ok(source)
}

/// Returns the reason why a file of another format cannot be resumed; `None` for any other error.
#[must_use]
pub fn other_format(error: &transcript_reader::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::OtherFormat(name) => Some(format!("not a transcript but {name}")),
        _ => None,
    }
}

impl RequestOptions {
    fn settings(&self) -> std::result::Result<RequestSettings, Failure> {
        let policy = self.policy.into();
        let version = self.client_version.as_deref().map(str::parse).transpose();
        Ok(RequestSettings {
            policy,
            end: ConversationEnd {
                leaf: self.leaf.clone(),
                ..ConversationEnd::default()
            },
            prompt: self.prompt.clone(),
            model: self.model.clone(),
            tools: self.tools.clone(),
            client_version: version.map_err(|error| Failure::option("clientVersion", error))?,
            fit: fit::limit(self.fit.as_ref(), self.fit_turns, policy)?,
            provider: provider::named(self.provider.as_deref(), policy)?,
            full: self.full,
            only_messages: false,
        })
    }
}

impl RequestSettings {
    /// Returns the settings of the request that continues a conversation as it is, for its messages.
    pub(crate) fn of_conversation(policy: Policy, end: ConversationEnd) -> Self {
        Self {
            policy,
            end,
            prompt: None,
            model: None,
            tools: None,
            client_version: None,
            fit: None,
            provider: Provider::default(),
            full: false,
            only_messages: true,
        }
    }

    /// Makes the request.
    pub(crate) fn build<'h>(
        &self,
        history: &'h History,
    ) -> std::result::Result<BuiltRequest<'h>, Failure> {
        let mut tree = history.tree(self.policy);
        if self.client_version.is_some() {
            tree = tree.for_client(self.client_version);
        }
        self.end.validate(&tree)?;
        // Long blocks stay in the file until they are printed, so memory does not grow with them.
        let mut options = request::RequestOptions::new()
            .now(Timestamp::now().as_millisecond())
            .provider(self.provider)
            .long_blocks_in(history.source());
        if let Some(prompt) = &self.prompt {
            options = options.prompt(prompt);
        }
        if let Some(model) = &self.model {
            options = options.model(model);
        }
        if let Some(fit) = self.fit {
            options = options.fit(fit);
        }
        if let Some(tools) = &self.tools {
            options = options.tools(tools);
        }
        if let Some(leaf) = self.end.leaf_node(&tree)? {
            options = options.leaf(tree.entry(leaf).number());
        }
        if let Some(at) = self.end.at_node(&tree)? {
            options = options.at(tree.entry(at).number());
        }
        let mut bodies = Bodies::new(history.source());
        let (request, state, usage) = if self.only_messages {
            let request = options.request(&tree, &mut bodies)?;
            (request, PathState::default(), Vec::new())
        } else {
            options.request_with_state(&tree, &mut bodies)?
        };
        Ok(BuiltRequest {
            history,
            tree,
            request,
            state,
            usage,
            reason: None,
            fit: self.fit,
        })
    }
}
