//! The memory of a context: which tokens of which sequence it holds.
#![expect(unsafe_code, reason = "the wrapper's functions that move a context's memory are unsafe")]

use llama_cpp_2::context::LlamaContext;

/// A copy of the memory of a context, with the cells that are used; `None` on failure.
pub(crate) fn read_memory(context: &LlamaContext<'_>) -> Option<Vec<u8>> {
    let mut copy = vec![0; context.get_state_size()];
    // SAFETY: `copy` has the size that this context says its state has, and nothing changes the context in between.
    let size = unsafe { context.copy_state_data(copy.as_mut_ptr()) };
    copy.truncate(size);
    (size > 0).then_some(copy)
}

/// Replaces the memory of a context; `false` on failure. The copy is of a context of the same model with the same number of sequences.
pub(crate) fn write_memory(context: &mut LlamaContext<'_>, copy: &[u8]) -> bool {
    // SAFETY: the copy is whole, as `read_memory` made it, and llama.cpp checks that its cells fit.
    let read = unsafe { context.set_state_data(copy) };
    read == copy.len()
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
