//! The framing of streams.

use super::packets::{frames, packets};
use crate::wire::error_response::EngineErrorBody;
use crate::wire::frames::Framing;
use crate::wire::sse::SseEvent;

/// A stream of server-sent events.
pub fn sse(bytes: &[u8]) {
    let blocks = frames(Framing::Blocks, [bytes]);
    assert_eq!(blocks, frames(Framing::Blocks, packets(bytes)), "packets change the blocks");
    for block in &blocks {
        let Some(event) = SseEvent::read(block) else { continue };
        assert!(event.data.len() < block.len(), "data is longer than its block");
        assert!(!event.name.contains(&b'\n'), "a name has several lines");
        let _ = EngineErrorBody::under_good_status(&event.data);
    }
}

/// A stream of lines.
pub fn ndjson(bytes: &[u8]) {
    let lines = frames(Framing::Lines, [bytes]);
    assert_eq!(lines, frames(Framing::Lines, packets(bytes)), "packets change the lines");
    assert!(lines.iter().all(|line| !line.contains(&b'\n')), "a line has a line feed");
    let total: usize = lines.iter().map(Vec::len).sum();
    assert!(total <= bytes.len(), "lines have more bytes than the stream");
    for line in &lines {
        let _ = EngineErrorBody::read(line);
    }
}
