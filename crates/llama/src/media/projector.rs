//! The projector of a model: turns pictures and sound into vectors. Loaded with the first of them.
//!
//! Files are encoded one after the other, on the thread of the request and not on that of the model, so answers to other requests
//! continue. The vectors of recent files are kept: every turn of a conversation has its pictures again.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hob_core::EngineError;
use hob_models::StoredProjector;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::model::LlamaModel;
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use super::attachment::{Attachment, MarkedRequest, MediaKind, Senses};
use super::native::{ChunkShape, EncodeLimit, NativeMedia, NativeProjector, ReadPart};
use super::picture;
use super::stand_ins::stand_ins;
use crate::error::{bad_request, context_exceeded, interrupted, unusable};

/// The time to encode the files of one request.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The time between two looks at whether the caller still waits.
const PATIENCE: Duration = Duration::from_millis(50);

/// The longest sound.
const MAX_SECONDS: u32 = 600;

/// Bytes of the vectors that are kept.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Vectors of a picture that some models read in one step, and so the size of a step.
pub(crate) const WHOLE_PICTURE: usize = 512;

/// The projectors for models that read a picture in one step, as llama.cpp names them.
const READ_WHOLE: [&str; 4] = ["gemma3", "gemma4v", "gemma4uv", "deepseek4v"];

/// A file as the model reads it.
#[derive(Debug)]
pub(crate) struct EncodedMedia {
    native: NativeMedia,
    pub(super) chunks: Vec<EncodedChunk>,
}

#[derive(Debug)]
pub(super) enum EncodedChunk {
    /// The model's own tokens around pictures.
    Text(Vec<i32>),
    Vectors {
        /// All numbers of all vectors.
        numbers: Vec<f32>,
        stand_ins: Vec<i32>,
        is_read_whole: bool,
    },
}

impl EncodedMedia {
    fn bytes(&self) -> usize {
        let of = |chunk: &EncodedChunk| match chunk {
            EncodedChunk::Text(_) => 0,
            EncodedChunk::Vectors { numbers, .. } => size_of_val(numbers.as_slice()),
        };
        self.chunks.iter().map(of).sum()
    }
}

/// The limits of a request.
pub(crate) struct EncodeRequest<'a> {
    pub(crate) model: &'a LlamaModel,
    /// Its name, for errors.
    pub(crate) name: &'a str,
    /// Tokens of a conversation.
    pub(crate) context: usize,
    pub(crate) is_cancelled: &'a AtomicBool,
}

/// Files that were encoded, the most recent last.
type Kept = VecDeque<([u8; 32], Arc<EncodedMedia>)>;

#[derive(Debug)]
pub(crate) struct Projector {
    path: PathBuf,
    pub(crate) senses: Senses,
    /// Whether the model probably reads a picture in one step.
    pub(crate) reads_whole: bool,
    threads: i32,
    use_gpu: bool,
    native: OnceLock<NativeProjector>,
    /// Held while a file is encoded.
    kept: Mutex<Kept>,
}

impl Projector {
    pub(crate) fn new(stored: &StoredProjector, threads: i32, use_gpu: bool) -> Self {
        let reads_whole = stored.kind.as_deref().is_some_and(|kind| READ_WHOLE.contains(&kind));
        Projector {
            path: stored.path.clone(),
            senses: Senses { sees: stored.sees, hears: stored.hears },
            reads_whole,
            threads,
            use_gpu,
            native: OnceLock::new(),
            kept: Mutex::default(),
        }
    }

    /// Decodes and encodes the files of a request. Takes seconds; blocks.
    pub(crate) fn encode(
        &self,
        marked: &MarkedRequest,
        request: &EncodeRequest<'_>,
    ) -> Result<Vec<Arc<EncodedMedia>>, EngineError> {
        let end = Instant::now() + TIMEOUT;
        let mut left = request.context;
        let mut all = Vec::with_capacity(marked.files.len());
        for file in &marked.files {
            let digest = digest(file);
            let mut kept = self.turn(request.is_cancelled, end)?;
            let known = kept.iter().position(|(key, _)| *key == digest).and_then(|at| kept.remove(at));
            let encoded = match known {
                Some((_, encoded)) => encoded,
                None => Arc::new(self.encode_one(file, &digest, request, (left, end))?),
            };
            kept.push_back((digest, Arc::clone(&encoded)));
            forget_oldest(&mut kept);
            let length: usize = encoded.chunks.iter().map(EncodedChunk::length).sum();
            left = left.saturating_sub(length);
            all.push(encoded);
        }
        Ok(all)
    }

