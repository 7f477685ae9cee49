//! `GET /v1/agents`: the agents, and the tools that the caller's agent may use.

use axum::Json;
use axum::extract::State;
use axum::http::Extensions;
use hob_app::AskService;
use serde_json::{Value, json};

use crate::request_context::RequestContext;
use crate::state::SharedState;

/// Characters of a description.
const MAX_DESCRIPTION: usize = 300;

pub(crate) async fn list(State(state): SharedState, extensions: Extensions) -> Json<Value> {
    let permit = RequestContext::permit(&extensions);
    let tools = state.system.tools();
    let allowed = tools.specs().filter(|spec| permit.allows(spec)).map(|spec| {
        let description: String = spec.description.chars().take(MAX_DESCRIPTION).collect();
        json!({ "name": spec.name, "description": description, "reach": spec.reach.as_str() })
    });
    let default = state.system.agent();
    let agents =
        AskService::agents().iter().map(|name| json!({ "name": name, "default": default == Some(*name) }));
    let agents: Vec<Value> = agents.collect();
    Json(json!({ "object": "list", "data": agents, "tools": allowed.collect::<Vec<_>>() }))
}
