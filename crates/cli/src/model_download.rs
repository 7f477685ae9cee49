//! Downloads models that Hob itself runs, and shows the progress.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use hob_app::startup::local_models::local_models;
use hob_config::{Config, EngineName};
use hob_core::Engine;
use hob_models::pull::PullSpecError;
use hob_models::{
    CatalogueEntry, DownloadProgress, DownloadProgressFn, DownloadStep, FirstRun, PullSpec, is_pulled_by_hob,
};

use crate::args::NetworkAccess;
use crate::output;
use crate::output::download::Download;
use crate::output::number::memory;
use crate::settings;
use crate::signals::Signals;

/// The size and the licence of a download, for a question.
pub fn about_download(entry: &CatalogueEntry) -> String {
    format!("about {}, licence {}", memory(entry.total_size()), entry.license)
}

/// What Hob does when vectors are needed for the first time.
pub fn first_vectors(network: NetworkAccess) -> FirstRun {
    match network {
        NetworkAccess::Offline => FirstRun::Refuse,
        NetworkAccess::Online => {
            let download = Download::new("embedding model");
            FirstRun::Fetch(Arc::new(move |progress| show(&download, progress)))
        }
    }
}

/// Whether Hob itself downloads `name`, and from where; `None` if the name is for Ollama.
pub async fn own_source(config: &Config, name: &str, network: NetworkAccess) -> Result<Option<PullSpec>> {
    let spec = match name.parse::<PullSpec>() {
        Ok(spec) => spec,
        // Ollama has no such names.
        Err(error @ PullSpecError::FileAddress { .. }) => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    let prefers_ollama =
        network == NetworkAccess::Online && config.engine.default != Some(EngineName::Embedded);
    let is_own = match &spec {
        PullSpec::File(_) => true,
        spec => {
            is_pulled_by_hob(spec, name, true) || !prefers_ollama || !hob_app::ollama(config)?.health().await
        }
    };
    Ok(is_own.then_some(spec))
}

/// Whether a path could also be a repository of the hub, such as `owner/repo`.
fn is_hub_name(name: &str) -> bool {
    !name.to_lowercase().contains(".gguf") && format!("hf:{name}").parse::<PullSpec>().is_ok()
}

/// Downloads `name` if Hob itself can; `None` if the name is for Ollama.
pub async fn pull(config: &Config, name: &str, network: NetworkAccess) -> Result<Option<ExitCode>> {
    let Some(spec) = own_source(config, name, network).await? else { return Ok(None) };
    if let PullSpec::File(path) = &spec
        && is_hub_name(name)
        && !path.exists()
    {
        bail!("there is no file {name}. If you mean the hub: hob model pull hf:{name}");
    }
    let mut models = local_models(config, &settings::home()?);
    if network == NetworkAccess::Offline {
        models.files.go_offline();
    }
    let mut signals = Signals::listen()?;
    let offered = match &spec {
        PullSpec::Catalogue(entry) => Some(entry.short_name),
        PullSpec::Hub(_) | PullSpec::File(_) => None,
    };
    let download = Download::new(name.to_owned());
    let bar = download.clone();
    let progress: DownloadProgressFn = Arc::new(move |progress| show(&bar, progress));
    let outcome = tokio::select! {
        outcome = models.files.pull(&spec, progress) => outcome.map(Some),
        stop = signals.next() => {
            download.clear();
            output::note(format_args!("Stopped. 'hob model pull {name}' resumes the download."));
            return Ok(Some(stop.exit_code()));
        }
    };
    download.clear();
    if let Some(model) = outcome? {
        // A name that was typed is also the name to use it by.
        let id = offered.map_or(model.id, |_| name.to_owned());
        if models.engine().is_none() {
            output::line(format_args!("{id} is ready: {}", model.path.display()))?;
        } else if model.header.is_some_and(|header| header.is_embedding) {
            output::line(format_args!("{id} is ready, for memory and for /v1/embeddings."))?;
        } else {
            output::line(format_args!("{id} is ready. Try it: hob ask -e embedded -m {id} 'Hello'"))?;
        }
    }
    Ok(Some(ExitCode::SUCCESS))
}

pub fn show(download: &Download, progress: DownloadProgress) {
    let step = match progress.step {
        DownloadStep::Waiting => "waiting for another pull of the same model",
        DownloadStep::Listing => "querying the hub",
        DownloadStep::Downloading => "downloading",
        DownloadStep::Checking => "checking",
        DownloadStep::Unpacking => "unpacking",
        DownloadStep::Converting => "converting",
        DownloadStep::Copying => "copying",
    };
    download.show(step, progress.done, progress.total);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_one_slash_could_be_a_repository() {
        for (name, expected) in [
            ("owner/repo", true),
            ("owner/repo:Q4_K_M", true),
            ("models/x.gguf", false),
            ("./x", false),
            ("/srv/x", false),
            ("a/b/c", false),
        ] {
            assert_eq!(is_hub_name(name), expected, "{name}");
        }
    }
}
