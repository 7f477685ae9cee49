//! The HTTP client of `rmcp`'s transport. Its own client reads a JSON body however long it is; this one limits every message.
//! Knows nothing of tools, nor of when a request is sent.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures::{StreamExt, TryStream, TryStreamExt, stream};
use hob_net::response_body;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::io::StreamReader;

use crate::{MAX_MESSAGE_BYTES, shortened};

type HttpError = StreamableHttpError<reqwest::Error>;

/// An event as `rmcp` reads it. It has no public name there.
type SseEvent = <BoxedSseResponse as TryStream>::Ok;

/// A client that reads no message over [`MAX_MESSAGE_BYTES`].
#[derive(Clone)]
pub struct LimitedHttpClient(pub Client);

impl StreamableHttpClient for LimitedHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let accepted = format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}");
        let mut request = self.0.post(uri.as_ref()).header(ACCEPT, accepted);
        if let Some(token) = auth_header {
            request = request.bearer_auth(token);
        }
        for (name, value) in custom_headers {
            request = request.header(name, value);
        }
        if let Some(id) = &session_id {
            request = request.header(HEADER_SESSION_ID, id.as_ref());
        }
        let response = request.json(&message).send().await?;
        SentMessage { message: &message, in_session: session_id.is_some() }.answer(response).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        // Reads no body.
        self.0.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, HttpError> {
        // Reads events only, each within the limit.
        let most_bytes = MAX_MESSAGE_BYTES;
        self.0.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, most_bytes).await
    }
}

/// A message that a server answers.
struct SentMessage<'a> {
    message: &'a ClientJsonRpcMessage,
    in_session: bool,
}

