//! Untrusted files are parsed by a separate process: this program with the command `read-file`.

use std::io;
use std::process::ExitCode;

use anyhow::{Context, Result};
use hob_memory::ReaderProcess;
use hob_memory::read::child_process::serve;

/// How to start that process; `None` if the path of this program is unknown.
pub fn reader() -> Option<ReaderProcess> {
    let program = std::env::current_exe().ok()?;
    Some(ReaderProcess { program, arguments: vec!["read-file".to_owned()] })
}

/// Runs as that process. It needs no settings.
pub fn read_file() -> Result<ExitCode> {
    serve(io::stdin().lock(), io::stdout().lock()).context("the file cannot be read")?;
    Ok(ExitCode::SUCCESS)
}
