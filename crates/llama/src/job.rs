//! Requests to a worker.

use hob_core::{Delta, EngineError, LogScope};
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
    /// The HTTP request that it is for, so that the log lines of the model's thread name it.
    pub(crate) log_scope: LogScope,
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use hob_core::{GenerateRequest, with_request_id};
    use tokio::sync::Semaphore;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;
    use crate::constraint::Constraint;
    use crate::request::AnswerOptions;
    use crate::sequence::Sequence;
    use crate::token_choice::Broken;

    /// Each event as a line of Hob's log, without its words.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Log {
        fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _attributes: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _span: &Id, _values: &Record<'_>) {}

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

        fn event(&self, _event: &Event<'_>) {
            let line = with_request_id(b"WARN\n").into_owned();
            self.0.lock().unwrap().push(String::from_utf8(line).unwrap());
        }

        fn enter(&self, _span: &Id) {}

        fn exit(&self, _span: &Id) {}
    }

    #[test]
    fn the_log_line_of_a_broken_answer_names_its_request() {
        let prepared = Prepared {
            prompt: vec![1],
            media: Vec::new(),
            ask: AnswerOptions::read(&GenerateRequest::default(), 1).unwrap(),
            constraint: Constraint::default(),
            format: None,
            visible: Vec::new(),
            repeated: None,
        };
        let (output, _deltas) = mpsc::channel(1);
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let job = Job { prepared, output, longest: 1, place, log_scope: LogScope::of("req_1".into()) };
        let sequences = Sequence::all(job, &[0], 0);
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || sequences[0].break_off(&Broken::NoToken, "m"));
        assert_eq!(*log.0.lock().unwrap(), ["WARN request_id=req_1\n"]);
    }
}
