//! The state of one sequence as bytes.
#![expect(unsafe_code, reason = "the wrapper's functions for states as bytes are unsafe")]

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::session::LlamaStateSeqFlags;

/// The state of a sequence; `None` on failure, or if it has more than `most` bytes.
pub(crate) fn read(context: &LlamaContext<'_>, slot: usize, most: u64) -> Option<Vec<u8>> {
    let sequence = i32::try_from(slot).ok()?;
    let flags = LlamaStateSeqFlags::empty();
    let size = context.state_seq_get_size_ext(sequence, flags);
    if size as u64 > most {
        return None;
    }
    let mut state = vec![0; size];
    // SAFETY: `state` has the size that this context says the state has, and nothing changes the context in between.
    let size = unsafe { context.state_seq_get_data_ext(state.as_mut_ptr(), sequence, flags) };
    (size > 0 && size == state.len()).then_some(state)
}

/// Replaces the state of a sequence; `false` on failure.
pub(crate) fn write(context: &mut LlamaContext<'_>, slot: usize, state: &[u8]) -> bool {
    let Ok(sequence) = i32::try_from(slot) else { return false };
    // SAFETY: llama.cpp is given the length, compares the shapes in the state with those of the context, and reports a failure.
    // The bytes are those that it wrote itself for the same model: the store checks their digest.
    unsafe { context.state_seq_set_data_ext(state, sequence, LlamaStateSeqFlags::empty()) }
}