    /// Waits until no other file is encoded.
    fn turn(&self, is_cancelled: &AtomicBool, end: Instant) -> Result<MutexGuard<'_, Kept>, EngineError> {
        loop {
            if let Some(kept) = self.kept.try_lock_for(PATIENCE) {
                return Ok(kept);
            }
            if is_cancelled.load(Ordering::Relaxed) {
                return Err(interrupted("the caller disconnected"));
            }
            if Instant::now() > end {
                return Err(interrupted("the pictures of other requests take too long"));
            }
        }
    }

    fn encode_one(
        &self,
        file: &Attachment,
        digest: &[u8; 32],
        request: &EncodeRequest<'_>,
        (left, end): (usize, Instant),
    ) -> Result<EncodedMedia, EngineError> {
        let refused = |reason: String| bad_request(reason, Some(&file.place));
        let mut native = match file.kind {
            MediaKind::Picture => {
                let pixels = picture::decode(&file.bytes).map_err(refused)?;
                let projector = self.native(request)?;
                projector.picture((pixels.width, pixels.height), &pixels.bytes).map_err(refused)?
            }
            MediaKind::Sound => {
                let projector = self.native(request)?;
                projector
                    .sound(&file.bytes, MAX_SECONDS)
                    .map_err(|reason| refused(format!("the sound cannot be read: {reason}")))?
            }
        };
        let projector = self.native(request)?;
        let shapes = projector
            .chunks(&native)
            .map_err(|reason| refused(format!("the file cannot be read: {reason}")))?;
        self.check_shapes(&shapes, file, request, left)?;
        let began = Instant::now();
        let mut chunks = Vec::with_capacity(shapes.len());
        for (at, shape) in shapes.into_iter().enumerate() {
            chunks.push(match shape {
                ChunkShape::Text(tokens) => EncodedChunk::Text(tokens),
                ChunkShape::Vectors { length, positions, is_read_whole } => {
                    let limit = EncodeLimit {
                        time: end.saturating_duration_since(Instant::now()),
                        is_cancelled: request.is_cancelled,
                    };
                    let numbers = projector.encode(&native, (at, length), limit).map_err(|reason| {
                        refused(format!("'{}' cannot encode it: {reason}", request.name))
                    })?;
                    let stand_ins = stand_ins(digest, at, length, positions);
                    EncodedChunk::Vectors { numbers, stand_ins, is_read_whole }
                }
            });
        }
        native.forget_pixels().map_err(unusable)?;
        let encoded = EncodedMedia { native, chunks };
        tracing::debug!(
            model = request.name,
            milliseconds = began.elapsed().as_millis(),
            bytes = encoded.bytes(),
            "encoded a file"
        );
        Ok(encoded)
    }

    /// Refuses what the model cannot read, before the work.
    fn check_shapes(
        &self,
        shapes: &[ChunkShape],
        file: &Attachment,
        request: &EncodeRequest<'_>,
        left: usize,
    ) -> Result<(), EngineError> {
        let mut tokens = 0;
        for shape in shapes {
            match shape {
                ChunkShape::Text(text) => tokens += text.len(),
                ChunkShape::Vectors { length, positions, is_read_whole } => {
                    tokens += length;
                    let fits = !is_read_whole || *length <= WHOLE_PICTURE && self.reads_whole;
                    if !fits || positions > length || *length == 0 {
                        let message = format!("'{}' cannot read a picture of {length} tokens", request.name);
                        return Err(bad_request(message, Some(&file.place)));
                    }
                }
            }
        }
        if tokens >= left {
            return Err(context_exceeded(
                format!(
                    "This model's maximum context length is {} tokens. However, {} needs {tokens} of them, and {left} are left. \
                     Please send fewer or smaller files.",
                    request.context, file.place
                ),
                "messages",
            ));
        }
        Ok(())
    }

    /// The projector, which is loaded if it is not there yet. A failure is not kept: the next file tries again. The caller has the
    /// turn, so that it is loaded once.
    fn native(&self, request: &EncodeRequest<'_>) -> Result<&NativeProjector, EngineError> {
        if let Some(native) = self.native.get() {
            return Ok(native);
        }
        let began = Instant::now();
        let load = |use_gpu| NativeProjector::load(&self.path, request.model, self.threads, use_gpu);
        let loaded = load(self.use_gpu).or_else(|reason| {
            if !self.use_gpu {
                return Err(reason);
            }
            tracing::warn!(
                model = request.name,
                "the projector cannot use the graphics card ({reason}); Hob computes it on the processor"
            );
            load(false)
        });
        let loaded = loaded.map_err(|reason| {
            unusable(format!(
                "cannot load the projector of '{}' ({}): {reason}",
                request.name,
                self.path.display()
            ))
        })?;
        let milliseconds = began.elapsed().as_millis();
        tracing::info!(model = request.name, milliseconds, "projector loaded");
        Ok(self.native.get_or_init(|| loaded))
    }

    /// Reads a part of the vectors of a chunk into the memory of a sequence.
    pub(super) fn read(
        &self,
        context: &mut LlamaContext<'_>,
        media: &EncodedMedia,
        chunk: usize,
        part: &ReadPart,
    ) -> Result<(), String> {
        let Some(native) = self.native.get() else {
            return Err("the projector is not loaded".to_owned());
        };
        match media.chunks.get(chunk) {
            Some(EncodedChunk::Vectors { numbers, .. }) => {
                native.read(context, &media.native, (chunk, numbers), part)
            }
            _ => Err("there is no such picture".to_owned()),
        }
    }
}

impl EncodedChunk {
    fn length(&self) -> usize {
        match self {
            EncodedChunk::Text(tokens) => tokens.len(),
            EncodedChunk::Vectors { stand_ins, .. } => stand_ins.len(),
        }
    }
}

fn digest(file: &Attachment) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update([u8::from(file.kind == MediaKind::Sound)]);
    hasher.update(&file.bytes);
    hasher.finalize().into()
}

/// Keeps the most recent one in any case.
fn forget_oldest(kept: &mut Kept) {
    let mut bytes: usize = kept.iter().map(|(_, encoded)| encoded.bytes()).sum();
    while bytes > MAX_KEPT_BYTES && kept.len() > 1 {
        bytes -= kept.pop_front().map_or(0, |(_, encoded)| encoded.bytes());
    }
}
