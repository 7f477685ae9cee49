//! Arguments of `hob update`.

use clap::Parser;

/// Show whether there is a newer Hob, and how to update this one
///
/// Hob never updates itself: this prints the commands for the way in which Hob was installed. Hob looks for the newest release at the
/// configured address (url in the section 'update'), or at the address from which install.sh installed.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob update"
    "hob update --json | jq .is_newer"
})]
pub struct UpdateArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
