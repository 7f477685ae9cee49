//! How long compute threads wait for each other before they sleep. Knows nothing of models.
//!
//! GNU's OpenMP reads it from the environment before `main`, so it is set before that. On a machine with other work, a thread that
//! waits for one without a core takes that core from it, and its own default of some milliseconds is a time slice: with two busy
//! programs on two cores, an answer took 5 to 35 times as long as alone, and takes 2 to 3 times as long with this limit. With a core
//! for each thread, answers are as fast as before.
#![expect(unsafe_code, reason = "the environment is set before any Rust code can run")]

use std::ffi::{CStr, c_char, c_int};

/// Looks at what a thread waits for, which take some ten microseconds.
const SPINS: &CStr = c"1000";

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn setenv(name: *const c_char, value: *const c_char, replaces: c_int) -> c_int;
}

/// Called by the system when the program starts. Functions with a smaller number are called earlier, and OpenMP's has none.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static AT_START: extern "C" fn() = limit_spins;

extern "C" fn limit_spins() {
    // SAFETY: there is one thread, the texts end with zero, and the system copies them.
    unsafe {
        // Both settings are the user's choice.
        if getenv(c"OMP_WAIT_POLICY".as_ptr()).is_null() {
            setenv(c"GOMP_SPINCOUNT".as_ptr(), SPINS.as_ptr(), 0);
        }
    }
}
