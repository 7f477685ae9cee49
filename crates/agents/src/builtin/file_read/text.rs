//! Reads lines of a text file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use hob_core::ToolError;

/// The longest text that is returned.
const MAX_BYTES: usize = 256 << 10;

/// The part of a file that is searched for lines.
const MAX_SCANNED: u64 = 64 << 20;

/// Which lines: `count` of them from line `first`, counted from 1.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub first: usize,
    pub count: usize,
}

/// Reads the lines, and notes what is missing.
pub fn read(file: File, window: Window, shown_as: &Path) -> Result<String, ToolError> {
    let failed = |error| ToolError::new(format!("cannot read '{}': {error}", shown_as.display()));
    let mut reader = BufReader::new(file.take(MAX_SCANNED));
    let (first, mut line) = (window.first, 0);
    let mut text = Vec::new();
    let mut rest = false;
    loop {
        let chunk = reader.fill_buf().map_err(failed)?;
        if chunk.is_empty() {
            break;
        }
        if chunk.contains(&0) {
            return Err(ToolError::new(format!("'{}' is a binary file", shown_as.display())));
        }
        // One line, or a part of it.
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |at| at + 1);
        if line + 1 >= first {
            if line + 1 - first >= window.count || text.len() + taken > MAX_BYTES {
                rest = true;
                break;
            }
            text.extend_from_slice(&chunk[..taken]);
        }
        line += usize::from(end.is_some());
        reader.consume(taken);
    }
    if reader.get_ref().limit() == 0 {
        rest = true;
    }
    if rest && let Some(last) = text.iter().rposition(|byte| *byte == b'\n') {
        text.truncate(last + 1);
    }
    let text = whole_characters(text, rest)
        .ok_or_else(|| ToolError::new(format!("'{}' is not UTF-8 text", shown_as.display())))?;
    if text.is_empty() && first > 1 {
        return Err(ToolError::new(format!("'{}' has no line {first}", shown_as.display())));
    }
    let next = first + text.matches('\n').count();
    Ok(match rest {
        true if next == first => {
            format!("{text}\n[line {first} is too long and cut here; continue with offset {}]", next + 1)
        }
        true => format!("{text}[more follows: continue with offset {next}]"),
        false => text,
    })
}

/// The bytes as text, without a character that was cut at the end.
fn whole_characters(bytes: Vec<u8>, is_cut: bool) -> Option<String> {
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
            let valid = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(valid);
            String::from_utf8(bytes).ok()
        }
        Err(_) => None,
    }
}
