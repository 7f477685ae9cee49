//! What the list of models says of a model.

use std::borrow::Cow;

use serde::Deserialize;

use crate::checksum::Checksum;

/// A model that can be pulled by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The id in the directory, which is also a name for a pull.
    pub name: &'static str,
    /// The usual name, such as `qwen3:8b`.
    pub short_name: &'static str,
    /// Other names, such as `qwen3`.
    pub also: Cow<'static, [&'static str]>,
    /// What it is for.
    pub about: &'static str,
    /// Such as `apache-2.0`.
    pub license: &'static str,
    /// About the bytes of the weights.
    pub size: u64,
    /// About the number of weights.
    pub parameters: u64,
    /// The weights that a token uses, where that is not all of them.
    pub active_parameters: Option<u64>,
    /// Tokens that it was trained for.
    pub context: u64,
    /// `None` for a model without a cache.
    pub kv: Option<KvShape>,
    pub can: Cow<'static, [ModelAbility]>,
    /// The file that a model needs to see.
    pub projector: Option<Projector>,
    /// Whether a new installation may be offered it.
    pub is_offered: bool,
    pub source: ModelSource,
}

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelAbility {
    Chat,
    Tools,
    Reasoning,
    Vision,
    Embedding,
}

impl ModelAbility {
    pub fn as_str(self) -> &'static str {
        match self {
            ModelAbility::Chat => "chat",
            ModelAbility::Tools => "tools",
            ModelAbility::Reasoning => "reasoning",
            ModelAbility::Vision => "vision",
            ModelAbility::Embedding => "embedding",
        }
    }
}

/// The shape of the keys and values that a model stores for each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvShape {
    pub layers: u64,
    /// Heads of keys and values in each layer.
    pub heads: u64,
    /// Numbers of each head.
    pub head_size: u64,
}

impl KvShape {
    /// Numbers of one token in the keys and values of all layers.
    pub fn numbers_per_token(self) -> u64 {
        const KEY_AND_VALUE: u64 = 2;
        self.layers * self.heads * self.head_size * KEY_AND_VALUE
    }

    /// Bytes of one token, in 16 bits each.
    pub fn bytes_per_token(self) -> u64 {
        const F16: u64 = 2;
        self.numbers_per_token() * F16
    }
}

/// The part of a model that reads pictures, as a file in the same repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Projector {
    pub file: &'static str,
    /// About the bytes.
    pub size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelSource {
    Pinned(PinnedModel),
    /// `wanted` is a file name; the first of several.
    Hub {
        repo: &'static str,
        wanted: &'static str,
    },
}

impl CatalogueEntry {
    pub fn can(&self, ability: ModelAbility) -> bool {
        self.can.contains(&ability)
    }

    /// About the bytes of all files.
    pub fn total_size(&self) -> u64 {
        self.size + self.projector.map_or(0, |projector| projector.size)
    }

    /// About the bytes of weights that are read for each token.
    pub fn bytes_per_token(&self) -> u64 {
        match self.active_parameters {
            Some(active) => (self.size as f64 * (active as f64 / self.parameters as f64)) as u64,
            None => self.size,
        }
    }

    /// Whether all words occur in its names or its description, ignoring case.
    pub fn matches(&self, words: &str) -> bool {
        let mut text = [self.name, self.short_name, self.about, self.license].join(" ").to_lowercase();
        for ability in self.can.iter() {
            text.push(' ');
            text.push_str(ability.as_str());
        }
        words.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        let mut names = [self.name, self.short_name].into_iter().chain(self.also.iter().copied());
        names.any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// A model with a pinned checksum, so that its source does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinnedModel {
    pub hub: HubRevision,
    pub wheel: PythonPackage,
    pub packed: PublishedForm,
    /// The exact bytes of the stored model.
    pub size: u64,
    pub sha256: Checksum,
}

/// A pinned revision of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubRevision {
    pub repo: &'static str,
    pub commit: &'static str,
}

/// A Python package with the same files. `pip` downloads it, with the user's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PythonPackage {
    pub package: &'static str,
    pub version: &'static str,
    pub download: u64,
}

/// The published form of a model. Paths are those in its package; the hub has the same names without directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedForm {
    /// As stored, at this path.
    Gguf(&'static str),
    /// As files that are converted.
    Bert(&'static BertPublication),
}

/// The files of a BERT model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BertPublication {
    /// The name in the model.
    pub name: &'static str,
    pub weights: PublishedFile,
    pub vocabulary: PublishedFile,
    pub config: PublishedFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedFile {
    pub path: &'static str,
    pub size: u64,
    pub sha256: Checksum,
}

impl PinnedModel {
    pub fn members(&self) -> Vec<PublishedFile> {
        match self.packed {
            PublishedForm::Gguf(path) => vec![PublishedFile { path, size: self.size, sha256: self.sha256 }],
            PublishedForm::Bert(members) => vec![members.vocabulary, members.config, members.weights],
        }
    }
}

impl PublishedForm {
    pub fn main_file(&self) -> &'static str {
        file_name(match *self {
            PublishedForm::Gguf(path) => path,
            PublishedForm::Bert(members) => members.weights.path,
        })
    }
}

impl PublishedFile {
    pub fn file_name(&self) -> &'static str {
        file_name(self.path)
    }
}

fn file_name(path: &'static str) -> &'static str {
    path.rsplit('/').next().unwrap_or(path)
}
