//! Collections of documents: their names, and sets of them. Knows nothing of documents.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use thiserror::Error;

/// The collection of documents that are indexed without naming one: the owner's.
pub const DEFAULT_COLLECTION: &str = "default";

/// The longest plain name.
pub const LONGEST_PLAIN_NAME: usize = 64;

/// Whether a text is short and plain: ASCII letters, digits, `-`, `_` and `.`, with a letter or digit first.
pub fn is_plain_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= LONGEST_PLAIN_NAME
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(is_letter)
}

/// The name of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionName(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{shown}' is not a name for a collection; use letters, digits, '-', '_' and '.', at most {LONGEST_PLAIN_NAME}, with a letter or digit first"
)]
pub struct InvalidCollectionName {
    shown: String,
}

impl CollectionName {
    pub fn parse(text: &str) -> Result<Self, InvalidCollectionName> {
        match is_plain_name(text) {
            true => Ok(CollectionName(text.into())),
            false => Err(InvalidCollectionName { shown: text.chars().take(60).collect() }),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for CollectionName {
    fn default() -> Self {
        CollectionName(DEFAULT_COLLECTION.into())
    }
}

impl fmt::Display for CollectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for CollectionName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The collections that a caller may read, or that a search is restricted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CollectionSet {
    /// Also those that are created later.
    All,
    /// These. An empty list is no collection at all.
    Only(Vec<CollectionName>),
}

impl CollectionSet {
    pub fn none() -> Self {
        CollectionSet::Only(Vec::new())
    }

    pub fn of(name: CollectionName) -> Self {
        CollectionSet::Only(vec![name])
    }

    pub fn is_empty(&self) -> bool {
        self.names().is_some_and(<[CollectionName]>::is_empty)
    }

    /// `None` for all.
    pub fn names(&self) -> Option<&[CollectionName]> {
        match self {
            CollectionSet::All => None,
            CollectionSet::Only(names) => Some(names),
        }
    }

    /// The wanted ones of this set; all of it if none is named. The error is the first that is not in it.
    pub fn select(&self, wanted: Vec<CollectionName>) -> Result<CollectionSet, CollectionName> {
        if wanted.is_empty() {
            return Ok(self.clone());
        }
        let is_missing = |name: &&CollectionName| self.names().is_some_and(|names| !names.contains(name));
        match wanted.iter().find(is_missing) {
            Some(name) => Err(name.clone()),
            None => Ok(CollectionSet::Only(wanted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CollectionName {
        CollectionName::parse(text).expect("a name")
    }

    #[test]
    fn names_are_short_and_plain() {
        for text in ["team", "hand-book_2.eu", "7", DEFAULT_COLLECTION] {
            assert_eq!(name(text).as_str(), text);
        }
        for text in ["", "-x", "a b", "ä", "a/b", "a,b", "\0", &"x".repeat(65)] {
            assert!(CollectionName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_selection_is_never_more_than_the_set() {
        let team = CollectionSet::Only(vec![name("team"), name("handbook")]);
        assert_eq!(team.select(Vec::new()), Ok(team.clone()));
        assert_eq!(team.select(vec![name("team")]), Ok(CollectionSet::of(name("team"))));
        assert_eq!(team.select(vec![name("team"), name("default")]), Err(name("default")));
        assert_eq!(CollectionSet::All.select(Vec::new()), Ok(CollectionSet::All));
        assert_eq!(CollectionSet::All.select(vec![name("any")]), Ok(CollectionSet::of(name("any"))));
        assert_eq!(CollectionSet::none().select(vec![name("team")]), Err(name("team")));
        assert!(CollectionSet::none().is_empty() && !CollectionSet::All.is_empty());
    }
}
