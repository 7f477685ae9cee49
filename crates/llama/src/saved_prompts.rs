//! Which prompts are saved for the next start, and which of them a request uses.

use crate::prefix_cache::{Token, common_prefix};
use crate::prefix_store::{PrefixStore, SavedPrefix, WORTH_SAVING};

/// Prompts that are saved when a model is unloaded.
const MAX_SAVED: usize = 3;

/// The prompts of earlier runs of a model.
#[derive(Debug, Default)]
pub(crate) struct SavedPrompts {
    store: Option<PrefixStore>,
    /// Those that are not in its memory yet.
    prompts: Vec<SavedPrefix>,
    /// The tokens of all of them.
    known: Vec<Vec<Token>>,
}

impl SavedPrompts {
    /// Reads the tokens of the prompts; their states are loaded when they are used.
    pub(crate) fn new(store: Option<PrefixStore>) -> Self {
        let prompts = store.as_ref().map(PrefixStore::list).unwrap_or_default();
        let known = prompts.iter().map(|prompt| prompt.tokens.clone()).collect();
        SavedPrompts { store, prompts, known }
    }

    /// The tokens and the state of the saved prompt that begins most like this one, if it saves enough over the `there` tokens
    /// that are in the memory.
    pub(crate) fn take_match(&mut self, prompt: &[Token], there: usize) -> Option<(Vec<Token>, Vec<u8>)> {
        let matches = self.prompts.iter().map(|saved| common_prefix(&saved.tokens, prompt)).enumerate();
        let (at, common) = matches.max_by_key(|&(_, common)| common)?;
        if common < there + WORTH_SAVING {
            return None;
        }
        let saved = self.prompts.swap_remove(at);
        let state = self.store.as_ref()?.load(&saved)?;
        Some((saved.tokens, state))
    }

    /// Saves prompts, the most useful first. `state` is that of a slot, if it has no more than these bytes.
    pub(crate) fn save(&self, kept: &[(usize, &[Token])], state: impl Fn(usize, u64) -> Option<Vec<u8>>) {
        let Some(store) = &self.store else { return };
        let mut chosen: Vec<&[Token]> = Vec::new();
        for &(slot, tokens) in kept {
            // Two prompts that begin alike would be saved twice.
            let is_new = |other: &&[Token]| common_prefix(other, tokens) + WORTH_SAVING <= tokens.len();
            if chosen.len() == MAX_SAVED || tokens.len() < WORTH_SAVING || !chosen.iter().all(is_new) {
                continue;
            }
            chosen.push(tokens);
            // A prompt of which half is saved already is not worth writing again: most begin with the same system prompt.
            let covers = |known: &&Vec<Token>| common_prefix(known, tokens) * 2 >= tokens.len();
            let is_saved = self.known.iter().find(covers).is_some_and(|known| store.refresh(known));
            if !is_saved && let Some(state) = state(slot, store.room_for(tokens)) {
                store.save(tokens, &state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::options::PrefixStoreOptions;
    use crate::prefix_store::StateIdentity;

    fn tokens(range: std::ops::Range<i32>) -> Vec<Token> {
        range.collect()
    }

    #[test]
    fn different_prompts_are_saved_once_and_the_best_match_is_used() {
        let dir = TempDir::new().expect("a directory");
        let file = dir.path().join("model.gguf");
        std::fs::write(&file, "weights").expect("written");
        let open = || {
            let options = PrefixStoreOptions { directory: dir.path().join("prefixes"), bytes: 1 << 20 };
            SavedPrompts::new(PrefixStore::new(&options, StateIdentity { file: &file, cache: "f16" }))
        };
        let agent = tokens(0..400);
        let asked: Vec<Token> = tokens(0..380).into_iter().chain(tokens(5000..5030)).collect();
        let other = tokens(9000..9200);
        let state = |slot: usize, _| Some(vec![u8::try_from(slot).expect("small"); 10]);
        open().save(&[(1, &agent), (2, &asked), (3, &other), (4, &other[..10])], state);
        let mut saved = open();
        assert_eq!(saved.known.len(), 2);
        assert_eq!(saved.take_match(&other, 150), None);
        let longer = tokens(0..1000);
        assert_eq!(saved.take_match(&longer, 100), Some((agent, vec![1; 10])));
        assert_eq!(saved.take_match(&longer, 100), None);
        // The next run asks something else after the same beginning.
        let next: Vec<Token> = tokens(0..380).into_iter().chain(tokens(7000..7100)).collect();
        saved.save(&[(5, &next)], |_, _| panic!("half of it is saved"));
        assert_eq!(open().known.len(), 2);
    }

    #[test]
    fn a_state_is_asked_for_with_the_room_that_there_is() {
        let dir = TempDir::new().expect("a directory");
        let file = dir.path().join("model.gguf");
        std::fs::write(&file, "weights").expect("written");
        let open = || {
            let options = PrefixStoreOptions { directory: dir.path().join("prefixes"), bytes: 1000 };
            SavedPrompts::new(PrefixStore::new(&options, StateIdentity { file: &file, cache: "f16" }))
        };
        let prompt = tokens(0..100);
        let sized = |bytes: u64| vec![7; usize::try_from(bytes).expect("small")];
        open().save(&[(1, &prompt)], |_, most| Some(sized(most + 1)));
        assert_eq!(open().known.len(), 0);
        open().save(&[(1, &prompt)], |_, most| Some(sized(most)));
        assert_eq!(open().known.len(), 1);
    }
}
