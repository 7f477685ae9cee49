//! Child processes: a child ends together with everything it started, its output is read, its environment contains only what it
//! needs, and one that should always run is restarted. Knows nothing of what is started, or why. Also the processor and the memory
//! that this process and its children have, locks between processes, and files that several of them change.

mod bounded;
mod child;
mod environment;
mod file_lock;
mod group;
mod lock_file;
mod machine;
mod output;
mod supervisor;
mod write;

pub use bounded::{BoundedOutput, bounded_output};
pub use child::{ChildProcess, ChildStartError, StopTimeouts};
pub use environment::{Need, command, std_command};
pub use file_lock::FileLock;
pub use group::ProcessGroup;
pub use lock_file::LockFile;
pub use machine::{MachineResources, machine_resources};
pub use output::{OutputTail, drain};
pub use supervisor::{Supervised, supervise};
pub use write::{Overwrite, WriteError, keep_copy, write_new};

use tokio::process::Command;

/// Makes the program the leader of its own process group, so that everything it starts ends with it. Ctrl-C on the terminal then
/// reaches Hob only.
pub fn lead_a_group(command: &mut Command) {
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(not(unix))]
    let _ = command;
}
