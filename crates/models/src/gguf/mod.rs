//! Reads the header of a GGUF file without loading the model.
//!
//! Versions 2 and 3, little-endian. The file is not trusted: it can cause no allocation beyond a few megabytes, and no more work
//! than reading [`MAX_HEADER_BYTES`]. Knows nothing of llama.cpp, and does not read the weights.

mod error;
mod header;
mod input;
mod memory;
mod metadata;
mod types;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

pub use self::error::GgufError;
pub use self::header::{GgufHeader, GgufSplit, PerLayer, ProjectorHeader, Recurrence};
use self::input::Input;
pub use self::input::MAX_HEADER_BYTES;
pub(crate) use self::memory::CELL_PADDING;
pub use self::memory::{ContextShape, KvPrecision, MemoryEstimate, MemoryNeeds};
use self::metadata::Metadata;
pub(crate) use self::metadata::kind;
use self::types::TensorTypes;

const MAGIC: &[u8; 4] = b"GGUF";

/// Real models have a few thousand.
const MAX_TENSORS: u64 = 1 << 16;

/// What the format allows.
const MAX_DIMENSIONS: u32 = 4;

/// The alignment if the file has none.
const DEFAULT_ALIGNMENT: u64 = 32;

impl GgufHeader {
    /// Reads the header of a file. Also returns the size of the file.
    pub fn read_file(path: &Path) -> Result<(Self, u64), GgufError> {
        // Checked before opening, because opening a pipe blocks.
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
            return Err(GgufError::Malformed("its alignment is not a power of two"));
        }
        // Weights begin at the next aligned offset. A file without weights ends with its header.
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
            input_bytes: found.input_bytes,
            output_bytes: found.output_bytes,
            quantization: metadata
                .number("general.file_type")
                .and_then(types::file_type_name)
                .or_else(|| found.types.dominant()),
            expected_size: expected_size
                .ok_or(GgufError::Malformed("its tensors are larger than any file"))?,
            ..metadata.describe(version)
        })
    }

    /// The number of missing bytes of a file with this size.
    pub fn missing_bytes(&self, file_size: u64) -> Option<u64> {
        self.expected_size.checked_sub(file_size).filter(|missing| *missing > 0)
    }
}

fn read_version(input: &mut Input<impl BufRead>) -> Result<u32, GgufError> {
    let magic: [u8; 4] = match input.bytes() {
        // A file that is too short for the magic is not a model.
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

/// Files that are often mistaken for models.
fn guess(magic: [u8; 4]) -> &'static str {
    match &magic {
        b"vers" => "a Git LFS pointer: the model itself was not fetched",
        b"<!DO" | b"<!do" | b"<htm" | b"<HTM" => "a web page",
        b"PK\x03\x04" => "a zip archive",
        b"ggml" | b"lmgg" | b"fmgg" | b"tjgg" | b"ggjt" => "a model in the older GGML format",
        _ => "something else",
    }
}

/// The sums of the tensor infos.
#[derive(Default)]
struct TensorInfos {
    parameters: u64,
    /// The end of the last tensor, from the start of the weights.
    data_length: u64,
    input_bytes: u64,
    output_bytes: u64,
    types: TensorTypes,
}

impl TensorInfos {
    fn read(input: &mut Input<impl BufRead>, count: u64) -> Result<Self, GgufError> {
        const OVERFLOW: GgufError = GgufError::Malformed("a tensor is larger than any file");
        let mut infos = TensorInfos::default();
        for _ in 0..count {
            let name = input.text("the length of a tensor's name", 1 << 10)?;
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
            // Of an unknown type only the offset is known, so it counts as empty.
            let size = match types::tensor_size(kind, elements) {
                Some(size) => size.ok_or(OVERFLOW)?,
                None => 0,
            };
            infos.types.add(kind, size);
            if name.starts_with("token_embd") {
                infos.input_bytes = infos.input_bytes.saturating_add(size);
            } else if name.starts_with("output") {
                infos.output_bytes = infos.output_bytes.saturating_add(size);
            }
            infos.parameters = infos.parameters.checked_add(elements).ok_or(OVERFLOW)?;
            infos.data_length = infos.data_length.max(offset.checked_add(size).ok_or(OVERFLOW)?);
        }
        Ok(infos)
    }
}
