//! The chunked transfer coding of HTTP/1.1. The result does not depend on how packets split the body.

use thiserror::Error;

/// The most bytes of one chunk extension, or of all trailers.
const MAX_EXTRA_BYTES: usize = 16 << 10;

/// The most digits of a chunk size: it must fit into 64 bits.
const MAX_DIGITS: u32 = 15;

#[derive(Debug, Error, PartialEq, Eq)]
#[error("the chunked encoding is invalid")]
pub(super) struct BadChunk;

/// The position within the coding.
#[derive(Debug)]
enum ChunkState {
    /// In a chunk size, after this many digits.
    Length {
        digits: u32,
    },
    /// In the extension after a chunk size.
    Extension,
    /// After the carriage return of a chunk size.
    LengthEnd,
    /// In the data of a chunk.
    Piece,
    /// After the data of a chunk; whether its carriage return has arrived.
    PieceEnd {
        returned: bool,
    },
    /// In the trailers, after this many bytes of a line.
    Trailer {
        line: usize,
    },
    Complete,
}

/// The decoder.
#[derive(Debug)]
pub(super) struct Chunked {
    state: ChunkState,
    /// The bytes of the current chunk that are still to come.
    left: u64,
    /// The bytes of the current extension, or of the trailers.
    extra: usize,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Chunked { state: ChunkState::Length { digits: 0 }, left: 0, extra: 0 }
    }

    pub(super) fn is_complete(&self) -> bool {
        matches!(self.state, ChunkState::Complete)
    }

    /// Appends the decoded body in `input` to `out` and returns how many bytes of `input` were used: all of them,
    /// unless the body ended.
    pub(super) fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, BadChunk> {
        let mut at = 0;
        while at < input.len() && !self.is_complete() {
            if let ChunkState::Piece = self.state {
                let here = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - at);
                out.extend_from_slice(&input[at..at + here]);
                at += here;
                self.left -= here as u64;
                if self.left == 0 {
                    self.state = ChunkState::PieceEnd { returned: false };
                }
            } else {
                self.step(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// Takes a byte that is not part of the body.
    fn step(&mut self, byte: u8) -> Result<(), BadChunk> {
        self.state = match (&self.state, byte) {
            (ChunkState::Length { digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F')
                if *digits < MAX_DIGITS =>
            {
                let digit = char::from(byte).to_digit(16).ok_or(BadChunk)?;
                self.left = self.left << 4 | u64::from(digit);
                ChunkState::Length { digits: digits + 1 }
            }
            (ChunkState::Length { digits: 1.. }, b';' | b' ' | b'\t') => ChunkState::Extension,
            (ChunkState::Length { digits: 1.. } | ChunkState::Extension, b'\r') => ChunkState::LengthEnd,
            (ChunkState::Length { digits: 1.. } | ChunkState::Extension | ChunkState::LengthEnd, b'\n') => {
                match self.left {
                    0 => ChunkState::Trailer { line: 0 },
                    _ => ChunkState::Piece,
                }
            }
            (ChunkState::Extension, _) => {
                self.count_extra()?;
                ChunkState::Extension
            }
            (ChunkState::PieceEnd { returned: false }, b'\r') => ChunkState::PieceEnd { returned: true },
            (ChunkState::PieceEnd { .. }, b'\n') => {
                // The limit is per chunk: an answer may have many chunks with short extensions.
                self.extra = 0;
                ChunkState::Length { digits: 0 }
            }
            (ChunkState::Trailer { line: 0 }, b'\n') => ChunkState::Complete,
            (ChunkState::Trailer { .. }, b'\n') => ChunkState::Trailer { line: 0 },
            (ChunkState::Trailer { line }, byte) => {
                let line = line + usize::from(byte != b'\r');
                self.count_extra()?;
                ChunkState::Trailer { line }
            }
            _ => return Err(BadChunk),
        };
        Ok(())
    }

    fn count_extra(&mut self) -> Result<(), BadChunk> {
        self.extra += 1;
        if self.extra > MAX_EXTRA_BYTES { Err(BadChunk) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The body, whether it has ended, and how many bytes followed it.
    fn decoded(packets: &[&[u8]]) -> Result<(String, bool, usize), BadChunk> {
        let mut coding = Chunked::new();
        let (mut out, mut unused) = (Vec::new(), 0);
        for packet in packets {
            unused += packet.len() - coding.decode(packet, &mut out)?;
        }
        Ok((String::from_utf8_lossy(&out).into_owned(), coding.is_complete(), unused))
    }

    #[test]
    fn pieces_become_one_body() {
        let body = |text: &[u8]| decoded(&[text]);
        assert_eq!(body(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), Ok(("abcde".into(), true, 0)));
        assert_eq!(body(b"A;name=value\r\n0123456789\r\n0\r\n\r\n"), Ok(("0123456789".into(), true, 0)));
        assert_eq!(body(b"1\nx\n0\nx-trailer: 1\r\n\nHTTP"), Ok(("x".into(), true, 4)));
        assert_eq!(body(b"5\r\nabc"), Ok(("abc".into(), false, 0)), "more is to come");
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "\r\n",
            "x\r\n",
            "3\r\nabcd\r\n",
            "-1\r\n",
            "ffffffffffffffffff\r\n",
            "3 \r\nabc0",
            "3\rx\nabc",
            "1\r\na\r\r\n",
        ] {
            assert_eq!(decoded(&[bad.as_bytes()]), Err(BadChunk), "{bad:?}");
        }
        let endless = format!("1;{}", "x".repeat(1 << 20));
        assert_eq!(decoded(&[endless.as_bytes()]), Err(BadChunk));
        let endless = format!("0\r\n{}", "x: y\r\n".repeat(1 << 17));
        assert_eq!(decoded(&[endless.as_bytes()]), Err(BadChunk));
    }

    #[test]
    fn an_answer_of_many_pieces_may_say_a_little_with_each() {
        let signed = format!("1;signature={}\r\nx\r\n", "a".repeat(64)).repeat(1000) + "0\r\n\r\n";
        assert_eq!(decoded(&[signed.as_bytes()]), Ok(("x".repeat(1000), true, 0)));
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_body(
            pieces in proptest::collection::vec("[a-z\r\n]{1,40}", 0..6),
            splits in proptest::collection::vec(0usize..300, 0..12),
        ) {
            let mut coded: Vec<u8> = Vec::new();
            for piece in &pieces {
                coded.extend_from_slice(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes());
            }
            coded.extend_from_slice(b"0\r\n\r\n");
            let mut at: Vec<usize> = splits.iter().map(|split| split % (coded.len() + 1)).collect();
            at.extend([0, coded.len()]);
            at.sort_unstable();
            let packets: Vec<&[u8]> = at.windows(2).map(|pair| &coded[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decoded(&packets), Ok((pieces.concat(), true, 0)));
        }
    }
}
