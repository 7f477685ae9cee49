//! A request to a model, and how it is prepared: its files encoded, its text rendered and tokenised.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_core::{AnswerWarning, CompletionRequest, EngineError, GenerateRequest, Image, Message};

use crate::constraint::schema_field;
use crate::error::interrupted;
use crate::grammar_thread;
use crate::loaded_model::LoadedModel;
use crate::media::{self, EncodeRequest, EncodedMedia, MarkedRequest};
use crate::prompt::{Prepared, prepare, prepare_completion};

/// Longer conversations are tokenised on a blocking thread.
const LONG: usize = 32 * 1024;

/// A request to a model.
pub(crate) enum Question {
    Conversation(Arc<GenerateRequest>),
    Text(Arc<CompletionRequest>),
}

impl Question {
    pub(crate) fn model(&self) -> &str {
        match self {
            Question::Conversation(request) => &request.model,
            Question::Text(request) => &request.model,
        }
    }

    /// The approximate size.
    fn bytes(&self) -> usize {
        let (texts, stops): (usize, _) = match self {
            Question::Conversation(request) => {
                (request.messages.iter().map(message_bytes).sum(), &request.sampling.stop)
            }
            Question::Text(request) => {
                let suffix = request.suffix.as_ref().map_or(0, String::len);
                (suffix + request.prompt.text().map_or(0, str::len), &request.sampling.stop)
            }
        };
        texts + stops.iter().map(String::len).sum::<usize>()
    }

    fn schema_field(&self) -> Option<&'static str> {
        match self {
            Question::Conversation(request) => schema_field(request),
            Question::Text(request) => schema_field(&request.settings()),
        }
    }

    /// What has no effect on pictures: the projector decides on their resolution.
    pub(crate) fn ignored(&self) -> Option<AnswerWarning> {
        let Question::Conversation(request) = self else { return None };
        let is_ignored = |image: &Image| image.detail.as_deref().is_some_and(|detail| detail != "auto");
        let mut images = request.messages.iter().flat_map(|message| message.content.images());
        images.any(is_ignored).then(|| AnswerWarning::Ignored("image_url.detail".to_owned()))
    }

    /// The question with marks in the places of its files, and the files as the model reads them.
    pub(crate) async fn encoded(
        self,
        loaded: &Arc<LoadedModel>,
    ) -> Result<(Self, Vec<Arc<EncodedMedia>>), EngineError> {
        match self {
            Question::Conversation(request) if media::has_attachments(&request) => {
                let (marked, files) = encode_files(loaded, request).await?;
                Ok((Question::Conversation(Arc::new(marked)), files))
            }
            other => Ok((other, Vec::new())),
        }
    }

    fn prepare(&self, loaded: &LoadedModel, files: &[Arc<EncodedMedia>]) -> Result<Prepared, EngineError> {
        match self {
            Question::Conversation(request) => prepare(loaded, request, files),
            Question::Text(request) => prepare_completion(loaded, request),
        }
    }
}

/// Takes the files out of a request and encodes them. Dropping the future cancels it.
pub(crate) async fn encode_files(
    loaded: &Arc<LoadedModel>,
    request: Arc<GenerateRequest>,
) -> Result<(GenerateRequest, Vec<Arc<EncodedMedia>>), EngineError> {
    let is_cancelled = Arc::new(AtomicBool::new(false));
    let _cancelled_at_end = CancelOnDrop(Arc::clone(&is_cancelled));
    let loaded = Arc::clone(loaded);
    blocking(move || {
        let marked = MarkedRequest::new(&request, loaded.senses())?;
        let limits = EncodeRequest {
            model: &loaded.model,
            name: &loaded.id,
            context: loaded.context_size.context as usize,
            is_cancelled: &is_cancelled,
        };
        // A model without a projector has refused the request.
        let files = match &loaded.projector {
            Some(projector) => projector.encode(&marked, &limits)?,
            None => Vec::new(),
        };
        Ok((marked.request, files))
    })
    .await
}

fn message_bytes(message: &Message) -> usize {
    let arguments: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
    arguments + message.content.text().len()
}

/// Ends the work on another thread when its caller no longer waits for it.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Renders, tokenises and reads the schemas of a request.
pub(crate) async fn read(
    loaded: &Arc<LoadedModel>,
    question: Question,
    files: Vec<Arc<EncodedMedia>>,
) -> Result<Prepared, EngineError> {
    if let Some(field) = question.schema_field() {
        // Created once per model, outside the time limit of the schema.
        let warm = Arc::clone(loaded);
        blocking(move || warm.vocabulary().map(drop)).await?;
        let loaded = Arc::clone(loaded);
        return grammar_thread::run(field, move || question.prepare(&loaded, &files)).await?;
    }
    if question.bytes() <= LONG {
        return question.prepare(loaded, &files);
    }
    let loaded = Arc::clone(loaded);
    blocking(move || question.prepare(&loaded, &files)).await
}

/// Reads a request on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| interrupted(format!("cannot read the request: {error}")))?
}
