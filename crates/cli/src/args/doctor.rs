//! `hob doctor` as it is typed.

use clap::Parser;

/// Find out what is wrong, and what to do about it
///
/// Ends with 0 when a question can be answered, and with 1 when not.
#[derive(Debug, Parser)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
