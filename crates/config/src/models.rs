//! `[models.aliases]`: names that clients ask for, and the models that answer them.

use std::collections::BTreeMap;

use crate::kind::TEXT;
use crate::settings_schema::{Keys, Section};

/// Settings of the names of models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelsConfig {
    /// By the name that a client sends, in which `*` matches any characters. The value is a model, `default` or `auto`.
    pub aliases: BTreeMap<String, String>,
}

impl Section for ModelsConfig {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let ModelsConfig { aliases } = self;
        keys.table(
            "aliases",
            aliases,
            TEXT,
            "Models for the names that clients send, such as { \"claude-*\" = \"default\" }; * matches any characters. The answer names the real model.",
        );
    }
}
