//! SHA-256 of a model file.

use std::fmt;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Checksum([u8; 32]);

impl Checksum {
    pub const fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut sum = [0; 32];
        let mut at = 0;
        while at < 64 {
            let value = match digits[at] {
                digit @ b'0'..=b'9' => digit - b'0',
                digit @ b'a'..=b'f' => digit - b'a' + 10,
                digit @ b'A'..=b'F' => digit - b'A' + 10,
                _ => return None,
            };
            sum[at / 2] = sum[at / 2] << 4 | value;
            at += 1;
        }
        Some(Checksum(sum))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}

/// A checksum of bytes in pieces.
#[derive(Clone, Default)]
pub(crate) struct Summing(Sha256);

impl Summing {
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> Checksum {
        Checksum(self.0.finalize().into())
    }
}

/// Passes everything to `each`, with the number of bytes so far; `each` may end it with an error.
pub(crate) fn read_in_blocks(
    mut from: impl Read,
    mut each: impl FnMut(&[u8], u64) -> io::Result<()>,
) -> io::Result<u64> {
    let mut block = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        match from.read(&mut block) {
            Ok(0) => return Ok(done),
            Ok(length) => {
                done += length as u64;
                each(&block[..length], done)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_checksum_in_pieces_equals_the_whole_and_can_be_parsed() {
        let mut summing = Summing::default();
        summing.add(b"a");
        let read = read_in_blocks(&b"bc"[..], |block, _| {
            summing.add(block);
            Ok(())
        });
        assert_eq!(read.unwrap(), 2);
        let sum = summing.finish();
        assert_eq!(sum.to_string(), ABC);
        assert_eq!(Checksum::parse(ABC), Some(sum));
        assert_eq!(Checksum::parse(&ABC.to_uppercase()), Some(sum));
    }

    #[test]
    fn an_invalid_checksum_is_refused() {
        for bad in ["", "ba78", &ABC[1..], &ABC.replace('b', "g"), &format!("{ABC}00"), "é"] {
            assert_eq!(Checksum::parse(bad), None, "{bad}");
        }
    }
}
