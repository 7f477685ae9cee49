//! The progress of a download: `POST /api/pull`, one line per step.

use std::pin::Pin;

use futures::Stream;
use futures::stream::try_unfold;
use hob_core::EngineError;
use serde::Deserialize;
use serde_json::Value;

use crate::wire::client::Endpoint;
use crate::wire::error_response::EngineErrorBody;
use crate::wire::frames::{Frames, Framing};
use crate::wire::response::Response;
use crate::wire::stream_decoder::DecodeError;

/// One step of a download.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OllamaPullProgress {
    /// The current action, such as `pulling manifest`; `success` at the end.
    pub status: String,
    /// The digest of the file.
    pub digest: Option<String>,
    /// The size of the file in bytes.
    pub total: Option<u64>,
    /// The bytes of it that are downloaded.
    pub completed: Option<u64>,
}

impl OllamaPullProgress {
    fn is_last(&self) -> bool {
        self.status == "success"
    }
}

/// The steps of a download, or an error. Dropping the stream stops the download; the next download of the model
/// resumes it.
pub type OllamaPullStream = Pin<Box<dyn Stream<Item = Result<OllamaPullProgress, EngineError>> + Send>>;

/// The steps of a download that Ollama accepted.
pub fn progress(endpoint: &Endpoint, response: Response) -> OllamaPullStream {
    let download = Download {
        endpoint: endpoint.clone(),
        response,
        frames: Frames::new(Framing::Lines),
        is_complete: false,
    };
    Box::pin(try_unfold(download, |mut download| async move {
        let step = download.next().await?;
        Ok(step.map(|step| (step, download)))
    }))
}

struct Download {
    endpoint: Endpoint,
    response: Response,
    frames: Frames,
    is_complete: bool,
}

impl Download {
    async fn next(&mut self) -> Result<Option<OllamaPullProgress>, EngineError> {
        if self.is_complete {
            return Ok(None);
        }
        loop {
            if let Some(line) = self.frames.next_frame() {
                let step = read(line).map_err(|error| error.into_engine_error(&self.endpoint, true))?;
                self.is_complete = step.is_last();
                return Ok(Some(step));
            }
            match self.response.chunk().await {
                Some(Ok(bytes)) => {
                    self.frames.push(&bytes).map_err(|error| self.endpoint.interrupted(error.to_string()))?
                }
                None => return self.end().map(Some),
                Some(Err(broken)) => return Err(self.endpoint.failure(broken)),
            }
        }
    }

    /// The end of the response. The last line may lack its line feed, and a download without `success` is incomplete.
    fn end(&mut self) -> Result<OllamaPullProgress, EngineError> {
        let last = self.frames.rest().map(read);
        match last {
            Some(Ok(step)) if step.is_last() => {
                self.is_complete = true;
                Ok(step)
            }
            Some(Err(error @ DecodeError::Reported { .. })) => {
                Err(error.into_engine_error(&self.endpoint, true))
            }
            _ => Err(DecodeError::Incomplete.into_engine_error(&self.endpoint, true)),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Error { error: Value },
    Step(OllamaPullProgress),
}

fn read(line: &[u8]) -> Result<OllamaPullProgress, DecodeError> {
    match serde_json::from_slice(line) {
        Ok(Line::Step(step)) => Ok(step),
        Ok(Line::Error { error }) => Err(DecodeError::reported(EngineErrorBody::of(&error))),
        Err(_) => Err(DecodeError::Malformed("a line is neither progress nor an error".to_owned())),
    }
}
