//! Whether there is such a program.

use std::path::Path;

/// A bare name is looked up as the system would.
pub fn is_program(program: &Path) -> bool {
    if program.components().count() > 1 {
        return program.is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
