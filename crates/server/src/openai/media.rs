//! `POST /v1/audio/…` and `POST /v1/images/…`: passed on to engines that have models for sound and pictures.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use hob_app::MediaAnswered;
use hob_core::model::DEFAULT_MODEL;
use hob_core::{Caller, MediaForm, MediaRequest, MediaTask};
use serde_json::{Map, Value};

use super::multipart;
use crate::answer::{self, Received, new_id};
use crate::error::{ApiError, ApiResult};
use crate::json::{check_model_name, read};
use crate::request_context::RequestContext;
use crate::state::SharedState;

/// The types of content that are passed on by their name. Others would be read as a page of this server.
const PASSED_ON: [&str; 8] = [
    "application/json",
    "application/octet-stream",
    "application/x-subrip",
    "audio/",
    "image/",
    "text/event-stream",
    "text/plain",
    "text/vtt",
];

const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

pub(crate) async fn transcribe(state: SharedState, request: Request) -> ApiResult<Response> {
    pass_on(state, request, MediaTask::Transcription).await
}

pub(crate) async fn translate(state: SharedState, request: Request) -> ApiResult<Response> {
    pass_on(state, request, MediaTask::Translation).await
}

pub(crate) async fn speak(state: SharedState, request: Request) -> ApiResult<Response> {
    pass_on(state, request, MediaTask::Speech).await
}

pub(crate) async fn draw(state: SharedState, request: Request) -> ApiResult<Response> {
    pass_on(state, request, MediaTask::Image).await
}

pub(crate) async fn edit(state: SharedState, request: Request) -> ApiResult<Response> {
    pass_on(state, request, MediaTask::ImageEdit).await
}

async fn pass_on(State(state): SharedState, request: Request, task: MediaTask) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    let answered = async {
        let run = new_id("media-");
        let Received { parsed: MediaBody { model, user, form }, caller, client } = match task {
            MediaTask::Speech | MediaTask::Image => {
                answer::receive(&state, request, run, move |body| json_form(task, body)).await?
            }
            MediaTask::Transcription | MediaTask::Translation | MediaTask::ImageEdit => {
                let parse = move |kind: &str, body: &[u8]| multipart_form(task, kind, body);
                answer::receive_form(&state, request, run, parse).await?
            }
        };
        let caller = Caller { end_user: user, ..caller };
        let request = MediaRequest { model, task, form };
        let MediaAnswered { engine, answer, warnings } = state.system.media(request, &caller).await?;
        // The stream holds the slot of the request until its end.
        let body = answer.body.map(move |piece| {
            let _held = &client;
            piece.map_err(|error| {
                tracing::warn!(%error, "an answer broke off; the caller sees the connection end");
                std::io::Error::other("the answer broke off")
            })
        });
        let headers = [
            (header::CONTENT_TYPE, content_type(answer.content_type.as_deref())),
            (NO_SNIFF, HeaderValue::from_static("nosniff")),
        ];
        let response = (headers, Body::from_stream(body)).into_response();
        Ok(answer::with_engine(response, &engine, &caller, &warnings))
    };
    // The model is what decides whether the engine can do this.
    let as_written = |param: &str| (param == task.name()).then(|| "model".to_owned());
    answered.await.map_err(|error: ApiError| error.for_caller(role).with_param(as_written))
}

fn content_type(named: Option<&str>) -> HeaderValue {
    let safe =
        named.filter(|named| PASSED_ON.iter().any(|known| named.to_ascii_lowercase().starts_with(known)));
    safe.and_then(|named| HeaderValue::try_from(named).ok())
        .unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// A body, with what Hob reads of it.
struct MediaBody {
    model: String,
    /// Whom the request is for, in the words of the client.
    user: Option<Arc<str>>,
    form: MediaForm,
}

/// The model and the fields of a JSON body.
fn json_form(task: MediaTask, body: &[u8]) -> ApiResult<MediaBody> {
    let fields: Map<String, Value> = read(body)?;
    let model = match fields.get("model") {
        Some(Value::String(model)) => named(task, model)?,
        Some(Value::Null) | None => return Err(no_model(task)),
        Some(_) => return Err(ApiError::invalid("model", "model: expected a string")),
    };
    Ok(MediaBody { model, user: answer::user_in(&fields), form: MediaForm::Json(fields) })
}

/// The fields of a form that Hob reads.
const READ_FIELDS: [&str; 2] = ["model", "user"];

/// The model and the parts of a form.
fn multipart_form(task: MediaTask, content_type: &str, body: &[u8]) -> ApiResult<MediaBody> {
    let mut parts = multipart::parts(content_type, body)?;
    // It names the character set of the other parts, which are read as UTF-8 here.
    parts.retain(|part| part.name != "_charset_");
    for field in READ_FIELDS {
        if parts.iter().filter(|part| part.name == field).count() > 1 {
            return Err(ApiError::invalid(field, format!("{field} occurs twice")));
        }
    }
    for part in parts.iter_mut().filter(|part| READ_FIELDS.contains(&part.name.as_str())) {
        part.file = None;
    }
    let model = parts.iter().find(|part| part.name == "model").ok_or_else(|| no_model(task))?;
    let model = std::str::from_utf8(model.content).map_err(|_| no_model(task))?;
    let model = named(task, model)?;
    let user = parts.iter().find(|part| part.name == "user");
    let user = user.and_then(|part| std::str::from_utf8(part.content).ok()).map(Arc::from);
    Ok(MediaBody { model, user, form: MediaForm::multipart(&parts) })
}

fn named(task: MediaTask, model: &str) -> ApiResult<String> {
    if model.trim().is_empty() || model == DEFAULT_MODEL {
        return Err(no_model(task));
    }
    check_model_name(model)?;
    Ok(model.to_owned())
}

fn no_model(task: MediaTask) -> ApiError {
    let (what, example) = match task {
        MediaTask::Transcription | MediaTask::Translation => ("that reads speech", "whisper-1"),
        MediaTask::Speech => ("that speaks", "tts-1"),
        MediaTask::Image | MediaTask::ImageEdit => ("for pictures", "gpt-image-1"),
    };
    let message =
        format!("'model' is required: the id of a model {what}, such as {example}. There is no default");
    ApiError::invalid("model", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_a_body_is_read_in_both_formats() {
        let json = br#"{ "model": "tts-1", "input": "hi", "user": "u-1" }"#;
        let read = json_form(MediaTask::Speech, json).ok().map(|body| (body.model, body.user));
        assert_eq!(read, Some(("tts-1".to_owned(), Some("u-1".into()))));
        let form = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n\
            --b\r\ncontent-disposition: form-data; name=\"user\"\r\n\r\nu-2\r\n--b--\r\n";
        let read = multipart_form(MediaTask::ImageEdit, "multipart/form-data; boundary=b", form.as_bytes());
        let read = read.ok().map(|body| (body.model, body.user));
        assert_eq!(read, Some(("whisper-1".to_owned(), Some("u-2".into()))));
    }
}
