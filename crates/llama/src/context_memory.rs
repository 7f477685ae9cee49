//! The memory of a context: which tokens of which sequence it holds.
#![expect(unsafe_code, reason = "the wrapper's functions that move a context's memory are unsafe")]

use llama_cpp_2::context::LlamaContext;

/// Copies the memory of a context to another one; `false` on failure.
pub(crate) fn move_memory(from: &LlamaContext<'_>, to: &mut LlamaContext<'_>) -> bool {
    let mut state = vec![0; from.get_state_size()];
    // SAFETY: `state` has the size that this context says its state has, and nothing changes the context in between.
    let size = unsafe { from.copy_state_data(state.as_mut_ptr()) };
    state.truncate(size);
    // SAFETY: the state is of a context of the same model with the same number of sequences; its end is the end of the slice.
    let read = unsafe { to.set_state_data(&state) };
    size > 0 && read == size
}

pub(crate) fn seq_id(slot: usize) -> i32 {
    i32::try_from(slot).unwrap_or(i32::MAX)
}

/// Removes the tokens of a sequence from a position; `false` if the model cannot drop a part.
pub(crate) fn remove(context: &mut LlamaContext<'_>, slot: usize, from: usize) -> bool {
    let (Ok(seq), Ok(from)) = (u32::try_from(slot), u32::try_from(from)) else {
        return false;
    };
    context.clear_kv_cache_seq(Some(seq), Some(from), None) == Ok(true)
}

pub(crate) fn copy(context: &mut LlamaContext<'_>, from: usize, to: usize, length: Option<usize>) {
    let length = length.and_then(|length| u32::try_from(length).ok());
    // Fails only for numbers beyond 31 bits.
    let _ = context.kv_cache_seq_cp(seq_id(from), seq_id(to), Some(0), length);
}
