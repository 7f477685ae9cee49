//! What a channel shows while a message is answered, and how it gets the files of a message.

use async_trait::async_trait;
use hob_core::TextSink;

use crate::received_file::ChannelFile;

/// The reply to one message while it is written. Its text is a preview: the complete reply is sent in any case.
#[async_trait]
pub trait LiveReply: TextSink {
    /// Whether the channel shows the text before it is complete. If not, `text` is not called.
    fn shows_text(&self) -> bool {
        false
    }

    /// Shows that an answer is being written, until the reply is dropped.
    fn begin(&self) {}

    /// The bytes of a file, or why they are not available.
    async fn load(&self, file: &ChannelFile) -> Result<Vec<u8>, String> {
        match file.bytes.is_empty() {
            true => Err("it is not available anymore".to_owned()),
            false => Ok(file.bytes.to_vec()),
        }
    }
}

/// A channel that shows nothing until the answer is complete.
pub struct NoLiveReply;

#[async_trait]
impl TextSink for NoLiveReply {
    async fn text(&self, _piece: &str) {}
}

#[async_trait]
impl LiveReply for NoLiveReply {}
