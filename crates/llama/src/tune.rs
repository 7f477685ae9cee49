//! Measures whether another form of the weights is faster on this machine, and its quality. Runs only on request.
//!
//! The only other form is Q4_0, which llama.cpp rearranges for most processors. The faster form is saved in `tuned/`, where the
//! engine finds it by the same name; the original never changes.
//!
//! Dropping the future ends the tuning and deletes its files. llama.cpp cannot be stopped while it writes, but its directory can
//! be deleted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use std::{fs, mem};

use hob_core::EngineError;
use hob_models::tuned::{
    KeepTuned, MeasuredForm, QualityCost, TuneReport, clear, tuned_form, unfinished_form,
};
use hob_models::{GgufHeader, StoredModel, try_lock_model};
use hob_process::LockFile;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use parking_lot::{Mutex, MutexGuard};

use crate::backends::backend;
use crate::batching::plan::STEP;
use crate::error::{interrupted, unusable};
use crate::loaded_model::LoadedModel;
use crate::options::LlamaOptions;
use crate::quantize;

/// Prose to compare two forms of a model.
const PROSE: &str = include_str!("tune_prose.txt");

const PROMPT_TOKENS: usize = 256;
const WRITTEN_TOKENS: usize = 32;
const ROUNDS: usize = 3;
/// Tokens per comparison, because all scores of a token need much memory.
const COMPARE_BATCH: usize = 64;
/// The speed-up that is worth a loss of quality.
const MIN_GAIN: f64 = 1.15;

#[derive(Debug)]
enum TuneError {
    /// The caller has disconnected.
    Interrupted,
    Failed(EngineError),
}

impl From<EngineError> for TuneError {
    fn from(error: EngineError) -> Self {
        TuneError::Failed(error)
    }
}

/// Checked between steps: whether the caller still waits.
type KeepGoing<'a> = &'a dyn Fn() -> bool;

fn check(keep_going: KeepGoing<'_>) -> Result<(), TuneError> {
    if keep_going() { Ok(()) } else { Err(TuneError::Interrupted) }
}

/// A tuning in progress. Dropping it deletes unfinished files.
struct Tuning<'a> {
    stored: &'a StoredModel,
    options: &'a LlamaOptions,
    /// The path of the tuned form.
    target: PathBuf,
    /// The temporary directory. A file could be created again after its deletion.
    directory: PathBuf,
    /// Excludes other processes.
    _lock: LockFile,
}

impl<'a> Tuning<'a> {
    fn begin(stored: &'a StoredModel, options: &'a LlamaOptions) -> Result<Self, EngineError> {
        // Also captures the log of the library.
        backend()?;
        if stored.header.as_ref().is_some_and(|header| header.is_embedding) {
            return Err(failed(
                stored,
                "it is an embedding model",
                &"only models that generate text can be tuned",
            ));
        }
        if stored.files.len() != 1 {
            return Err(failed(stored, "it consists of several files", &stored.files.len()));
        }
        let target = tuned_form(&stored.path)
            .ok_or_else(|| failed(stored, "it has no directory", &stored.path.display()))?;
        if let Some(dir) = target.parent() {
            fs::create_dir_all(dir).map_err(|error| failed(stored, "cannot create a directory", &error))?;
        }
        let lock = try_lock_model(&options.models_dir, &stored.id)
            .map_err(|error| failed(stored, "cannot lock it", &error))?
            .ok_or_else(|| failed(stored, "it is busy", &"another process pulls, tunes or deletes it"))?;
        let directory = unfinished_form(&stored.path)
            .ok_or_else(|| failed(stored, "it has no directory", &stored.path.display()))?;
        // Of an interrupted run.
        clear(&directory);
        fs::create_dir(&directory).map_err(|error| failed(stored, "cannot create a directory", &error))?;
        Ok(Tuning { stored, options, target, directory, _lock: lock })
    }

    /// The temporary directory.
    fn directory(&self) -> &Path {
        &self.directory
    }

    fn unfinished(&self) -> PathBuf {
        self.directory.join("model.gguf")
    }

    /// Writes the other form. Cannot be interrupted; takes a second or two per hundred million parameters.
    fn write(&self) -> Result<(), EngineError> {
        let threads = i32::try_from(self.options.threads).unwrap_or(1);
        quantize::to_q4_0(&self.stored.path, &self.unfinished(), threads)
            .map_err(|error| failed(self.stored, "cannot write the other form", &error))
    }

    /// Measures both forms.
    fn judge(&self, keep: KeepTuned, keep_going: KeepGoing<'_>) -> Result<TuneReport, TuneError> {
        let stored = self.stored;
        let (original, tuned, cost) = compare(stored, &self.unfinished(), self.options, keep_going)?;
        let mut report = TuneReport { original, tuned, cost, kept: None };
        if keep == KeepTuned::Always || report.gain() > MIN_GAIN {
            fs::rename(self.unfinished(), &self.target)
                .map_err(|error| failed(stored, "cannot save the other form", &error))?;
            report.kept = Some(self.target.clone());
        }
        Ok(report)
    }
}

impl Drop for Tuning<'_> {
    fn drop(&mut self) {
        clear(&self.directory);
    }
}

fn failed(stored: &StoredModel, doing: &str, error: &dyn std::fmt::Display) -> EngineError {
    let id = &stored.id;
    unusable(format!("cannot tune the model '{id}': {doing}: {error}"))
}

