//! The header of a GGUF file: what a model is, read without loading it.
//!
//! Versions 2 and 3, little-endian. The file is not trusted: nothing in it makes this allocate more than a few megabytes
//! or run longer than reading [`MAX_HEADER_BYTES`] takes. Knows nothing of llama.cpp, and leaves the weights alone.

mod input;
mod memory;
mod metadata;
mod types;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use self::input::Input;
pub use self::input::MAX_HEADER_BYTES;
pub use self::memory::MemoryEstimate;
use self::metadata::Metadata;
use self::types::TensorTypes;

const MAGIC: &[u8; 4] = b"GGUF";

/// Real models have a few thousand.
const MAX_TENSORS: u64 = 1 << 16;

/// What the format allows.
const MAX_DIMENSIONS: u32 = 4;

/// Where tensors begin when the file does not say: at multiples of this.
const DEFAULT_ALIGNMENT: u64 = 32;

/// Why a file is no model that can be read.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("it cannot be read ({0})")]
    Io(#[source] io::Error),
    #[error("it is no GGUF file but {0}")]
    Foreign(&'static str),
    #[error("it is a big-endian GGUF file, which only big-endian machines run")]
    BigEndian,
    #[error("it is of GGUF version {0}, and versions 2 and 3 are understood")]
    Version(u32),
    #[error("it ends inside its header")]
    CutShort,
    #[error("its header says {what} = {found}, and {limit} is the limit")]
    TooBig { what: &'static str, found: u64, limit: u64 },
    #[error("its header is malformed: {0}")]
    Malformed(&'static str),
}

/// A number that is one for all layers, or one for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerLayer {
    Same(u64),
    Each(Vec<u64>),
}

impl PerLayer {
    pub fn max(&self) -> u64 {
        match self {
            PerLayer::Same(number) => *number,
            PerLayer::Each(numbers) => numbers.iter().copied().max().unwrap_or(0),
        }
    }

    /// Over `layers` layers.
    pub fn sum(&self, layers: u64) -> u64 {
        match self {
            PerLayer::Same(number) => number.saturating_mul(layers),
            PerLayer::Each(numbers) => numbers.iter().fold(0, |sum, number| sum.saturating_add(*number)),
        }
    }
}

/// Which of several files of one model this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GgufSplit {
    /// From 0.
    pub number: u64,
    pub count: u64,
}

/// What the header of one file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufHeader {
    pub version: u32,
    /// Such as `llama`. Only the first of several files has it.
    pub architecture: Option<String>,
    pub name: Option<String>,
    pub license: Option<String>,
    /// Such as `Q4_K_M`.
    pub quantization: Option<&'static str>,
    /// Counted over the tensors of this file.
    pub parameters: u64,
    pub tensors: u64,
    /// The longest context the model was trained for.
    pub context_length: Option<u64>,
    pub embedding_length: Option<u64>,
    pub block_count: Option<u64>,
    pub head_count: Option<PerLayer>,
    pub head_count_kv: Option<PerLayer>,
    /// Length of one head's key, where it is not `embedding_length / head_count`.
    pub key_length: Option<u64>,
    pub value_length: Option<u64>,
    pub expert_count: Option<u64>,
    /// How many tokens the tokenizer knows.
    pub vocabulary: Option<u64>,
    pub has_chat_template: bool,
    /// Whether tokens see only what came before them; embedding models often see both sides.
    pub is_causal: bool,
    /// Whether it is made for embeddings rather than for text.
    pub is_embedding: bool,
    pub split: Option<GgufSplit>,
    /// The file is at least this long, or something of it is missing.
    pub expected_size: u64,
}

impl GgufHeader {
    /// Reads the header of a file and gives the file's size with it.
    pub fn read_file(path: &Path) -> Result<(Self, u64), GgufError> {
        // Asked before opening, since opening a pipe waits for a writer.
        let metadata = std::fs::metadata(path).map_err(GgufError::Io)?;
        if !metadata.is_file() {
            return Err(GgufError::Foreign("something that is not a file"));
        }
        let file = File::open(path).map_err(GgufError::Io)?;
        let header = Self::read(BufReader::with_capacity(1 << 16, file))?;
        Ok((header, metadata.len()))
    }

