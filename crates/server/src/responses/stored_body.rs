//! Stores a response when it is complete. The body of a streamed one sends its last event only then, so that a client that has read it
//! can continue the response.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures::future::BoxFuture;
use hob_conversations::responses::limits::MAX_RESPONSE_BYTES;
use hob_conversations::{
    Appended, ConversationAppend, ConversationItem, ResponseLease, ResponseOwner, ResponseStore,
    StoredResponse,
};
use hob_core::{AnswerWarning, Backoff};
use hob_db::DbResult;
use http_body::{Body, Frame};

use super::conversation_lock::ConversationLock;
use super::events::ResponseEvents;
use super::object::{Finished, Status};
use super::ready_request::StoredInput;
use crate::answer::stream::AnswerBody;
use crate::json::push_json;
use crate::limits::body_limit::SMALL_BODY;
use crate::state::ServerState;

/// How long, and how often, Hob tries to store a response that is complete.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(2) };

/// Where a response goes when it is complete.
pub(super) struct Keeper {
    pub(super) state: Arc<ServerState>,
    pub(super) store: Arc<dyn ResponseStore>,
    pub(super) owner: ResponseOwner,
    pub(super) id: String,
    /// The response that this one continues.
    pub(super) previous: Option<String>,
    /// The conversation that it belongs to.
    pub(super) conversation: Option<String>,
    pub(super) input: StoredInput,
    /// Whether the response itself is stored, or only added to its conversation.
    pub(super) stores_response: bool,
    pub(super) _lock: Option<ConversationLock>,
}

impl Keeper {
    /// Stores a response that is complete without blocking. Gives it back if that takes time.
    pub(super) fn finish_now(&self, finished: Finished) -> Result<(), Finished> {
        let is_small = finished.body.len() + self.input.json.len() <= SMALL_BODY;
        if self.conversation.is_some() || !self.stores_response || !is_small {
            return Err(finished);
        }
        let Finished { status, body, output } = finished;
        let response = self.response(body, None);
        let taken = self.store.save_soon(&self.owner, response, SystemTime::now());
        taken.map_err(|response| Finished { status, body: response.body.into_bytes(), output })
    }

    /// Stores a response that is complete. Returns what of it was not stored: the answer is there all the same.
    pub(super) async fn finish(self: Arc<Self>, finished: Finished) -> Vec<AnswerWarning> {
        self.write(finished, Place::New).await
    }

    /// The same for a response that is being written, unless it was deleted or cancelled.
    pub(super) async fn replace(self: Arc<Self>, finished: Finished) -> Vec<AnswerWarning> {
        self.write(finished, Place::Existing).await
    }

    /// Tries again for a while if the database is away: the answer is complete, and a server that restarts is soon back.
    async fn write(self: Arc<Self>, finished: Finished, place: Place) -> Vec<AnswerWarning> {
        let mut parts = self.parts(finished, place);
        let mut delays = RETRY.delays();
        let begin = Instant::now();
        loop {
            let keeper = Arc::clone(&self);
            let (tried, written) = self
                .state
                .blocking
                .run(move || {
                    let written = keeper.write_now(&parts);
                    (parts, written)
                })
                .await;
            parts = tried;
            let delay = delays.next_delay();
            match &written {
                Err(error) if error.is_temporary() && begin.elapsed() + delay < PATIENCE => {
                    parts.is_repeated = true;
                    tokio::time::sleep(delay).await;
                }
                _ => return self.lost(&parts, written),
            }
        }
    }

    /// Whether a response is small enough to be stored.
    pub(super) fn fits(&self, finished: &Finished) -> bool {
        finished.body.len() + self.input.json.len() <= MAX_RESPONSE_BYTES
    }

    fn parts(&self, finished: Finished, place: Place) -> StoredParts {
        let is_answer = matches!(finished.status, Status::Completed | Status::Incomplete);
        let append = self.conversation.as_ref().filter(|_| is_answer).map(|conversation| {
            let output = finished.output.iter().map(|item| ConversationItem {
                id: item.id.clone(),
                item: String::from_utf8_lossy(&item.json).into_owned(),
            });
            ConversationAppend {
                conversation: conversation.clone(),
                items: self.input.items.iter().cloned().chain(output).collect(),
            }
        });
        let stores = self.stores_response && self.fits(&finished);
        let response = self.response(finished.body, None);
        StoredParts { response, append, stores, place, is_repeated: false }
    }

