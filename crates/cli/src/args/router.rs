//! Arguments of `hob router`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum RouterCommand {
    /// Show the learned results and selection probability of each model, by question class
    #[command(after_help = examples! {
        "hob router show"
        "hob router show --json"
    })]
    Show {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Delete everything the router has learned
    #[command(after_help = examples! {
        "hob router reset"
        "hob router reset -y"
    })]
    Reset {
        /// Do not ask for confirmation
        #[arg(short, long)]
        yes: bool,
    },
}
