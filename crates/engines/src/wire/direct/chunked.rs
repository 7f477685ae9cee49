//! The chunked coding of HTTP/1.1: a body in pieces, each after its length. However packets split it, the body is the same.

use thiserror::Error;

/// As much as may stand beside the body in one place: what follows a length in its line, or all that follows the body.
const MAX_ASIDE: usize = 16 << 10;

/// Of a length: more would not fit into its number.
const MAX_DIGITS: u32 = 15;

#[derive(Debug, Error, PartialEq, Eq)]
#[error("the pieces of its answer have no proper lengths")]
pub(super) struct BadChunk;

/// Where in the coding we are.
#[derive(Debug)]
enum ChunkState {
    /// In a length, after so many digits.
    Length {
        digits: u32,
    },
    /// Behind a length, in its line.
    Extension,
    /// At the end of a length's line, before its line feed.
    LengthEnd,
    /// In a piece, with so much of it to come.
    Piece,
    /// Between a piece and the next length; whether its carriage return came.
    PieceEnd {
        returned: bool,
    },
    /// Behind the last piece, after so many bytes of a line.
    Trailer {
        line: usize,
    },
    Over,
}

/// Takes the coding off.
#[derive(Debug)]
pub(super) struct Chunked {
    state: ChunkState,
    /// Of the piece at hand.
    left: u64,
    /// Bytes beside the body in the line of the length at hand, or behind the body.
    aside: usize,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Chunked { state: ChunkState::Length { digits: 0 }, left: 0, aside: 0 }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, ChunkState::Over)
    }

    /// Appends the body that is in `input` to `out`, and gives how much of the input that took: all of it, unless the body
    /// ended.
    pub(super) fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, BadChunk> {
        let mut at = 0;
        while at < input.len() && !self.is_over() {
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

    /// Takes a byte that is not the body's.
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
                self.count_aside()?;
                ChunkState::Extension
            }
            (ChunkState::PieceEnd { returned: false }, b'\r') => ChunkState::PieceEnd { returned: true },
            (ChunkState::PieceEnd { .. }, b'\n') => {
                // An answer of many pieces may say a little with each.
                self.aside = 0;
                ChunkState::Length { digits: 0 }
            }
            (ChunkState::Trailer { line: 0 }, b'\n') => ChunkState::Over,
            (ChunkState::Trailer { .. }, b'\n') => ChunkState::Trailer { line: 0 },
            (ChunkState::Trailer { line }, byte) => {
                let line = line + usize::from(byte != b'\r');
                self.count_aside()?;
                ChunkState::Trailer { line }
            }
            _ => return Err(BadChunk),
        };
        Ok(())
    }

    fn count_aside(&mut self) -> Result<(), BadChunk> {
        self.aside += 1;
        if self.aside > MAX_ASIDE { Err(BadChunk) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The body, whether it is over, and what of the input came after it.
    fn decoded(packets: &[&[u8]]) -> Result<(String, bool, usize), BadChunk> {
        let mut coding = Chunked::new();
        let (mut out, mut unused) = (Vec::new(), 0);
        for packet in packets {
            unused += packet.len() - coding.decode(packet, &mut out)?;
        }
        Ok((String::from_utf8_lossy(&out).into_owned(), coding.is_over(), unused))
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
