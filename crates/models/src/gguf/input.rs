//! Reads little-endian numbers and texts of a header, within a limit of bytes.

use std::io::{BufRead, ErrorKind, Read};

use super::error::GgufError;

/// Headers with the largest tokenizers have some 20 MiB.
pub const MAX_HEADER_BYTES: u64 = 64 << 20;

pub(super) struct Input<R> {
    inner: R,
    position: u64,
}

impl<R: BufRead> Input<R> {
    pub fn new(inner: R) -> Self {
        Input { inner, position: 0 }
    }

    /// The number of bytes read.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn u32(&mut self) -> Result<u32, GgufError> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, GgufError> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub fn bytes<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        self.spend(N as u64)?;
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(cut_short)?;
        Ok(bytes)
    }

    /// A count of what follows.
    pub fn count(&mut self, what: &'static str, limit: u64) -> Result<u64, GgufError> {
        match self.u64()? {
            found if found > limit => Err(GgufError::TooBig { what, found, limit }),
            found => Ok(found),
        }
    }

    /// A text of at most `limit` bytes. Invalid UTF-8 is replaced, because tokenizers contain any bytes.
    pub fn text(&mut self, what: &'static str, limit: u64) -> Result<String, GgufError> {
        let length = self.count(what, limit)?;
        self.text_of(length)
    }

    /// `length` bytes as a text. The caller has checked the length.
    pub fn text_of(&mut self, length: u64) -> Result<String, GgufError> {
        self.spend(length)?;
        let mut bytes = Vec::new();
        let read = self.inner.by_ref().take(length).read_to_end(&mut bytes);
        if read.map_err(cut_short)? as u64 != length {
            return Err(GgufError::CutShort);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn skip(&mut self, length: u64) -> Result<(), GgufError> {
        self.spend(length)?;
        let mut left = length;
        while left > 0 {
            let ready = self.inner.fill_buf().map_err(cut_short)?.len() as u64;
            if ready == 0 {
                return Err(GgufError::CutShort);
            }
            let step = ready.min(left);
            // At most the length of the buffer, which is a `usize`.
            self.inner.consume(step as usize);
            left -= step;
        }
        Ok(())
    }

    fn spend(&mut self, length: u64) -> Result<(), GgufError> {
        let found = self.position.saturating_add(length);
        if found > MAX_HEADER_BYTES {
            return Err(GgufError::TooBig { what: "its own length", found, limit: MAX_HEADER_BYTES });
        }
        self.position = found;
        Ok(())
    }
}

fn cut_short(error: std::io::Error) -> GgufError {
    match error.kind() {
        ErrorKind::UnexpectedEof => GgufError::CutShort,
        _ => GgufError::Io(error),
    }
}
