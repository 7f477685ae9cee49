//! `hob router` as it is typed.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum RouterCommand {
    /// Show what was learnt: for each class of questions, how each model has done and how likely it is to be chosen
    Show {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Forget what was learnt
    Reset {
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}