impl SentMessage<'_> {
    async fn answer(self, response: Response) -> Result<StreamableHttpPostResponse, HttpError> {
        let status = response.status();
        if let Some(challenge) = header(&response, WWW_AUTHENTICATE.as_str()) {
            match status {
                StatusCode::UNAUTHORIZED => {
                    return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
                }
                StatusCode::FORBIDDEN => {
                    let error = InsufficientScopeError::new(challenge, None);
                    return Err(StreamableHttpError::InsufficientScope(error));
                }
                _ => {}
            }
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && self.in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let content_type = header(&response, CONTENT_TYPE.as_str());
        let is_of_type = |name: &str| content_type.as_ref().is_some_and(|found| found.starts_with(name));
        let is_json = is_of_type(JSON_MIME_TYPE);
        let session_id = header(&response, HEADER_SESSION_ID);
        let awaits_answer = matches!(self.message, ClientJsonRpcMessage::Request(_));
        if status == StatusCode::TOO_MANY_REQUESTS || (status.is_server_error() && !is_json) {
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        if status.is_success() {
            // Some servers answer a notification like this in place of 202.
            if !awaits_answer && response.content_length() == Some(0) {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            if is_of_type(EVENT_STREAM_MIME_TYPE) {
                return Ok(StreamableHttpPostResponse::Sse(events(response), session_id));
            }
            if !is_json {
                return Err(StreamableHttpError::UnexpectedContentType(content_type));
            }
        }
        let body = response_body(response, MAX_MESSAGE_BYTES).await;
        if !status.is_success() {
            // A refusal whose body cannot be read is still a refusal.
            let body = body.ok().flatten().unwrap_or_default();
            return self.refusal(status, &body, is_json);
        }
        let body = body?.ok_or_else(|| unexpected(too_long()))?;
        match serde_json::from_slice(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session_id)),
            Err(_) if !awaits_answer => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(unexpected(format!("{error}: {}", start_of(&body)))),
        }
    }

    /// Passes the error of the server on, if the body has one.
    fn refusal(
        &self,
        status: StatusCode,
        body: &[u8],
        is_json: bool,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let error = match serde_json::from_slice::<ServerJsonRpcMessage>(body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        let described = format!("HTTP {status}: {}", start_of(body));
        let is_forbidden = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if let ClientJsonRpcMessage::Request(request) = self.message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
            && status.is_client_error()
            && !is_forbidden
            && !self.in_session
        {
            // `rmcp` tries the older protocol after an error with the id of the request, which older servers do not send.
            let error = match error {
                Some(error) => error.error,
                None => ErrorData::invalid_request(described, None),
            };
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        match error {
            Some(error) if is_json && !is_forbidden => {
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None))
            }
            _ if status.is_server_error() => Err(HttpStatusError::new(status.as_u16(), None).into()),
            _ => Err(unexpected(described)),
        }
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

fn start_of(body: &[u8]) -> String {
    shortened(&String::from_utf8_lossy(body))
}

fn unexpected(reason: String) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(reason.into())
}

fn too_long() -> String {
    format!("a message longer than {} MiB", MAX_MESSAGE_BYTES >> 20)
}

/// The events of a body, each within the limit.
fn events(response: Response) -> BoxedSseResponse {
    let body = StreamReader::new(response.bytes_stream().map_err(io::Error::other).boxed());
    let lines = FramedRead::new(body, LinesCodec::new_with_max_length(MAX_MESSAGE_BYTES));
    let start = (lines, EventReader { most_bytes: MAX_MESSAGE_BYTES, bytes: 0, event: None });
    let events = stream::try_unfold(start, |(mut lines, mut reader)| async move {
        while let Some(line) = lines.next().await {
            let line = line.map_err(|error| SseError::Body(error.into()))?;
            if let Some(event) = reader.add(&line)? {
                return Ok(Some((event, (lines, reader))));
            }
        }
        Ok::<_, SseError>(None)
    });
    events.boxed()
}

/// Joins the lines of an event.
struct EventReader {
    most_bytes: usize,
    /// The bytes of the event so far.
    bytes: usize,
    event: Option<SseEvent>,
}

impl EventReader {
    /// Adds a line. Returns the event that an empty line ends.
    fn add(&mut self, line: &str) -> Result<Option<SseEvent>, SseError> {
        if line.is_empty() {
            self.bytes = 0;
            return Ok(self.event.take());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        // Others are comments, or of a later version of the format.
        if !matches!(field, "data" | "event" | "id" | "retry") {
            return Ok(None);
        }
        self.bytes = self.bytes.saturating_add(line.len());
        if self.bytes > self.most_bytes {
            return Err(SseError::Body(too_long().into()));
        }
        let value = value.strip_prefix(' ').unwrap_or(value);
        let event = self.event.get_or_insert_default();
        match field {
            "data" => match &mut event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => event.data = Some(value.to_owned()),
            },
            "event" => event.event = Some(value.to_owned()),
            "retry" => event.retry = value.trim().parse().ok(),
            "id" if !value.contains('\0') => event.id = Some(value.to_owned()),
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(most_bytes: usize, lines: &str) -> Result<Vec<SseEvent>, String> {
        let mut reader = EventReader { most_bytes, bytes: 0, event: None };
        let read: Result<Vec<Option<SseEvent>>, SseError> =
            lines.lines().map(|line| reader.add(line)).collect();
        read.map(|read| read.into_iter().flatten().collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_lines_of_an_event_are_joined() {
        let lines = ": ping\n\nevent: message\nid: 7\nretry: 20\ndata: {\ndata:}\n\nunknown: 1\ndata\n\ndata: cut off";
        let first = SseEvent::default().event("message").id("7").retry(20).data("{\n}");
        assert_eq!(read(100, lines), Ok(vec![first, SseEvent::default().data("")]));
    }

    #[test]
    fn the_lines_of_an_event_are_limited_together_and_comments_are_not_counted() {
        assert_eq!(
            read(16, "data: 12\n: a long comment\ndata: 12\n\ndata: 12\n\n").map(|read| read.len()),
            Ok(2)
        );
        assert!(read(15, "data: 12\ndata: 12\n\n").is_err());
    }
}
