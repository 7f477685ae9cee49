//! The nouns of the house and the contracts between its floors.
//!
//! Knows no network, no disk, no runtime and no wire format: everything here can be tested with plain values.

pub mod agent;
pub mod embed;
pub mod engine;
pub mod event;
pub mod generate;
pub mod inference;
pub mod message;
pub mod model;
pub mod stream;
pub mod tool;

pub use agent::{Agent, AgentContext, AgentOutcome, Listener, ToolResult};
pub use embed::{EmbedRequest, Embeddings};
pub use engine::{Engine, EngineError};
pub use event::{Event, EventBus, Happening, RunEvents, Subscription};
pub use generate::{
    Answer, FinishReason, GenerateRequest, Generation, InvalidValue, JsonSchema, MaxTokens, ResponseFormat,
    Sampling, Temperature, ToolChoice, ToolDefinition, Usage, Warning, is_annotation,
};
pub use inference::{Ending, Inference, InferenceLog, Source, Unrecorded};
pub use message::{Content, Image, Message, Part, Role, ToolCall};
pub use model::ModelInfo;
pub use stream::{Collector, Delta, DeltaStream, GenerationStream, Step, TextDelta, ToolCallDelta};
pub use tool::{NoTools, Reach, Tool, ToolError, ToolSpec, Tools};
