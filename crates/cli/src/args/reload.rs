//! Arguments of `hob reload`.

use clap::Parser;

/// Make the running server read its configuration, keys and certificate again
///
/// The server drops no connection. The command prints the settings that changed and those that need a restart. The exit code is 1 if
/// the server cannot use the new configuration; the old one then stays in effect.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob reload                            apply changes of the configuration file"
    "hob reload --json                     print what changed, for programs"
})]
pub struct ReloadArgs {
    /// Print a JSON array, one element for each server
    #[arg(long)]
    pub json: bool,
}
