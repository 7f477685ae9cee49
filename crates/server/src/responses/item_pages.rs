//! Pages of a list of items, for `input_items` and for the items of a conversation.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use hob_conversations::{ConversationItem, FoundItems, ItemOrder, ItemPage};
use serde::Deserialize;

use crate::error::{ApiError, ApiResult};
use crate::json::push_json;

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
pub(super) fn parse_page(query: Result<Query<PageQuery>, QueryRejection>) -> ApiResult<ItemPage> {
    let Query(PageQuery { after, limit, order }) =
        query.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    let limit = match limit.as_deref() {
        None | Some("") => DEFAULT_LIMIT,
        Some(text) => text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(|| {
            ApiError::invalid("limit", format!("limit must be between 1 and {MAX_LIMIT}, got {text}"))
        })?,
    };
    let order = match order.as_deref() {
        None | Some("" | "desc") => ItemOrder::NewestFirst,
        Some("asc") => ItemOrder::OldestFirst,
        Some(other) => {
            let message = format!("'{other}' is not an order. Orders are asc and desc");
            return Err(ApiError::invalid("order", message));
        }
    };
    Ok(ItemPage { after: after.filter(|id| !id.is_empty()), limit, order })
}

/// The page of a list that has the oldest item first.
pub(super) fn page_of(mut items: Vec<ConversationItem>, page: &ItemPage) -> FoundItems {
    if page.order == ItemOrder::NewestFirst {
        items.reverse();
    }
    if let Some(after) = &page.after {
        let Some(position) = items.iter().position(|item| item.id == *after) else {
            return FoundItems::NothingAfter;
        };
        items.drain(..=position);
    }
    let has_more = items.len() > page.limit;
    items.truncate(page.limit);
    FoundItems::Items { items, has_more }
}

pub(super) fn nothing_after(page: &ItemPage) -> ApiError {
    let after = page.after.as_deref().unwrap_or_default();
    ApiError::invalid("after", format!("the list has no item '{after}'"))
}

/// A list of items as JSON.
pub(super) fn item_list(items: &[ConversationItem], has_more: bool) -> Vec<u8> {
    let bytes: usize = items.iter().map(|item| item.item.len() + 1).sum();
    let mut out = Vec::with_capacity(128 + bytes);
    out.extend_from_slice(b"{\"object\":\"list\",\"data\":[");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item.item.as_bytes());
    }
    out.extend_from_slice(b"],\"first_id\":");
    push_json(&mut out, &items.first().map(|item| &item.id));
    out.extend_from_slice(b",\"last_id\":");
    push_json(&mut out, &items.last().map(|item| &item.id));
    out.extend_from_slice(b",\"has_more\":");
    push_json(&mut out, &has_more);
    out.push(b'}');
    out
}
