//! The table of routes, and the fallbacks for paths and methods that are not in it.

use std::future;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use hob_config::ServerConfig;

use crate::access_log::AccessLogWriter;
use crate::admin::{
    agents, audit, calls, channels, embedded_engine, events, feedback, health, keys, memory, metrics,
    model_files, openapi, savings, settings, tasks, usage,
};
use crate::anthropic::{self, messages};
use crate::chats::{assistants, saved, turns};
use crate::error::{ApiError, ErrorFormat};
use crate::limits::log_limit::LogLimit;
use crate::ollama;
use crate::openai::{chat, completions, embeddings, media, rerank, tokenize};
use crate::pages::{admin_pages, chat_page, document, live, markdown, models_page, not_found_page};
use crate::pipeline::Pipeline;
use crate::reload::AccessRules;
use crate::request_metrics::RequestMetrics;
use crate::responses::{self, BackgroundRuns, conversations};
use crate::route_access::RouteAccess;
use crate::route_methods::{RouteMethods, delete, get, patch, post, put};
use crate::route_suggestions::RouteSuggestions;
use crate::shutdown::ServerStop;
use crate::state::{ServerParts, ServerState};

/// Every path with who may use it, and its handlers.
fn routes() -> Vec<(&'static str, RouteAccess, RouteMethods)> {
    use RouteAccess::{Ask, Memory, Open, Own, Owner};
    vec![
        ("/v1/chat/completions", Ask, post(chat::create)),
        ("/v1/completions", Ask, post(completions::create)),
        ("/v1/embeddings", Ask, post(embeddings::create)),
        ("/v1/audio/transcriptions", Ask, post(media::transcribe)),
        ("/v1/audio/translations", Ask, post(media::translate)),
        ("/v1/audio/speech", Ask, post(media::speak)),
        ("/v1/images/generations", Ask, post(media::draw)),
        ("/v1/images/edits", Ask, post(media::edit)),
        ("/v1/rerank", Ask, post(rerank::create)),
        ("/v2/rerank", Ask, post(rerank::create)),
        ("/rerank", Ask, post(rerank::create)),
        ("/tokenize", Ask, post(tokenize::split)),
        ("/detokenize", Ask, post(tokenize::join)),
        ("/v1/responses", Own, post(responses::create::create)),
        ("/v1/responses/input_tokens", Own, post(responses::input_tokens::count_input_tokens)),
        ("/v1/responses/{id}", Own, get(responses::stored::show).delete(responses::stored::delete)),
        ("/v1/responses/{id}/cancel", Own, post(responses::stored::cancel)),
        ("/v1/responses/{id}/input_items", Own, get(responses::stored::input_items)),
        ("/v1/conversations", Own, post(conversations::create)),
        ("/v1/conversations/{id}", Own, conversations::one()),
        ("/v1/conversations/{id}/items", Own, get(conversations::list_items).post(conversations::add_items)),
        ("/v1/conversations/{id}/items/{item_id}", Own, conversations::one_item()),
        ("/v1/chats", Own, get(saved::list).post(saved::create)),
        ("/v1/chats/{id}", Own, get(saved::show).patch(saved::change).delete(saved::delete)),
        ("/v1/chats/{id}/turns", Own, post(turns::add)),
        ("/v1/chats/{id}/turns/{turn}/answer", Own, put(turns::answer)),
        ("/v1/saved-assistants", Own, get(assistants::list).post(assistants::create)),
        ("/v1/saved-assistants/{id}", Own, assistants::one()),
        ("/v1/agents", Ask, get(agents::list)),
        ("/v1/models", Ask, get(anthropic::models::list)),
        ("/v1/models/{*id}", Ask, get(anthropic::models::show)),
        ("/v1/model-files", Owner, get(model_files::list)),
        ("/v1/model-files/search", Owner, get(model_files::search)),
        ("/v1/model-files/downloads", Owner, get(model_files::downloads)),
        ("/v1/engines/embedded", Owner, get(embedded_engine::show).post(embedded_engine::choose)),
        ("/v1/messages", Ask, post(messages::create)),
        ("/v1/messages/count_tokens", Ask, post(anthropic::count_tokens::count_tokens)),
        ("/v1/events", Owner, get(events::watch)),
        ("/v1/channels", Owner, get(channels::list)),
        ("/v1/channels/send", Owner, post(channels::send)),
        ("/v1/channels/status", Owner, get(channels::status)),
        ("/v1/channels/details", Owner, get(channels::details::details)),
        ("/v1/channels/messages", Owner, get(channels::details::messages)),
        ("/v1/channels/approve", Owner, post(channels::senders::approve)),
        ("/v1/channels/whatsapp", Owner, channels::details::whatsapp()),
        ("/v1/memory/search", Memory, post(memory::search)),
        ("/v1/memory/stats", Memory, get(memory::stats)),
        ("/v1/memory/collections", Memory, get(memory::documents::collections)),
        ("/v1/memory/collections/{name}", Owner, delete(memory::documents::forget_collection)),
        ("/v1/memory/documents", Memory, get(memory::documents::list).post(memory::documents::upload)),
        ("/v1/memory/skipped", Memory, get(memory::documents::skipped)),
        ("/v1/memory/jobs", Memory, get(memory::documents::jobs)),
        ("/v1/memory/forget", Owner, post(memory::documents::forget)),
        ("/v1/memory/folders", Owner, get(memory::folders::list).post(memory::folders::add)),
        ("/v1/memory/folders/{id}", Owner, patch(memory::folders::patch).delete(memory::folders::delete)),
        ("/v1/tasks", Own, get(tasks::list).post(tasks::create)),
        ("/v1/tasks/preview", Own, post(tasks::preview)),
        ("/v1/tasks/{id}", Own, get(tasks::show).delete(tasks::delete)),
        ("/v1/tasks/{id}/pause", Own, post(tasks::pause)),
        ("/v1/tasks/{id}/resume", Own, post(tasks::resume)),
        ("/v1/tasks/{id}/cancel", Own, post(tasks::cancel)),
        ("/v1/tasks/{id}/run", Own, post(tasks::run)),
        ("/v1/tasks/{id}/logs", Own, get(tasks::logs)),
        ("/v1/keys", Owner, get(keys::list).post(keys::create)),
        ("/v1/keys/self", Own, get(keys::show_own)),
        ("/v1/keys/{name}", Owner, get(keys::show).patch(keys::patch).delete(keys::revoke)),
        ("/v1/keys/{name}/disable", Owner, post(keys::disable)),
        ("/v1/keys/{name}/enable", Owner, post(keys::enable)),
        ("/v1/keys/{name}/rotate", Owner, post(keys::rotate)),
        ("/v1/audit", Owner, get(audit::list)),
        ("/v1/usage", Own, get(usage::show)),
        ("/v1/calls", Own, get(calls::list)),
        ("/v1/settings", Owner, get(settings::list).patch(settings::change)),
        ("/v1/feedback", Owner, post(feedback::create)),
        ("/v1/savings", Owner, get(savings::show)),
        ("/api/chat", Ask, post(ollama::chat::create)),
        ("/api/generate", Ask, post(ollama::generate::create)),
        ("/api/embed", Ask, post(ollama::embed::create)),
        ("/api/embeddings", Ask, post(ollama::embed::create_one)),
        ("/api/tags", Ask, get(ollama::models::tags)),
        ("/api/show", Ask, post(ollama::models::show)),
        ("/api/ps", Ask, get(ollama::models::ps)),
        ("/api/version", Open, get(ollama::models::version)),
        ("/api/pull", Owner, post(ollama::model_management::pull)),
        ("/api/delete", Owner, delete(ollama::model_management::delete)),
        ("/api/copy", Owner, post(ollama::model_management::copy)),
        ("/api/create", Open, post(ollama::refused::create)),
        ("/api/push", Open, post(ollama::refused::push)),
        ("/api/blobs/{digest}", Open, post(ollama::refused::blobs).head(ollama::refused::blobs)),
        ("/", Open, get(chat_page::show)),
        ("/documents", Open, admin_pages::route(&admin_pages::DOCUMENTS)),
        ("/tasks", Open, admin_pages::route(&admin_pages::TASKS)),
        ("/channels", Open, admin_pages::route(&admin_pages::CHANNELS)),
        ("/models", Open, get(models_page::show)),
        ("/dashboard", Open, admin_pages::route(&admin_pages::ACTIVITY)),
        ("/team", Open, admin_pages::route(&admin_pages::TEAM)),
        ("/settings", Open, admin_pages::route(&admin_pages::SETTINGS)),
        ("/pages/markdown", Open, post(markdown::create)),
        ("/pages/document", Ask, post(document::create)),
        ("/pages/live", Own, get(live::watch)),
        ("/health", Open, get(health::show)),
        ("/health/live", Open, get(health::live)),
        ("/health/ready", Open, get(health::ready)),
        ("/metrics", Owner, get(metrics::show)),
        ("/openapi.json", Open, get(openapi::show)),
    ]
}

