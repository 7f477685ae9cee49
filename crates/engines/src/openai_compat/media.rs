//! Sound and pictures: the caller's request is passed on, and the answer as it comes.

use std::borrow::Cow;

use futures::stream::{self, StreamExt};
use hob_core::{EngineError, MediaAnswer, MediaForm, MediaRequest};

use crate::wire::client::Endpoint;
use crate::wire::error_response::unknown_model;
use crate::wire::response::Response;

/// Passes a request on to `path`. A server without the path, or without such a model, cannot do it.
pub(crate) async fn post(
    endpoint: &Endpoint,
    path: &str,
    request: &MediaRequest,
) -> Result<MediaAnswer, EngineError> {
    let (content_type, body) = match &request.form {
        MediaForm::Json(fields) => {
            let json = serde_json::to_vec(fields).map_err(|error| endpoint.malformed(error.to_string()))?;
            ("application/json", Cow::Owned(json))
        }
        MediaForm::Multipart { content_type, body, .. } => {
            (content_type.as_str(), Cow::Borrowed(body.as_slice()))
        }
    };
    let response = endpoint.post_as(path, content_type, &body).await?;
    let response =
        endpoint.accept(response).await.map_err(|error| match unknown_model(error, &request.model) {
            EngineError::Refused { status: 404 | 405 | 501, message, .. } => {
                endpoint.unsupported(request.task.name(), Some(&message))
            }
            other => other,
        })?;
    Ok(MediaAnswer {
        content_type: response.content_type.as_deref().map(str::to_owned),
        body: pieces(endpoint.clone(), response).boxed(),
    })
}

fn pieces(
    endpoint: Endpoint,
    response: Response,
) -> impl futures::Stream<Item = Result<Vec<u8>, EngineError>> + Send {
    stream::unfold(Some((endpoint, response)), |state| async move {
        let (endpoint, mut response) = state?;
        match response.chunk().await? {
            Ok(bytes) => Some((Ok(bytes.into()), Some((endpoint, response)))),
            Err(broken) => Some((Err(endpoint.failure(broken)), None)),
        }
    })
}
