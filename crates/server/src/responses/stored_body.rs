//! Stores a response when it is complete. The body of a streamed one sends its last event only then, so that a client that has read it
//! can continue the response.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use bytes::Bytes;
use futures::future::BoxFuture;
use hob_conversations::responses::limits::MAX_RESPONSE_BYTES;
use hob_conversations::{ConversationAppend, ConversationItem, ResponseOwner, ResponseStore, StoredResponse};
use hob_core::Moment;
use http_body::{Body, Frame};

use super::events::ResponseEvents;
use super::object::{Finished, Status};
use crate::answer::stream::AnswerBody;
use crate::state::ServerState;

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
    /// The input items with their ids: a JSON array, and for a conversation one by one.
    pub(super) input: String,
    pub(super) items: Vec<ConversationItem>,
    /// Whether the response itself is stored, or only added to its conversation.
    pub(super) stores_response: bool,
}

impl Keeper {
    /// Stores a response that is complete without blocking. Gives it back if that takes time.
    pub(super) fn finish_now(&self, finished: Finished) -> Result<(), Finished> {
        if self.conversation.is_some() || !self.stores_response || !self.is_small(&finished.body) {
            return Err(finished);
        }
        let Finished { status, body, output } = finished;
        let response = self.response(body, None);
        let taken = self.store.save_soon(&self.owner, response, SystemTime::now());
        taken.map_err(|response| Finished { status, body: response.body.into_bytes(), output })
    }

    /// Stores a response that is complete. A failure is logged: the answer is there all the same.
    pub(super) async fn finish(self: Arc<Self>, finished: Finished) {
        self.write(finished, Place::New).await;
    }

    /// The same for a response that is stored already, unless it was deleted.
    pub(super) async fn replace(self: Arc<Self>, finished: Finished) {
        self.write(finished, Place::Existing).await;
    }

    async fn write(self: Arc<Self>, finished: Finished, place: Place) {
        let work = {
            let keeper = Arc::clone(&self);
            move || keeper.write_now(finished, place)
        };
        self.state.blocking.run(work).await;
    }

    fn is_small(&self, body: &[u8]) -> bool {
        body.len() + self.input.len() <= MAX_RESPONSE_BYTES
    }

    fn write_now(&self, finished: Finished, place: Place) {
        let now = SystemTime::now();
        let is_answer = matches!(finished.status, Status::Completed | Status::Incomplete);
        let append = self.conversation.as_ref().filter(|_| is_answer).map(|conversation| {
            let output = finished.output.iter().map(|item| ConversationItem {
                id: item.id.clone(),
                item: String::from_utf8_lossy(&item.json).into_owned(),
            });
            ConversationAppend {
                conversation: conversation.clone(),
                items: self.items.iter().cloned().chain(output).collect(),
            }
        });
        let stores = self.stores_response && (self.is_small(&finished.body) || place == Place::Existing);
        let response = self.response(finished.body, None);
        let written = match (stores, append) {
            (true, append) if place == Place::Existing => {
                self.store.update(&self.owner, &response, append.as_ref(), now).map(drop)
            }
            (true, append) => self.store.save(&self.owner, &response, append.as_ref(), now),
            (false, Some(append)) => self.store.append(&self.owner, &append, now).map(drop),
            (false, None) => Ok(()),
        };
        if let Err(error) = written {
            tracing::warn!(%error, response = self.id, "a response was not stored");
        }
    }

    /// The response as it is stored.
    pub(super) fn response(&self, body: Vec<u8>, lease: Option<Moment>) -> StoredResponse {
        StoredResponse {
            id: self.id.clone(),
            previous: self.previous.clone(),
            body: String::from_utf8(body).unwrap_or_default(),
            input: self.input.clone(),
            lease,
        }
    }
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
    work: BoxFuture<'static, ()>,
    frame: Frame<Bytes>,
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
        if let Some(saving) = &mut this.saving {
            ready!(saving.work.as_mut().poll(context));
        }
        Poll::Ready(this.saving.take().map(|saving| Ok(saving.frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.saving.is_none() && self.answer.is_end_stream()
    }
}
