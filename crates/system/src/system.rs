//! The household: one engine, its models, the agents and their tools. What it is made of is here; what it does is in the files
//! below.

mod answer;
mod embed;
mod recall;
mod resolve;
mod run;

use std::sync::Arc;

use arc_swap::ArcSwap;
use hob_agent::ToolBox;
use hob_core::routing::AUTO;
use hob_core::{
    Agent, Channels, Engine, EngineError, EventBus, InferenceLog, ModelInfo, ModelReason, NoChannels,
};
use hob_memory::Documents;

pub use answer::{Answered, Streaming};

use crate::accounts::Accounts;
use crate::embedder::Embedder;
use crate::energy::Meters;
use crate::fallback::Fallback;
use crate::memory::HouseMemory;
use crate::metrics::Totals;
use crate::pool::{ListedModel, Pool};
use crate::routing::Router;
use crate::trace::Spans;

/// The name by which a caller asks for whatever model is the default.
pub const DEFAULT_MODEL: &str = "default";

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

/// Answers requests.
pub struct System {
    /// The engine that was chosen, and those beside it.
    pool: Arc<Pool>,
    /// Who answers for the default model when that is not to be had.
    fallback: Option<Arc<Fallback>>,
    /// Why the cloud is the chosen engine, where it is that only for want of another.
    for_want: Option<ModelReason>,
    default_model: Option<String>,
    /// Who makes vectors when the caller asks for the default; `None` where nobody can.
    embedder: Option<Embedder>,
    agent: Option<Arc<dyn Agent>>,
    /// Replaced as a whole when tools come or go.
    tools: ArcSwap<ToolBox>,
    max_turns: u32,
    bus: EventBus,
    log: Arc<dyn InferenceLog>,
    /// `None` where nothing is counted.
    totals: Option<Arc<Totals>>,
    spans: Spans,
    meters: Meters,
    memory: Option<HouseMemory>,
    channels: Arc<dyn Channels>,
    /// Chooses where the model is `auto`.
    router: Router,
}

impl System {
    pub fn new(parts: SystemParts) -> Self {
        let totals = Arc::new(Totals::before(parts.log));
        System {
            pool: Arc::new(Pool::new(parts.engine, Vec::new())),
            fallback: None,
            for_want: None,
            default_model: parts.default_model,
            embedder: None,
            agent: parts.agent,
            tools: ArcSwap::from_pointee(parts.tools),
            max_turns: parts.max_turns,
            bus: parts.bus,
            log: Arc::clone(&totals) as Arc<dyn InferenceLog>,
            totals: Some(totals),
            spans: Spans::default(),
            meters: Meters::default(),
            memory: None,
            channels: Arc::new(NoChannels),
            router: Router::default(),
        }
    }

    /// The same with further engines, which answer for models that those before them do not have.
    pub fn with_pool(self, pool: Arc<Pool>) -> Self {
        System { pool, ..self }
    }

    /// The same with a model that answers for the default one when that is not to be had.
    pub fn with_fallback(self, fallback: Option<Fallback>) -> Self {
        System { fallback: fallback.map(Arc::new), ..self }
    }

    /// The same with a cloud that answers for want of another engine, which callers are told.
    pub fn for_want_of(self, reason: Option<ModelReason>) -> Self {
        System { for_want: reason, ..self }
    }

    /// The same with somebody who makes vectors.
    pub fn with_embedder(self, embedder: Option<Embedder>) -> Self {
        System { embedder, ..self }
    }

    /// The same with a memory.
    pub fn with_memory(self, memory: HouseMemory) -> Self {
        System { memory: Some(memory), ..self }
    }

    /// The same with another way of choosing a model where that is left to us.
    pub fn with_router(self, router: Router) -> Self {
        System { router, ..self }
    }

    /// The same with accounts that others write into as well.
    pub(crate) fn with_accounts(self, accounts: Accounts) -> Self {
        let Accounts { log, totals, spans, meters } = accounts;
        System { log, totals, spans, meters, ..self }
    }

    /// The same with channels.
    pub fn with_channels(self, channels: Arc<dyn Channels>) -> Self {
        System { channels, ..self }
    }

    /// The engine that was chosen.
    pub fn engine(&self) -> &dyn Engine {
        self.pool.chosen().as_ref()
    }

    /// The chosen engine, and those beside it.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The agent's name, where there is one.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref().map(Agent::name)
    }

    /// What happens in the house.
    pub fn bus(&self) -> &EventBus {
        &self.bus
    }

    /// What the engines did since the house was opened; `None` where that is not counted.
    pub fn totals(&self) -> Option<&Totals> {
        self.totals.as_deref()
    }

    /// The way of traces to their collector.
    pub fn spans(&self) -> &Spans {
        &self.spans
    }

    /// What measures the energy of answers.
    pub fn meters(&self) -> &Meters {
        &self.meters
    }

    /// The tools there are now.
    pub fn tools(&self) -> Arc<ToolBox> {
        self.tools.load_full()
    }

    /// Runs that begin from now on have these tools.
    pub fn replace_tools(&self, tools: ToolBox) {
        self.tools.store(Arc::new(tools));
    }

    /// Who chooses where the model is `auto`.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The ways out for messages.
    pub fn channels(&self) -> &Arc<dyn Channels> {
        &self.channels
    }

    /// The user's documents, where the house has a memory at all.
    pub fn memory(&self) -> Option<&Arc<Documents>> {
        self.memory.as_ref().map(HouseMemory::documents)
    }

    /// The models of the chosen engine, and of those beside it.
    pub async fn models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        Ok(self.pool.list().await?.into_iter().map(|listed| listed.model).collect())
    }

    /// The same with the engines that answer for them.
    pub async fn listed_models(&self) -> Result<Vec<ListedModel>, EngineError> {
        self.pool.list().await
    }

    /// The model that a caller means by `id`, if an engine lists it.
    pub async fn listed_model(&self, id: &str) -> Result<Option<ListedModel>, EngineError> {
        self.pool.show(id).await
    }

    /// Whether the chosen engine answers.
    pub async fn healthy(&self) -> bool {
        self.engine().health().await
    }

    /// The model that `default` stands for; `None` when the engine has none.
    pub async fn default_model(&self) -> Result<Option<String>, EngineError> {
        match &self.default_model {
            Some(model) => Ok(Some(model.clone())),
            None => self.pool.first().await,
        }
    }

    /// Whether the router chooses for those who name no model.
    pub fn defaults_to_auto(&self) -> bool {
        self.default_model.as_deref() == Some(AUTO)
    }

    /// The model for work that needs one and the same: the default, or where that is `auto`, the first of the engine.
    pub async fn steady_model(&self) -> Result<Option<String>, EngineError> {
        self.pool.steady(self.default_model.as_deref()).await
    }
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