fn compare(
    stored: &StoredModel,
    other: &Path,
    options: &LlamaOptions,
    keep_going: KeepGoing<'_>,
) -> Result<(MeasuredForm, MeasuredForm, QualityCost), TuneError> {
    check(keep_going)?;
    let options = LlamaOptions { context: Some(1024), parallel: Some(1), ..options.clone() };
    let (header, size) = GgufHeader::read_file(other).map_err(|error| unusable(error.to_string()))?;
    let (before, after) = (
        LoadedModel::load_file(stored, &stored.path, &options)?,
        LoadedModel::load_file(stored, other, &options)?,
    );
    let (mut first, mut second) = (
        before.writing_context(before.context_size.cells)?,
        after.writing_context(after.context_size.cells)?,
    );
    let tokens = before.tokens(PROSE, true);
    let mut original = MeasuredForm {
        quantization: quantization(stored.header.as_deref()),
        bytes: stored.size,
        prompt_tokens_per_second: 0.0,
        written_tokens_per_second: 0.0,
    };
    let mut tuned =
        MeasuredForm { quantization: quantization(Some(&header)), bytes: size, ..original.clone() };
    // Alternating, so that other load affects both; the best round counts.
    for _ in 0..ROUNDS {
        time(&mut first, &tokens, &mut original, keep_going)?;
        time(&mut second, &tokens, &mut tuned, keep_going)?;
    }
    let cost = quality(&mut first, &mut second, &tokens, keep_going)?;
    Ok((original, tuned, cost))
}

fn quantization(header: Option<&GgufHeader>) -> String {
    header.and_then(|header| header.quantization).unwrap_or("unknown").to_owned()
}

/// Reads a prompt and generates some tokens.
fn time(
    context: &mut LlamaContext<'_>,
    tokens: &[i32],
    best: &mut MeasuredForm,
    keep_going: KeepGoing<'_>,
) -> Result<(), TuneError> {
    check(keep_going)?;
    let prompt = &tokens[..tokens.len().min(PROMPT_TOKENS)];
    context.clear_kv_cache();
    let started = Instant::now();
    // In chunks, as the worker.
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
    let failed = |error: &dyn std::fmt::Display| unusable(format!("cannot run the model: {error}"));
    let mut batch = LlamaBatch::new(tokens.len(), 1);
    for (offset, &token) in tokens.iter().enumerate() {
        let wanted = scores == Scores::All || offset + 1 == tokens.len();
        let position = i32::try_from(start + offset).map_err(|error| failed(&error))?;
        batch.add(LlamaToken(token), position, &[0], wanted).map_err(|error| failed(&error))?;
    }
    context.decode(&mut batch).map_err(|error| failed(&error))
}

/// Compares the scores of both forms, token by token.
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
    for (chunk_at, chunk) in tokens[..known].chunks(COMPARE_BATCH).enumerate() {
        let start = chunk_at * COMPARE_BATCH;
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

enum Stage {
    Ahead,
    /// Writing into this directory, or measuring.
    UnderWay(PathBuf),
    Over,
    /// The caller has disconnected.
    Abandoned,
}

/// Tunes a model on a blocking thread, while the future lives.
pub(crate) async fn tune_for_caller(
    stored: StoredModel,
    options: LlamaOptions,
    keep: KeepTuned,
) -> Result<TuneReport, EngineError> {
    let stage = Arc::new(Mutex::new(Stage::Ahead));
    let _caller = Caller(Arc::clone(&stage));
    let id = stored.id.clone();
    tokio::task::spawn_blocking(move || work(&stored, &options, keep, &stage))
        .await
        .map_err(|error| unusable(format!("cannot tune the model '{id}': {error}")))?
}

/// Takes a minute and all threads.
fn work(
    stored: &StoredModel,
    options: &LlamaOptions,
    keep: KeepTuned,
    stage: &Mutex<Stage>,
) -> Result<TuneReport, EngineError> {
    let is_wanted = || !matches!(*lock(stage), Stage::Abandoned);
    let tuning = Tuning::begin(stored, options)?;
    enter(stage, Stage::UnderWay(tuning.directory().to_owned()));
    let outcome = match is_wanted() {
        true => tuning.write().map_err(TuneError::from),
        false => Err(TuneError::Interrupted),
    };
    let outcome = outcome.and_then(|()| tuning.judge(keep, &is_wanted));
    // The directory may now belong to another process.
    enter(stage, Stage::Over);
    match outcome {
        Ok(report) => Ok(report),
        Err(TuneError::Failed(error)) => Err(error),
        Err(TuneError::Interrupted) => Err(interrupted("the tuning was interrupted")),
    }
}

/// Enters the next stage, unless the caller has disconnected.
fn enter(stage: &Mutex<Stage>, next: Stage) {
    let mut stage = lock(stage);
    if !matches!(*stage, Stage::Abandoned) {
        *stage = next;
    }
}

/// Dropped with the caller's future.
struct Caller(Arc<Mutex<Stage>>);

impl Drop for Caller {
    fn drop(&mut self) {
        let mut stage = lock(&self.0);
        // Under the lock, so that the thread does not release the model first.
        if let Stage::UnderWay(directory) = mem::replace(&mut *stage, Stage::Abandoned) {
            clear(&directory);
        }
    }
}

fn lock(stage: &Mutex<Stage>) -> MutexGuard<'_, Stage> {
    stage.lock()
}
