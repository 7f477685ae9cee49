//! Files that may be hostile are read by a process of their own: this program again, which then does nothing else.

use std::io;
use std::process::ExitCode;

use anyhow::{Context, Result};
use hob_system::documents::read::apart::{Apart, serve};

/// How to start that process; `None` where this program does not know its own place.
pub fn reader() -> Option<Apart> {
    let program = std::env::current_exe().ok()?;
    Some(Apart { program, arguments: vec!["read-file".to_owned()] })
}

/// Is that process. It needs no settings, so it reads none.
pub fn read_file() -> Result<ExitCode> {
    serve(io::stdin().lock(), io::stdout().lock()).context("the file cannot be read")?;
    Ok(ExitCode::SUCCESS)
}
