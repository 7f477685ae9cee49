//! Pages of a list of items, for `input_items` and for the items of a conversation.

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ApiError;

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;

/// Which part of a list, as in the address.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PageQuery {
    after: Option<String>,
    limit: Option<String>,
    order: Option<String>,
}

/// Which part of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    after: Option<String>,
    limit: usize,
    is_oldest_first: bool,
}

impl Page {
    pub(super) fn parse(query: Result<Query<PageQuery>, QueryRejection>) -> Result<Self, ApiError> {
        let Query(PageQuery { after, limit, order }) =
            query.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
        let limit = match limit.as_deref() {
            None | Some("") => DEFAULT_LIMIT,
            Some(text) => {
                text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(|| {
                    ApiError::invalid("limit", format!("limit must be between 1 and {MAX_LIMIT}, got {text}"))
                })?
            }
        };
        let is_oldest_first = match order.as_deref() {
            None | Some("" | "desc") => false,
            Some("asc") => true,
            Some(other) => {
                let message = format!("'{other}' is not an order. Orders are asc and desc");
                return Err(ApiError::invalid("order", message));
            }
        };
        Ok(Page { after: after.filter(|id| !id.is_empty()), limit, is_oldest_first })
    }

    /// The page of a list that has the oldest item first.
    pub(super) fn of(&self, mut items: Vec<Value>) -> Result<Response, ApiError> {
        if !self.is_oldest_first {
            items.reverse();
        }
        if let Some(after) = &self.after {
            let Some(position) = items.iter().position(|item| item["id"] == after.as_str()) else {
                return Err(ApiError::invalid("after", format!("the list has no item '{after}'")));
            };
            items.drain(..=position);
        }
        let has_more = items.len() > self.limit;
        items.truncate(self.limit);
        Ok(item_list(items, has_more))
    }
}

/// A list of items.
pub(super) fn item_list(items: Vec<Value>, has_more: bool) -> Response {
    let id = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    let (first, last) = (id(items.first()), id(items.last()));
    let list = json!({
        "object": "list",
        "data": items,
        "first_id": first,
        "last_id": last,
        "has_more": has_more,
    });
    Json(list).into_response()
}
