//! The models of the catalogue, with estimates for this machine.

use crate::catalogue::{CatalogueEntry, ModelAbility, catalogue};
use crate::directory::StoredModel;
use crate::fit::{MachineRoom, ModelFootprint};

/// A model of the catalogue, with estimates for this machine.
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

/// The models that match all words, the smallest first. `machine` and `footprint` are `None` where no engine loads them.
pub(crate) fn built_in_models(
    words: &str,
    stored: &[StoredModel],
    machine: Option<MachineRoom>,
    footprint: impl Fn(&CatalogueEntry) -> Option<ModelFootprint>,
) -> Vec<BuiltInModel> {
    let mut found: Vec<BuiltInModel> = catalogue()
        .filter(|entry| entry.matches(words))
        .map(|entry| {
            let is_here = stored.iter().any(|model| model.id == entry.name && model.problem.is_none());
            let memory = footprint(entry).map(|footprint| footprint.usual.total());
            described(entry, is_here, memory, machine)
        })
        .collect();
    found.sort_by_key(|found| found.entry.size);
    found
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
    use super::*;
    use crate::catalogue::find;
    use crate::fit::MachineSpeed;

    #[test]
    fn a_model_that_does_not_fit_has_no_speed() {
        let entry = find("qwen3:8b").expect("listed");
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
