//! Child processes: a child ends together with everything it started, its output is read, and its environment holds only what
//! it needs. Knows nothing of what is started, or why.

mod environment;
mod group;
mod output;

pub use environment::{Need, command, std_command};
pub use group::ProcessGroup;
pub use output::{OutputTail, drain};
use tokio::process::Command;

/// Makes the program the leader of a group of its own: whatever it starts ends with it, and Ctrl-C on our terminal is ours
/// to handle.
pub fn lead_a_group(command: &mut Command) {
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(not(unix))]
    let _ = command;
}
