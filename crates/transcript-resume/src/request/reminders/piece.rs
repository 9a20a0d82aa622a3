//! The parts of the messages of an attachment.

/// A part of a message.
pub(super) enum Piece {
    /// The text of a reminder, without the tags around it.
    Text(String),
    /// An image or a document as JSON.
    Media(String),
}
