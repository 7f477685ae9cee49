//! `POST /v1/responses/input_tokens`: counts the tokens of a request, and asks for no response.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hob_core::AnswerWarning;
use serde_json::json;

use super::context;
use super::create::{Parsed, as_written, without_store};
use super::ready_request::{NewResponse, ReadyRequest};
use super::request::CreateRequest;
use crate::answer::{self, Received, new_id};
use crate::error::ApiResult;
use crate::limits::body_limit::BodyPermit;
use crate::object_owner::owner_of;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::unix_time::unix_now;
use crate::warning_header::with_warnings;

/// How many tokens the model would read.
pub(crate) async fn count_input_tokens(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    count(&state, request).await.map_err(|error| error.for_caller(role).with_param(as_written))
}

/// Nothing of a request that is only counted is stored.
fn parse_count(body: &[u8], new: &NewResponse) -> ApiResult<Parsed> {
    let mut request = CreateRequest::parse(body)?;
    request.options.store = false;
    request.options.background = false;
    without_store(request, new)
}

async fn count(state: &ServerState, request: Request) -> ApiResult<Response> {
    let owner = owner_of(request.extensions());
    let peer = RequestContext::peer_key(request.extensions());
    let new = NewResponse { id: new_id("resp_"), created: unix_now(), has_store: false };
    let parsing = new.clone();
    let Received { parsed, caller, client: _client } =
        answer::receive(state, request, new.id.clone(), move |body| parse_count(body, &parsing)).await?;
    let (ready, _stored) = match parsed {
        Parsed::Ready(ready) => (ready, BodyPermit::default()),
        Parsed::NeedsStore(request) => {
            let (ready, permit) = Box::pin(context::complete(state, *request, owner, peer, new)).await?;
            (Box::new(ready), permit)
        }
    };
    let ReadyRequest { request, mut warnings, .. } = *ready;
    let counted = state.system.count_tokens(request, &caller).await?;
    if counted.is_estimate {
        warnings.push(AnswerWarning::Estimated);
    }
    let body = json!({ "object": "response.input_tokens", "input_tokens": counted.tokens });
    Ok(with_warnings(Json(body).into_response(), warnings.iter()))
}
