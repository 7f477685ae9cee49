//! All sections and keys of a configuration in order, with their values as TOML.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::kind::quote_name;
use crate::settings_schema::{Exposure, Keys, Kind, Section};

/// A section and its own keys.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedSection {
    /// With its outer sections: `engine.ollama`. Empty for the file itself.
    pub name: String,
    pub about: &'static str,
    pub keys: Vec<ListedKey>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedKey {
    pub name: &'static str,
    pub about: &'static str,
    /// Completes "expected …".
    pub expected: &'static str,
    /// As TOML. May be a secret.
    pub value: String,
    pub exposure: Exposure,
}

impl ListedSection {
    /// The keys' names with the section: `server.port`.
    pub fn full_names(&self) -> impl Iterator<Item = String> {
        self.keys.iter().map(|key| format!("{}.{}", self.name, key.name))
    }
}

/// Lists all sections and keys.
pub(crate) fn list(config: &Config) -> Vec<ListedSection> {
    let top = ListedSection { name: String::new(), about: "", keys: Vec::new() };
    let mut listing = Listing { sections: vec![top], current: 0 };
    config.clone().keys(&mut listing);
    listing.sections.retain(|section| !section.name.is_empty());
    listing.sections
}

impl Config {
    /// The keys that have another value in `other`, such as `server.port`. Returns no values: some are secret.
    pub fn changed_keys(&self, other: &Config) -> Vec<String> {
        let values = |config: &Config| -> Vec<(String, String)> {
            let sections = list(config).into_iter();
            let of_section = |section: ListedSection| {
                let names: Vec<String> = section.full_names().collect();
                names.into_iter().zip(section.keys.into_iter().map(|key| key.value))
            };
            sections.flat_map(of_section).collect()
        };
        let pairs = values(self).into_iter().zip(values(other));
        pairs.filter(|(ours, theirs)| ours != theirs).map(|((name, _), _)| name).collect()
    }
}

struct Listing {
    sections: Vec<ListedSection>,
    /// The section being listed.
    current: usize,
}

impl Keys for Listing {
    fn section<S: Section>(&mut self, name: &'static str, section: &mut S, about: &'static str) {
        let outer = self.current;
        let name = join(&self.sections[outer].name, name);
        self.current = self.sections.len();
        self.sections.push(ListedSection { name, about, keys: Vec::new() });
        section.keys(self);
        self.current = outer;
    }

    fn key<T>(&mut self, name: &'static str, field: &mut T, kind: Kind<T>, about: &'static str) {
        self.sections[self.current].keys.push(ListedKey {
            name,
            about,
            expected: kind.expected,
            value: (kind.write)(field),
            exposure: kind.exposure,
        });
    }

    fn table<T>(
        &mut self,
        name: &'static str,
        field: &mut BTreeMap<String, T>,
        kind: Kind<T>,
        about: &'static str,
    ) {
        let entries: Vec<String> = field
            .iter()
            .map(|(name, value)| format!("{} = {}", quote_name(name), (kind.write)(value)))
            .collect();
        let value =
            if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) };
        self.sections[self.current].keys.push(ListedKey {
            name,
            about,
            expected: kind.expected,
            value,
            exposure: kind.exposure,
        });
    }

    fn legacy<T>(&mut self, _name: &'static str, _field: &mut T, _kind: Kind<T>) {}

    fn removed(&mut self, _name: &'static str) {}
}

/// The full name of a key or an inner section.
pub(crate) fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}
