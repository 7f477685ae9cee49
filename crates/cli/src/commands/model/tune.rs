//! `hob model tune`: finds the weight format that runs a model fastest on this machine.

use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_app::startup::local_models::local_models;
use hob_config::Config;
use hob_models::tuned::{KeepTuned, TuneReport};

use crate::output;
use crate::output::progress::Spinner;
use crate::settings;
use crate::signals::Signals;

const NO_ENGINE: &str = "this build of hob has no embedded engine. Install it with: \
                         cargo install --path crates/cli --features embedded";

pub async fn run(config: &Config, id: &str, keep: KeepTuned) -> Result<ExitCode> {
    let models = local_models(config, &settings::home()?);
    if models.engine().is_none() {
        bail!("{NO_ENGINE}");
    }
    let mut signals = Signals::listen()?;
    let waiting = Spinner::start(format!("measuring {id} in two formats; this takes about a minute"));
    let report = tokio::select! {
        report = models.tune(id, keep) => report?,
        stop = signals.next() => {
            drop(waiting);
            output::note(format_args!("Stopped. {id} is unchanged; the incomplete requantised file was removed."));
            return Ok(stop.exit_code());
        }
    };
    drop(waiting);
    print_tuning(id, &report)?;
    Ok(ExitCode::SUCCESS)
}

fn print_tuning(id: &str, report: &TuneReport) -> Result<()> {
    let TuneReport { original, tuned, cost, kept } = report;
    for (name, measured) in [("original", original), ("requantised", tuned)] {
        output::line(format_args!(
            "{name:>12}  prompt {:>6.1} tokens/s, generation {:>6.1} tokens/s",
            measured.prompt_tokens_per_second, measured.written_tokens_per_second
        ))?;
    }
    match kept {
        Some(_) => output::line(format_args!(
            "Kept the requantised weights of {id}: {:.2} times as fast, perplexity {:.2} instead of {:.2}.",
            report.gain(),
            cost.perplexity_after,
            cost.perplexity_before
        ))?,
        None => output::line(format_args!(
            "Kept the original weights of {id}: {:.2} times as fast does not justify the loss in quality. Use --always to \
             keep the requantised weights.",
            report.gain()
        ))?,
    }
    Ok(())
}
