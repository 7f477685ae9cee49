//! `hob completions`.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};

pub fn run(args: &CompletionsArgs) -> Result<ExitCode> {
    // Into memory first: the generator panics if a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "hob", &mut script);
    io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
