//! Asks for a response, and asks again without the oldest turns if the conversation is too long and the caller allows that.

use hob_app::AnswerStream;
use hob_core::{
    AnswerWarning, Answered, AskError, Caller, ContextOverflow, GenerateRequest, NoSuitableModel,
};

use super::request::Truncation;
use super::truncation::drop_oldest;
use crate::state::ServerState;

/// How often a conversation that is too long is shortened.
const MAX_TRUNCATIONS: u32 = 6;

/// What is kept of a conversation that is too long, where the engine does not say by how much, and beyond what it says.
const KEPT_SHARE: f64 = 0.5;
const MARGIN: f64 = 0.9;

/// A request that is asked again without its oldest turns if it is too long and the caller allows that.
pub(super) struct Attempt {
    request: GenerateRequest,
    truncation: Truncation,
    truncated: u32,
    warnings: Vec<AnswerWarning>,
}

impl Attempt {
    pub(super) fn new(
        request: GenerateRequest,
        truncation: Truncation,
        warnings: Vec<AnswerWarning>,
    ) -> Self {
        Attempt { request, truncation, truncated: 0, warnings }
    }

    pub(super) fn warnings(&self) -> &[AnswerWarning] {
        &self.warnings
    }

    pub(super) async fn complete(
        mut self,
        state: &ServerState,
        caller: &Caller,
    ) -> Result<(Answered, Vec<AnswerWarning>), AskError> {
        loop {
            let (request, copy) = self.next();
            match state.system.complete(request, caller).await {
                Ok(answered) => return Ok((answered, self.warnings)),
                Err(error) => self.request = self.adapted(copy, &error).ok_or(error)?,
            }
        }
    }

    pub(super) async fn stream(
        mut self,
        state: &ServerState,
        caller: &Caller,
    ) -> Result<(AnswerStream, Vec<AnswerWarning>), AskError> {
        loop {
            let (request, copy) = self.next();
            match state.system.stream(request, caller).await {
                Ok(answer) => return Ok((answer, self.warnings)),
                Err(error) => self.request = self.adapted(copy, &error).ok_or(error)?,
            }
        }
    }

    /// The request, and a copy of it if it may be asked again.
    fn next(&mut self) -> (GenerateRequest, Option<GenerateRequest>) {
        let request = std::mem::take(&mut self.request);
        let copy = (self.truncation == Truncation::Auto).then(|| request.clone());
        (request, copy)
    }

    /// The request without its oldest turns; `None` if its length is not what the engine refused, or nothing can be left out.
    fn adapted(&mut self, request: Option<GenerateRequest>, error: &AskError) -> Option<GenerateRequest> {
        let mut request = request?;
        let overflow = match error {
            AskError::Engine(error) => error.context_overflow()?,
            AskError::NoModel(NoSuitableModel::NothingFits { .. }) => {
                ContextOverflow { limit: None, length: None }
            }
            _ => return None,
        };
        if self.truncated == MAX_TRUNCATIONS {
            return None;
        }
        self.truncated += 1;
        let share = match (overflow.limit, overflow.length) {
            (Some(limit), Some(length)) if limit < length => limit as f64 / length as f64 * MARGIN,
            _ => KEPT_SHARE,
        };
        if drop_oldest(&mut request.messages, share) == 0 {
            return None;
        }
        let warning = AnswerWarning::Ignored("input[0]".to_owned());
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
        Some(request)
    }
}
