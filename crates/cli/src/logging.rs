//! The log for the operator: on stderr, warnings only by default.

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Args, CliCommand};
use crate::output::screen::{self, LogLines};

/// Sets the log filter in detail, such as `hob_engines=trace`, and overrides `-v`.
const VARIABLE: &str = "HOB_LOG";

pub fn start(args: &Args) -> Result<()> {
    let filter = match std::env::var(VARIABLE) {
        Ok(directives) if !directives.trim().is_empty() => EnvFilter::builder()
            .parse(&directives)
            .with_context(|| format!("${VARIABLE} is not a valid log filter. Use one such as 'hob=debug'"))?,
        // These commands report failures in their own output.
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
    // Only a server's log needs timestamps.
    let started = match args.command {
        Some(CliCommand::Serve(_)) => format.finish().try_init(),
        _ => format.without_time().finish().try_init(),
    };
    started.context("cannot start logging")
}

/// Only HOB_LOG enables the details of libraries.
fn directives(verbose: u8) -> &'static str {
    match verbose {
        // rmcp logs every unexpected message of a server; Hob logs the important ones itself.
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
