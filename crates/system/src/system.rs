//! The household: one engine, its models, and an agent where there is one.

use std::sync::Arc;

use futures::{StreamExt, stream};
use hob_core::{
    Agent, AgentContext, DeltaStream, Engine, EngineError, GenerateRequest, Generation, GenerationStream,
    ModelInfo, NoTools, RunEvents, Warning,
};

use crate::catalog::Catalog;
use crate::lane::{Delivery, Lane, lane};

/// The name by which a caller asks for whatever model is the default.
const DEFAULT_MODEL: &str = "default";

/// What a [`System`] is made of.
pub struct SystemParts {
    pub engine: Arc<dyn Engine>,
    /// The model meant by `default`; `None` for the first on the engine.
    pub default_model: Option<String>,
    /// Who answers requests that are neither streamed nor bring tools; `None` for the engine itself.
    pub agent: Option<Arc<dyn Agent>>,
}

/// An answer under way.
pub struct Streaming {
    /// The model that answers.
    pub model: String,
    pub warnings: Vec<Warning>,
    pub deltas: DeltaStream,
}

/// Answers requests.
pub struct System {
    parts: SystemParts,
    catalog: Catalog,
}

impl System {
    pub fn new(parts: SystemParts) -> Self {
        let catalog = Catalog::new(Arc::clone(&parts.engine));
        System { parts, catalog }
    }

    pub fn engine(&self) -> &dyn Engine {
        self.parts.engine.as_ref()
    }

    /// The agent's name, where there is one.
    pub fn agent(&self) -> Option<&str> {
        self.parts.agent.as_deref().map(Agent::name)
    }

    /// The whole answer.
    pub async fn complete(&self, mut request: GenerateRequest) -> Result<Generation, EngineError> {
        self.resolve_model(&mut request).await?;
        match lane(&request, Delivery::Whole, self.parts.agent.as_ref()) {
            Lane::Engine => self.parts.engine.generate(&request).await,
            Lane::Agent(agent) => {
                let context = AgentContext {
                    engine: Arc::clone(&self.parts.engine),
                    tools: Arc::new(NoTools),
                    events: RunEvents::unheard(),
                    max_turns: 10,
                    listener: None,
                };
                Ok(agent.run(&request, &context).await?.generation)
            }
        }
    }

    /// The answer as it comes. Returns once the first piece is there, so that trouble before it is an error and not a
    /// stream that breaks at once.
    pub async fn stream(&self, mut request: GenerateRequest) -> Result<Streaming, EngineError> {
        self.resolve_model(&mut request).await?;
        let GenerationStream { warnings, mut deltas } = self.parts.engine.stream(&request).await?;
        let first = match deltas.next().await {
            Some(first) => first?,
            None => {
                let engine = self.parts.engine.key().to_owned();
                return Err(EngineError::Interrupted {
                    engine,
                    reason: "it ended before it began".to_owned(),
                });
            }
        };
        let deltas = Box::pin(stream::iter([Ok(first)]).chain(deltas));
        Ok(Streaming { model: request.model, warnings, deltas })
    }

    /// The engine's models.
    pub async fn models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.parts.engine.list_models().await
    }

    /// Whether the engine answers.
    pub async fn healthy(&self) -> bool {
        self.parts.engine.health().await
    }

    /// The model that `default` stands for; `None` when the engine has none.
    pub async fn default_model(&self) -> Result<Option<String>, EngineError> {
        match &self.parts.default_model {
            Some(model) => Ok(Some(model.clone())),
            None => self.catalog.first().await,
        }
    }

    async fn resolve_model(&self, request: &mut GenerateRequest) -> Result<(), EngineError> {
        if request.model == DEFAULT_MODEL
            && let Some(model) = self.default_model().await?
        {
            request.model = model;
        }
        self.catalog.check(&request.model).await
    }
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
