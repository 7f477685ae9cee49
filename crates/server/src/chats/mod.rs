//! Chats that are saved on the server, and saved assistants: `/v1/chats`, `/v1/saved-assistants`. The page and `hob chat` share the owner's; a
//! member has its own. Keeps what it saves in `hob_conversations`, and asks no model.

pub(crate) mod assistants;
pub(crate) mod saved;
pub(crate) mod turns;
mod wire;

use std::sync::Arc;

use axum::Json;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::Extensions;
use hob_conversations::{ChatId, ChatStore, ResponseOwner};
use hob_core::CallerRole;
use hob_db::DbResult;
use serde::Serialize;

use crate::error::{ApiError, ApiResult};
use crate::limits::peer_share::PeerKey;
use crate::object_owner::owner_of;
use crate::pages::changes::{Audience, Topic};
use crate::request_context::RequestContext;
use crate::state::ServerState;

/// The id in the path.
type Id = Result<Path<String>, PathRejection>;

fn read_id(id: Id) -> ApiResult<String> {
    let Path(id) = id.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    Ok(id)
}

/// The chat of an id. What is no number is no chat.
fn chat_id(id: &str) -> ApiResult<ChatId> {
    ChatId::parse(id).ok_or_else(|| ApiError::no_such_chat(id))
}

#[derive(Serialize)]
pub(crate) struct DeletedObject {
    id: String,
    deleted: bool,
}

impl DeletedObject {
    fn of(id: String) -> Json<Self> {
        Json(DeletedObject { id, deleted: true })
    }
}

/// A caller that has chats, and where they are.
#[derive(Clone)]
struct CallerChats {
    store: Arc<dyn ChatStore>,
    owner: ResponseOwner,
    audience: Audience,
    peer: Option<PeerKey>,
}

impl CallerChats {
    /// Strangers have no chats: there is nothing by which one is known again.
    fn of(state: &ServerState, extensions: &Extensions, path: &str) -> ApiResult<Self> {
        if !matches!(RequestContext::role(extensions), CallerRole::Owner | CallerRole::Member) {
            return Err(ApiError::owner_only(path));
        }
        Ok(CallerChats {
            store: state.chats.clone().ok_or_else(ApiError::no_chats)?,
            owner: owner_of(extensions),
            audience: Audience::of(extensions),
            peer: RequestContext::peer_key(extensions),
        })
    }

    /// Reads or changes what is saved, in the pool.
    async fn run<T: Send + 'static>(
        &self,
        state: &ServerState,
        work: impl FnOnce(&dyn ChatStore, &ResponseOwner) -> DbResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let (store, owner) = (Arc::clone(&self.store), self.owner.clone());
        let done = state.blocking.run(move || work(store.as_ref(), &owner)).await;
        done.map_err(ApiError::chats_failed)
    }

    /// Tells the caller's pages.
    fn publish(&self, state: &ServerState, topic: Topic) {
        state.changes.publish(topic, &self.audience);
    }
}
