//! Puts encoded files into a prompt.

use std::sync::Arc;

use llama_cpp_2::context::LlamaContext;

use super::attachment::{MarkedPiece, pieces};
use super::native::ReadPart;
use super::projector::{EncodedChunk, EncodedMedia, Projector};

/// A part of a prompt with files.
pub(crate) enum MediaPart<'a> {
    /// Text to be split into tokens.
    Text(&'a str),
    /// Tokens around a file.
    Tokens(&'a [i32]),
    Vectors {
        stand_ins: &'a [i32],
        is_read_whole: bool,
        media: &'a Arc<EncodedMedia>,
        chunk: usize,
    },
}

/// A rendered prompt with its files in the places of the marks; `None` if a file has no mark in it.
pub(crate) fn parts<'a>(text: &'a str, files: &'a [Arc<EncodedMedia>]) -> Option<Vec<MediaPart<'a>>> {
    let pieces = pieces(text);
    let is_placed = |file| pieces.contains(&MarkedPiece::File(file));
    if !(0..files.len()).all(is_placed) {
        return None;
    }
    let mut parts = Vec::new();
    for piece in pieces {
        match piece {
            MarkedPiece::Text(text) => parts.push(MediaPart::Text(text)),
            MarkedPiece::File(number) => {
                let media = files.get(number)?;
                parts.extend(media.chunks.iter().enumerate().map(|(chunk, encoded)| match encoded {
                    EncodedChunk::Text(tokens) => MediaPart::Tokens(tokens),
                    EncodedChunk::Vectors { stand_ins, is_read_whole, .. } => {
                        MediaPart::Vectors { stand_ins, is_read_whole: *is_read_whole, media, chunk }
                    }
                }));
            }
        }
    }
    Some(parts)
}

/// Vectors in a prompt.
#[derive(Debug, Clone)]
pub(crate) struct PlacedVectors {
    /// The place of the first one among the tokens.
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) is_read_whole: bool,
    pub(crate) media: Arc<EncodedMedia>,
    pub(crate) chunk: usize,
}

impl PlacedVectors {
    pub(crate) fn end(&self) -> usize {
        self.start + self.length
    }

    /// Reads a part of the vectors into the memory of a sequence.
    pub(crate) fn read(
        &self,
        projector: &Projector,
        context: &mut LlamaContext<'_>,
        part: &ReadPart,
    ) -> Result<(), String> {
        projector.read(context, &self.media, self.chunk, part)
    }
}
