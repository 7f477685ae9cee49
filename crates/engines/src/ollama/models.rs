//! Ollama's models: `GET /api/tags` and `POST /api/show`.

use std::borrow::Cow;

use hob_core::{ModelCapabilities, ModelInfo, ModelKind, RunningModel};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Details of one model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelDetails {
    /// Such as `llama`.
    pub family: Option<String>,
    /// Number of weights.
    pub parameters: Option<u64>,
    /// Such as `Q4_K_M`.
    pub quantization: Option<String>,
    /// The longest context of the model, in tokens.
    pub context: Option<u64>,
    /// Such as `completion`, `tools`, `vision`, `thinking`.
    pub capabilities: Vec<String>,
    /// The licence's name, or the first line of its text.
    pub license: Option<String>,
}

#[derive(Deserialize)]
struct Tags {
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    modified_at: Option<String>,
    size: Option<u64>,
    #[serde(default)]
    details: Summary,
}

#[derive(Deserialize, Default)]
struct Summary {
    family: Option<String>,
    parameter_size: Option<String>,
    quantization_level: Option<String>,
}

#[derive(Deserialize)]
struct Running {
    models: Vec<RunningTag>,
}

#[derive(Deserialize)]
struct RunningTag {
    name: String,
    size: Option<u64>,
    size_vram: Option<u64>,
    expires_at: Option<String>,
    context_length: Option<u64>,
}

#[derive(Deserialize)]
struct Show {
    #[serde(default)]
    details: Summary,
    #[serde(default)]
    model_info: Map<String, Value>,
    #[serde(default)]
    capabilities: Vec<String>,
    license: Option<String>,
}

/// Reads `GET /api/tags`.
pub fn read_tags(body: &[u8]) -> Result<Vec<ModelInfo>, String> {
    let tags: Tags = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(tags.models.into_iter().map(Tag::into_info).collect())
}

impl Tag {
    fn into_info(self) -> ModelInfo {
        // The list has no field for this. `bert`, `nomic-bert` and similar families are embedding models.
        let embeds = self.details.family.as_deref().is_some_and(|family| family.contains("bert"));
        ModelInfo {
            id: self.name,
            created: self.modified_at.as_deref().and_then(unix_seconds),
            parameters: self.details.parameter_size.as_deref().and_then(weights),
            context: None,
            size: self.size,
            quantization: self.details.quantization_level.filter(|level| !level.is_empty()),
            kind: if embeds { ModelKind::Embedding } else { ModelKind::Text },
            capabilities: ModelCapabilities::default(),
        }
    }
}

/// Reads `GET /api/ps`.
pub fn read_running(body: &[u8]) -> Result<Vec<RunningModel>, String> {
    let running: Running = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let describe = |tag: RunningTag| RunningModel {
        expires: tag.expires_at.as_deref().and_then(unix_seconds),
        id: tag.name,
        size: tag.size,
        size_vram: tag.size_vram,
        devices: Vec::new(),
    };
    Ok(running.models.into_iter().map(describe).collect())
}

/// Reads the contexts with which models run from `GET /api/ps`, in tokens. Older versions of Ollama do not report them.
pub fn read_running_contexts(body: &[u8]) -> Result<Vec<(String, u64)>, String> {
    let running: Running = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let context = |tag: RunningTag| Some((tag.name, tag.context_length.filter(|tokens| *tokens > 0)?));
    Ok(running.models.into_iter().filter_map(context).collect())
}

/// Reads `POST /api/show`.
pub fn read_details(body: &[u8]) -> Result<ModelDetails, String> {
    let show: Show = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let text = |name: &str| show.model_info.get(name).and_then(Value::as_str);
    let number = |name: &str| show.model_info.get(name).and_then(Value::as_u64);
    let context = text("general.architecture").and_then(|family| number(&format!("{family}.context_length")));
    let license_text = show.license.as_deref().unwrap_or_default();
    let license =
        text("general.license").or_else(|| license_text.lines().map(str::trim).find(|line| !line.is_empty()));
    Ok(ModelDetails {
        parameters: number("general.parameter_count")
            .or_else(|| show.details.parameter_size.as_deref().and_then(weights)),
        context,
        license: license.map(str::to_owned),
        family: show.details.family.filter(|family| !family.is_empty()),
        quantization: show.details.quantization_level.filter(|level| !level.is_empty()),
        capabilities: show.capabilities,
    })
}

impl ModelDetails {
    /// What the list says of a model, and these details.
    pub(super) fn added_to(self, model: &ModelInfo) -> ModelInfo {
        // Older versions of Ollama do not report this.
        let can = |word: &str| {
            (!self.capabilities.is_empty()).then(|| self.capabilities.iter().any(|known| known == word))
        };
        ModelInfo {
            context: model.context.or(self.context),
            parameters: self.parameters.or(model.parameters),
            kind: match can("embedding") {
                Some(true) => ModelKind::Embedding,
                Some(false) | None => model.kind,
            },
            capabilities: ModelCapabilities {
                vision: can("vision"),
                audio: can("audio"),
                tools: can("tools"),
                reasoning: can("thinking"),
                fill_in_middle: can("insert"),
            },
            ..model.clone()
        }
    }
}

/// Whether two names refer to the same model: the default tag is `latest`.
pub fn same_model(one: &str, other: &str) -> bool {
    with_tag(one) == with_tag(other)
}

fn with_tag(name: &str) -> Cow<'_, str> {
    // A colon before the last slash belongs to a registry's port.
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains(':') { Cow::Borrowed(name) } else { Cow::Owned(format!("{name}:latest")) }
}

/// The number of weights in `134.52M` or `7.6B`.
fn weights(size: &str) -> Option<u64> {
    let (digits, unit) = match size.trim().split_at_checked(size.trim().len().checked_sub(1)?)? {
        (digits, "K") => (digits, 1e3),
        (digits, "M") => (digits, 1e6),
        (digits, "B") => (digits, 1e9),
        (digits, "T") => (digits, 1e12),
        _ => (size.trim(), 1.0),
    };
    let count = digits.parse::<f64>().ok()? * unit;
    // The range also excludes NaN. Every real count is far below its end.
    (0.0..1e18).contains(&count).then_some(count.round() as u64)
}

/// Unix seconds of a time such as `2026-11-15T01:37:11.414484176+01:00`.
fn unix_seconds(time: &str) -> Option<i64> {
    time.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_tag_means_the_latest() {
        assert!(same_model("smollm2", "smollm2:latest"));
        assert!(same_model("host:5000/me/m", "host:5000/me/m:latest"));
        assert!(!same_model("smollm2", "smollm2:135m"));
        assert!(!same_model("smollm2", "smollm"));
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let read = ["134.52M", "7.6B", "1T", "500K", "42", "", "B", "-1B", "NaN", "é"].map(weights);
        let expected = [
            Some(134_520_000),
            Some(7_600_000_000),
            Some(1_000_000_000_000),
            Some(500_000),
            Some(42),
            None,
            None,
            None,
            None,
            None,
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn times_are_read_with_any_offset() {
        let read = [
            "1970-01-01T00:00:00Z",
            "2000-02-29T12:00:00Z",
            "2026-11-15T01:37:11.414484176Z",
            "2026-11-15T02:37:11.414+01:00",
            "2026-11-14T20:07:11-05:30",
            "2026-13-01T00:00:00Z",
            "2026-11-15",
            "65536-01-01T00:00:00Z",
            "",
        ]
        .map(unix_seconds);
        let moment = Some(1_794_706_631);
        let expected = [Some(0), Some(951_825_600), moment, moment, moment, None, None, None, None];
        assert_eq!(read, expected);
    }
}
