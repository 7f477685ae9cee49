//! The conversation that a request continues: a stored response with those before it, or the items of a conversation. Also finds the
//! stored items that an input refers to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use hob_conversations::responses::limits::{MAX_CHAIN_BYTES, MAX_CONVERSATION_BYTES, MAX_CONVERSATION_ITEMS};
use hob_conversations::{
    FoundItems, ItemPage, ResponseChain, ResponseLease, ResponseOwner, ResponseStore, StoredResponse,
};
use serde_json::Value;

use super::output::response_of;
use super::ready_request::{NewResponse, ReadyRequest, check_item_count};
use super::request::{Continues, CreateRequest};
use crate::error::{ApiError, ApiResult};
use crate::state::ServerState;

/// Adds to a request what it continues. `owner` is who asks.
pub(super) async fn complete(
    state: &ServerState,
    mut request: CreateRequest,
    owner: ResponseOwner,
    new: NewResponse,
) -> ApiResult<ReadyRequest> {
    let store = state.responses.clone().ok_or_else(ApiError::no_response_store)?;
    let work = move || {
        let stored = Stored { store, owner };
        let before = stored.before(&request.continues)?;
        let input = std::mem::take(&mut request.input);
        check_item_count(before.len() + input.len())?;
        let input = stored.resolve(input, &before)?;
        request.complete(&before, input, &new)
    };
    state.blocking.run(work).await
}

/// Whether a process still writes this response.
pub(super) fn is_running(response: &StoredResponse) -> bool {
    response.lease == Some(ResponseLease::Held)
}

/// What one caller has stored.
struct Stored {
    store: Arc<dyn ResponseStore>,
    owner: ResponseOwner,
}

impl Stored {
    /// The items before the input.
    fn before(&self, continues: &Continues) -> ApiResult<Vec<Value>> {
        match continues {
            Continues::Nothing => Ok(Vec::new()),
            Continues::Response(id) => self.items_of_response(id),
            Continues::Conversation(id) => self.items_of_conversation(id),
        }
    }

    fn items_of_response(&self, id: &str) -> ApiResult<Vec<Value>> {
        let chain = self.store.chain(&self.owner, id, SystemTime::now()).map_err(ApiError::store_failed)?;
        let responses = match chain {
            ResponseChain::Whole(responses) => responses,
            ResponseChain::Missing(missing) => return Err(ApiError::no_previous_response(id, &missing)),
            ResponseChain::TooLong => {
                let message =
                    format!("'{id}' continues too many responses, or too long ones, to be continued");
                return Err(ApiError::invalid("previous_response_id", message));
            }
        };
        if let Some(last) = responses.last().filter(|last| last.lease.is_some()) {
            let message = match is_running(last) {
                true => format!("'{id}' is not complete yet; wait until its status is 'completed'"),
                false => format!("'{id}' has failed: the server stopped while it wrote this response"),
            };
            return Err(ApiError::invalid("previous_response_id", message));
        }
        let mut items = Vec::new();
        for response in &responses {
            items.extend(items_of(response)?);
        }
        Ok(items)
    }

    fn items_of_conversation(&self, id: &str) -> ApiResult<Vec<Value>> {
        let found = self.store.items(&self.owner, id, &ItemPage::ALL, SystemTime::now());
        let FoundItems::Items { items, .. } = found.map_err(ApiError::store_failed)? else {
            return Err(ApiError::no_such_conversation(id));
        };
        let bytes: usize = items.iter().map(|item| item.item.len()).sum();
        if items.len() >= MAX_CONVERSATION_ITEMS || bytes >= MAX_CONVERSATION_BYTES {
            return Err(ApiError::conversation_full());
        }
        items.iter().map(|item| parse(&item.item)).collect()
    }

    /// The input with every reference replaced by the item that it names. An item that the model has already is not repeated.
    fn resolve(&self, input: Vec<Value>, before: &[Value]) -> ApiResult<Vec<Value>> {
        let mut present: HashSet<String> =
            before.iter().filter_map(|item| item["id"].as_str()).map(str::to_owned).collect();
        let mut loaded = LoadedItems::default();
        let mut resolved = Vec::with_capacity(input.len());
        for (index, item) in input.into_iter().enumerate() {
            if item["type"] != "item_reference" {
                resolved.push(item);
                continue;
            }
            let id = item["id"].as_str().unwrap_or_default();
            if !present.insert(id.to_owned()) {
                continue;
            }
            let found = self.find_item(id, &mut loaded)?.ok_or_else(|| {
                let message = format!(
                    "item '{id}' is not stored. Items of a response with 'store': false are not stored"
                );
                ApiError::invalid(format!("input[{index}].id"), message)
            })?;
            resolved.push(found);
        }
        Ok(resolved)
    }

    /// Each response is read once, however many of its items are referred to.
    fn find_item(&self, id: &str, loaded: &mut LoadedItems) -> ApiResult<Option<Value>> {
        let Some(response) = response_of(id) else { return Ok(None) };
        if !loaded.responses.contains(&response) {
            let found = self.store.find(&self.owner, &response).map_err(ApiError::store_failed)?;
            loaded.responses.insert(response);
            if let Some(found) = found {
                loaded.bytes += found.body.len() + found.input.len();
                if loaded.bytes > MAX_CHAIN_BYTES {
                    let message = "'input' refers to items of too many responses, or of too long ones";
                    return Err(ApiError::invalid("input", message));
                }
                for item in items_of(&found)? {
                    if let Some(id) = item["id"].as_str() {
                        loaded.items.insert(id.to_owned(), item);
                    }
                }
            }
        }
        Ok(loaded.items.remove(id))
    }
}

/// The items of the responses that an input refers to.
#[derive(Default)]
struct LoadedItems {
    responses: HashSet<String>,
    items: HashMap<String, Value>,
    bytes: usize,
}

/// What was asked and answered.
fn items_of(response: &StoredResponse) -> ApiResult<Vec<Value>> {
    let mut items = parse_items(&response.input)?;
    if let Value::Array(output) = parse(&response.body)?["output"].take() {
        items.extend(output);
    }
    Ok(items)
}

pub(super) fn parse_items(json: &str) -> ApiResult<Vec<Value>> {
    serde_json::from_str(json).map_err(|_| unreadable())
}

pub(super) fn parse(json: &str) -> ApiResult<Value> {
    serde_json::from_str(json).map_err(|_| unreadable())
}

/// Only another program than Hob can have written it.
fn unreadable() -> ApiError {
    tracing::warn!("a stored response or conversation is not valid JSON");
    ApiError::store_unavailable()
}
