//! Models to download: the built-in list with what fits this machine, and the model hub.

use hob_models::catalogue::ModelAbility;
use hob_models::pull::FoundRepository;
use hob_models::{CatalogueEntry, MachineRoom, catalogue};

use crate::model_library::ModelLibrary;

/// Whether a search also asks the model hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubSearch {
    BuiltInOnly,
    /// With at most this many results.
    AlsoHub(usize),
}

/// What was found.
#[derive(Debug)]
pub struct ModelSearch {
    /// Models of the built-in list, the smallest first.
    pub built_in: Vec<BuiltInModel>,
    pub hub: Vec<FoundRepository>,
    /// Why the hub has no results.
    pub hub_problem: Option<String>,
    /// What this machine has for models; `None` in a build without the embedded engine.
    pub machine: Option<MachineRoom>,
}

/// A model of the built-in list, with estimates for this machine.
#[derive(Debug)]
pub struct BuiltInModel {
    pub entry: &'static CatalogueEntry,
    /// Whether it was downloaded.
    pub is_here: bool,
    /// About the bytes of memory, with its conversations.
    pub memory: Option<u64>,
    pub fits: Option<bool>,
    /// About how fast it answers here; `None` for a model that does not answer or does not fit.
    pub tokens_per_second: Option<f64>,
}

impl ModelLibrary {
    /// Searches for all words. Measures the machine at the first search, which takes some tenths of a second.
    pub async fn search(&self, words: &str, hub: HubSearch) -> ModelSearch {
        let machine = *self.machine.get_or_init(|| self.files.machine_room()).await;
        let (files, wanted) = (self.files.clone(), words.to_owned());
        let listed = tokio::task::spawn_blocking(move || {
            let stored = files.list().unwrap_or_default();
            let mut found: Vec<BuiltInModel> = catalogue()
                .filter(|entry| entry.matches(&wanted))
                .map(|entry| {
                    let is_here =
                        stored.iter().any(|model| model.id == entry.name && model.problem.is_none());
                    let memory = files.entry_footprint(entry).map(|footprint| footprint.usual.total());
                    described(entry, is_here, memory, machine)
                })
                .collect();
            found.sort_by_key(|found| found.entry.size);
            found
        });
        let (built_in, hub) = tokio::join!(listed, async {
            match hub {
                HubSearch::BuiltInOnly => Ok(Vec::new()),
                HubSearch::AlsoHub(limit) => self.files.search(words, limit).await,
            }
        });
        let (hub, hub_problem) = match hub {
            Ok(found) => (found, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        // It fails only when the program ends.
        ModelSearch { built_in: built_in.unwrap_or_default(), hub, hub_problem, machine }
    }
}

fn described(
    entry: &'static CatalogueEntry,
    is_here: bool,
    memory: Option<u64>,
    machine: Option<MachineRoom>,
) -> BuiltInModel {
    let fits = memory.zip(machine).map(|(memory, machine)| memory <= machine.memory);
    let answers = entry.can(ModelAbility::Chat) && fits == Some(true);
    let tokens_per_second =
        machine.filter(|_| answers).map(|machine| machine.speed.tokens_per_second(entry.bytes_per_token()));
    BuiltInModel { entry, is_here, memory, fits, tokens_per_second }
}

#[cfg(test)]
mod tests {
    use hob_models::MachineSpeed;

    use super::*;

    #[test]
    fn a_model_that_does_not_fit_has_no_speed() {
        let entry = catalogue::find("qwen3:8b").expect("listed");
        let machine = MachineRoom {
            memory: 8 << 30,
            disk: None,
            speed: MachineSpeed { bandwidth: 40_000_000_000, cores: 8 },
        };
        let small = described(entry, false, Some(6 << 30), Some(machine));
        assert!(small.fits == Some(true) && small.tokens_per_second.is_some_and(|speed| speed > 1.0));
        let large = described(entry, false, Some(9 << 30), Some(machine));
        assert_eq!((large.fits, large.tokens_per_second), (Some(false), None));
        let unknown = described(entry, true, None, None);
        assert_eq!((unknown.fits, unknown.tokens_per_second, unknown.is_here), (None, None, true));
    }
}