pub(crate) fn router(
    parts: ServerParts,
    config: &ServerConfig,
    stop: ServerStop,
    background: Arc<BackgroundRuns>,
) -> Pipeline {
    let routes = routes();
    let patterns = || routes.iter().map(|(pattern, ..)| *pattern);
    let suggestions = Arc::new(RouteSuggestions::new(patterns()));
    let metrics = parts.system.metrics().map(|_| Arc::new(RequestMetrics::new(patterns(), &health::PROBES)));
    let (keys, identity) = (parts.keys.clone(), parts.identity.clone());
    let state = Arc::new(ServerState::new(parts, config, metrics.clone(), stop, background));
    let changes = state.changes.clone();
    let router = routes
        .into_iter()
        .fold(Router::new(), |router, (pattern, access, methods)| {
            router.route(pattern, access.guarding(methods.into_router()))
        })
        .fallback(move |request: Request| {
            let path = request.uri().path();
            let (method, headers) = (request.method(), request.headers());
            let elsewhere = chat_page::redirect(method, path, headers);
            let page = elsewhere.or_else(|| not_found_page::answer(method, path, headers));
            let missed = || {
                let error = ApiError::no_such_path(path, suggestions.nearest(path).as_deref());
                error.in_format(ErrorFormat::of_path(path)).into_response()
            };
            future::ready(page.unwrap_or_else(missed))
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
        keys,
        identity,
        access_log: Arc::new(ArcSwapOption::new(AccessLogWriter::start(config.access_log))),
        refusal_log: LogLimit::new(),
        changes,
    }
}
