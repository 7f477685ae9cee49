//! What goes on inside, for the operator: on stderr, quiet unless asked.

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Args, CliCommand};
use crate::output::screen::{self, LogLines};

/// Says in detail what is logged, such as `hob_engines=trace`, and goes before `-v`.
const VARIABLE: &str = "HOB_LOG";

pub fn start(args: &Args) -> Result<()> {
    let filter = match std::env::var(VARIABLE) {
        Ok(directives) if !directives.trim().is_empty() => EnvFilter::builder()
            .parse(&directives)
            .with_context(|| format!("${VARIABLE} cannot be read. Write it like 'hob=debug'"))?,
        // There, what goes wrong is what the command has to say.
        _ if args.verbose == 0
            && matches!(args.command, Some(CliCommand::Channel(_) | CliCommand::Doctor(_))) =>
        {
            EnvFilter::new("error")
        }
        _ => EnvFilter::new(directives(args.verbose)),
    };
    let format = tracing_subscriber::fmt()
        .compact()
        .with_env_filter(filter)
        .with_writer(|| LogLines)
        .with_ansi(screen::has_colours());
    // A command that ends in a moment needs no times; a server's log does.
    let started = match args.command {
        Some(CliCommand::Serve(_)) => format.finish().try_init(),
        _ => format.without_time().finish().try_init(),
    };
    started.context("cannot start logging")
}

/// The libraries' own details are for HOB_LOG.
fn directives(verbose: u8) -> &'static str {
    match verbose {
        // rmcp tells of every odd message of a server; what matters of that we say ourselves.
        0 => "warn,rmcp=off",
        1 => "warn,rmcp=off,hob=info",
        2 => "info,hob=debug",
        _ => "debug,hob=trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_can_be_read() {
        for verbose in 0..=4 {
            let directives = directives(verbose);
            assert!(EnvFilter::builder().parse(directives).is_ok(), "{directives}");
        }
    }
}
