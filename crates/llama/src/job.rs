//! What a caller hands to a worker.

use hob_core::{Delta, EngineError};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::prompt::Prepared;

/// Where the pieces of an answer go. Its receiver's end is the caller's wish to stop.
pub(crate) type Output = mpsc::Sender<Result<Delta, EngineError>>;

/// A request for answers.
pub(crate) struct Job {
    pub(crate) prepared: Prepared,
    pub(crate) output: Output,
    /// Tokens an answer may have, whatever the caller wishes.
    pub(crate) longest: usize,
    /// Its place among those who are answered or wait, given back at its end.
    pub(crate) place: OwnedSemaphorePermit,
}

impl Job {
    /// Tokens of memory for the first answer with its prompt, and for each further one.
    pub(crate) fn cells(&self) -> (usize, usize) {
        (self.prepared.prompt.len() + self.longest, self.longest)
    }
}

/// How vectors are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VectorForm {
    /// With length one.
    Normalised,
    /// As the model gives them: scores.
    Raw,
}

/// A request for embeddings.
pub(crate) struct EmbedJob {
    pub(crate) inputs: Vec<Vec<i32>>,
    pub(crate) form: VectorForm,
    pub(crate) reply: oneshot::Sender<Result<Vec<Vec<f32>>, EngineError>>,
    pub(crate) _place: OwnedSemaphorePermit,
}

/// A prompt to read ahead while the model is idle.
pub(crate) struct WarmJob {
    pub(crate) prompt: Vec<i32>,
    /// Its receiver's end is the caller's wish to stop.
    pub(crate) done: oneshot::Sender<()>,
}
