//! The rules of a request.

use transcript_format::named;

use super::provider::Provider;

named! {
    /// A requirement for a request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Rule {
        /// There is at least one message.
        NoMessages = "no-messages": "the request has no messages",
        /// The first message is the user's.
        FirstNotUser = "first-not-user": "the first message is not the user's",
        /// Roles alternate.
        SameRole = "same-role": "two messages in a row have the same role",
        /// A `system` message follows a user message.
        SystemPlace = "system-place": "a system message does not follow one of the user",
        /// Content is not empty.
        EmptyContent = "empty-content": "a message has no content",
        /// Text is not blank.
        BlankText = "blank-text": "a text block is blank",
        /// Every block is an object with a type.
        NoBlock = "no-block": "a block is not an object with a type",
        /// Calls, thinking and results of tools of the API are the assistant's; other results the
        /// user's.
        WrongRole = "wrong-role": "a block is in a message of the wrong role",
        /// A call has an id of letters, digits, `_` and `-`.
        CallId = "call-id": "the id of a call is missing or contains other characters than letters, digits, _ and -",
        /// A call has a name.
        CallName = "call-name": "a call has no name, or one of more than 200 characters",
        /// The input of a call is an object.
        CallInput = "call-input": "the input of a call is not an object",
        /// The ids of calls are unique.
        RepeatedCall = "repeated-call": "two calls have the same id",
        /// Every result answers a call of the message before.
        OrphanResult = "orphan-result": "a result answers no call of the message before it",
        /// A call has one result.
        RepeatedResult = "repeated-result": "a call has two results",
        /// Every call is answered in the message after it.
        MissingResult = "missing-result": "a call has no result in the message after it",
        /// Results come before everything else.
        ResultNotFirst = "result-not-first": "a result follows another block",
        /// Calls of tools that the API runs itself, and their results, are in one message.
        ApiToolPair = "api-tool-pair": "a call of a tool of the API and its result are not in one message",
        /// The content of a result is a text, or a list of texts and media.
        ResultContent = "result-content": "the content of a result is neither a text nor a list of texts and media",
        /// A failed result has content.
        SilentError = "silent-error": "a failed result has no content",
        /// Thinking carries its text, which may be empty, and the signature of its model.
        UnsignedThinking = "unsigned-thinking": "a thinking block has no text, or no signature of its model",
        /// A warning: signed thinking has the text that was signed. Clients that store only the
        /// signature send it without the text, and their API accepts it.
        EmptiedThinking = "emptied-thinking": "a signed thinking block has lost its text",
        /// The last block of an answer is not thinking.
        ThinkingLast = "thinking-last": "an answer ends with a thinking block",
        /// A last message of the assistant does not end with white space.
        TrailingSpace = "trailing-space": "the last message is the assistant's and ends with white space",
        /// Images and documents are within the limits.
        MediaTooLarge = "media-too-large": "an image or document is larger than the API accepts",
        /// Images and documents contain data.
        UnusableMedia = "unusable-media": "an image or document contains no data, or is of a type that the API does not accept",
        /// Images are of the type that they name.
        MediaType = "media-type": "the bytes of an image are not of the type that it names",
        /// Images and documents of a request are within its limits, all together.
        RequestMedia = "request-media": "the request has more than 100 images, or more than 20 of which one has more than 2000 pixels on a side",
        /// Images and documents are in the request itself, where the provider wants that.
        MediaAddress = "media-address": "an image, a document or a file is named by an address or an id, which the provider does not read",
        /// Images and documents of a message are within the limits of the provider.
        MessageMedia = "message-media": "a message has more images or documents than the provider accepts in one",
        /// Where the provider wants that, a document has a text beside it.
        DocumentText = "document-text": "a message has a document and no text",
        /// The provider runs the tool of the API.
        ApiTool = "api-tool": "a call of a tool of the API, or its result, where the provider does not run that tool",
        /// Strings contain no NUL and no half of a surrogate pair.
        UnsafeText = "unsafe-text": "a string contains a NUL or half of a surrogate pair",
        /// A warning: the request is within the limit of the API.
        RequestSize = "request-size": "the request is larger than the 32 MB that the API accepts",
        /// A warning: the kind of block is not known here.
        UnknownBlock = "unknown-block": "a block is of a kind that providers may not know",
    }
}

impl Rule {
    /// Returns the description with the limits of a provider.
    #[must_use]
    pub const fn words_for(self, provider: Provider) -> &'static str {
        match (provider, self) {
            (Provider::Converse, Self::SystemPlace) => "there is a system message",
            (Provider::Converse, Self::CallId) => {
                "the id of a call is missing, has more than 64 characters, or others than letters, digits, _, ., : and -"
            }
            (Provider::Converse, Self::CallName) => {
                "a call has no name, or one of more than 64 characters or of others than letters, digits, _ and -"
            }
            (Provider::Converse, Self::MessageMedia) => {
                "a message has more than 20 images or more than 5 documents"
            }
            (Provider::Vertex, Self::RequestSize) => {
                "the request is larger than the 30 MB that the API accepts"
            }
            _ => self.words(),
        }
    }

    /// Returns whether a strict provider may accept a request that breaks it.
    #[must_use]
    pub const fn is_warning(self) -> bool {
        matches!(
            self,
            Self::EmptiedThinking | Self::RequestSize | Self::UnknownBlock
        )
    }
}
