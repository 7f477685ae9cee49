//! Copies of a real model file with other metadata.

use std::path::Path;

/// The header of a GGUF file: magic number, version, and the numbers of tensors and of metadata entries.
const HEADER: usize = 24;

/// Weights begin at a multiple of this, so what is inserted before them must be one too.
const ALIGNMENT: usize = 32;

/// The metadata is before this offset in the models that tests use.
const METADATA: usize = 8 << 20;

/// A metadata value.
#[derive(Debug, Clone, Copy)]
pub enum MetadataValue<'a> {
    Number(u32),
    Signed(i32),
    Float(f32),
    Text(&'a str),
}

fn text(value: &str) -> Vec<u8> {
    [&(value.len() as u64).to_le_bytes()[..], value.as_bytes()].concat()
}

fn entry(name: &str, value: MetadataValue<'_>) -> Vec<u8> {
    let (kind, bytes): (u32, Vec<u8>) = match value {
        MetadataValue::Number(number) => (4, number.to_le_bytes().to_vec()),
        MetadataValue::Signed(number) => (5, number.to_le_bytes().to_vec()),
        MetadataValue::Float(number) => (6, number.to_le_bytes().to_vec()),
        MetadataValue::Text(value) => (8, text(value)),
    };
    [text(name), kind.to_le_bytes().to_vec(), bytes].concat()
}

/// Writes a copy of a model file with other metadata. An entry replaces one of the same name.
pub fn copy_with_metadata(
    original: &Path,
    copy: &Path,
    entries: &[(&str, MetadataValue<'_>)],
) -> std::io::Result<()> {
    let mut file = std::fs::read(original)?;
    let mut added = Vec::new();
    for (name, value) in entries {
        // Two entries of one name are an error, so the old one gets another name of the same length.
        let key = text(name);
        if let Some(at) = file[..file.len().min(METADATA)].windows(key.len()).position(|window| window == key)
        {
            file[at + key.len() - 1] = b'-';
        }
        added.extend(entry(name, *value));
    }
    let padding = entry("test.padding", MetadataValue::Text(""));
    let missing = (added.len() + padding.len()).next_multiple_of(ALIGNMENT) - (added.len() + padding.len());
    added.extend(entry("test.padding", MetadataValue::Text(&"x".repeat(missing))));
    let mut count = [0; 8];
    count.copy_from_slice(&file[16..HEADER]);
    let count = u64::from_le_bytes(count) + entries.len() as u64 + 1;
    file[16..HEADER].copy_from_slice(&count.to_le_bytes());
    file.splice(HEADER..HEADER, added);
    std::fs::write(copy, file)
}
