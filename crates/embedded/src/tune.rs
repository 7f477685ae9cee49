//! Finds the form of a model's weights that this machine runs fastest, and what it costs in quality.
//!
//! The only other form tried is Q4_0: it is the one llama.cpp rearranges for most processors. The faster form stays beside the
//! original under `tuned/`, where the engine finds it by the same name; the original is never touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hob_core::EngineError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use crate::error::unusable;
use crate::loaded::{Loaded, STEP, backend};
use crate::models::lock::ModelLock;
use crate::models::store::{tuned_form, unchanged_note, unfinished_form};
use crate::models::{Header, StoredModel};
use crate::options::EmbeddedOptions;
use crate::quantize;

/// Ordinary prose, to compare what two forms of a model make of it.
const PROSE: &str = include_str!("tune_prose.txt");

const PROMPT_TOKENS: usize = 256;
const WRITTEN_TOKENS: usize = 32;
const ROUNDS: usize = 3;
/// Tokens whose scores are compared at a time; a score for every word of the vocabulary takes room.
const COMPARED_AT_ONCE: usize = 64;
/// Less of a gain is not worth any loss of quality.
const WORTH_IT: f64 = 1.15;

/// What stands in the note about a model that is fastest as it is.
const UNCHANGED: &str = "Hob measured this model here and found no faster form of it.\n";

/// When the other form of a model is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Only if it is worth its loss of quality.
    IfFaster,
    /// In any case; it is smaller too.
    Always,
}

/// One form of a model, as measured here.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
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

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneReport {
    pub original: Measured,
    pub tuned: Measured,
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

/// The file to load: the tuned form, unless there is none or the model was replaced since.
pub(crate) fn file_to_load(stored: &StoredModel) -> PathBuf {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    tuned_form(&stored.path)
        .filter(|tuned| match (modified(tuned), modified(&stored.path)) {
            (Some(tuned), Some(original)) => tuned >= original,
            _ => false,
        })
        .unwrap_or_else(|| stored.path.clone())
}

/// Whether nobody has tuned this model yet, as it is now.
pub(crate) fn is_due(stored: &StoredModel) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let Some(original) = modified(&stored.path) else { return false };
    let traces = [tuned_form(&stored.path), unchanged_note(&stored.path)];
    !traces.into_iter().flatten().any(|trace| modified(&trace).is_some_and(|modified| modified >= original))
}

/// Why a model was not tuned to the end.
#[derive(Debug)]
pub(crate) enum TuneError {
    /// There was something more important to do.
    Interrupted,
    Failed(EngineError),
}

impl From<EngineError> for TuneError {
    fn from(error: EngineError) -> Self {
        TuneError::Failed(error)
    }
}

/// Asked between steps whether there is still time for this.
pub(crate) type KeepGoing<'a> = &'a dyn Fn() -> bool;

fn check(keep_going: KeepGoing<'_>) -> Result<(), TuneError> {
    if keep_going() { Ok(()) } else { Err(TuneError::Interrupted) }
}

/// A model on its way to another form. What is not finished is removed with the value.
pub(crate) struct Tuning<'a> {
    stored: &'a StoredModel,
    options: &'a EmbeddedOptions,
    /// Where the other form is kept.
    target: PathBuf,
    /// Where it is written. A directory, because a file could be made anew just after it was removed.
    directory: PathBuf,
    /// Against another process with the same idea.
    _lock: ModelLock,
}

impl<'a> Tuning<'a> {
    pub(crate) fn begin(stored: &'a StoredModel, options: &'a EmbeddedOptions) -> Result<Self, EngineError> {
        // Also takes over the library's log, before it has anything to say.
        backend()?;
        if stored.header.as_ref().is_some_and(|header| header.is_embedding) {
            return Err(failed(stored, "it is an embedding model", &"only models that write are measured"));
        }
        if stored.files.len() != 1 {
            return Err(failed(stored, "it consists of several files", &stored.files.len()));
        }
        let target = tuned_form(&stored.path)
            .ok_or_else(|| failed(stored, "it has no directory", &stored.path.display()))?;
        if let Some(dir) = target.parent() {
            fs::create_dir_all(dir)
                .map_err(|error| failed(stored, "no directory for its other form", &error))?;
        }
        let lock = ModelLock::try_take(&options.models_dir, &stored.id)
            .map_err(|error| failed(stored, "it cannot be locked", &error))?
            .ok_or_else(|| failed(stored, "it is busy", &"another process pulls, tunes or removes it"))?;
        let directory = unfinished_form(&stored.path)
            .ok_or_else(|| failed(stored, "it has no directory", &stored.path.display()))?;
        // Of a run that was killed.
        clear(&directory);
        fs::create_dir(&directory)
            .map_err(|error| failed(stored, "no directory for its other form", &error))?;
        Ok(Tuning { stored, options, target, directory, _lock: lock })
    }

