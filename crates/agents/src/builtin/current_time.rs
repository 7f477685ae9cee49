//! `current_time`: the time in any time zone.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{Clock, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use serde::Deserialize;
use serde_json::{Value, json};

pub struct CurrentTime {
    clock: Arc<dyn Clock>,
}

impl CurrentTime {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        CurrentTime { clock }
    }
}

#[derive(Deserialize)]
struct Arguments {
    timezone: Option<String>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::new(
        "current_time",
        "Returns the date, time and weekday.",
        Reach::Pure,
        object_schema(
            json!({
                "timezone": { "type": ["string", "null"], "description": "IANA name such as Europe/Berlin; UTC by default" }
            }),
            &[],
        ),
    )
});

#[async_trait]
impl Tool for CurrentTime {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { timezone } = tool_arguments::read(arguments)?;
        render(self.clock.now(), timezone.as_deref().unwrap_or("UTC"))
    }
}

fn render(now: Timestamp, timezone: &str) -> Result<String, ToolError> {
    let zone = TimeZone::get(timezone).map_err(|_| {
        let shown: String = timezone.chars().take(60).collect();
        ToolError::new(format!("unknown time zone '{shown}'; use an IANA name such as Europe/Berlin or UTC"))
    })?;
    let time = now.to_zoned(zone).round(Unit::Second).map_err(ToolError::new)?;
    // `%:z`, because abbreviations such as BST are ambiguous.
    Ok(time.strftime("%Y-%m-%dT%H:%M:%S%:z, %A, ").to_string() + timezone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> CurrentTime {
        CurrentTime::new(Arc::new(move || Timestamp::from_second(seconds).unwrap()))
    }

    #[tokio::test]
    async fn the_time_is_returned_in_utc_and_other_zones() {
        let clock = at(1_767_225_600);
        let told = clock.call(json!({})).await;
        assert_eq!(told.as_deref(), Ok("2026-01-01T00:00:00+00:00, Thursday, UTC"));
        let told = clock.call(json!({ "timezone": "America/New_York" })).await;
        assert_eq!(told.as_deref(), Ok("2025-12-31T19:00:00-05:00, Wednesday, America/New_York"));
        let summer = at(1_782_864_000).call(json!({ "timezone": "Europe/Berlin" })).await;
        assert_eq!(summer.as_deref(), Ok("2026-07-01T02:00:00+02:00, Wednesday, Europe/Berlin"));
    }

    #[tokio::test]
    async fn an_unknown_time_zone_is_an_error_that_helps_the_model() {
        for unknown in ["Mars/Olympus", "", "../../etc/passwd"] {
            let told = at(0).call(json!({ "timezone": unknown })).await;
            assert!(told.is_err_and(|error| error.0.contains("IANA name")), "{unknown}");
        }
    }
}
