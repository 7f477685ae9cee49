//! Models on this machine's disk: the built-in starter model, and models that the user downloads and deletes.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use anyhow::{Result, bail};
use hob_app::startup::local_models::{local_models, model_service};
use hob_config::{Config, EngineName};
use hob_core::Engine;
use hob_models::catalogue::{STARTER, is_starter};
use hob_models::pull::PullSpecError;
use hob_models::{
    CatalogueEntry, DownloadProgress, DownloadProgressFn, DownloadStep, FirstRun, ModelOffer, OfferFn,
    PullSpec, is_pulled_by_hob,
};

use crate::args::NetworkAccess;
use crate::output;
use crate::output::download::Download;
use crate::output::number::{memory, speed};
use crate::output::question::{is_interactive, yes_or_no};
use crate::settings;
use crate::signals::Signals;

/// How to get a better model than the starter model.
const BETTER_MODELS: &str =
    "'hob model list --available' lists better models, 'hob model pull NAME' downloads one.";

/// What Hob does when no engine answers and none is configured: it downloads the starter model, or a better one if the user
/// accepts the offer.
pub fn first_run(network: NetworkAccess) -> (FirstRun, Option<OfferFn>) {
    if network == NetworkAccess::Offline {
        return (FirstRun::Refuse, None);
    }
    let accepted: Arc<OnceLock<&'static str>> = Arc::default();
    let bar: OnceLock<Download> = OnceLock::new();
    let name = Arc::clone(&accepted);
    let progress: DownloadProgressFn = Arc::new(move |progress| {
        let download = bar.get_or_init(|| match name.get() {
            Some(accepted) => Download::new(*accepted),
            None => {
                output::note(format_args!(
                    "No engine is running. Hob downloads a small starter model: {} ({}). It is only for trying Hob out. \
                     {BETTER_MODELS}",
                    STARTER.name,
                    memory(STARTER.size)
                ));
                Download::new(STARTER.name)
            }
        });
        show(download, progress);
    });
    let offer: OfferFn = Arc::new(move |offer| {
        let is_accepted = ask_or_mention(&offer);
        if is_accepted {
            accepted.get_or_init(|| offer.entry.short_name);
        }
        is_accepted
    });
    (FirstRun::Fetch(progress), Some(offer))
}

/// Asks whether to download the offered model. Without a terminal, prints the command that downloads it.
fn ask_or_mention(ModelOffer { entry, tokens_per_second }: &ModelOffer) -> bool {
    let (name, about) = (entry.short_name, download_of(entry));
    if !is_interactive() {
        output::note(format_args!(
            "A better model fits this machine: {name} ({about}). Download and choose it with 'hob model pull {name}' and \
             'hob model use {name}'."
        ));
        return false;
    }
    output::note(format_args!(
        "No engine is running. The best model for this machine is {name}: {about}, about {}.",
        speed(*tokens_per_second)
    ));
    let question = format!(
        "Download it? Otherwise Hob downloads a small one ({}), which is only for trying Hob out.",
        memory(STARTER.size)
    );
    yes_or_no(&question).unwrap_or(false)
}

/// The size and the licence of a download, for a question.
pub fn download_of(entry: &CatalogueEntry) -> String {
    format!("about {}, licence {}", memory(entry.total_size()), entry.license)
}

/// That a model is the starter model, and how to get a better one: whole sentences. `None` for other models.
pub fn trial_note(model: &str) -> Option<String> {
    is_starter(model)
        .then(|| format!("{model} is a small trial model: its answers are often wrong. {BETTER_MODELS}"))
}

/// The size of the starter model.
pub fn starter_size() -> String {
    memory(STARTER.size)
}

/// Whether Hob can download and use the starter model now.
pub async fn can_fetch_starter(config: &Config, home: &Path) -> bool {
    local_models(config, home).can_fetch_starter().await
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

fn show(download: &Download, progress: DownloadProgress) {
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

/// Models on the disk that cannot be loaded, each with the reason. Empty where the directory cannot be read, and in a build without
/// the engine that loads them.
pub fn broken_models(config: &Config, home: &Path) -> Vec<(String, String)> {
    let models = local_models(config, home);
    if models.engine().is_none() {
        return Vec::new();
    }
    let models = models.files.list().unwrap_or_default();
    models.into_iter().filter_map(|model| Some((model.id, model.problem?))).collect()
}

/// Whether this is a name of the default model, and the model is on the disk.
pub fn is_default(config: &Config, name: &str) -> Result<bool> {
    let Some(default) = config.default_model() else { return Ok(false) };
    let models = model_service(config, &settings::home()?);
    let Some(named) = models.find(name)? else { return Ok(false) };
    Ok(models.find(default)?.is_some_and(|default| default.id == named.id))
}

/// Removes a model.
pub fn remove(config: &Config, id: &str) -> Result<ExitCode> {
    model_service(config, &settings::home()?).remove(id)?;
    output::line(format_args!("Deleted {id}."))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_starter_model_is_a_trial_model() {
        assert_eq!(
            trial_note("smollm2-135m-instruct").as_deref(),
            Some(
                "smollm2-135m-instruct is a small trial model: its answers are often wrong. 'hob model list --available' lists \
                 better models, 'hob model pull NAME' downloads one."
            )
        );
        assert_eq!(trial_note("qwen3:8b"), None);
    }

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

    #[test]
    fn the_documentation_has_the_size_of_the_starter_model() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for page in ["README.md", "docs/first-ten-minutes.md", "docs/embedded.md"] {
            let text = std::fs::read_to_string(root.join(page)).unwrap();
            assert!(text.contains(&starter_size()), "{page} does not contain {}", starter_size());
        }
    }
}
