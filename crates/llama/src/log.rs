//! Forwards the log and fatal errors of llama.cpp to `tracing`.
#![expect(
    unsafe_code,
    reason = "llama.cpp takes its log sinks as C callbacks, which no safe wrapper offers with a choice of levels"
)]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};

use llama_cpp_sys_2 as sys;

thread_local! {
    /// The errors of the current call into llama.cpp on this thread.
    static ERRORS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
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

/// Runs a call into llama.cpp. Also returns its errors on this thread.
pub(crate) fn with_errors<T>(call: impl FnOnce() -> T) -> (T, Vec<String>) {
    ERRORS.with_borrow_mut(|errors| *errors = Some(Vec::new()));
    let result = call();
    let errors = ERRORS.with_borrow_mut(Option::take).unwrap_or_default();
    (result, errors)
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
            // A log line while the thread ends must not panic inside C code, hence `try_with`.
            let kept = ERRORS.try_with(|errors| match errors.try_borrow_mut() {
                Ok(mut errors) => match errors.as_mut() {
                    Some(lines) => {
                        if lines.len() < MAX_ERRORS {
                            lines.push(line.to_owned());
                        }
                        true
                    }
                    None => false,
                },
                Err(_) => false,
            });
            // A collected line becomes part of an error, which is logged where it is handled.
            if kept == Ok(true) {
                tracing::debug!(target: "hob_llama::llama_cpp", "{line}");
            } else {
                tracing::warn!(target: "hob_llama::llama_cpp", "{line}");
            }
        }
        sys::GGML_LOG_LEVEL_WARN => tracing::debug!(target: "hob_llama::llama_cpp", "{line}"),
        _ => tracing::trace!(target: "hob_llama::llama_cpp", "{line}"),
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
    tracing::error!(thread = thread.name().unwrap_or("unnamed"), "llama.cpp aborts the process: {message}");
}