    pub fn read(input: impl BufRead) -> Result<Self, GgufError> {
        let mut input = Input::new(input);
        let version = read_version(&mut input)?;
        let tensors = input.count("the number of tensors", MAX_TENSORS)?;
        let entries = input.count("the number of entries", metadata::MAX_ENTRIES)?;
        let metadata = Metadata::read(&mut input, entries)?;
        let found = TensorInfos::read(&mut input, tensors)?;

        let alignment = metadata.number("general.alignment").unwrap_or(DEFAULT_ALIGNMENT);
        if !alignment.is_power_of_two() {
            return Err(GgufError::Malformed("its alignment is no power of two"));
        }
        // Weights begin at the next aligned position; a file without weights ends with its header.
        let expected_size = match found.data_length {
            0 => Some(input.position()),
            length => input
                .position()
                .checked_next_multiple_of(alignment)
                .and_then(|start| start.checked_add(length)),
        };
        Ok(GgufHeader {
            version,
            parameters: found.parameters,
            tensors,
            quantization: metadata
                .number("general.file_type")
                .and_then(types::file_type_name)
                .or_else(|| found.types.dominant()),
            expected_size: expected_size
                .ok_or(GgufError::Malformed("its tensors are larger than any file"))?,
            ..metadata.describe(version)
        })
    }

    /// How many bytes a file of this size lacks.
    pub fn missing_bytes(&self, file_size: u64) -> Option<u64> {
        self.expected_size.checked_sub(file_size).filter(|missing| *missing > 0)
    }
}

fn read_version(input: &mut Input<impl BufRead>) -> Result<u32, GgufError> {
    let magic: [u8; 4] = match input.bytes() {
        // Too short for the magic is not a broken model: it was never one.
        Err(GgufError::CutShort) => return Err(GgufError::Foreign("too short to be one")),
        read => read?,
    };
    if &magic != MAGIC {
        return Err(GgufError::Foreign(guess(magic)));
    }
    match input.u32()? {
        version @ 2..=3 => Ok(version),
        version if (1..=3).contains(&version.swap_bytes()) => Err(GgufError::BigEndian),
        version => Err(GgufError::Version(version)),
    }
}

/// The things that most often lie where a model should be.
fn guess(magic: [u8; 4]) -> &'static str {
    match &magic {
        b"vers" => "a Git LFS pointer: the model itself was not fetched",
        b"<!DO" | b"<!do" | b"<htm" | b"<HTM" => "a web page",
        b"PK\x03\x04" => "a zip archive",
        b"ggml" | b"lmgg" | b"fmgg" | b"tjgg" | b"ggjt" => "a model in the older GGML format",
        _ => "something else",
    }
}

/// What the tensor infos add up to.
#[derive(Default)]
struct TensorInfos {
    parameters: u64,
    /// Where the last tensor ends, from the start of the weights.
    data_length: u64,
    types: TensorTypes,
}

impl TensorInfos {
    fn read(input: &mut Input<impl BufRead>, count: u64) -> Result<Self, GgufError> {
        const OVERFLOW: GgufError = GgufError::Malformed("a tensor is larger than any file");
        let mut infos = TensorInfos::default();
        for _ in 0..count {
            input.skip_text("the length of a tensor's name", 1 << 10)?;
            let dimensions = input.u32()?;
            if dimensions > MAX_DIMENSIONS {
                return Err(GgufError::TooBig {
                    what: "a tensor's dimensions",
                    found: dimensions.into(),
                    limit: MAX_DIMENSIONS.into(),
                });
            }
            let mut elements = 1_u64;
            for _ in 0..dimensions {
                elements = elements.checked_mul(input.u64()?).ok_or(OVERFLOW)?;
            }
            let kind = input.u32()?;
            let offset = input.u64()?;
            // Of a type that came after this table only the offset is known, so it counts as empty.
            let size = match types::tensor_size(kind, elements) {
                Some(size) => size.ok_or(OVERFLOW)?,
                None => 0,
            };
            infos.types.add(kind, size);
            infos.parameters = infos.parameters.checked_add(elements).ok_or(OVERFLOW)?;
            infos.data_length = infos.data_length.max(offset.checked_add(size).ok_or(OVERFLOW)?);
        }
        Ok(infos)
    }
}
