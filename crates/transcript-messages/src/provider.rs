//! The providers of the model, and what each of them accepts: the one table that [`lint`](super::lint()),
//! [`make_strict`](super::make_strict) and the checks of images and documents read.

use std::str::FromStr;

use transcript_format::named;
use transcript_format::object::{Object, Raw};

named! {
    /// The provider of the API that receives a request.
    ///
    /// Messages always have the form of the Messages API: to convert them to the JSON of another API is up to the caller.
    /// A provider only says which messages are accepted.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Provider {
        /// The Messages API.
        #[default]
        Messages = "messages",
        /// The Converse API of Amazon Bedrock.
        ///
        /// By its API reference (`Message`, `ToolUseBlock`, `ToolResultBlock`, `ImageBlock`, `DocumentBlock`): names and
        /// ids of calls are short, a message has a few images and documents, a document has a text beside it, only bytes
        /// are accepted as media, and there are only messages of the user and of the assistant. It also accepts the blocks
        /// `video`, `guardContent`, `reasoningContent` and `cachePoint`.
        Converse = "converse",
        /// Claude on Google Vertex AI.
        ///
        /// By the pages on Claude of its documentation and the issues of client libraries: media have no addresses and no
        /// file ids, a request is shorter, and the only tool that the API runs itself is the search of the web.
        Vertex = "vertex",
    }
}

/// The name is not that of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a provider; there are messages, converse and vertex")]
pub struct UnknownProvider;

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let mut all = Self::ALL.into_iter();
        all.find(|provider| provider.name() == name)
            .ok_or(UnknownProvider)
    }
}

/// The limits of a provider. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// The maximum length of the id of a call, in characters.
    call_id: usize,
    /// The characters that such an id may have in addition to letters and digits.
    call_id_marks: &'static str,
    /// The maximum length of the name of a called tool, in characters.
    pub(super) tool_name: usize,
    /// Names have only letters, digits, `_` and `-`.
    has_plain_names: bool,
    /// The maximum size of an image, and of its base64.
    pub(super) image: usize,
    pub(super) image_text: usize,
    pub(super) pdf: usize,
    /// The maximum size of a document that is a text.
    pub(super) text_document: usize,
    /// The maximum number of images and of documents in one message, with those in results.
    pub(super) images_of_message: usize,
    pub(super) documents_of_message: usize,
    /// A message with a document has a text as well.
    pub(super) wants_text_beside_document: bool,
    /// Media may be named by an address or by the id of a file.
    pub(super) takes_addresses: bool,
    api_tools: ApiTools,
    /// There are messages of the role `system`.
    pub(super) has_system_role: bool,
    /// Blocks that only the Converse API knows are accepted.
    takes_converse_blocks: bool,
    /// The maximum size of a request.
    pub(super) request: usize,
}

/// The tools that the API runs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ApiTools {
    All,
    WebSearch,
    None,
}

/// The blocks that only the Converse API knows, by their only key.
const CONVERSE_BLOCKS: [&str; 4] = ["video", "guardContent", "reasoningContent", "cachePoint"];

/// The maximum number of bytes of a request that the Messages API accepts.
pub const MAX_REQUEST: usize = 32 << 20;

const MESSAGES: Limits = Limits {
    call_id: usize::MAX,
    call_id_marks: "_-",
    tool_name: 200,
    has_plain_names: false,
    image: 5 << 20,
    image_text: 5 << 20,
    pdf: 32 << 20,
    text_document: 5 << 20,
    images_of_message: usize::MAX,
    documents_of_message: usize::MAX,
    wants_text_beside_document: false,
    takes_addresses: true,
    api_tools: ApiTools::All,
    has_system_role: true,
    takes_converse_blocks: false,
    request: MAX_REQUEST,
};

// Where the documents do not say how many bytes a MB has, it is the smaller number: that is accepted in any case.
const CONVERSE: Limits = Limits {
    call_id: 64,
    call_id_marks: "_.:-",
    tool_name: 64,
    has_plain_names: true,
    image: 3_750_000,
    image_text: 5_000_000,
    text_document: 4_500_000,
    images_of_message: 20,
    documents_of_message: 5,
    wants_text_beside_document: true,
    takes_addresses: false,
    api_tools: ApiTools::None,
    has_system_role: false,
    takes_converse_blocks: true,
    // Current Claude models take larger PDFs than other documents.
    ..MESSAGES
};

