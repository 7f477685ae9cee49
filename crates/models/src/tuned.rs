//! The tuned form of a model: the same weights in a form that is faster on this machine.
//!
//! The tuned form has the name of the original, in the directory `tuned` beside it. The original never changes. Knows nothing of
//! the measurements.

use std::fs;
use std::path::{Path, PathBuf};

/// When the tuned form is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepTuned {
    /// If the speed is worth the loss of quality.
    IfFaster,
    /// Always; it is also smaller.
    Always,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredForm {
    /// Such as `Q4_1`.
    pub quantization: String,
    pub bytes: u64,
    pub prompt_tokens_per_second: f64,
    pub written_tokens_per_second: f64,
}

/// The loss of quality.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QualityCost {
    /// The perplexity of prose; lower is better.
    pub perplexity_before: f64,
    pub perplexity_after: f64,
    /// The mean Kullback-Leibler divergence in nats.
    pub divergence: f64,
}

/// The result of a tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneReport {
    pub original: MeasuredForm,
    pub tuned: MeasuredForm,
    pub cost: QualityCost,
    /// The path of the tuned form, if it was kept.
    pub kept: Option<PathBuf>,
}

impl TuneReport {
    /// The geometric mean of both speed-ups.
    pub fn gain(&self) -> f64 {
        let prompt = self.tuned.prompt_tokens_per_second / self.original.prompt_tokens_per_second;
        let written = self.tuned.written_tokens_per_second / self.original.written_tokens_per_second;
        (prompt * written).sqrt()
    }
}

/// The path of the tuned form.
pub fn tuned_form(file: &Path) -> Option<PathBuf> {
    Some(file.parent()?.join("tuned").join(file.file_name()?))
}

/// The temporary directory of a tuning.
pub fn unfinished_form(file: &Path) -> Option<PathBuf> {
    Some(tuned_form(file)?.with_extension("gguf.part"))
}

/// A note of earlier versions, which is deleted with the model.
pub(crate) fn unchanged_note(file: &Path) -> Option<PathBuf> {
    Some(tuned_form(file)?.with_extension("txt"))
}

/// The file to load: the tuned form, if it exists and is not older than the model.
pub fn file_to_load(original: &Path) -> PathBuf {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    tuned_form(original)
        .filter(|tuned| match (modified(tuned), modified(original)) {
            (Some(tuned), Some(original)) => tuned >= original,
            _ => false,
        })
        .unwrap_or_else(|| original.to_owned())
}

/// Deletes the temporary directory of a tuning. A failure is not reported: the next tuning deletes it.
pub fn clear(directory: &Path) {
    // The file may be created during the deletion, but only once, so a second try is enough.
    let gone = fs::remove_dir_all(directory).or_else(|_| fs::remove_dir_all(directory));
    // Earlier versions wrote a file of that name.
    let _ = gone.or_else(|_| fs::remove_file(directory));
}
