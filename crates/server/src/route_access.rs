//! Who may use a route. Every route of the table has a rule, so that a new one cannot forget it. What a caller may do on a route that it
//! may use is up to the handler.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use hob_core::CallerRole;

use crate::error::{ApiError, ErrorFormat};
use crate::request_context::RequestContext;
use crate::state::ServerState;

/// A rule for members. Strangers, whom there are only without keys, may do what the handlers allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteAccess {
    /// Has nothing of anyone.
    Open,
    /// Asks a model, or lists models: what the key of the caller allows.
    Ask,
    /// What belongs to the caller.
    Own,
    /// The documents of the collections that the key names.
    Memory,
    /// What belongs to the owner.
    Owner,
}

impl RouteAccess {
    /// The handlers, behind the rule.
    pub(crate) fn guarding(self, methods: MethodRouter<Arc<ServerState>>) -> MethodRouter<Arc<ServerState>> {
        match self {
            RouteAccess::Open | RouteAccess::Ask | RouteAccess::Own => methods,
            RouteAccess::Memory => methods.route_layer(middleware::from_fn(refuse_without_collections)),
            RouteAccess::Owner => methods.route_layer(middleware::from_fn(refuse_members)),
        }
    }
}

async fn refuse_without_collections(request: Request, next: Next) -> Response {
    let extensions = request.extensions();
    match RequestContext::key(extensions) {
        Some(key) if key.grant.memory.is_empty() => {
            let error = ApiError::no_collections(key.key.name.as_str());
            error.in_format(ErrorFormat::of_path(request.uri().path())).into_response()
        }
        _ => next.run(request).await,
    }
}

async fn refuse_members(request: Request, next: Next) -> Response {
    if RequestContext::role(request.extensions()) != CallerRole::Member {
        return next.run(request).await;
    }
    let path = request.uri().path();
    let name = RequestContext::key(request.extensions()).map_or("?", |key| key.key.name.as_str());
    ApiError::not_for_members(name, path).in_format(ErrorFormat::of_path(path)).into_response()
}
