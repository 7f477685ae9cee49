//! A file that came with a message.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Files of one message. A channel drops the others.
pub const MAX_FILES: usize = 10;

/// Bytes of one file.
pub const MAX_FILE_BYTES: usize = 20 << 20;

/// Bytes of the files of one message that are saved with it until it is answered.
const MAX_STORED_BYTES: usize = 2 << 20;

/// A file that came with a message: either its bytes, or a reference with which its channel gets them when they are needed.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChannelFile {
    /// As its sender named it, which may be anything.
    pub name: String,
    /// As its sender named it; empty if unknown.
    #[serde(default)]
    pub media_type: String,
    /// Empty if the file has a reference, or was too large to be saved.
    #[serde(default, serialize_with = "write_bytes", deserialize_with = "read_bytes")]
    pub bytes: Arc<[u8]>,
    #[serde(default)]
    pub reference: Option<String>,
    /// Whether its sender recorded it for this conversation. The words of any other sound file may be someone else's.
    #[serde(default)]
    pub is_voice_message: bool,
}

impl fmt::Debug for ChannelFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ChannelFile")
            .field("name", &self.name)
            .field("media_type", &self.media_type)
            .field("bytes", &self.bytes.len())
            .field("reference", &self.reference)
            .field("is_voice_message", &self.is_voice_message)
            .finish()
    }
}

/// What of the files is saved with their message. A file beyond the limit keeps its name, so that Hob can ask the sender for it
/// again.
pub(crate) fn stored(files: &[ChannelFile]) -> Vec<ChannelFile> {
    let mut left = MAX_STORED_BYTES;
    files
        .iter()
        .map(|file| match left.checked_sub(file.bytes.len()) {
            Some(rest) => {
                left = rest;
                file.clone()
            }
            None => ChannelFile { bytes: Arc::default(), ..file.clone() },
        })
        .collect()
}

fn write_bytes<S: Serializer>(bytes: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
}

fn read_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD.decode(text).map(Arc::from).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, bytes: usize) -> ChannelFile {
        ChannelFile { name: name.into(), bytes: vec![7; bytes].into(), ..ChannelFile::default() }
    }

    #[test]
    fn a_file_is_the_same_after_it_was_saved() {
        let saved = serde_json::to_string(&file("a.png", 5)).unwrap();
        assert_eq!(serde_json::from_str::<ChannelFile>(&saved).unwrap(), file("a.png", 5));
        assert!(serde_json::from_str::<ChannelFile>(r#"{"name":"a","bytes":"?"}"#).is_err());
    }

    #[test]
    fn a_large_file_is_saved_by_its_name_alone() {
        let files = [file("small", 10), file("large", MAX_STORED_BYTES), file("other", 20)];
        assert_eq!(stored(&files), [file("small", 10), file("large", 0), file("other", 20)]);
    }

    #[test]
    fn the_bytes_of_a_file_are_not_in_a_log() {
        assert!(format!("{:?}", file("a", 1_000)).len() < 200);
    }
}
