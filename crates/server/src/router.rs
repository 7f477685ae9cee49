//! The table of routes, and the fallbacks for paths and methods that are not in it.

use std::future;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, delete, get, post};
use hob_config::ServerConfig;

use crate::admin::{channels, events, feedback, health, memory, metrics, openapi, savings, tasks};
use crate::anthropic::{self, messages};
use crate::error::{ApiError, ErrorFormat};
use crate::limits::log_limit::LogLimit;
use crate::ollama;
use crate::openai::{chat, completions, embeddings, media, rerank, tokenize};
use crate::pages::{chat_page, dashboard, markdown};
use crate::pipeline::Pipeline;
use crate::reload::AccessRules;
use crate::request_metrics::RequestMetrics;
use crate::responses::{self, BackgroundRuns, conversations};
use crate::route_suggestions::RouteSuggestions;
use crate::state::{ServerParts, ServerState, ServerStop};

/// Every path with its handlers.
fn routes() -> Vec<(&'static str, MethodRouter<Arc<ServerState>>)> {
    vec![
        ("/v1/chat/completions", post(chat::create)),
        ("/v1/completions", post(completions::create)),
        ("/v1/embeddings", post(embeddings::create)),
        ("/v1/audio/transcriptions", post(media::transcribe)),
        ("/v1/audio/translations", post(media::translate)),
        ("/v1/audio/speech", post(media::speak)),
        ("/v1/images/generations", post(media::draw)),
        ("/v1/images/edits", post(media::edit)),
        ("/v1/rerank", post(rerank::create)),
        ("/v2/rerank", post(rerank::create)),
        ("/rerank", post(rerank::create)),
        ("/tokenize", post(tokenize::split)),
        ("/detokenize", post(tokenize::join)),
        ("/v1/responses", post(responses::create::create)),
        ("/v1/responses/input_tokens", post(responses::create::count_input_tokens)),
        ("/v1/responses/{id}", get(responses::stored::show).delete(responses::stored::delete)),
        ("/v1/responses/{id}/cancel", post(responses::stored::cancel)),
        ("/v1/responses/{id}/input_items", get(responses::stored::input_items)),
        ("/v1/conversations", post(conversations::create)),
        ("/v1/conversations/{id}", conversations::one()),
        ("/v1/conversations/{id}/items", get(conversations::list_items).post(conversations::add_items)),
        ("/v1/conversations/{id}/items/{item_id}", conversations::one_item()),
        ("/v1/models", get(anthropic::models::list)),
        ("/v1/models/{*id}", get(anthropic::models::show)),
        ("/v1/messages", post(messages::create)),
        ("/v1/messages/count_tokens", post(messages::count_tokens)),
        ("/v1/events", get(events::watch)),
        ("/v1/channels", get(channels::list)),
        ("/v1/channels/send", post(channels::send)),
        ("/v1/channels/status", get(channels::status)),
        ("/v1/memory/search", post(memory::search)),
        ("/v1/memory/stats", get(memory::stats)),
        ("/v1/tasks", get(tasks::list).post(tasks::create)),
        ("/v1/tasks/{id}", get(tasks::show).delete(tasks::delete)),
        ("/v1/tasks/{id}/pause", post(tasks::pause)),
        ("/v1/tasks/{id}/resume", post(tasks::resume)),
        ("/v1/tasks/{id}/cancel", post(tasks::cancel)),
        ("/v1/tasks/{id}/run", post(tasks::run)),
        ("/v1/tasks/{id}/logs", get(tasks::logs)),
        ("/v1/feedback", post(feedback::create)),
        ("/v1/savings", get(savings::show)),
        ("/api/chat", post(ollama::chat::create)),
        ("/api/generate", post(ollama::generate::create)),
        ("/api/embed", post(ollama::embed::create)),
        ("/api/embeddings", post(ollama::embed::create_one)),
        ("/api/tags", get(ollama::models::tags)),
        ("/api/show", post(ollama::models::show)),
        ("/api/ps", get(ollama::models::ps)),
        ("/api/version", get(ollama::models::version)),
        ("/api/pull", post(ollama::library::pull)),
        ("/api/delete", delete(ollama::library::delete)),
        ("/api/copy", post(ollama::library::copy)),
        ("/api/create", post(ollama::refused::create)),
        ("/api/push", post(ollama::refused::push)),
        ("/api/blobs/{digest}", post(ollama::refused::blobs).head(ollama::refused::blobs)),
        ("/", get(chat_page::show)),
        ("/dashboard", get(dashboard::show)),
        ("/pages/markdown", post(markdown::create)),
        ("/health", get(health::show)),
        ("/health/live", get(health::live)),
        ("/health/ready", get(health::ready)),
        ("/metrics", get(metrics::show)),
        ("/openapi.json", get(openapi::show)),
    ]
}

pub(crate) fn router(
    parts: ServerParts,
    config: &ServerConfig,
    stop: ServerStop,
    background: Arc<BackgroundRuns>,
) -> Pipeline {
    let routes = routes();
    let patterns = || routes.iter().map(|(pattern, _)| *pattern);
    let suggestions = Arc::new(RouteSuggestions::new(patterns()));
    let metrics = parts.system.metrics().map(|_| Arc::new(RequestMetrics::new(patterns(), &health::PROBES)));
    let state = Arc::new(ServerState::new(parts, config, metrics.clone(), stop, background));
    let router = routes
        .into_iter()
        .fold(Router::new(), |router, (pattern, methods)| router.route(pattern, methods))
        .fallback(move |request: Request| {
            let path = request.uri().path();
            let elsewhere = chat_page::redirect(request.method(), path, request.headers());
            let missed = || {
                let error = ApiError::no_such_path(path, suggestions.nearest(path).as_deref());
                error.in_format(ErrorFormat::of_path(path)).into_response()
            };
            future::ready(elsewhere.unwrap_or_else(missed))
        })
        .method_not_allowed_fallback(|request: Request| async move {
            let path = request.uri().path();
            let error = match path {
                // A request of OpenAI's that Hob does not have, and not the id of a response.
                "/v1/responses/compact" => ApiError::no_such_path(path, None),
                _ => ApiError::no_such_method(request.method().as_str(), path),
            };
            error.in_format(ErrorFormat::of_path(path))
        })
        .with_state(state);
    Pipeline {
        rules: Arc::new(ArcSwap::from_pointee(AccessRules::new(config))),
        metrics,
        routes: router,
        refusal_log: LogLimit::new(),
    }
}
