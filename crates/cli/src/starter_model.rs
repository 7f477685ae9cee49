//! The starter model, which Hob downloads where no engine answers and none is configured, and the better model that it offers instead.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use hob_app::startup::local_models::local_models;
use hob_config::Config;
use hob_models::catalogue::{STARTER, is_starter};
use hob_models::{DownloadProgressFn, FirstRun, ModelOffer, OfferFn};

use crate::args::NetworkAccess;
use crate::model_download::{about_download, show};
use crate::output;
use crate::output::download::Download;
use crate::output::number::{memory, speed};
use crate::output::question::{is_interactive, yes_or_no};

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
    let (name, about) = (entry.short_name, about_download(entry));
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
    fn the_documentation_has_the_size_of_the_starter_model() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for page in ["README.md", "docs/first-ten-minutes.md", "docs/embedded.md"] {
            let text = std::fs::read_to_string(root.join(page)).unwrap();
            assert!(text.contains(&starter_size()), "{page} does not contain {}", starter_size());
        }
    }
}
