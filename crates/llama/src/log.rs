//! llama.cpp's own log and its last words: into `tracing`, never to the terminal.
#![expect(
    unsafe_code,
    reason = "llama.cpp takes its log sinks as C callbacks, which no safe wrapper offers with a choice of levels"
)]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};

use llama_cpp_sys_2 as sys;

thread_local! {
    /// The complaints of the call into llama.cpp that this thread is in.
    static COMPLAINTS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// No more complaints than this are kept: the first few say what is wrong.
const MOST_COMPLAINTS: usize = 8;

/// Sends everything llama.cpp says to `tracing` from now on.
pub(crate) fn capture() {
    // SAFETY: both callbacks are plain functions that live as long as the program and touch no data of their own; the
    // user-data pointer is not used.
    unsafe {
        sys::llama_log_set(Some(on_log), std::ptr::null_mut());
        sys::ggml_set_abort_callback(Some(on_abort));
    }
}

/// Runs a call into llama.cpp and gives back, with its result, what it complained of on this thread.
pub(crate) fn with_complaints<T>(call: impl FnOnce() -> T) -> (T, Vec<String>) {
    COMPLAINTS.with_borrow_mut(|complaints| *complaints = Some(Vec::new()));
    let result = call();
    let complaints = COMPLAINTS.with_borrow_mut(Option::take).unwrap_or_default();
    (result, complaints)
}

extern "C" fn on_log(level: sys::ggml_log_level, text: *const c_char, _data: *mut c_void) {
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
            // A log line during the thread's own end must not panic inside C code, hence `try_with`.
            let kept = COMPLAINTS.try_with(|complaints| match complaints.try_borrow_mut() {
                Ok(mut complaints) => match complaints.as_mut() {
                    Some(lines) => {
                        if lines.len() < MOST_COMPLAINTS {
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

/// The library found itself in a state it cannot leave, and ends the process after this.
extern "C" fn on_abort(message: *const c_char) {
    let message = if message.is_null() {
        "no reason given".into()
    } else {
        // SAFETY: as above.
        unsafe { CStr::from_ptr(message) }.to_string_lossy()
    };
    let thread = std::thread::current();
    tracing::error!(thread = thread.name().unwrap_or("unnamed"), "llama.cpp stops the process: {message}");
}
