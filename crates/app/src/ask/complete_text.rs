//! Text completion: the path of a request with texts to continue.

use hob_core::caller_policy::admit_text;
use hob_core::{
    AgentOutcome, Answered, AskError, Caller, CompletionRequest, GenerateRequest, GenerationStream,
};
use hob_engines::text_completion::{TextRequest, complete_texts, stream_texts};
use hob_telemetry::trace::{Span, end_with};

use super::AskService;
use super::answer::{AnswerStream, answered, streaming, traced, with_first_piece};
use crate::ask::answer_route::AnswerRoute;
use crate::ask::key_admission::Begun;

impl AskService {
    /// The whole continuations, those of the first text first.
    pub async fn complete_text(&self, request: TextRequest, caller: &Caller) -> Result<Answered, AskError> {
        let Begun { caller, running: _running, mut span } =
            self.begin(caller, &request.request.model).await?;
        let outcome = self.continued(request, &caller, &mut span).await;
        end_with(&mut span, &outcome);
        outcome
    }

    async fn continued(
        &self,
        mut request: TextRequest,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<Answered, AskError> {
        let ignored = admit_text(&mut request.request, caller.role);
        let route = self.route_text(&mut request, caller).await?;
        let outcome = self.continue_all(&route, request, caller).await;
        answered(route, outcome, ignored, span)
    }

    /// The continuations as they come, each under the number of its answer. Returns once the first piece is there.
    pub async fn stream_text(&self, request: TextRequest, caller: &Caller) -> Result<AnswerStream, AskError> {
        let Begun { caller, running, mut span } = self.begin(caller, &request.request.model).await?;
        let begun = self.begin_text_stream(request, &caller, &mut span).await;
        traced(begun.map(|begun| begun.counted(running)), span)
    }

    async fn begin_text_stream(
        &self,
        mut request: TextRequest,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<AnswerStream, AskError> {
        let ignored = admit_text(&mut request.request, caller.role);
        let route = self.route_text(&mut request, caller).await?;
        let model = request.request.model.clone();
        let begun = self.stream_all(&route, request, caller).await;
        streaming(route, begun, model, ignored, span)
    }

    /// The engine and the model, chosen for the first text.
    async fn route_text(&self, request: &mut TextRequest, caller: &Caller) -> Result<AnswerRoute, AskError> {
        let first = request.prompts.first().cloned().unwrap_or_default();
        let sample = CompletionRequest { prompt: first, ..request.request.clone() };
        let mut question: GenerateRequest = sample.as_question().unwrap_or_else(|| sample.settings());
        // The tokens of one model mean another text to the next one.
        let is_text = request.prompts.iter().all(|prompt| prompt.text().is_some());
        let fallback = self.fallback.as_ref().filter(|_| is_text);
        let route = self.route_with(fallback, &mut question, caller).await?;
        request.request.model = question.model;
        request.request.defaults = question.defaults;
        request.request.extra = question.extra;
        Ok(route)
    }

    async fn continue_all(
        &self,
        route: &AnswerRoute,
        request: TextRequest,
        caller: &Caller,
    ) -> Result<AgentOutcome, AskError> {
        let engine = route.recorded(self.record_context(caller, None));
        let generation = complete_texts(engine.as_ref(), request).await?;
        Ok(AgentOutcome { generation, turns: 1, tool_results: Vec::new() })
    }

    async fn stream_all(
        &self,
        route: &AnswerRoute,
        request: TextRequest,
        caller: &Caller,
    ) -> Result<GenerationStream, AskError> {
        let engine = route.recorded(self.record_context(caller, None));
        with_first_piece(stream_texts(&engine, request).await?, route.engine()).await
    }
}
