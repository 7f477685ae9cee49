//! The same bytes in other packets must give the same result.

use std::collections::VecDeque;

use hob_core::{Collector, Delta};

use crate::wire::frames::{Frames, Framing};
use crate::wire::stream_decoder::{DecodeError, Decoder};

/// The bytes in packets. Their size depends on the length alone, so an input is the plain bytes of an answer.
pub(crate) fn packets(bytes: &[u8]) -> std::slice::Chunks<'_, u8> {
    bytes.chunks(1 + bytes.len() % 17)
}

/// The frames of packets, and what is left at the end.
pub(crate) fn frames<'a>(framing: Framing, packets: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let mut frames = Frames::new(framing);
    let mut found = Vec::new();
    for packet in packets {
        assert_eq!(frames.push(packet), Ok(()), "an input is shorter than the longest frame");
        while let Some(frame) = frames.next_frame() {
            assert!(!frame.is_empty(), "empty frames are skipped");
            found.push(frame.to_vec());
        }
    }
    found.extend(frames.rest().map(<[u8]>::to_vec));
    found
}

/// What a decoder makes of a stream.
#[derive(Debug, PartialEq)]
pub(crate) struct Decoded {
    deltas: Vec<Delta>,
    error: Option<DecodeError>,
}

/// Decodes a stream as [`crate::wire::stream_decoder`] does. `before_frame` runs before each frame.
pub(crate) fn decoded<'a, D: Decoder>(
    mut decoder: D,
    packets: impl IntoIterator<Item = &'a [u8]>,
    before_frame: impl Fn(&mut D),
) -> Decoded {
    let mut deltas = VecDeque::new();
    let mut error = None;
    let whole = frames(D::FRAMING, packets);
    for frame in &whole {
        before_frame(&mut decoder);
        if let Err(reason) = decoder.frame(frame, &mut deltas) {
            error = Some(reason);
            break;
        }
        if is_done(&deltas) {
            break;
        }
    }
    if error.is_none() && !is_done(&deltas) {
        error = decoder.end(&mut deltas).err();
    }
    Decoded { deltas: deltas.into_iter().map(without_id).collect(), error }
}

/// Checks the promises of every decoder for a stream.
pub(crate) fn check_decoder<D: Decoder>(bytes: &[u8], new: impl Fn() -> D) {
    let whole = decoded(new(), [bytes], |_| {});
    assert_eq!(whole, decoded(new(), packets(bytes), |_| {}), "packets change what is decoded");
    let done = whole.deltas.iter().filter(|delta| matches!(delta, Delta::Done { .. })).count();
    match whole.error {
        Some(_) => assert_eq!(done, 0, "an answer is complete and broken"),
        None => assert_eq!(done, 1, "an answer is neither complete nor broken"),
    }
    let mut collector = Collector::default();
    whole.deltas.into_iter().for_each(|delta| collector.push(delta));
    let _ = collector.finish("model");
}

fn is_done(deltas: &VecDeque<Delta>) -> bool {
    deltas.iter().any(|delta| matches!(delta, Delta::Done { .. }))
}

/// Ids that an engine does not send are random.
fn without_id(delta: Delta) -> Delta {
    match delta {
        Delta::ToolCall(mut call) => {
            call.id = call.id.map(|_| String::new());
            Delta::ToolCall(call)
        }
        other => other,
    }
}
