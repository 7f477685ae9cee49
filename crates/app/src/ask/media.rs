//! Sound and pictures, passed on to the engine that has the model.

use hob_core::caller_policy::admit_media;
use hob_core::{
    AnswerWarning, AskError, Caller, Engine, EngineError, MediaAnswer, MediaRequest, RunningRequest,
};
use hob_telemetry::trace::end_with;

use super::AskService;
use crate::ask::key_admission::{Begun, counted};

/// An answer in progress, with its engine and model.
pub struct MediaAnswered {
    /// The key of the engine that answers.
    pub engine: String,
    pub answer: MediaAnswer,
    pub warnings: Vec<AnswerWarning>,
}

impl MediaAnswered {
    /// The same, whose request counts as running until the answer ends.
    fn counted(self, running: Option<RunningRequest>) -> Self {
        let MediaAnswer { content_type, body } = self.answer;
        MediaAnswered { answer: MediaAnswer { content_type, body: counted(body, running) }, ..self }
    }
}

impl AskService {
    /// Passes a request on to the engine that has its model. There is no default model for sound and pictures.
    pub async fn media(&self, request: MediaRequest, caller: &Caller) -> Result<MediaAnswered, AskError> {
        let Begun { caller, running, mut span } = self.begin(caller, &request.model).await?;
        let answered = self.passed_on(request, &caller).await.map(|answered| answered.counted(running));
        end_with(&mut span, &answered);
        answered
    }

    async fn passed_on(&self, mut request: MediaRequest, caller: &Caller) -> Result<MediaAnswered, AskError> {
        let warnings = admit_media(&mut request, caller.role)?;
        let engine = self.pool.engine_of(&request.model).await.map_err(without_list)?;
        caller.rights().check(engine.key(), &request.model)?;
        let answer = self.recorded_on(&engine, caller).media(&request).await?;
        Ok(MediaAnswered { engine: engine.key().to_owned(), answer, warnings })
    }
}

/// The models that an engine lists are for text, and no alternative.
fn without_list(error: EngineError) -> EngineError {
    match error {
        EngineError::ModelNotFound { engine, model, .. } => {
            EngineError::ModelNotFound { engine, model, available: Vec::new() }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::{StreamExt, stream};

    use super::*;

    fn answered(running: &Arc<()>) -> MediaAnswered {
        let body = Box::pin(stream::iter([Ok::<_, EngineError>(vec![1_u8]), Ok(vec![2])]));
        let answer = MediaAnswer { content_type: None, body };
        let answered = MediaAnswered { engine: "vllm".into(), answer, warnings: Vec::new() };
        answered.counted(Some(RunningRequest(Box::new(Arc::clone(running)))))
    }

    #[tokio::test]
    async fn a_request_for_sound_counts_as_running_until_its_answer_ends() {
        let running = Arc::new(());
        let mut body = answered(&running).answer.body;
        while body.next().await.is_some() {
            assert_eq!(Arc::strong_count(&running), 2, "it runs");
        }
        assert_eq!(Arc::strong_count(&running), 1, "it has ended");
        let cancelled = answered(&running);
        assert_eq!(Arc::strong_count(&running), 2, "it runs");
        drop(cancelled);
        assert_eq!(Arc::strong_count(&running), 1, "it was cancelled");
    }
}
