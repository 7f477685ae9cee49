//! Writes a GGUF file: its entries, its list of tensors, and their bytes.

use std::io::{self, Write};

use super::q8;
use crate::gguf::kind;

/// The alignment of tensors.
const ALIGNMENT: u64 = 32;

const VERSION: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    F32,
    Q8_0,
}

impl Storage {
    /// Its number in the format.
    fn kind(self) -> u32 {
        match self {
            Storage::F32 => 0,
            Storage::Q8_0 => 8,
        }
    }

    pub fn bytes(self, numbers: u64) -> u64 {
        match self {
            Storage::F32 => numbers * 4,
            Storage::Q8_0 => numbers / q8::BLOCK as u64 * q8::BLOCK_BYTES as u64,
        }
    }
}

pub(super) struct TensorInfo {
    pub name: String,
    /// Rows before columns, unlike in the format.
    pub shape: Vec<u64>,
    pub storage: Storage,
}

impl TensorInfo {
    fn bytes(&self) -> u64 {
        self.storage.bytes(self.shape.iter().product())
    }
}

/// A file to be.
#[derive(Default)]
pub(super) struct GgufFile {
    entries: Vec<u8>,
    count: u64,
    tensors: Vec<TensorInfo>,
}

impl GgufFile {
    pub fn text(&mut self, key: &str, value: &str) {
        self.entry(key, kind::TEXT);
        put_text(&mut self.entries, value);
    }

    pub fn number(&mut self, key: &str, value: u32) {
        self.entry(key, kind::U32);
        self.entries.extend(value.to_le_bytes());
    }

    pub fn float(&mut self, key: &str, value: f32) {
        self.entry(key, kind::F32);
        self.entries.extend(value.to_le_bytes());
    }

    pub fn flag(&mut self, key: &str, value: bool) {
        self.entry(key, kind::FLAG);
        self.entries.push(value.into());
    }

    pub fn texts(&mut self, key: &str, values: &[String]) {
        self.array(key, kind::TEXT, values.len());
        values.iter().for_each(|value| put_text(&mut self.entries, value));
    }

    pub fn numbers(&mut self, key: &str, values: &[i32]) {
        self.array(key, kind::I32, values.len());
        values.iter().for_each(|value| self.entries.extend(value.to_le_bytes()));
    }

    /// The bytes must be written in the same order.
    pub fn tensor(&mut self, tensor: TensorInfo) {
        self.tensors.push(tensor);
    }

    fn entry(&mut self, key: &str, kind: u32) {
        self.count += 1;
        put_text(&mut self.entries, key);
        self.entries.extend(kind.to_le_bytes());
    }

    fn array(&mut self, key: &str, kind: u32, length: usize) {
        self.entry(key, kind::ARRAY);
        self.entries.extend(kind.to_le_bytes());
        self.entries.extend((length as u64).to_le_bytes());
    }

    /// Writes everything except the bytes of the tensors.
    pub fn write<W: Write>(self, mut out: W) -> io::Result<Writing<W>> {
        let mut head = b"GGUF".to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend((self.tensors.len() as u64).to_le_bytes());
        head.extend(self.count.to_le_bytes());
        head.extend(self.entries);
        let mut offset = 0;
        for tensor in &self.tensors {
            put_text(&mut head, &tensor.name);
            // At most four dimensions.
            head.extend((tensor.shape.len() as u32).to_le_bytes());
            tensor.shape.iter().rev().for_each(|length| head.extend(length.to_le_bytes()));
            head.extend(tensor.storage.kind().to_le_bytes());
            head.extend(u64::to_le_bytes(offset));
            offset = (offset + tensor.bytes()).next_multiple_of(ALIGNMENT);
        }
        out.write_all(&head)?;
        pad(&mut out, head.len())?;
        Ok(Writing { out })
    }
}

pub(super) struct Writing<W> {
    out: W,
}

impl<W: Write> Writing<W> {
    pub fn tensor(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        pad(&mut self.out, bytes.len())
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn pad(out: &mut impl Write, length: usize) -> io::Result<()> {
    let length = length as u64;
    let missing = length.next_multiple_of(ALIGNMENT) - length;
    out.write_all(&[0; ALIGNMENT as usize][..missing as usize])
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}
