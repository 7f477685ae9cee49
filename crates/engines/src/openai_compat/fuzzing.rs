//! Entry for the fuzz target of OpenAI-compatible engines.

use super::answer;
use super::chunks::ChatChunkDecoder;
use super::infill::{self, InfillDecoder};
use crate::fuzzing::packets::{check_decoder, decoded};

/// An answer, whole or as a stream.
pub fn check_answer(bytes: &[u8]) {
    for answers in [1, 2] {
        check_decoder(bytes, || ChatChunkDecoder::new(answers));
    }
    let parsed = decoded(ChatChunkDecoder::new(1), [bytes], ChatChunkDecoder::forget_template);
    let fast = decoded(ChatChunkDecoder::new(1), [bytes], |_| {});
    assert_eq!(fast, parsed, "the fast path reads a chunk in another way");
    check_decoder(bytes, || InfillDecoder);
    if let Ok(generation) = answer::read(bytes, "model") {
        let mut calls = generation.answers().flat_map(|answer| &answer.tool_calls);
        assert!(calls.all(|call| !call.id.is_empty()), "a call has no id");
    }
    let _ = infill::read(bytes, "model");
    let _ = answer::read_models(bytes);
    let _ = answer::read_props(bytes);
}
