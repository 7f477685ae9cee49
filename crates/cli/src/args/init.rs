//! `hob init` as it is typed.

use clap::Parser;

/// Look at this machine and write a configuration file for it
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob init"
    "HOB_HOME=/srv/hob hob init            another directory than ~/.hob"
})]
pub struct InitArgs {
    /// Replace the file that is there
    #[arg(long)]
    pub force: bool,
}
