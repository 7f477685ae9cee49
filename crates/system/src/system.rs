//! The household: one engine, its models, the agents and their tools.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::{StreamExt, stream};
use hob_agent::ToolBox;
use hob_core::{
    Agent, AgentContext, AgentOutcome, DeltaStream, Engine, EngineError, EventBus, GenerateRequest,
    GenerationStream, InferenceLog, Listener, ModelInfo, RunEvents, Warning,
};

use crate::agent_stream::{AgentStream, ear};
use crate::caller::{AgentWish, AskError, Caller};
use crate::catalog::Catalog;
use crate::lane::{Delivery, Lane, Wish, lane};
use crate::metered::{Metered, Origin};

/// The name by which a caller asks for whatever model is the default.
const DEFAULT_MODEL: &str = "default";

/// What a [`System`] is made of.
pub struct SystemParts {
    pub engine: Arc<dyn Engine>,
    /// The model meant by `default`; `None` for the first on the engine.
    pub default_model: Option<String>,
    /// Who answers requests that are neither streamed nor bring tools; `None` for the engine itself.
    pub agent: Option<Arc<dyn Agent>>,
    pub tools: ToolBox,
    /// How often an agent may ask the engine for one answer.
    pub max_turns: u32,
    pub bus: EventBus,
    pub log: Arc<dyn InferenceLog>,
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
    engine: Arc<dyn Engine>,
    catalog: Catalog,
    default_model: Option<String>,
    agent: Option<Arc<dyn Agent>>,
    /// Replaced as a whole when tools come or go.
    tools: ArcSwap<ToolBox>,
    max_turns: u32,
    bus: EventBus,
    log: Arc<dyn InferenceLog>,
}

impl System {
    pub fn new(parts: SystemParts) -> Self {
        System {
            catalog: Catalog::new(Arc::clone(&parts.engine)),
            engine: parts.engine,
            default_model: parts.default_model,
            agent: parts.agent,
            tools: ArcSwap::from_pointee(parts.tools),
            max_turns: parts.max_turns,
            bus: parts.bus,
            log: parts.log,
        }
    }

    pub fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    /// The agent's name, where there is one.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref().map(Agent::name)
    }

    /// What happens in the house.
    pub fn bus(&self) -> &EventBus {
        &self.bus
    }

    /// The tools there are now.
    pub fn tools(&self) -> Arc<ToolBox> {
        self.tools.load_full()
    }

    /// Runs that begin from now on have these tools.
    pub fn replace_tools(&self, tools: ToolBox) {
        self.tools.store(Arc::new(tools));
    }

    /// The whole answer, and how an agent got to it.
    pub async fn complete(
        &self,
        mut request: GenerateRequest,
        caller: &Caller,
    ) -> Result<AgentOutcome, AskError> {
        let wish = self.wish(&caller.agent)?;
        self.resolve_model(&mut request).await?;
        match lane(&request, Delivery::Whole, wish) {
            Lane::Engine => {
                let generation = self.metered(caller, None).generate(&request).await?;
                Ok(AgentOutcome { generation, turns: 1, tool_results: Vec::new() })
            }
            Lane::Agent(agent) => {
                let context = self.context(caller, agent.name(), None)?;
                Ok(agent.run(&request, &context).await?)
            }
        }
    }

    /// The answer as it comes. Returns once the first piece is there, so that trouble before it is an error and not a
    /// stream that breaks at once.
    pub async fn stream(&self, mut request: GenerateRequest, caller: &Caller) -> Result<Streaming, AskError> {
        let wish = self.wish(&caller.agent)?;
        self.resolve_model(&mut request).await?;
        let model = request.model.clone();
        let GenerationStream { warnings, mut deltas } = match lane(&request, Delivery::Streamed, wish) {
            Lane::Engine => self.metered(caller, None).stream(&request).await?,
            Lane::Agent(agent) => self.agent_stream(request, agent, caller)?,
        };
        let first = match deltas.next().await {
            Some(first) => first?,
            None => {
                let engine = self.engine.key().to_owned();
                let reason = "it ended before it began".to_owned();
                return Err(EngineError::Interrupted { engine, reason }.into());
            }
        };
        let deltas = Box::pin(stream::iter([Ok(first)]).chain(deltas));
        Ok(Streaming { model, warnings, deltas })
    }

    /// The engine's models.
    pub async fn models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.engine.list_models().await
    }

    /// Whether the engine answers.
    pub async fn healthy(&self) -> bool {
        self.engine.health().await
    }

    /// The model that `default` stands for; `None` when the engine has none.
    pub async fn default_model(&self) -> Result<Option<String>, EngineError> {
        match &self.default_model {
            Some(model) => Ok(Some(model.clone())),
            None => self.catalog.first().await,
        }
    }

    fn agent_stream(
        &self,
        request: GenerateRequest,
        agent: Arc<dyn Agent>,
        caller: &Caller,
    ) -> Result<GenerationStream, AskError> {
        let (ear, pieces) = ear(&self.bus, &caller.run);
        let context = self.context(caller, agent.name(), Some(Arc::new(ear)))?;
        let run = Box::pin(async move { agent.run(&request, &context).await });
        Ok(GenerationStream { warnings: Vec::new(), deltas: Box::pin(AgentStream::new(run, pieces)) })
    }

    fn context(
        &self,
        caller: &Caller,
        agent: &str,
        listener: Option<Arc<dyn Listener>>,
    ) -> Result<AgentContext, AskError> {
        let events = self.events(caller);
        Ok(AgentContext {
            engine: Arc::new(self.metered(caller, Some(agent))),
            tools: Arc::new(self.tools.load().for_run(caller.permit.clone(), events.clone())?),
            events,
            max_turns: self.max_turns,
            listener,
        })
    }

    /// The engine, with its work put down to this caller.
    fn metered(&self, caller: &Caller, agent: Option<&str>) -> Metered {
        let origin = Origin {
            run: Arc::clone(&caller.run),
            source: caller.source,
            agent: agent.map(str::to_owned),
            events: self.events(caller),
            log: Arc::clone(&self.log),
        };
        Metered::new(Arc::clone(&self.engine), origin)
    }

    fn events(&self, caller: &Caller) -> RunEvents {
        RunEvents::new(self.bus.clone(), Arc::clone(&caller.run))
    }

    fn wish(&self, wish: &AgentWish) -> Result<Wish<Arc<dyn Agent>>, AskError> {
        Ok(match wish {
            AgentWish::Configured => Wish::Configured(self.agent.clone()),
            AgentWish::None => Wish::None,
            AgentWish::Named(name) => {
                let agent =
                    hob_agent::agent(name).ok_or_else(|| AskError::UnknownAgent { name: name.clone() })?;
                Wish::Named(agent)
            }
        })
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
