//! This test program as another process, for tests that kill one or start several.

use std::process::{Command, Stdio};

use crate::tied_command;

/// Runs one ignored test of this program, such as `store::processes_tests::claims`, and discards its output. It learns what to do from
/// the variables that the caller sets.
pub fn test_process(test: &str) -> Command {
    let mut command = tied_command(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--ignored"]).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
