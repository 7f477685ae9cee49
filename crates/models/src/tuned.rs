//! The tuned form of a model: the same weights in the form that runs fastest on this machine. Where its files lie, and what a
//! measurement says of it.
//!
//! The tuned form has the name of the original, in the directory `tuned` beside it. The original is never changed. Knows nothing of
//! how models are measured.

use std::fs;
use std::path::{Path, PathBuf};

use crate::directory::StoredModel;

/// When the other form of a model is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepTuned {
    /// Only if it is worth its loss of quality.
    IfFaster,
    /// In any case; it is smaller too.
    Always,
}

/// One form of a model, as measured on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredForm {
    /// Such as `Q4_1`.
    pub quantization: String,
    pub bytes: u64,
    pub prompt_tokens_per_second: f64,
    pub written_tokens_per_second: f64,
}

/// What another form does to a model's answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QualityCost {
    /// How surprised the original is by ordinary prose; lower is better.
    pub perplexity_before: f64,
    pub perplexity_after: f64,
    /// How far its expectations move on average, in nats; zero is not at all.
    pub divergence: f64,
}

/// What a measurement of two forms found.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneReport {
    pub original: MeasuredForm,
    pub tuned: MeasuredForm,
    pub cost: QualityCost,
    /// Where the other form lies, if it was kept.
    pub kept: Option<PathBuf>,
}

impl TuneReport {
    /// How much faster the other form is, prompt and writing weighed alike.
    pub fn gain(&self) -> f64 {
        let prompt = self.tuned.prompt_tokens_per_second / self.original.prompt_tokens_per_second;
        let written = self.tuned.written_tokens_per_second / self.original.written_tokens_per_second;
        (prompt * written).sqrt()
    }
}

/// Where the tuned form of a model file lies.
pub fn tuned_form(file: &Path) -> Option<PathBuf> {
    Some(file.parent()?.join("tuned").join(file.file_name()?))
}

/// The directory in which that form is written.
pub fn unfinished_form(file: &Path) -> Option<PathBuf> {
    Some(tuned_form(file)?.with_extension("gguf.part"))
}

/// Where earlier versions noted that a model was measured and stays as it is. It is removed with the model.
pub(crate) fn unchanged_note(file: &Path) -> Option<PathBuf> {
    Some(tuned_form(file)?.with_extension("txt"))
}

/// The file to load: the tuned form, unless there is none or the model was replaced since.
pub fn file_to_load(stored: &StoredModel) -> PathBuf {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    tuned_form(&stored.path)
        .filter(|tuned| match (modified(tuned), modified(&stored.path)) {
            (Some(tuned), Some(original)) => tuned >= original,
            _ => false,
        })
        .unwrap_or_else(|| stored.path.clone())
}

/// Removes a directory in which a tuned form is written. A failure is not reported: an unfinished file does no harm, and the next
/// tuning removes it.
pub fn clear(directory: &Path) {
    // The file may appear just before the directory is removed. It is opened only once, so a second try is enough.
    let gone = fs::remove_dir_all(directory).or_else(|_| fs::remove_dir_all(directory));
    // Earlier versions wrote a file of that name.
    let _ = gone.or_else(|_| fs::remove_file(directory));
}
