//! The conversation that a request continues: a stored response with those before it, or the items of a conversation. Also finds the
//! stored items that an input refers to.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use hob_conversations::responses::limits::{MAX_CONVERSATION_BYTES, MAX_CONVERSATION_ITEMS};
use hob_conversations::{ResponseChain, ResponseOwner, ResponseStore, StoredResponse};
use serde_json::Value;

use super::output::response_of;
use super::request::{Continues, CreateRequest, ReadyRequest};
use crate::error::ApiError;
use crate::state::ServerState;

/// Adds to a request what it continues. `owner` is who asks.
pub(super) async fn complete(
    state: &ServerState,
    request: CreateRequest,
    owner: ResponseOwner,
) -> Result<ReadyRequest, ApiError> {
    let store = state.responses.clone().ok_or_else(ApiError::no_response_store)?;
    let work = move || {
        let stored = Stored { store, owner };
        let before = stored.before(&request.continues)?;
        let input = stored.resolve(&request.input, &before)?;
        request.complete(&before, input)
    };
    state.blocking.run(work).await
}

/// What one caller has stored.
struct Stored {
    store: Arc<dyn ResponseStore>,
    owner: ResponseOwner,
}

impl Stored {
    /// The items before the input.
    fn before(&self, continues: &Continues) -> Result<Vec<Value>, ApiError> {
        match continues {
            Continues::Nothing => Ok(Vec::new()),
            Continues::Response(id) => self.items_of_response(id),
            Continues::Conversation(id) => self.items_of_conversation(id),
        }
    }

    fn items_of_response(&self, id: &str) -> Result<Vec<Value>, ApiError> {
        let chain = self.store.chain(&self.owner, id, SystemTime::now()).map_err(store_failed)?;
        let responses = match chain {
            ResponseChain::Whole(responses) => responses,
            ResponseChain::Missing(missing) => return Err(ApiError::no_previous_response(id, &missing)),
            ResponseChain::TooLong => {
                let message =
                    format!("'{id}' continues too many responses, or too long ones, to be continued");
                return Err(ApiError::invalid("previous_response_id", message));
            }
        };
        if responses.last().is_some_and(|last| last.lease.is_some()) {
            let message = format!("'{id}' is not complete yet; wait until its status is 'completed'");
            return Err(ApiError::invalid("previous_response_id", message));
        }
        let mut items = Vec::new();
        for response in &responses {
            items.extend(items_of(response)?);
        }
        Ok(items)
    }

    fn items_of_conversation(&self, id: &str) -> Result<Vec<Value>, ApiError> {
        let items = self.store.items(&self.owner, id, SystemTime::now()).map_err(store_failed)?;
        let items = items.ok_or_else(|| ApiError::no_such_conversation(id))?;
        let bytes: usize = items.iter().map(|item| item.item.len()).sum();
        if items.len() >= MAX_CONVERSATION_ITEMS || bytes >= MAX_CONVERSATION_BYTES {
            return Err(ApiError::conversation_full());
        }
        items.iter().map(|item| parse(&item.item)).collect()
    }

    /// The input with every reference replaced by the item that it names.
    fn resolve(&self, input: &[Value], before: &[Value]) -> Result<Vec<Value>, ApiError> {
        let resolved = input.iter().enumerate().map(|(index, item)| {
            if item["type"] != "item_reference" {
                return Ok(item.clone());
            }
            let id = item["id"].as_str().unwrap_or_default();
            let known = before.iter().find(|item| item["id"] == id).cloned();
            let found = match known {
                Some(item) => Some(item),
                None => self.find_item(id)?,
            };
            found.ok_or_else(|| {
                let message = format!(
                    "item '{id}' is not stored. Items of a response with 'store': false are not stored"
                );
                ApiError::invalid(format!("input[{index}].id"), message)
            })
        });
        resolved.collect()
    }

    fn find_item(&self, id: &str) -> Result<Option<Value>, ApiError> {
        let Some(response) = response_of(id) else { return Ok(None) };
        let Some(response) = self.store.find(&self.owner, &response).map_err(store_failed)? else {
            return Ok(None);
        };
        Ok(items_of(&response)?.into_iter().find(|item| item["id"] == id))
    }
}

/// What was asked and answered.
fn items_of(response: &StoredResponse) -> Result<Vec<Value>, ApiError> {
    let mut items: Vec<Value> = serde_json::from_str(&response.input).map_err(|_| unreadable())?;
    if let Value::Array(output) = parse(&response.body)?["output"].take() {
        items.extend(output);
    }
    Ok(items)
}

pub(super) fn parse(json: &str) -> Result<Value, ApiError> {
    serde_json::from_str(json).map_err(|_| unreadable())
}

/// Only another program than Hob can have written it.
fn unreadable() -> ApiError {
    tracing::warn!("a stored response is not valid JSON");
    ApiError::store_unavailable()
}

/// The store failed. The reason can name files, so it is only logged.
pub(super) fn store_failed(error: impl fmt::Display) -> ApiError {
    tracing::warn!(%error, "stored responses cannot be used");
    ApiError::store_unavailable()
}
