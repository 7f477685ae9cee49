//! The header of a model file.

use std::io::{BufReader, Read};

use hob_models::{ContextShape, GgufHeader, KvPrecision, MemoryNeeds};

/// However the bytes arrive, the header is the same, and what is computed from it does not overflow.
pub fn header(bytes: &[u8]) {
    let Ok(header) = GgufHeader::read(bytes) else {
        let in_pieces = GgufHeader::read(BufReader::with_capacity(7, bytes));
        assert!(in_pieces.is_err(), "a header is read in pieces only");
        return;
    };
    let in_pieces = GgufHeader::read(BufReader::with_capacity(7, Trickle(bytes)));
    assert!(in_pieces.is_ok_and(|again| again == header), "a header depends on how it is read");
    let size = bytes.len() as u64;
    if let Some(missing) = header.missing_bytes(size) {
        assert_eq!(
            size.checked_add(missing),
            Some(header.expected_size),
            "missing bytes are counted wrongly"
        );
    }
    for cells in [1, 4096, u64::MAX] {
        let shape = ContextShape { cells, slots: 4, batch: 512, kv: KvPrecision::F16 };
        let estimate = MemoryNeeds::of(&header, size).estimate(shape);
        assert!(estimate.total() >= estimate.weights, "the memory of a model is less than its weights");
    }
}

/// Gives at most three bytes at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(3);
        self.0.read(&mut buffer[..most])
    }
}
