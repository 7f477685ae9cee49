//! Makes a stack overflow a finding like any other.

use std::mem;
use std::ptr;

/// Enough for libFuzzer to save an input.
const SIZE: usize = 256 << 10;

/// Gives signal handlers a stack of their own. libFuzzer sets its handler later and keeps the flag for it; without that stack, its handler
/// could not run after an overflow, and the input would be lost.
pub fn install() {
    let memory = Box::leak(vec![0_u8; SIZE].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
    // SAFETY: the memory is never freed, and a zeroed action is the default one with an empty mask.
    unsafe {
        assert_eq!(libc::sigaltstack(&stack, ptr::null_mut()), 0, "sigaltstack failed");
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        action.sa_flags = libc::SA_ONSTACK;
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            assert_eq!(libc::sigaction(signal, &action, ptr::null_mut()), 0, "sigaction failed");
        }
    }
}
