//! Arguments of `hob sources`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum SourcesCommand {
    /// List the configured calendars, feeds, web pages and the weather
    ///
    /// Shows hosts and no complete addresses, because an address may contain a key.
    #[command(after_help = examples! {
        "hob sources list"
        "hob sources list --json | jq -r '.[].name'"
    })]
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Read each source once and report what it has
    ///
    /// The exit code is 1 if a source cannot be read. The check does not change what counts as new on a watched page.
    #[command(after_help = examples! {
        "hob sources check                     read all sources"
        "hob sources check work                read one source"
    })]
    Check {
        /// Source name from 'hob sources list'; all by default
        name: Option<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
}