    /// What there is of the other form lies in here until it is finished.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn unfinished(&self) -> PathBuf {
        self.directory.join("model.gguf")
    }

    /// The writing of the other form, for whoever has so many threads for it.
    pub(crate) fn draft(&self, threads: usize) -> Draft {
        Draft {
            id: self.stored.id.clone(),
            from: self.stored.path.clone(),
            to: self.unfinished(),
            threads: i32::try_from(threads).unwrap_or(1),
        }
    }

    /// Measures what was written against what was there.
    pub(crate) fn judge(&self, keep: Keep, keep_going: KeepGoing<'_>) -> Result<TuneReport, TuneError> {
        let stored = self.stored;
        let (original, tuned, cost) = compare(stored, &self.unfinished(), self.options, keep_going)?;
        let mut report = TuneReport { original, tuned, cost, kept: None };
        if keep == Keep::Always || report.gain() > WORTH_IT {
            fs::rename(self.unfinished(), &self.target)
                .map_err(|error| failed(stored, "its other form cannot be kept", &error))?;
            report.kept = Some(self.target.clone());
        } else if let Some(note) = unchanged_note(&stored.path) {
            fs::write(note, UNCHANGED)
                .map_err(|error| failed(stored, "that it stays cannot be noted", &error))?;
        }
        Ok(report)
    }
}

impl Drop for Tuning<'_> {
    fn drop(&mut self) {
        clear(&self.directory);
    }
}

/// Removes a directory in which a model is written. Half a file helps nobody; that it cannot be removed either changes nothing.
pub(crate) fn clear(directory: &Path) {
    // The file may appear just before the directory goes. It is opened only once, so twice is enough.
    let gone = fs::remove_dir_all(directory).or_else(|_| fs::remove_dir_all(directory));
    // Earlier versions wrote a file of that name.
    let _ = gone.or_else(|_| fs::remove_file(directory));
}

/// The other form of a model, to be written.
pub(crate) struct Draft {
    id: String,
    from: PathBuf,
    to: PathBuf,
    threads: i32,
}

impl Draft {
    /// Cannot be interrupted; a second or two for each hundred million parameters.
    pub(crate) fn write(&self) -> Result<(), EngineError> {
        quantize::to_q4_0(&self.from, &self.to, self.threads)
            .map_err(|error| cannot(&self.id, "it cannot be written anew", &error))
    }
}

fn failed(stored: &StoredModel, doing: &str, error: &dyn std::fmt::Display) -> EngineError {
    cannot(&stored.id, doing, error)
}

fn cannot(id: &str, doing: &str, error: &dyn std::fmt::Display) -> EngineError {
    unusable(format!("the model '{id}' cannot be tuned: {doing}: {error}"))
}

fn compare(
    stored: &StoredModel,
    other: &Path,
    options: &EmbeddedOptions,
    keep_going: KeepGoing<'_>,
) -> Result<(Measured, Measured, QualityCost), TuneError> {
    check(keep_going)?;
    let options = EmbeddedOptions { context: Some(1024), ..options.clone() };
    let (header, size) = Header::read_file(other).map_err(|error| unusable(error.to_string()))?;
    let (before, after) =
        (Loaded::load_file(stored, &stored.path, &options)?, Loaded::load_file(stored, other, &options)?);
    let (mut first, mut second) =
        (before.writing_context(before.room.cells)?, after.writing_context(after.room.cells)?);
    let tokens = before.tokens(PROSE, true);
    let mut original = Measured {
        quantization: quantization(stored.header.as_deref()),
        bytes: stored.size,
        prompt_tokens_per_second: 0.0,
        written_tokens_per_second: 0.0,
    };
    let mut tuned = Measured { quantization: quantization(Some(&header)), bytes: size, ..original.clone() };
    // Taking turns, so that a busy moment of the machine hits both alike; the best round is the least disturbed one.
    for _ in 0..ROUNDS {
        time(&mut first, &tokens, &mut original, keep_going)?;
        time(&mut second, &tokens, &mut tuned, keep_going)?;
    }
    let cost = quality(&mut first, &mut second, &tokens, keep_going)?;
    Ok((original, tuned, cost))
}

