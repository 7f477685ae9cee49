//! Ollama's API: chat, generate, embeddings, and the models that its clients list, download and delete. Translates between its wire
//! format and the types of `hob_core`; knows nothing of engines or agents.
//!
//! A client that is set to Ollama's address works with every engine behind Hob. What only Ollama itself could do is an error that says
//! so.

mod answer_lines;
pub(crate) mod chat;
mod chat_request;
pub(crate) mod embed;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
pub(crate) mod generate;
mod generate_request;
mod images;
mod message;
mod model_entry;
pub(crate) mod model_management;
mod model_name;
pub(crate) mod models;
mod options;
pub(crate) mod refused;
mod settings;
mod template;
mod timestamp;

use axum::extract::Request;
use axum::response::Response;

use crate::error::{ApiResult, ErrorFormat};
use crate::request_context::RequestContext;
use crate::warning_header::rename_warning;

/// Runs a handler, and gives its error the form that this caller and the clients of this API get. Fields have the names of this API.
async fn respond<F: Future<Output = ApiResult<Response>>>(
    request: Request,
    handler: impl FnOnce(Request) -> F,
) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    match handler(request).await {
        Ok(response) => Ok(rename_warning(response, "ignored=reasoning_effort", "ignored=think")),
        Err(error) => {
            Err(error.for_caller(role).renaming("image_url", "images").in_format(ErrorFormat::Ollama))
        }
    }
}
