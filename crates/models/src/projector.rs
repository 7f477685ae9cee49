//! Projectors: files that read pictures and sound for a model, and which model each belongs to. Pure.
//!
//! A pull writes `mmproj-MODEL.gguf` beside `MODEL.gguf`. Files that people put there themselves have similar names.

use std::path::{Path, PathBuf};

use crate::gguf::{GgufHeader, ProjectorHeader};
use crate::names::EXTENSION;

/// The start of the name of a projector, as model hubs use it.
const PREFIX: &str = "mmproj";

/// What a projector in the directory of models is missing.
const NO_MODEL: &str = "it is a projector, which reads pictures or sound for a model, and no model here has its name. Rename it to \
                        'mmproj-MODEL.gguf'.";

/// The projector of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProjector {
    pub path: PathBuf,
    pub size: u64,
    /// As llama.cpp names it, such as `gemma3`.
    pub kind: Option<String>,
    pub sees: bool,
    pub hears: bool,
}

impl StoredProjector {
    pub(crate) fn new(path: &Path, size: u64, header: &ProjectorHeader) -> Self {
        let ProjectorHeader { kind, sees, hears } = header.clone();
        StoredProjector { path: path.to_owned(), size, kind, sees, hears }
    }
}

/// Why a file with this header is not a model on its own.
pub(crate) fn problem_alone(header: &GgufHeader) -> Option<String> {
    header.projector.is_some().then(|| NO_MODEL.to_owned())
}

/// The name of the projector of a model.
pub(crate) fn file_name(id: &str) -> String {
    format!("{PREFIX}-{id}.{EXTENSION}")
}

pub(crate) fn is_projector_name(stem: &str) -> bool {
    stem.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// How well the name of a projector fits a model; `None` if it does not.
pub(crate) fn fits(stem: &str, id: &str) -> Option<NameFit> {
    let name = is_projector_name(stem).then(|| stem[PREFIX.len()..].trim_start_matches(['-', '_', '.']))?;
    if name.is_empty() {
        None
    } else if name == id {
        Some(NameFit::Exact)
    } else {
        (without_quantization(name) == without_quantization(id)).then_some(NameFit::Similar)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameFit {
    /// But for the quantisation and the case.
    Similar,
    Exact,
}

/// `SmolVLM-500M-Instruct-Q8_0` → `smolvlm-500m-instruct`
fn without_quantization(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let is_quantization = |word: &str| {
        let digits = word.trim_start_matches(['i', 'q', 'b', 'f', 'p']);
        digits.len() < word.len() && digits.starts_with(|c: char| c.is_ascii_digit())
    };
    match name.rsplit_once(['-', '.']) {
        Some((before, last)) if is_quantization(last) => before.to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projector_belongs_to_the_model_of_its_name() {
        for (stem, id, fit) in [
            ("mmproj-gemma-3-4b-it", "gemma-3-4b-it", Some(NameFit::Exact)),
            ("mmproj-SmolVLM-500M-Instruct-f16", "SmolVLM-500M-Instruct-Q8_0", Some(NameFit::Similar)),
            ("mmproj-smolvlm-500m-instruct.BF16", "SmolVLM-500M-Instruct-Q4_K_M", Some(NameFit::Similar)),
            ("MMPROJ-x", "x-IQ4_XS", Some(NameFit::Similar)),
            ("mmproj-gemma-3-4b-it", "gemma-3-12b-it", None),
            ("mmproj-model-f16", "gemma-3-4b-it", None),
            ("mmproj", "", None),
            ("gemma-3-4b-it", "gemma-3-4b-it", None),
        ] {
            assert_eq!(fits(stem, id), fit, "{stem} {id}");
        }
        assert_eq!(file_name("m"), "mmproj-m.gguf");
    }
}
