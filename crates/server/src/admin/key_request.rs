//! Counts a request that asks no model as one of its key, like a question.

use std::sync::Arc;

use hob_core::{KeyGrant, RunningRequest};

use crate::error::{ApiError, ApiResult};

/// Admits a request of a key. It runs until what this returns is dropped; `None` if nothing is counted.
pub(crate) async fn begin_request(key: Option<&Arc<KeyGrant>>) -> ApiResult<Option<RunningRequest>> {
    match key.and_then(|key| key.spending.as_ref()) {
        Some(spending) => Ok(Some(spending.begin_request().await.map_err(ApiError::limit_reached)?)),
        None => Ok(None),
    }
}