const VERTEX: Limits = Limits {
    takes_addresses: false,
    api_tools: ApiTools::WebSearch,
    request: 30_000_000,
    ..MESSAGES
};

impl Provider {
    /// All providers.
    pub const ALL: [Self; 3] = [Self::Messages, Self::Converse, Self::Vertex];

    pub(super) const fn limits(self) -> &'static Limits {
        match self {
            Self::Messages => &MESSAGES,
            Self::Converse => &CONVERSE,
            Self::Vertex => &VERTEX,
        }
    }
}

impl Limits {
    /// Returns whether the id of a call is accepted.
    pub(super) fn is_call_id(&self, id: &str) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || self.call_id_marks.contains(c);
        (1..=self.call_id).contains(&id.len()) && id.chars().all(is_plain)
    }

    /// Returns whether the name of a called tool is accepted.
    pub(super) fn is_tool_name(&self, name: &str) -> bool {
        let is_accepted = |c: char| !self.has_plain_names || is_plain(c);
        (1..=self.tool_name).contains(&name.chars().count()) && name.chars().all(is_accepted)
    }

    /// Returns the name that is accepted in place of one that is not, and not empty.
    pub(super) fn tool_name_for(&self, name: &str) -> String {
        let plain = |c: char| {
            if !self.has_plain_names || is_plain(c) {
                c
            } else {
                '_'
            }
        };
        name.chars().map(plain).take(self.tool_name).collect()
    }

    /// Returns whether a tool of the API runs here, by a call or a result.
    pub(super) fn runs(&self, call_or_result: &Object<'_>) -> bool {
        let text = |key: &str| call_or_result.get(key).and_then(Raw::str);
        match self.api_tools {
            ApiTools::All => true,
            ApiTools::None => false,
            ApiTools::WebSearch => match text("type").as_deref() {
                Some("server_tool_use") => text("name").as_deref() == Some("web_search"),
                kind => kind == Some("web_search_tool_result"),
            },
        }
    }

    /// Returns whether a block is one that only the Converse API knows, and is accepted.
    pub(super) fn knows(&self, block: &Object<'_>) -> bool {
        self.takes_converse_blocks
            && matches!(block.members(), [(key, _)] if CONVERSE_BLOCKS.contains(&&**key))
    }

    /// Returns whether a block of the content of a result is accepted, if it is neither a text nor an image or a document.
    pub(super) fn knows_in_result(&self, block: &Object<'_>) -> bool {
        if self.takes_converse_blocks {
            let kind = block.get("type").and_then(Raw::str);
            kind.as_deref() == Some("search_result")
                || (self.knows(block) && block.get("video").is_some())
        } else {
            true
        }
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_known_by_its_name() {
        for provider in Provider::ALL {
            assert_eq!(provider.name().parse(), Ok(provider));
            assert!(UnknownProvider.to_string().contains(provider.name()));
        }
        assert_eq!("Messages".parse::<Provider>(), Err(UnknownProvider));
    }

    #[test]
    fn ids_and_names_have_the_length_and_the_characters_that_a_provider_accepts() {
        let of = |provider: Provider| provider.limits();
        let (short, long) = ("x".repeat(64), "x".repeat(65));
        for provider in [Provider::Messages, Provider::Vertex] {
            let limits = of(provider);
            assert!(limits.is_call_id(&long) && !limits.is_call_id("a.b:c"));
            assert!(limits.is_tool_name("a b.é") && limits.is_tool_name(&"é".repeat(200)));
            assert!(!limits.is_tool_name(&"é".repeat(201)) && !limits.is_tool_name(""));
        }
        let limits = of(Provider::Converse);
        assert!(limits.is_call_id(&short) && !limits.is_call_id(&long));
        assert!(limits.is_call_id("a.b:c-d_1") && !limits.is_call_id("a b"));
        assert!(!limits.is_call_id("") && !limits.is_call_id("é"));
        assert!(limits.is_tool_name(&short) && !limits.is_tool_name(&long));
        assert!(!limits.is_tool_name("a.b") && !limits.is_tool_name(""));
        for (name, accepted) in [
            ("mcp__a.b/c", "mcp__a_b_c"),
            ("süß", "s__"),
            (&*long, &*short),
        ] {
            assert_eq!(limits.tool_name_for(name), accepted);
            assert!(limits.is_tool_name(&limits.tool_name_for(name)));
        }
    }
}
