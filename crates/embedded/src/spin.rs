//! How long the threads that compute wait for each other before they sleep.
//!
//! They meet several hundred times for every token. OpenMP's library lets whoever comes first spin for milliseconds, which costs
//! nothing as long as each has a core for itself. On a machine with other work it keeps those who are waited for from
//! running, the server's own threads included: measured on two busy cores, answers came five to ten times slower than they
//! need. Some tens of microseconds are enough for the meetings of an undisturbed machine.
#![expect(
    unsafe_code,
    reason = "the library reads its settings from the environment before `main`, and offers no other way"
)]

use std::ffi::{CStr, c_char, c_int};

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *mut c_char;
    fn setenv(name: *const c_char, value: *const c_char, overwrite: c_int) -> c_int;
}

const SPINS: &CStr = c"GOMP_SPINCOUNT";
/// Says the same in the standard's words. Whoever set it knows what they want.
const POLICY: &CStr = c"OMP_WAIT_POLICY";
const FEW: &CStr = c"2000";

/// Runs before the constructors without a number, of which the library's is one.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static BEFORE_OPENMP: extern "C" fn() = wait_briefly;

extern "C" fn wait_briefly() {
    // SAFETY: all strings end with a zero byte and live as long as the program, and before `main` there is no other thread
    // that could read the environment meanwhile.
    unsafe {
        if getenv(POLICY.as_ptr()).is_null() {
            setenv(SPINS.as_ptr(), FEW.as_ptr(), 0);
        }
    }
}
