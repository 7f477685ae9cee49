//! What every program that we start has in common: it ends with all that it started, its output is read, and it gets none of
//! our keys. Knows nothing of what is started, or why.

mod group;
mod output;

pub use group::Group;
pub use output::{Tail, drain};
use tokio::process::Command;

/// What a stranger's program has no business with.
pub const OUR_KEYS: [&str; 5] =
    ["HOB_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"];

/// Keeps our keys from the program.
pub fn forget_our_keys(command: &mut Command) {
    for key in OUR_KEYS {
        command.env_remove(key);
    }
}

/// Makes the program the leader of a group of its own: whatever it starts ends with it, and Ctrl-C on our terminal is ours
/// to handle.
pub fn lead_a_group(command: &mut Command) {
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(not(unix))]
    let _ = command;
}
