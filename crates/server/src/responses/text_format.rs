//! `text` of a request: the form of the answer.

use std::borrow::Cow;
use std::sync::LazyLock;

use hob_core::{JsonSchema, ResponseFormat};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{ApiError, ApiResult};
use crate::openai::ignored_fields::IgnoredFields;
use crate::openai::tools::require_object;

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct WireText {
    format: Option<WireFormat>,
    verbosity: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireFormat {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    description: Option<String>,
    schema: Option<Value>,
    strict: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What a response repeats for a request without the field.
static PLAIN_TEXT: LazyLock<Value> = LazyLock::new(|| json!({ "format": { "type": "text" } }));

/// The form of the answer.
pub(super) struct TextOptions {
    pub(super) format: ResponseFormat,
    pub(super) verbosity: Option<String>,
    /// The field as the response repeats it.
    pub(super) echo: Cow<'static, Value>,
}

impl Default for TextOptions {
    fn default() -> Self {
        TextOptions { format: ResponseFormat::Text, verbosity: None, echo: Cow::Borrowed(&PLAIN_TEXT) }
    }
}

impl WireText {
    pub(super) fn resolve(self, ignored: &mut IgnoredFields) -> ApiResult<TextOptions> {
        let WireText { format, verbosity, rest } = self;
        ignored.note_all("text", &rest);
        let (format, shown) = match format {
            None => (ResponseFormat::Text, json!({ "type": "text" })),
            Some(format) => format.resolve(ignored)?,
        };
        let mut echo = json!({ "format": shown });
        if let Some(verbosity) = &verbosity {
            echo["verbosity"] = json!(verbosity);
        }
        Ok(TextOptions { format, verbosity, echo: Cow::Owned(echo) })
    }
}

impl WireFormat {
    fn resolve(self, ignored: &mut IgnoredFields) -> ApiResult<(ResponseFormat, Value)> {
        ignored.note_all("text.format", &self.rest);
        match self.kind.as_str() {
            "text" => Ok((ResponseFormat::Text, json!({ "type": "text" }))),
            "json_object" => Ok((ResponseFormat::JsonObject, json!({ "type": "json_object" }))),
            "json_schema" => {
                let Some(schema) = self.schema else {
                    let message = "a format of type 'json_schema' needs a 'schema'";
                    return Err(ApiError::invalid("text.format.schema", message));
                };
                require_object(&schema, "text.format.schema")?;
                let name = self.name.unwrap_or_else(|| "answer".to_owned());
                let echo = json!({
                    "type": "json_schema",
                    "name": name,
                    "description": self.description,
                    "schema": schema,
                    "strict": self.strict,
                });
                let format = JsonSchema { name, description: self.description, schema, strict: self.strict };
                Ok((ResponseFormat::JsonSchema(format), echo))
            }
            other => {
                let message =
                    format!("'{other}' is not a format. Formats are text, json_object and json_schema");
                Err(ApiError::invalid("text.format.type", message))
            }
        }
    }
}
