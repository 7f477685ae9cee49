//! The log for the operator: on stderr, warnings only by default.

use anyhow::{Context, Result};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Args, CliCommand, SchedulerCommand};
use crate::output::screen::{self, LogLines};

/// Sets the log filter in detail, such as `hob_engines=trace`, and overrides `-v`.
const VARIABLE: &str = "HOB_LOG";

/// No lines about records that cannot be written.
const RECORDING_OFF: &str =
    "hob_telemetry::service=error,hob_telemetry::writer=error,hob_db::batch_writer=error";

pub fn start(args: &Args) -> Result<()> {
    let directives = match std::env::var(VARIABLE) {
        Ok(directives) if !directives.trim().is_empty() => directives,
        // These commands report failures in their own output.
        _ if args.verbose == 0
            && matches!(args.command, Some(CliCommand::Channel(_) | CliCommand::Doctor(_))) =>
        {
            "error".to_owned()
        }
        // These end with one sentence if a call could not be recorded.
        _ if args.verbose == 0 && is_question(args.command.as_ref()) => {
            format!("{},{RECORDING_OFF}", directives(0))
        }
        _ => directives(args.verbose).to_owned(),
    };
    let filter: Targets = directives
        .parse()
        .with_context(|| format!("${VARIABLE} is not a valid log filter. Use one such as 'hob=debug'"))?;
    let format = tracing_subscriber::fmt()
        .compact()
        .with_max_level(most_detailed(&filter))
        .with_writer(|| LogLines)
        .with_ansi(screen::has_colours());
    // Only a server's log needs timestamps.
    let started = match args.command {
        Some(CliCommand::Serve(_)) => format.finish().with(filter).try_init(),
        _ => format.without_time().finish().with(filter).try_init(),
    };
    started.context("cannot start logging")
}

/// Whether a command only asks a model, so that its user reads stderr.
fn is_question(command: Option<&CliCommand>) -> bool {
    matches!(
        command,
        Some(
            CliCommand::Ask(_)
                | CliCommand::Chat(_)
                | CliCommand::OllamaCommand(_)
                | CliCommand::Scheduler(SchedulerCommand::Run(_))
        )
    )
}

/// No line with more detail than this passes the filter.
fn most_detailed(filter: &Targets) -> LevelFilter {
    let levels = filter.iter().map(|(_, level)| level).chain(filter.default_level());
    levels.max().unwrap_or(LevelFilter::OFF)
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
    use tracing::Level;

    use super::*;

    #[test]
    fn every_level_can_be_read() {
        for verbose in 0..=4 {
            let directives = directives(verbose);
            assert!(directives.parse::<Targets>().is_ok(), "{directives}");
        }
    }

    #[test]
    fn a_question_is_not_interrupted_by_lines_about_records() {
        let filter: Targets = format!("{},{RECORDING_OFF}", directives(0)).parse().expect("a filter");
        for (target, expected) in [
            ("hob_telemetry::service", false),
            ("hob_telemetry::writer", false),
            ("hob_db::batch_writer", false),
            ("hob_telemetry::trace::export", true),
            ("hob_engines::pool", true),
        ] {
            assert_eq!(filter.would_enable(target, &Level::WARN), expected, "{target}");
        }
    }

    #[test]
    fn a_filter_has_levels_for_hob_and_for_libraries() {
        let filter: Targets = directives(1).parse().expect("a filter");
        for (target, level, expected) in [
            ("hob_engines::pool", Level::INFO, true),
            ("hob", Level::DEBUG, false),
            ("hyper", Level::WARN, true),
            ("hyper", Level::INFO, false),
            ("rmcp::service", Level::ERROR, false),
        ] {
            assert_eq!(filter.would_enable(target, &level), expected, "{target} {level}");
        }
        assert_eq!(most_detailed(&filter), LevelFilter::INFO);
        assert_eq!(most_detailed(&"hob_server=debug".parse().expect("a filter")), LevelFilter::DEBUG);
        assert_eq!(most_detailed(&"debug".parse().expect("a filter")), LevelFilter::DEBUG);
    }
}
