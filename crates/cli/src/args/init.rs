//! Arguments of `hob init`.

use clap::Parser;

/// Detect the hardware and write a configuration file
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob init"
    "HOB_HOME=/srv/hob hob init            use a directory other than ~/.hob"
})]
pub struct InitArgs {
    /// Replace an existing file, and save a copy of it
    #[arg(long)]
    pub force: bool,
}
