//! The nouns of the house and the contracts between its floors.
//!
//! Knows no network, no disk, no runtime and no wire format: everything here can be tested with plain values.

pub mod agent;
pub mod ask;
pub mod budget;
pub mod caller;
pub mod channel;
pub mod context_overflow;
pub mod embed;
pub mod engine;
pub mod event;
pub mod generate;
pub mod inference;
pub mod memory;
pub mod message;
pub mod model;
pub mod model_reason;
mod passages;
pub mod schedule;
pub mod secret;
pub mod stream;
pub mod tool;
mod tool_signature;
pub mod trace;
pub mod unplaced;

pub use agent::{Agent, AgentContext, AgentOutcome, Listener, ToolResult};
pub use ask::{AgentPreference, Answered, Ask, AskError, Caller, MemoryUse, RequestSource, run_id};
pub use budget::OverBudget;
pub use caller::CallerRole;
pub use channel::{ChannelError, ChannelMessage, ChannelReport, ChannelStatus, Channels, NoChannels};
pub use context_overflow::{CONTEXT_LENGTH_EXCEEDED, ContextOverflow};
pub use embed::{Cut, EmbedInputs, EmbedRequest, Embeddings, Overlong};
pub use engine::{Engine, EngineError};
pub use event::{Event, EventBus, Happening, RunEvents, Subscription};
pub use generate::{
    Answer, AnswerDefaults, FinishReason, GenerateRequest, Generation, InvalidValue, JsonSchema, MaxTokens,
    ResponseFormat, Sampling, Temperature, ToolChoice, ToolDefinition, Usage, Warning, is_annotation,
    is_documented_field, is_documented_message_field,
};
pub use inference::{Ending, Energy, Inference, InferenceLog, Unrecorded};
pub use memory::{
    Found, IndexReport, IndexWarning, Memory, MemoryBackend, MemoryError, MemoryQuery, MemoryStats, Note,
    Passage, PassagePlace,
};
pub use message::{Content, Image, Message, Part, Role, ToolCall};
pub use model::{ListedModel, ModelInfo, ModelKind, NoSuitableModel};
pub use model_reason::ModelReason;
pub use passages::{PASSAGES_BEGIN, PASSAGES_END, without_passages};
pub use schedule::{NewTask, Schedule, ScheduleError, Task, TaskId, TaskRun, TaskStatus};
pub use secret::is_secret;
pub use stream::{Collector, Delta, DeltaStream, GenerationStream, Step, TextDelta, ToolCallDelta};
pub use tool::{Effect, NoTools, Permit, Reach, Tool, ToolError, ToolSpec, Tools};
pub use trace::TraceParent;
pub use unplaced::{Unplaced, ignored_fields, unplaced_field, unplaced_message_field};
