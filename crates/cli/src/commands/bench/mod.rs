//! `hob bench`: measures engines and compares results.

mod compare;
mod figures;
mod measure;
mod run;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::BenchCommand;

pub fn run(command: BenchCommand) -> Result<ExitCode> {
    match command {
        BenchCommand::Run(args) => run::run(&args),
        BenchCommand::Compare { before, after, json } => compare::run(&before, &after, json.into()),
    }
}
