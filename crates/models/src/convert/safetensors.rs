//! Reads a safetensors file: a length, a JSON header, and the numbers. Holds one tensor in memory at a time.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

use serde::Deserialize;
use serde_json::Value;

use super::error::ConvertError;

const FILE: &str = "model.safetensors";

/// Headers of models with thousands of tensors have some hundred kilobytes.
const MAX_HEADER_BYTES: u64 = 8 << 20;

pub(super) struct Safetensors<R> {
    input: R,
    tensors: HashMap<String, Value>,
    /// The offset and length of the numbers.
    data: u64,
    length: u64,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    /// From the start of the numbers.
    data_offsets: (u64, u64),
}

impl<R: Read + Seek> Safetensors<R> {
    pub fn open(mut input: R) -> Result<Self, ConvertError> {
        let size = input.seek(SeekFrom::End(0)).map_err(ConvertError::Read)?;
        input.rewind().map_err(ConvertError::Read)?;
        let mut length = [0; 8];
        input.read_exact(&mut length).map_err(|_| bad("it is too short"))?;
        let header_length = u64::from_le_bytes(length);
        let data = header_length.saturating_add(8);
        if header_length > MAX_HEADER_BYTES || data > size {
            return Err(bad(format!("its header claims {header_length} of {size} bytes")));
        }
        let mut header = Vec::new();
        input.by_ref().take(header_length).read_to_end(&mut header).map_err(ConvertError::Read)?;
        let tensors = serde_json::from_slice(&header)
            .map_err(|error| bad(format!("cannot read its header ({error})")))?;
        Ok(Safetensors { input, tensors, data, length: size - data })
    }

    /// The numbers of a tensor, which must have this shape.
    pub fn floats(&mut self, name: &str, shape: &[u64]) -> Result<Vec<f32>, ConvertError> {
        let entry = self.tensors.get(name).ok_or_else(|| bad(format!("'{name}' is missing")))?;
        let entry = Entry::deserialize(entry)
            .map_err(|error| bad(format!("cannot read the entry of '{name}' ({error})")))?;
        if entry.dtype != "F32" {
            return Err(bad(format!("'{name}' has the type {}; only F32 is supported", entry.dtype)));
        }
        if entry.shape != shape {
            return Err(bad(format!("'{name}' has the shape {:?}, but must have {shape:?}", entry.shape)));
        }
        let (start, end) = entry.data_offsets;
        let bytes = shape.iter().try_fold(4_u64, |bytes, length| bytes.checked_mul(*length));
        // Checked against the file, so that a wrong size cannot allocate more memory than the file has.
        if end > self.length || end.checked_sub(start) != bytes {
            return Err(bad(format!("the offsets of '{name}' are not valid")));
        }
        self.input.seek(SeekFrom::Start(self.data + start)).map_err(ConvertError::Read)?;
        let mut raw = Vec::new();
        self.input.by_ref().take(end - start).read_to_end(&mut raw).map_err(ConvertError::Read)?;
        let (quads, _) = raw.as_chunks::<4>();
        let numbers: Vec<f32> = quads.iter().map(|quad| f32::from_le_bytes(*quad)).collect();
        if raw.len() as u64 != end - start || !numbers.iter().all(|number| number.is_finite()) {
            return Err(bad(format!("'{name}' has missing or invalid numbers")));
        }
        Ok(numbers)
    }
}

fn bad(reason: impl Into<String>) -> ConvertError {
    ConvertError::bad(FILE, reason)
}
