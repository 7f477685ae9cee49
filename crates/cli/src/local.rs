//! Models on this machine's own disk: the one a fresh machine starts with, and those that people fetch, tune and remove.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use hob_config::Config;
use hob_models::catalogue::STARTER;
use hob_models::tuned::{KeepTuned, TuneReport};
use hob_models::{DownloadProgress, DownloadStep, PullSpec};
use hob_system::FirstRun;
use hob_system::local_models::{DownloadProgressFn, LocalModels};

use crate::args::NetworkAccess;
use crate::output;
use crate::output::download::Download;
use crate::output::number::memory;
use crate::output::progress::Spinner;
use crate::settings;
use crate::signals::Signals;

const NO_ENGINE: &str = "this hob was built without the embedded engine. Install it with: \
                         cargo install --path crates/cli --features embedded";

/// What happens on a machine where nothing answers and nothing was chosen.
pub fn first_run(network: NetworkAccess) -> FirstRun {
    match network {
        NetworkAccess::Offline => FirstRun::Refuse,
        NetworkAccess::Online => {
            let download = Download::new(STARTER.name);
            let announced = std::sync::Once::new();
            FirstRun::Fetch(Arc::new(move |progress| {
                announced.call_once(|| {
                    output::note(format_args!(
                        "No engine runs here, so Hob answers by itself. It fetches a small model to start with: {} ({}).",
                        STARTER.name,
                        memory(STARTER.size)
                    ));
                });
                show(&download, progress);
            }))
        }
    }
}

/// Whether the model that a fresh machine starts with could be fetched and used now.
pub async fn can_fetch_starter(config: &Config, home: &Path) -> bool {
    LocalModels::new(config, home).can_fetch_starter().await
}

/// What happens when vectors are wanted for the first time.
pub fn first_vectors(network: NetworkAccess) -> FirstRun {
    match network {
        NetworkAccess::Offline => FirstRun::Refuse,
        NetworkAccess::Online => {
            let download = Download::new("embedding model");
            FirstRun::Fetch(Arc::new(move |progress| show(&download, progress)))
        }
    }
}

/// Fetches `name` if it is a model for this disk; `None` when somebody else has to know it.
pub async fn pull(config: &Config, name: &str, network: NetworkAccess) -> Result<Option<ExitCode>> {
    let Ok(spec) = name.parse::<PullSpec>() else { return Ok(None) };
    let mut models = LocalModels::new(config, &settings::home()?);
    if network == NetworkAccess::Offline {
        models.go_offline();
    }
    let mut signals = Signals::listen()?;
    let download = Download::new(name.to_owned());
    let bar = download.clone();
    let progress: DownloadProgressFn = Arc::new(move |progress| show(&bar, progress));
    let outcome = tokio::select! {
        outcome = models.pull(&spec, progress) => outcome.map(Some),
        stop = signals.next() => {
            download.clear();
            output::note(format_args!("Stopped. 'hob model pull {name}' goes on where it was."));
            return Ok(Some(stop.exit_code()));
        }
    };
    download.clear();
    if let Some(model) = outcome? {
        let id = model.id;
        if models.engine().is_none() {
            output::line(format_args!("{id} is here: {}", model.path.display()))?;
        } else if model.header.is_some_and(|header| header.is_embedding) {
            output::line(format_args!("{id} is here, for the memory and for /v1/embeddings."))?;
        } else {
            output::line(format_args!("{id} is here. Try it: hob ask -e embedded -m {id} 'Hello'"))?;
        }
    }
    Ok(Some(ExitCode::SUCCESS))
}

fn show(download: &Download, progress: DownloadProgress) {
    let step = match progress.step {
        DownloadStep::Waiting => "waiting for another pull of the same model",
        DownloadStep::Listing => "asking the hub",
        DownloadStep::Downloading => "downloading",
        DownloadStep::Checking => "checking",
        DownloadStep::Unpacking => "unpacking",
        DownloadStep::Converting => "converting",
        DownloadStep::Copying => "copying",
    };
    download.show(step, progress.done, progress.total);
}

/// Models on the disk that cannot be loaded, each with the reason. Empty where the directory cannot be read, and in a build without
/// the engine that loads them.
pub fn broken_models(config: &Config, home: &Path) -> Vec<(String, String)> {
    let models = LocalModels::new(config, home);
    if models.engine().is_none() {
        return Vec::new();
    }
    let models = models.list().unwrap_or_default();
    models.into_iter().filter_map(|model| Some((model.id, model.problem?))).collect()
}

/// Removes a model.
pub fn remove(config: &Config, id: &str) -> Result<ExitCode> {
    LocalModels::new(config, &settings::home()?).remove(id)?;
    output::line(format_args!("{id} is gone."))?;
    Ok(ExitCode::SUCCESS)
}

/// Finds the form of a model that runs fastest here.
pub async fn tune(config: &Config, id: &str, always: bool) -> Result<ExitCode> {
    let models = LocalModels::new(config, &settings::home()?);
    if models.engine().is_none() {
        bail!("{NO_ENGINE}");
    }
    let mut signals = Signals::listen()?;
    let waiting = Spinner::start(format!("measuring {id} in two forms; this takes a minute"));
    let report = tokio::select! {
        report = models.tune(id, if always { KeepTuned::Always } else { KeepTuned::IfFaster }) => report?,
        stop = signals.next() => {
            drop(waiting);
            output::note(format_args!("Stopped. {id} is as it was; what was written of its other form is removed."));
            return Ok(stop.exit_code());
        }
    };
    drop(waiting);
    print_tuning(id, &report)?;
    Ok(ExitCode::SUCCESS)
}

fn print_tuning(id: &str, report: &TuneReport) -> Result<()> {
    let TuneReport { original, tuned, cost, kept } = report;
    for (name, measured) in [("as it was", original), ("requantised", tuned)] {
        output::line(format_args!(
            "{name:>12}  reads {:>6.1} tokens/s, writes {:>6.1} tokens/s",
            measured.prompt_tokens_per_second, measured.written_tokens_per_second
        ))?;
    }
    match kept {
        Some(_) => output::line(format_args!(
            "The requantised form of {id} is kept: {:.2} times as fast, perplexity {:.2} instead of {:.2}.",
            report.gain(),
            cost.perplexity_after,
            cost.perplexity_before
        ))?,
        None => output::line(format_args!(
            "{id} stays as it was: {:.2} times as fast is too little for the loss in quality; --always keeps the other form all the same.",
            report.gain()
        ))?,
    }
    Ok(())
}
