//! Splits a stream of bytes into frames: lines (NDJSON) or blocks that end with an empty line (SSE). The result does
//! not depend on how packets split the bytes.

use memchr::memchr_iter;
use thiserror::Error;

/// The longest frame. A complete answer fits into one frame; a line without an end does not fill the memory.
const MAX_FRAME_BYTES: usize = 16 << 20;

/// What ends a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A line feed, with or without a carriage return before it.
    Lines,
    /// An empty line.
    Blocks,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("a frame is longer than {} MiB", MAX_FRAME_BYTES >> 20)]
pub struct FrameTooLong;

/// Bytes that have arrived and are not yet returned as frames.
#[derive(Debug)]
pub struct Frames {
    framing: Framing,
    buffer: Vec<u8>,
    /// The start of the next frame.
    start: usize,
    /// Up to here `buffer` contains no further end of a frame.
    scanned: usize,
}

impl Frames {
    pub fn new(framing: Framing) -> Self {
        Frames { framing, buffer: Vec::new(), start: 0, scanned: 0 }
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), FrameTooLong> {
        self.buffer().extend_from_slice(bytes);
        self.check_length()
    }

    /// The buffer, to append bytes to. Check the length afterwards.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        &mut self.buffer
    }

    pub fn check_length(&self) -> Result<(), FrameTooLong> {
        if self.buffer.len() > MAX_FRAME_BYTES { Err(FrameTooLong) } else { Ok(()) }
    }

    /// The next complete frame, without its end. Empty frames are skipped.
    pub fn next_frame(&mut self) -> Option<&[u8]> {
        loop {
            let (end, next) = self.find_end()?;
            let frame = self.start..end;
            self.start = next;
            self.scanned = next;
            if !frame.is_empty() {
                return Some(&self.buffer[frame]);
            }
        }
    }

    /// The rest after the end of the stream: a frame without its end, if any.
    pub fn rest(&mut self) -> Option<&[u8]> {
        let rest = self.start..self.buffer.len();
        self.start = self.buffer.len();
        self.scanned = self.start;
        let bytes = self.buffer[rest].trim_ascii();
        (!bytes.is_empty()).then_some(bytes)
    }

    /// The end of the frame at `start`, and the start of the next one.
    fn find_end(&mut self) -> Option<(usize, usize)> {
        let from = self.scanned;
        for offset in memchr_iter(b'\n', &self.buffer[from..]) {
            let line_feed = from + offset;
            let text_end = self.without_carriage_return(line_feed);
            let ends_here = match self.framing {
                Framing::Lines => true,
                // An empty line: this line feed follows the previous one, or the start of the frame, directly.
                Framing::Blocks => text_end == self.start || self.buffer[text_end - 1] == b'\n',
            };
            if ends_here {
                let end = match self.framing {
                    Framing::Lines => text_end,
                    Framing::Blocks => text_end.saturating_sub(1).max(self.start),
                };
                return Some((self.without_carriage_return(end), line_feed + 1));
            }
            self.scanned = line_feed + 1;
        }
        None
    }

    /// `end`, or one less if a carriage return is directly before it.
    fn without_carriage_return(&self, end: usize) -> usize {
        if end > self.start && self.buffer[end - 1] == b'\r' { end - 1 } else { end }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(framing: Framing, packets: &[&[u8]]) -> Vec<String> {
        let mut frames = Frames::new(framing);
        let mut found = Vec::new();
        for packet in packets {
            frames.push(packet).unwrap();
            while let Some(frame) = frames.next_frame() {
                found.push(String::from_utf8_lossy(frame).into_owned());
            }
        }
        found.extend(frames.rest().map(|rest| String::from_utf8_lossy(rest).into_owned()));
        found
    }

    #[test]
    fn lines_end_with_or_without_a_carriage_return() {
        assert_eq!(cut(Framing::Lines, &[b"a\r\nb\n\nc"]), ["a", "b", "c"]);
    }

    #[test]
    fn blocks_end_at_an_empty_line() {
        assert_eq!(
            cut(Framing::Blocks, &[b"data: 1\n\ndata: 2\ndata: 3\r\n\r\n\n: hi\n\n"]),
            ["data: 1", "data: 2\ndata: 3", ": hi"]
        );
    }

    #[test]
    fn a_peer_that_never_ends_its_line_does_not_fill_our_memory() {
        let mut frames = Frames::new(Framing::Lines);
        let megabyte = vec![b'x'; 1 << 20];
        let refused = (0..64).find_map(|_| frames.push(&megabyte).err());
        assert_eq!(refused, Some(FrameTooLong));
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_frames(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), Just(b':'), any::<u8>()], 0..200),
            splits in proptest::collection::vec(0usize..200, 0..12),
        ) {
            for framing in [Framing::Lines, Framing::Blocks] {
                let mut at: Vec<usize> = splits.iter().map(|split| split % (bytes.len() + 1)).collect();
                at.extend([0, bytes.len()]);
                at.sort_unstable();
                let packets: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
                prop_assert_eq!(cut(framing, &packets), cut(framing, &[&bytes]));
            }
        }
    }
}