fn quantization(header: Option<&Header>) -> String {
    header.and_then(|header| header.quantization).unwrap_or("unknown").to_owned()
}

/// Reads a prompt and writes some tokens.
fn time(
    context: &mut LlamaContext<'_>,
    tokens: &[i32],
    best: &mut Measured,
    keep_going: KeepGoing<'_>,
) -> Result<(), TuneError> {
    check(keep_going)?;
    let prompt = &tokens[..tokens.len().min(PROMPT_TOKENS)];
    context.clear_kv_cache();
    let started = Instant::now();
    // In pieces, as the worker reads it.
    for (piece, at) in prompt.chunks(STEP.alone).zip((0..).step_by(STEP.alone)) {
        decode(context, piece, at, Scores::Last)?;
        context.synchronize();
        check(keep_going)?;
    }
    let read = prompt.len() as f64 / started.elapsed().as_secs_f64();
    let started = Instant::now();
    for (offset, token) in tokens.iter().cycle().take(WRITTEN_TOKENS).enumerate() {
        decode(context, &[*token], prompt.len() + offset, Scores::Last)?;
        context.synchronize();
        check(keep_going)?;
    }
    let written = WRITTEN_TOKENS as f64 / started.elapsed().as_secs_f64();
    best.prompt_tokens_per_second = best.prompt_tokens_per_second.max(read);
    best.written_tokens_per_second = best.written_tokens_per_second.max(written);
    Ok(())
}

/// Which tokens of a batch give scores.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scores {
    Last,
    All,
}

fn decode(
    context: &mut LlamaContext<'_>,
    tokens: &[i32],
    start: usize,
    scores: Scores,
) -> Result<(), EngineError> {
    let failed = |error: &dyn std::fmt::Display| unusable(format!("the model cannot be run: {error}"));
    let mut batch = LlamaBatch::new(tokens.len(), 1);
    for (offset, &token) in tokens.iter().enumerate() {
        let wanted = scores == Scores::All || offset + 1 == tokens.len();
        let position = i32::try_from(start + offset).map_err(|error| failed(&error))?;
        batch.add(LlamaToken(token), position, &[0], wanted).map_err(|error| failed(&error))?;
    }
    context.decode(&mut batch).map_err(|error| failed(&error))
}

/// Compares what both make of the same prose, token by token.
fn quality(
    first: &mut LlamaContext<'_>,
    second: &mut LlamaContext<'_>,
    tokens: &[i32],
    keep_going: KeepGoing<'_>,
) -> Result<QualityCost, TuneError> {
    first.clear_kv_cache();
    second.clear_kv_cache();
    let (mut before, mut after, mut divergence) = (0.0, 0.0, 0.0);
    let known = tokens.len().saturating_sub(1);
    for (chunk_at, chunk) in tokens[..known].chunks(COMPARED_AT_ONCE).enumerate() {
        let start = chunk_at * COMPARED_AT_ONCE;
        check(keep_going)?;
        decode(first, chunk, start, Scores::All)?;
        decode(second, chunk, start, Scores::All)?;
        for (row, at) in (0..).zip(start..start + chunk.len()) {
            let (p, q) =
                (log_probabilities(first.get_logits_ith(row)), log_probabilities(second.get_logits_ith(row)));
            if let Some(next) = tokens.get(at + 1).and_then(|next| usize::try_from(*next).ok()) {
                before -= p.get(next).copied().unwrap_or(0.0);
                after -= q.get(next).copied().unwrap_or(0.0);
            }
            divergence += p.iter().zip(&q).map(|(p, q)| p.exp() * (p - q)).sum::<f64>();
        }
    }
    let count = known.max(1) as f64;
    Ok(QualityCost {
        perplexity_before: (before / count).exp(),
        perplexity_after: (after / count).exp(),
        divergence: divergence / count,
    })
}

fn log_probabilities(scores: &[f32]) -> Vec<f64> {
    let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = scores.iter().map(|score| f64::from(score - best).exp()).sum();
    let shift = f64::from(best) + sum.ln();
    scores.iter().map(|score| f64::from(*score) - shift).collect()
}
