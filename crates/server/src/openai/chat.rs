//! `POST /v1/chat/completions`.

use axum::extract::{Request, State};
use axum::response::Response;
use hob_core::{AnswerWarning, Caller, ReplyMode};

use super::chat_chunks::ChatChunks;
use super::chat_extras::{ChatExtras, StepCollector, memory_use, narrowed};
use super::chat_request::{ChatRequest, ResponseMode};
use super::chat_response::Completion;
use crate::answer::{self, Received, new_id};
use crate::error::ApiResult;
use crate::json::push_json;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::unix_time::unix_now;

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    answer(&state, request).await.map_err(|error| error.for_caller(role))
}

async fn answer(state: &ServerState, request: Request) -> ApiResult<Response> {
    let Received { parsed, caller, client } =
        answer::receive(state, request, new_id("chatcmpl-"), ChatRequest::parse).await?;
    let ChatRequest { request, mode, agent, calls, documents, steps, agent_tools, mut warnings } = parsed;
    let reply_mode = match mode {
        ResponseMode::Whole => ReplyMode::Complete,
        ResponseMode::Streamed { .. } => ReplyMode::Streamed,
    };
    if (agent_tools.is_some() || steps) && !state.system.is_for_agent(&request, reply_mode, &agent).await {
        let of_agents = [("agent_tools", agent_tools.is_some()), ("steps", steps)];
        let sent = of_agents.into_iter().filter(|(_, is_sent)| *is_sent);
        warnings.extend(sent.map(|(field, _)| AnswerWarning::Ignored(field.to_owned())));
    }
    let extras = ChatExtras { sources: documents.is_some(), steps };
    let memory = memory_use(&caller, documents)?;
    let permit = narrowed(caller.permit, agent_tools, |name| state.system.has_tool(name))?;
    let caller = Caller { agent, memory, permit, ..caller };
    match mode {
        ResponseMode::Whole => {
            let collector = steps.then(|| StepCollector::of(state.system.bus(), &caller.run));
            let answered = answer::complete(state, request, &caller).await?;
            let sources = extras.sources.then_some(&answered.sources[..]);
            let render = |generation: &_, body: &mut _| {
                let completion = Completion::new(&caller.run, unix_now(), generation, calls);
                push_json(body, &completion.with_extras(sources, collector.map(StepCollector::take)));
            };
            Ok(answer::send_whole(&answered, &caller, &warnings, render))
        }
        ResponseMode::Streamed { include_usage } => {
            let encoder = ChatChunks::new(&caller.run, unix_now(), &request.model, include_usage);
            let encoder = encoder.with_calls(calls).with_extras(extras);
            answer::streamed(state, request, caller, &warnings, client, encoder).await
        }
    }
}
