//! The conversation that a request continues: a stored response with those before it, or the items of a conversation. Also finds the
//! stored items that an input refers to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use hob_conversations::responses::limits::{MAX_CHAIN_BYTES, MAX_CONVERSATION_BYTES, MAX_CONVERSATION_ITEMS};
use hob_conversations::{
    FoundItems, ItemPage, ResponseChain, ResponseLease, ResponseOwner, ResponseStore, StoredResponse,
};
use hob_core::request_budget::{BODY_VALUES, count_values, thousands};
use serde::Deserialize;
use serde_json::Value;

use super::output::response_of;
use super::ready_request::{NewResponse, ReadyRequest, check_item_count};
use super::request::{Continues, CreateRequest};
use crate::error::{ApiError, ApiResult};
use crate::limits::body_limit::{BodyPermit, SMALL_BODY};
use crate::limits::peer_share::PeerKey;
use crate::state::ServerState;

/// JSON values of all items that a request loads. Each request can store as many as a body may have.
const MAX_STORED_VALUES: usize = 4 * BODY_VALUES;

/// Adds to a request what it continues. `owner` is who asks. What is loaded counts like a body, if it is large, as long as the permit is
/// held.
pub(super) async fn complete(
    state: &ServerState,
    request: CreateRequest,
    owner: ResponseOwner,
    peer: Option<PeerKey>,
    new: NewResponse,
) -> ApiResult<(ReadyRequest, BodyPermit)> {
    let store = state.responses.clone().ok_or_else(ApiError::no_response_store)?;
    let stored = Arc::new(Stored { store, owner });
    let (first, first_new) = (Arc::clone(&stored), new.clone());
    let request = match state.blocking.run(move || first.complete(request, &first_new, SMALL_BODY)).await? {
        Completed::Ready { ready, .. } => return Ok((*ready, BodyPermit::default())),
        Completed::NoRoom(request) => *request,
    };
    let mut permit = state.body_reader.hold(peer, MAX_CHAIN_BYTES).await?;
    match state.blocking.run(move || stored.complete(request, &new, usize::MAX)).await? {
        Completed::Ready { ready, bytes } => {
            permit.shrink_to(bytes);
            Ok((*ready, permit))
        }
        Completed::NoRoom(_) => Err(ApiError::store_unavailable()),
    }
}

/// Whether a process still writes this response.
pub(super) fn is_running(response: &StoredResponse) -> bool {
    response.lease == Some(ResponseLease::Held)
}

/// A request with what it continues.
enum Completed {
    Ready {
        ready: Box<ReadyRequest>,
        /// Of what was loaded.
        bytes: usize,
    },
    /// What it continues is larger than there is room for.
    NoRoom(Box<CreateRequest>),
}

/// Why nothing was loaded.
enum LoadError {
    NoRoom,
    Refused(ApiError),
}

impl From<ApiError> for LoadError {
    fn from(error: ApiError) -> Self {
        LoadError::Refused(error)
    }
}

/// What one caller has stored.
struct Stored {
    store: Arc<dyn ResponseStore>,
    owner: ResponseOwner,
}

impl Stored {
    /// Loads up to `room` bytes for a request.
    fn complete(&self, mut request: CreateRequest, new: &NewResponse, room: usize) -> ApiResult<Completed> {
        let mut loaded = Loaded { room, ..Loaded::default() };
        match self.load(&request, &mut loaded) {
            Ok(()) => {}
            Err(LoadError::NoRoom) => return Ok(Completed::NoRoom(Box::new(request))),
            Err(LoadError::Refused(error)) => return Err(error),
        }
        let Loaded { before, mut referred, bytes, .. } = loaded;
        let input = std::mem::take(&mut request.input).into_iter().enumerate();
        // A reference without an item is to one that the model has already.
        let input = input.filter_map(|(index, item)| match is_reference(&item) {
            true => referred.remove(&index),
            false => Some(item),
        });
        let input = input.collect();
        Ok(Completed::Ready { ready: Box::new(request.complete(&before, input, new)?), bytes })
    }

    /// Loads the items before the input, and those that the input refers to.
    fn load(&self, request: &CreateRequest, loaded: &mut Loaded) -> Result<(), LoadError> {
        match &request.continues {
            Continues::Nothing => {}
            Continues::Response(id) => self.load_response(id, loaded)?,
            Continues::Conversation(id) => self.load_conversation(id, loaded)?,
        }
        check_item_count(loaded.before.len() + request.input.len())?;
        let mut present: HashSet<String> =
            loaded.before.iter().filter_map(|item| item["id"].as_str()).map(str::to_owned).collect();
        for (index, item) in request.input.iter().enumerate().filter(|(_, item)| is_reference(item)) {
            let id = item["id"].as_str().unwrap_or_default();
            if !present.insert(id.to_owned()) {
                continue;
            }
            let found = self.find_item(id, loaded)?.ok_or_else(|| {
                let message = format!(
                    "item '{id}' is not stored. Items of a response with 'store': false are not stored"
                );
                ApiError::invalid(format!("input[{index}].id"), message)
            })?;
            loaded.referred.insert(index, found);
        }
        Ok(())
    }

