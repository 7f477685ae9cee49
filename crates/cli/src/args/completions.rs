//! Arguments of `hob completions`.

use clap::Parser;
use clap_complete::Shell;

/// Print a shell completion script
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob completions bash > ~/.local/share/bash-completion/completions/hob"
    "hob completions zsh > ~/.zfunc/_hob"
    "hob completions fish > ~/.config/fish/completions/hob.fish"
})]
pub struct CompletionsArgs {
    /// Shell to generate the script for
    pub shell: Shell,
}
