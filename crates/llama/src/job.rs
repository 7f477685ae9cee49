//! Requests to a worker.

use hob_core::{Delta, EngineError};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::prompt::Prepared;

/// The deltas of an answer. Dropping the receiver stops the answer.
pub(crate) type Output = mpsc::Sender<Result<Delta, EngineError>>;

/// A request for answers.
pub(crate) struct Job {
    pub(crate) prepared: Prepared,
    pub(crate) output: Output,
    /// The limit of tokens of an answer.
    pub(crate) longest: usize,
    /// Its slot in the queue.
    pub(crate) place: OwnedSemaphorePermit,
}

impl Job {
    /// The beginning of the prompt that need not be read again. A prompt whose tokens are scored is read completely.
    pub(crate) fn reusable(&self) -> &[i32] {
        match &self.prepared.repeated {
            Some(_) => &[],
            None => &self.prepared.prompt,
        }
    }

    /// The cells of the first answer with its prompt, and of each further one.
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
    /// Dropping the receiver stops it.
    pub(crate) done: oneshot::Sender<()>,
}