    fn load_response(&self, id: &str, loaded: &mut Loaded) -> Result<(), LoadError> {
        let chain = self.store.chain(&self.owner, id, SystemTime::now()).map_err(ApiError::store_failed)?;
        let responses = match chain {
            ResponseChain::Whole(responses) => responses,
            ResponseChain::Missing(missing) => {
                return Err(ApiError::no_previous_response(id, &missing).into());
            }
            ResponseChain::TooLong => {
                let message =
                    format!("'{id}' continues too many responses, or too long ones, to be continued");
                return Err(ApiError::invalid("previous_response_id", message).into());
            }
        };
        if let Some(last) = responses.last().filter(|last| last.lease.is_some()) {
            let message = match is_running(last) {
                true => format!("'{id}' is not complete yet; wait until its status is 'completed'"),
                false => format!("'{id}' has failed: the server stopped while it wrote this response"),
            };
            return Err(ApiError::invalid("previous_response_id", message).into());
        }
        loaded.add_bytes(responses.iter().map(bytes_of).sum())?;
        for response in &responses {
            let items = items_of(response)?;
            loaded.add_values(&items)?;
            loaded.before.extend(items);
        }
        Ok(())
    }

    fn load_conversation(&self, id: &str, loaded: &mut Loaded) -> Result<(), LoadError> {
        let found = self.store.items(&self.owner, id, &ItemPage::ALL, SystemTime::now());
        let FoundItems::Items { items, .. } = found.map_err(ApiError::store_failed)? else {
            return Err(ApiError::no_such_conversation(id).into());
        };
        let bytes: usize = items.iter().map(|item| item.item.len()).sum();
        if items.len() >= MAX_CONVERSATION_ITEMS || bytes >= MAX_CONVERSATION_BYTES {
            return Err(ApiError::conversation_full().into());
        }
        loaded.add_bytes(bytes)?;
        for item in &items {
            let item = parse(&item.item)?;
            loaded.add_values(std::slice::from_ref(&item))?;
            loaded.before.push(item);
        }
        Ok(())
    }

    /// Each response is read once, however many of its items are referred to.
    fn find_item(&self, id: &str, loaded: &mut Loaded) -> Result<Option<Value>, LoadError> {
        let Some(response) = response_of(id) else { return Ok(None) };
        if !loaded.responses.contains(&response) {
            let found = self.store.find(&self.owner, &response).map_err(ApiError::store_failed)?;
            loaded.responses.insert(response);
            if let Some(found) = found {
                loaded.referred_bytes += bytes_of(&found);
                if loaded.referred_bytes > MAX_CHAIN_BYTES {
                    let message = "'input' refers to items of too many responses, or of too long ones";
                    return Err(ApiError::invalid("input", message).into());
                }
                loaded.add_bytes(bytes_of(&found))?;
                let items = items_of(&found)?;
                loaded.add_values(&items)?;
                for item in items {
                    if let Some(id) = item["id"].as_str() {
                        loaded.items.insert(id.to_owned(), item);
                    }
                }
            }
        }
        Ok(loaded.items.remove(id))
    }
}

/// What was loaded for a request.
#[derive(Default)]
struct Loaded {
    /// The items before the input.
    before: Vec<Value>,
    /// The items that the input refers to, by the position of the reference.
    referred: HashMap<usize, Value>,
    /// The responses that it refers to, and their other items.
    responses: HashSet<String>,
    items: HashMap<String, Value>,
    referred_bytes: usize,
    bytes: usize,
    /// The most bytes.
    room: usize,
    values: usize,
}

impl Loaded {
    fn add_bytes(&mut self, bytes: usize) -> Result<(), LoadError> {
        self.bytes += bytes;
        if self.bytes > self.room { Err(LoadError::NoRoom) } else { Ok(()) }
    }

    fn add_values(&mut self, items: &[Value]) -> ApiResult<()> {
        for item in items {
            self.values += count_values(item, MAX_STORED_VALUES);
            if self.values > MAX_STORED_VALUES {
                let most = thousands(MAX_STORED_VALUES);
                let message = format!(
                    "what this request continues or refers to has too many JSON values; the limit is {most}"
                );
                return Err(ApiError::invalid("input", message));
            }
        }
        Ok(())
    }
}

fn is_reference(item: &Value) -> bool {
    item["type"] == "item_reference"
}

fn bytes_of(response: &StoredResponse) -> usize {
    response.body.len() + response.input.len()
}

/// The part of a stored response that a request can continue. The others are not kept in memory.
#[derive(Deserialize)]
struct StoredOutput {
    #[serde(default)]
    output: Value,
}

/// What was asked and answered.
fn items_of(response: &StoredResponse) -> ApiResult<Vec<Value>> {
    let mut items = parse_items(&response.input)?;
    let body: StoredOutput = serde_json::from_str(&response.body).map_err(|_| unreadable())?;
    if let Value::Array(output) = body.output {
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
    tracing::warn!(
        "a stored response or conversation is not valid JSON: another program changed it. Let the caller \
         delete it"
    );
    ApiError::store_unavailable()
}
