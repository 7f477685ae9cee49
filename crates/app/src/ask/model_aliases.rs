//! The names of `[models.aliases]`: which model answers for a name that a client has built in, such as `claude-opus-5-5`. Knows no
//! engine: the model that a name means may not exist.

use std::collections::BTreeMap;

use hob_core::ModelReason;
use hob_core::model::{AGENT_MODEL, AUTO, DEFAULT_MODEL};

/// Names, and the models that they mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelAliases {
    /// The most specific first.
    aliases: Vec<(String, String)>,
}

impl ModelAliases {
    /// By name. `*` matches any characters, or none.
    pub fn new(table: &BTreeMap<String, String>) -> Self {
        let mut aliases: Vec<_> = table.iter().map(|(name, model)| (name.clone(), model.clone())).collect();
        let stars = |name: &str| name.matches('*').count();
        aliases.sort_by_key(|(name, _)| (stars(name) > 0, std::cmp::Reverse(name.len() - stars(name))));
        ModelAliases { aliases }
    }

    /// The model that `name` means; `None` if it is not an alias. An alias of an alias is not resolved.
    pub(crate) fn resolve(&self, name: &str) -> Option<&str> {
        // These are names of Hob's own, so no pattern takes them away.
        if [DEFAULT_MODEL, AUTO, AGENT_MODEL].contains(&name) {
            return None;
        }
        let found = self.aliases.iter().find(|(pattern, _)| matches(pattern, name));
        found.map(|(_, model)| model.as_str()).filter(|model| *model != name)
    }

    /// Replaces an alias in `model` and returns the reason.
    pub(crate) fn apply(&self, model: &mut String) -> Option<ModelReason> {
        let meant = self.resolve(model)?.to_owned();
        let reason = ModelReason::new(format!("[models.aliases] maps {model} to {meant}"));
        *model = meant;
        Some(reason)
    }
}

/// Whether `name` has the form of `pattern`. The parts between the stars are looked for from the left, each once.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aliases(pairs: &[(&str, &str)]) -> ModelAliases {
        let owned = |(name, model): &(&str, &str)| ((*name).to_owned(), (*model).to_owned());
        ModelAliases::new(&pairs.iter().map(owned).collect())
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, is_match) in [
            ("claude-*", "claude-opus-5-5", true),
            ("claude-*", "claude-", true),
            ("claude-*", "claude", false),
            ("claude-*", "my-claude-opus", false),
            ("*-haiku-*", "claude-haiku-5", true),
            ("*haiku*", "haiku", true),
            ("*-5", "claude-haiku-5", true),
            ("*-5", "claude-haiku-5-1", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*", "", true),
            ("gpt", "gpt", true),
            ("gpt", "gpt-5", false),
            ("c*é*x", "c-é-x", true),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn the_most_specific_name_wins() {
        let aliases = aliases(&[
            ("*", "any"),
            ("claude-*", "large"),
            ("claude-haiku-*", "small"),
            ("claude-haiku-4", "exact"),
        ]);
        for (name, model) in [
            ("claude-haiku-4", "exact"),
            ("claude-haiku-5", "small"),
            ("claude-opus-5", "large"),
            ("gpt-5", "any"),
        ] {
            assert_eq!(aliases.resolve(name), Some(model), "{name}");
        }
    }

    #[test]
    fn names_of_hob_and_of_the_model_itself_stay() {
        let aliases = aliases(&[("*", "m")]);
        assert_eq!(["default", "auto", "hob/agent", "m"].map(|name| aliases.resolve(name)), [None; 4]);
        assert_eq!(ModelAliases::default().resolve("claude-opus-5"), None);
    }

    #[test]
    fn an_alias_is_told() {
        let mut model = "claude-opus-5".to_owned();
        let reason = aliases(&[("claude-*", "default")]).apply(&mut model);
        assert_eq!(model, "default");
        assert_eq!(
            reason.map(|reason| reason.to_string()).as_deref(),
            Some("[models.aliases] maps claude-opus-5 to default")
        );
    }
}
