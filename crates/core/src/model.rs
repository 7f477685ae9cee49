//! Information about a model, and the names with a special meaning.

use thiserror::Error;

use crate::device::DeviceShare;

/// The name by which a caller leaves the choice of a model to Hob.
pub const AUTO: &str = "auto";

/// The name by which a caller asks for the default model.
pub const DEFAULT_MODEL: &str = "default";

/// The name by which a caller lets the configured agent answer.
pub const AGENT_MODEL: &str = "hob/agent";

/// A model of an engine. Only the id is always known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelInfo {
    pub id: String,
    /// Unix seconds.
    pub created: Option<i64>,
    /// Number of weights.
    pub parameters: Option<u64>,
    /// Context window in tokens.
    pub context: Option<u64>,
    /// Bytes on disk, which is roughly what it needs of (video) memory before its context.
    pub size: Option<u64>,
    /// Such as `Q4_K_M`.
    pub quantization: Option<String>,
    pub kind: ModelKind,
    pub capabilities: ModelCapabilities,
}

/// What a model supports; `None` where the engine does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelCapabilities {
    /// It reads images.
    pub vision: Option<bool>,
    /// It accepts sound.
    pub audio: Option<bool>,
    /// It calls tools.
    pub tools: Option<bool>,
    /// It reasons before it answers.
    pub reasoning: Option<bool>,
    /// It fills the gap between two texts.
    pub fill_in_middle: Option<bool>,
}

impl ModelCapabilities {
    /// The values of both; the first one overrides the second.
    pub fn or(self, other: Self) -> Self {
        ModelCapabilities {
            vision: self.vision.or(other.vision),
            audio: self.audio.or(other.audio),
            tools: self.tools.or(other.tools),
            reasoning: self.reasoning.or(other.reasoning),
            fill_in_middle: self.fill_in_middle.or(other.fill_in_middle),
        }
    }
}

/// The output of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelKind {
    /// An answer. The default for models of an unknown kind.
    #[default]
    Text,
    /// A vector: it cannot answer.
    Embedding,
}

impl ModelInfo {
    pub fn named(id: impl Into<String>) -> Self {
        ModelInfo { id: id.into(), ..ModelInfo::default() }
    }
}

/// A model in the memory of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunningModel {
    pub id: String,
    /// Bytes of memory that it takes.
    pub size: Option<u64>,
    /// The part of them on a graphics card.
    pub size_vram: Option<u64>,
    /// Unix seconds at which it is unloaded unless it is asked again; `None` where that is not known.
    pub expires: Option<i64>,
    /// The graphics cards that hold a part of it, if the engine runs in this process.
    pub devices: Vec<DeviceShare>,
}

/// A model and the engine that answers for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// The engine's key.
    pub engine: String,
    pub model: ModelInfo,
}

/// Why no model can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoSuitableModel {
    #[error(
        "'{AUTO}' leaves the choice of a model to Hob, but {engine} has none that can answer. Give it one; 'hob model list' shows \
         what there is."
    )]
    NoModel { engine: String },

    #[error(
        "'{AUTO}' finds no model on {engine} whose context holds about {tokens} tokens of question and answer; the longest is \
         {model}'s with {context}. Shorten the conversation, or lower max_tokens."
    )]
    NothingFits { engine: String, tokens: u64, model: String, context: u64 },
}
