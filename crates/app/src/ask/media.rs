//! Sound and pictures, passed on to the engine that has the model.

use hob_core::{AnswerWarning, AskError, Caller, Engine, EngineError, MediaAnswer, MediaRequest};
use hob_telemetry::trace::{end_with, request_span, under};

use super::AskService;
use crate::ask::caller_policy::{admit_media, check_engine};

/// An answer in progress, with its engine and model.
pub struct MediaAnswered {
    /// The key of the engine that answers.
    pub engine: String,
    pub answer: MediaAnswer,
    pub warnings: Vec<AnswerWarning>,
}

impl AskService {
    /// Passes a request on to the engine that has its model. There is no default model for sound and pictures.
    pub async fn media(&self, request: MediaRequest, caller: &Caller) -> Result<MediaAnswered, AskError> {
        let mut span = request_span(&self.recorder.tracer, caller, &request.model);
        let answered = self.passed_on(request, &under(caller, &span)).await;
        end_with(&mut span, &answered);
        answered
    }

    async fn passed_on(&self, mut request: MediaRequest, caller: &Caller) -> Result<MediaAnswered, AskError> {
        let warnings = admit_media(&mut request, caller.role)?;
        let engine = self.pool.engine_of(&request.model).await.map_err(without_list)?;
        check_engine(engine.as_ref(), &request.model, caller.role)?;
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
