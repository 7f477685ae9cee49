//! Whether a program exists and is executable.

use std::path::Path;

/// A bare name is looked up as the system would.
pub fn is_program(program: &Path) -> bool {
    if program.components().count() > 1 {
        return may_be_run(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| may_be_run(&directory.join(program)))
}

#[cfg(unix)]
fn may_be_run(file: &Path) -> bool {
    use rustix::fs::{Access, access};
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn may_be_run(file: &Path) -> bool {
    file.is_file()
}
