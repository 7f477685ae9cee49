//! `llm`: a question to the engine outside the conversation.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use hob_core::{
    AnswerDefaults, Engine, FinishReason, GenerateRequest, Message, Permit, Reach, Role, Tool, ToolError,
    ToolSpec, object_schema, tool_arguments,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The current default model; `None` if there is none yet.
pub type DefaultModelFn = Arc<dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// Finds the engine that a call asks.
#[async_trait]
pub trait EngineForRun: Send + Sync {
    /// The engine for a question to `model`. Its calls are recorded for, and charged to, the key of the run. An error if that key does not
    /// allow the question now.
    async fn engine_for(&self, permit: &Permit, model: &str) -> Result<Arc<dyn Engine>, ToolError>;
}

struct SameEngine(Arc<dyn Engine>);

#[async_trait]
impl EngineForRun for SameEngine {
    async fn engine_for(&self, _permit: &Permit, _model: &str) -> Result<Arc<dyn Engine>, ToolError> {
        Ok(Arc::clone(&self.0))
    }
}

/// The same engine for every run.
pub fn same_engine(engine: Arc<dyn Engine>) -> Arc<dyn EngineForRun> {
    Arc::new(SameEngine(engine))
}

/// The engine and the model that the tool asks.
#[derive(Clone)]
pub struct LlmOptions {
    pub engine: Arc<dyn EngineForRun>,
    pub model: DefaultModelFn,
    pub defaults: AnswerDefaults,
}

pub struct Llm {
    options: LlmOptions,
}

impl Llm {
    pub fn new(options: LlmOptions) -> Self {
        Llm { options }
    }
}

#[derive(Deserialize)]
struct Arguments {
    prompt: String,
    system: Option<String>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec {
        // An engine may take this long.
        timeout: Some(Duration::from_secs(120)),
        ..ToolSpec::new(
            "llm",
            "Asks a model that does not see this conversation. The prompt must contain everything it needs, such as the text to \
                      summarise, translate or judge.",
            // It only computes: the engine gets no tools.
            Reach::Pure,
            object_schema(
                json!({
                    "prompt": { "type": "string" },
                    "system": { "type": ["string", "null"], "description": "How to answer" }
                }),
                &["prompt"],
            ),
        )
    }
});

#[async_trait]
impl Tool for Llm {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn rare_arguments(&self) -> &[&str] {
        &["system"]
    }

    fn asks_engine(&self) -> bool {
        true
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        self.call_for(arguments, &Permit::up_to(Reach::Pure)).await
    }

    async fn call_for(&self, arguments: Value, permit: &Permit) -> Result<String, ToolError> {
        let Arguments { prompt, system } = tool_arguments::read(arguments)?;
        if prompt.trim().is_empty() {
            return Err(ToolError::new("the prompt is empty"));
        }
        let model = (self.options.model)().await.ok_or_else(|| ToolError::new("no model is available"))?;
        // At each call: the rights of a key may change during a long run.
        let engine = self.options.engine.engine_for(permit, &model).await?;
        let system = system.filter(|words| !words.trim().is_empty());
        let messages = system.map(|words| Message::new(Role::System, words)).into_iter();
        let request = GenerateRequest {
            model,
            messages: messages.chain([Message::new(Role::User, prompt)]).collect(),
            defaults: self.options.defaults,
            ..GenerateRequest::default()
        };
        let generation = engine.generate(&request).await.map_err(ToolError::new)?;
        let answer = generation.answer;
        Ok(match answer.finish_reason {
            FinishReason::Length => format!("{}\n[the answer was cut off here]", answer.content),
            _ => answer.content,
        })
    }
}