    fn write_now(&self, parts: &StoredParts) -> DbResult<Appended> {
        let now = SystemTime::now();
        let StoredParts { response, append, .. } = parts;
        let append = append.as_ref();
        let written = match (parts.stores, parts.place) {
            (true, Place::New) => self.store.save(&self.owner, response, append, now),
            (true, Place::Existing) => self
                .store
                .update(&self.owner, response, append, now)
                .map(|updated| updated.unwrap_or(Appended::Yes)),
            (false, _) => {
                append.map_or(Ok(Appended::Yes), |append| self.store.append(&self.owner, append, now))
            }
        };
        match (written, append) {
            // The attempt before was written, although its end was not confirmed.
            (Ok(Appended::IdTaken(id)), Some(append))
                if parts.is_repeated && append.items.iter().any(|item| item.id == id) =>
            {
                Ok(Appended::Yes)
            }
            (written, _) => written,
        }
    }

    /// What was not stored.
    fn lost(&self, parts: &StoredParts, written: DbResult<Appended>) -> Vec<AnswerWarning> {
        let mut is_stored = parts.stores == self.stores_response;
        let mut is_added = true;
        match written {
            Ok(Appended::Yes) => {}
            Ok(refused) => {
                is_added = false;
                tracing::warn!(
                    ?refused,
                    response = self.id,
                    "a response was not added to its conversation; the caller gets a warning"
                );
            }
            Err(error) => {
                (is_stored, is_added) = (!parts.stores, parts.append.is_none());
                tracing::warn!(
                    %error,
                    response = self.id,
                    "a response was not stored. 'hob doctor' checks the database"
                );
            }
        }
        let lost = [("store", is_stored), ("conversation", is_added)];
        let lost = lost.into_iter().filter(|(_, is_done)| !is_done);
        lost.map(|(field, _)| AnswerWarning::Ignored(field.to_owned())).collect()
    }

    /// The response as it is stored.
    pub(super) fn response(&self, body: Vec<u8>, lease: Option<ResponseLease>) -> StoredResponse {
        StoredResponse {
            id: self.id.clone(),
            previous: self.previous.clone(),
            body: String::from_utf8(body).unwrap_or_default(),
            input: self.input.json.clone(),
            lease,
        }
    }
}

/// What is written when a response is complete.
struct StoredParts {
    response: StoredResponse,
    append: Option<ConversationAppend>,
    /// Whether the response itself is written.
    stores: bool,
    place: Place,
    /// Whether an attempt has failed.
    is_repeated: bool,
}

/// Whether the response is in the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    New,
    Existing,
}

/// The body of a streamed response that is stored.
pub(super) struct StoredBody {
    pub(super) answer: AnswerBody<ResponseEvents>,
    /// Taken when the response is complete.
    pub(super) keeper: Option<Arc<Keeper>>,
    pub(super) saving: Option<Saving>,
}

/// A response that is being stored, and what its client gets after that.
pub(super) struct Saving {
    work: BoxFuture<'static, Vec<AnswerWarning>>,
    frame: Frame<Bytes>,
}

/// A frame with a comment before it that says what was not stored. The head of the answer has been sent.
fn with_comment(frame: Frame<Bytes>, lost: &[AnswerWarning]) -> Frame<Bytes> {
    let texts: Vec<_> = lost.iter().map(AnswerWarning::text).collect();
    let mut out = b": hob WARNING ".to_vec();
    push_json(&mut out, &texts);
    out.extend_from_slice(b"\n\n");
    out.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
    Frame::data(out.into())
}

impl Body for StoredBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.saving.is_none() {
            let Some(frame) = ready!(Pin::new(&mut this.answer).poll_frame(context)) else {
                return Poll::Ready(None);
            };
            let Ok(frame) = frame;
            let finished = this.answer.encoder().take_finished();
            match (finished, this.keeper.take()) {
                (Some(finished), Some(keeper)) => match keeper.finish_now(finished) {
                    Ok(()) => return Poll::Ready(Some(Ok(frame))),
                    Err(finished) => {
                        this.saving = Some(Saving { work: Box::pin(keeper.finish(finished)), frame });
                    }
                },
                (_, keeper) => {
                    this.keeper = keeper;
                    return Poll::Ready(Some(Ok(frame)));
                }
            }
        }
        let lost = match &mut this.saving {
            Some(saving) => ready!(saving.work.as_mut().poll(context)),
            None => Vec::new(),
        };
        Poll::Ready(this.saving.take().map(|Saving { frame, .. }| match lost.as_slice() {
            [] => Ok(frame),
            lost => Ok(with_comment(frame, lost)),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.saving.is_none() && self.answer.is_end_stream()
    }
}
