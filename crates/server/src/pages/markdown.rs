//! `POST /pages/markdown`: renders Markdown for the pages, so that browsers need no parser. It reads and stores nothing.

use axum::Json;
use axum::extract::{Request, State};
use hob_text::markdown::{Continuation, MarkdownPiece, RenderedPieces, render};
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::{JsonBody, read_json};
use crate::state::SharedState;

/// Bytes of a text. The chat page accepts answers of 2 Mi characters, each of at most three bytes.
const MAX_TEXT: usize = 8 << 20;

/// Bytes of the lines that open a block.
const MAX_OPENING: usize = 64 << 10;

/// Larger bodies are rendered in the pool, so that they do not block a worker thread.
const SMALL_TEXT: usize = 16 << 10;

/// The body before it is checked.
#[derive(Deserialize)]
struct MarkdownBody {
    text: String,
    /// What the last answer contained, while the text grows. A text without it is complete.
    #[serde(default)]
    after: Option<Continuation>,
}

#[derive(Serialize)]
pub(crate) struct MarkdownPieces {
    pieces: Vec<MarkdownPiece>,
    /// Where the last piece begins, in UTF-16 code units, which is how browsers count.
    settled: usize,
    after: Continuation,
}

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Json<MarkdownPieces>> {
    let JsonBody { bytes, permit } = read_json(request, &state.body_reader).await?;
    let rendered = match bytes.len() {
        ..=SMALL_TEXT => rendered(&bytes),
        _ => state.blocking.run(move || rendered(&bytes)).await,
    };
    drop(permit);
    rendered.map(Json)
}

fn rendered(body: &[u8]) -> ApiResult<MarkdownPieces> {
    let MarkdownBody { text, after } = read(body)?;
    if text.len() > MAX_TEXT {
        return Err(ApiError::invalid("text", format!("text has more than {MAX_TEXT} bytes")));
    }
    let opening = after.as_ref().and_then(|after| after.opening.as_deref()).unwrap_or_default();
    if opening.len() > MAX_OPENING {
        return Err(ApiError::invalid(
            "after.opening",
            format!("after.opening has more than {MAX_OPENING} bytes"),
        ));
    }
    let RenderedPieces { pieces, settled, after } = render(&text, after);
    Ok(MarkdownPieces { pieces, settled: text[..settled].encode_utf16().count(), after })
}
