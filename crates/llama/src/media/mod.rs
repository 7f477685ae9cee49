//! Pictures and sound, by llama.cpp's media library: files of callers become vectors that the model reads like tokens.
//!
//! A request is read in three steps. `attachment` takes the files out of its messages and leaves marks; `projector` decodes
//! and encodes them, away from the thread of the model; `media_prompt` puts their vectors in the places of the marks. The worker
//! then reads them between the tokens of other requests. Knows nothing of HTTP; files come as `data:` URLs.

mod attachment;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod media_prompt;
mod native;
mod picture;
mod projector;
mod stand_ins;

pub(crate) use attachment::{MarkedRequest, Senses, has_attachments};
pub(crate) use media_prompt::{MediaPart, PlacedVectors, parts};
pub(crate) use native::{ReadPart, start};
pub(crate) use projector::{EncodeRequest, EncodedMedia, Projector, WHOLE_PICTURE};
pub(crate) use stand_ins::{is_stand_in, positions};
