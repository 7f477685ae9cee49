//! Forwards the log and fatal errors of llama.cpp to `tracing`.
#![expect(
    unsafe_code,
    reason = "llama.cpp takes its log sinks as C callbacks, which no safe wrapper offers with a choice of levels"
)]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};

use llama_cpp_sys_2 as sys;

thread_local! {
    /// What the current call into llama.cpp on this thread says.
    static SAID: RefCell<Option<Said>> = const { RefCell::new(None) };
}

/// What llama.cpp says during a call.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) errors: Vec<String>,
    pub(crate) buffers: BufferSizes,
}

/// Bytes that llama.cpp allocates, by its own account.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferSizes {
    /// Weights that are a part of the file.
    pub(crate) mapped_weights: u64,
    /// Weights that were copied, most often into a form that is faster to compute with.
    pub(crate) copied_weights: u64,
    pub(crate) kv_cache: u64,
    /// With the scores of each sequence.
    pub(crate) compute: u64,
}

impl BufferSizes {
    fn add(&mut self, other: BufferSizes) {
        self.mapped_weights += other.mapped_weights;
        self.copied_weights += other.copied_weights;
        self.kv_cache += other.kv_cache;
        self.compute += other.compute;
    }

    /// Adds the size in a line such as `load_tensors:   CPU_Mapped model buffer size =    92.10 MiB`.
    fn read(&mut self, line: &str) {
        let Some((before, after)) = line.split_once(" buffer size = ") else { return };
        let megabytes =
            after.trim().strip_suffix(" MiB").and_then(|number| number.trim().parse::<f64>().ok());
        let Some(megabytes) = megabytes.filter(|number| (0.0..1e9).contains(number)) else { return };
        let bytes = (megabytes * f64::from(1 << 20)) as u64;
        let total = if before.contains("_Mapped model") {
            &mut self.mapped_weights
        } else if before.ends_with(" model") {
            &mut self.copied_weights
        } else if before.ends_with(" KV") || before.ends_with(" RS") {
            &mut self.kv_cache
        } else if before.ends_with(" compute") || before.ends_with(" output") {
            &mut self.compute
        } else {
            return;
        };
        *total = total.saturating_add(bytes);
    }
}

/// No more errors than this are kept: the first few say what is wrong.
const MAX_ERRORS: usize = 8;

/// Forwards the log of llama.cpp to `tracing`.
pub(crate) fn capture() {
    // SAFETY: both callbacks are plain functions that live as long as the program and touch no data of their own; the
    // user-data pointer is not used.
    unsafe {
        sys::llama_log_set(Some(on_log), std::ptr::null_mut());
        sys::ggml_set_abort_callback(Some(on_abort));
    }
}

/// Runs a call into llama.cpp. Also returns what it says on this thread.
pub(crate) fn listen<T>(call: impl FnOnce() -> T) -> (T, Said) {
    let outer = SAID.replace(Some(Said::default()));
    let result = call();
    let said = SAID.replace(outer).unwrap_or_default();
    tell(|outer| outer.buffers.add(said.buffers));
    (result, said)
}

/// Adds to the log of the current call; `false` if no call is listened to.
fn tell(hear: impl FnOnce(&mut Said)) -> bool {
    // A log line while the thread ends must not panic inside C code, hence `try_with`.
    let told = SAID.try_with(|said| match said.try_borrow_mut() {
        Ok(mut said) => said.as_mut().map(hear).is_some(),
        Err(_) => false,
    });
    told == Ok(true)
}

pub(crate) extern "C" fn on_log(level: sys::ggml_log_level, text: *const c_char, _data: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: llama.cpp passes a zero-terminated string that lives until this function returns.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let line = text.trim_end();
    if line.is_empty() || line == "." {
        return;
    }
    match level {
        sys::GGML_LOG_LEVEL_ERROR => {
            let kept = tell(|said| {
                if said.errors.len() < MAX_ERRORS {
                    said.errors.push(line.to_owned());
                }
            });
            // A collected line becomes part of an error, which is logged where it is handled.
            if kept {
                tracing::debug!(target: "hob_llama::llama_cpp", "{line}");
            } else {
                tracing::warn!(target: "hob_llama::llama_cpp", "{line}");
            }
        }
        sys::GGML_LOG_LEVEL_WARN => tracing::debug!(target: "hob_llama::llama_cpp", "{line}"),
        _ => {
            tell(|said| said.buffers.read(line));
            tracing::trace!(target: "hob_llama::llama_cpp", "{line}");
        }
    }
}

/// llama.cpp calls this before it aborts the process.
extern "C" fn on_abort(message: *const c_char) {
    let message = if message.is_null() {
        "no reason given".into()
    } else {
        // SAFETY: as above.
        unsafe { CStr::from_ptr(message) }.to_string_lossy()
    };
    let thread = std::thread::current();
    tracing::error!(
        thread = thread.name().unwrap_or("unnamed"),
        "llama.cpp aborts Hob: {message}. Start Hob again, and report this bug with the lines above"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_lines_of_llama_cpp() {
        let mut sizes = BufferSizes::default();
        for line in [
            "load_tensors:          AMX model buffer size =    95.50 MiB",
            "load_tensors:   CPU_Mapped model buffer size =    92.00 MiB",
            "llama_context:        CPU  output buffer size =     1.50 MiB",
            "llama_kv_cache:        CPU KV buffer size =    22.50 MiB",
            "llama_memory_recurrent:        CPU RS buffer size =     2.00 MiB",
            "sched_reserve:        CPU compute buffer size =    27.50 MiB",
            "sched_reserve:        CPU compute buffer size =    many MiB",
            "a buffer size = 1.00 MiB",
            "no size at all",
        ] {
            sizes.read(line);
        }
        let megabytes = |halves: u64| halves << 19;
        let expected = BufferSizes {
            mapped_weights: megabytes(184),
            copied_weights: megabytes(191),
            kv_cache: megabytes(49),
            compute: megabytes(58),
        };
        assert_eq!(sizes, expected);
    }
}
