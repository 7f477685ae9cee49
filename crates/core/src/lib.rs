//! Messages, requests, answers, events, and the contracts `Engine`, `Agent`, `Tool` and `Ask`.
//!
//! Knows no network, no runtime and no wire format. Only `allowed_path` looks at the disk: it resolves links.

pub mod agent;
pub mod allowed_path;
mod answer_order;
pub mod ask;
pub mod backoff;
pub mod call_id;
mod call_tally;
pub mod caller;
pub mod caller_policy;
mod collection;
pub mod completion;
pub mod context_overflow;
pub mod defaults;
mod device;
pub mod embed;
pub mod engine;
pub mod engine_error;
pub mod event;
mod finish_reason;
pub mod fnv;
pub mod generate;
mod host_discovery;
pub mod key;
pub mod limit;
mod log_scope;
pub mod media;
pub mod message;
pub mod model;
pub mod model_reason;
mod named_variants;
mod passages;
mod percent_encoding;
mod random_id;
mod readiness;
mod reasoning;
pub mod request_budget;
pub mod rerank;
mod response_prefill;
pub mod secret_paths;
mod sources_line;
pub mod stream;
pub mod time;
pub mod token_estimate;
pub mod tokenize;
pub mod tool;
pub mod tool_arguments;
mod tool_signature;
pub mod trace;
pub mod unknown_fields;

pub use agent::{Agent, AgentContext, AgentOutcome, TextSink};
pub use allowed_path::{AllowedPath, AllowedRoots};
pub use answer_order::{LaterThought, Stretch};
pub use ask::{
    AgentPreference, AnswerSource, Answered, Ask, AskError, Caller, FirstCalls, MemoryUse, RequestSource,
    SpeechRecording,
};
pub use backoff::Backoff;
pub use call_tally::CallTally;
pub use caller::CallerRole;
pub use collection::{
    CollectionName, CollectionSet, DEFAULT_COLLECTION, InvalidCollectionName, LONGEST_PLAIN_NAME,
    is_plain_name,
};
pub use completion::{CompletionRequest, Prompt};
pub use context_overflow::{CONTEXT_LENGTH_EXCEEDED, ContextOverflow};
pub use device::{ComputeDevice, ComputeUnits, DevicePlan, DeviceShare};
pub use embed::{Cut, EmbedInputs, EmbedRequest, Embeddings, Overlong};
pub use engine::Engine;
pub use engine_error::{EngineError, UnreachableReason};
pub use event::{Event, EventBus, PublishedEvent, RunEvents, Subscription};
pub use finish_reason::FinishReason;
pub use generate::{
    Answer, AnswerDefaults, AnswerWarning, GenerateRequest, Generation, InvalidValue, JsonSchema, MaxTokens,
    ReplyMode, ResponseFormat, Sampling, Temperature, ToolChoice, ToolDefinition, Usage, is_annotation,
    is_documented_field, is_documented_message_field,
};
pub use host_discovery::{HostDiscovery, HostRecords, NotDiscovery};
pub use key::{
    CallReservation, CallerRights, EmptyKeyRing, KeyGrant, KeyRing, LimitAnswer, ModelPatterns, PlannedCall,
    RunningRequest, Spending, matches_pattern,
};
pub use limit::{LimitKind, LimitReached};
pub use log_scope::{LogScope, with_request_id};
pub use media::{FormFile, FormPart, MediaAnswer, MediaForm, MediaRequest, MediaStream, MediaTask};
pub use message::{CalledTools, Content, ContentPart, Image, Message, Role, ToolCall};
pub use model::{ListedModel, ModelCapabilities, ModelInfo, ModelKind, NoSuitableModel, RunningModel};
pub use model_reason::ModelReason;
pub use passages::{PASSAGES_BEGIN, PASSAGES_END, has_passages, without_passages};
pub use percent_encoding::percent_decoded;
pub use random_id::{fill_random, random_id};
pub use readiness::ReadinessCheck;
pub use reasoning::{
    REASONING_CONTENT, REASONING_EFFORT, ReasoningSeal, SealedReasoning, THINKING_BLOCKS, is_reasoning_field,
};
pub use request_budget::OverBudget;
pub use rerank::{RelevanceScore, RerankRequest, Reranking};
pub use response_prefill::{CONTINUE_FINAL_MESSAGE, PREFILL};
pub use secret_paths::is_secret;
pub use sources_line::{sources_line, with_sources};
pub use stream::{
    AgentStep, Collector, Delta, DeltaStream, GenerationStream, TextDelta, ToolCallDelta, ToolStep,
};
pub use time::{Clock, Moment, SystemClock, UtcDay, Zone};
pub use tokenize::{DetokenizeRequest, TokenizeInput, TokenizeRequest, Tokenized};
pub use tool::{
    Effect, NO_CHANGE, NOT_READ, NoTools, Permit, Reach, TOOLS_OF_SEVERAL_SOURCES, Tool, ToolError,
    ToolResult, ToolRunner, ToolSpec, object_schema,
};
pub use trace::TraceParent;
pub use unknown_fields::{Unplaced, ignored_fields, unplaced_field, unplaced_message_field};
