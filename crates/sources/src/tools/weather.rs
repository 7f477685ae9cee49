//! `weather`: the weather at the owner's place.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{Tool, ToolError, ToolSpec, object_schema};
use serde_json::{Value, json};

use super::spec;
use crate::service::SourceService;

pub(super) struct Weather {
    pub service: Arc<SourceService>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    spec(
        "weather",
        "Returns the weather at the user's place: now, today and tomorrow.",
        object_schema(json!({}), &[]),
    )
});

#[async_trait]
impl Tool for Weather {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, _arguments: Value) -> Result<String, ToolError> {
        let Some(place) = &self.service.options().weather else {
            return Err(ToolError::new("no place is configured for the weather"));
        };
        self.service.weather(place).await.map_err(ToolError::new)
    }
}
