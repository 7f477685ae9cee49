//! The service that answers requests: engines, models, agents and tools. Its parts are defined here, its functions in the files
//! below.

mod agent_or_engine;
mod answer;
mod answer_route;
pub(crate) mod attached_files;
#[cfg(test)]
mod caller_policy_tests;
mod complete_text;
mod count_tokens;
mod embed;
mod first_calls;
pub(crate) mod key_admission;
mod load_model;
mod media;
mod memory_context;
mod rerank;
mod resolve_model;
mod run_context;
mod tokens;
mod transcription;
mod warm_up;

use std::sync::Arc;

use arc_swap::ArcSwap;
use hob_agents::{ImageFetcher, ToolSet};
use hob_channels::ChannelService;
use hob_core::model::{AUTO, DEFAULT_MODEL};
use hob_core::{
    Agent, AnswerDefaults, CallerRights, EmptyKeyRing, Engine, EngineError, EventBus, KeyRing, ListedModel,
    ModelInfo, ModelKind, ModelReason,
};
use hob_memory::{AttachmentReader, Embedder, MemoryService};
use hob_routing::{FeedbackService, Router};
use hob_telemetry::metrics::InferenceMetrics;
use hob_telemetry::{EnergyMeters, InferenceLog, Recorder, Tracer};

pub use answer::AnswerStream;
pub use count_tokens::TokenCount;
pub use media::MediaAnswered;

use crate::ask::attached_files::DocumentReader;
use crate::service_slot::ChannelSlot;
use hob_engines::fallback::Fallback;
use hob_engines::pool::EnginePool;
use hob_engines::{DefaultModel, ModelAliases, ModelDescriptions};

/// The parts of an [`AskService`].
pub struct AskServiceParts {
    pub engine: Arc<dyn Engine>,
    /// The configured default model; `None` chooses the first model of the engine.
    pub default_model: Option<String>,
    /// The agent for requests that are not streamed and have no tools; `None` for the engine itself.
    pub agent: Option<Arc<dyn Agent>>,
    pub tools: ToolSet,
    /// The maximum number of turns of an agent.
    pub max_turns: u32,
    pub bus: EventBus,
    pub log: Arc<dyn InferenceLog>,
}

/// The tool that asks a model.
pub(crate) const LLM_TOOL: &str = "llm";

/// The engine and the model that the tool `llm` asks. A default model that is set later changes neither; an engine that is selected
/// later changes both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LlmTarget {
    /// The key of the engine.
    pub(crate) engine: String,
    /// `None` if the engine had no model yet.
    pub(crate) model: Option<String>,
}

impl LlmTarget {
    fn is_allowed(&self, rights: &CallerRights) -> bool {
        let may_be_given = match &self.model {
            Some(model) => rights.may_be_given(model),
            // It may become any model.
            None => rights.key.as_ref().is_none_or(|key| key.models.is_none()),
        };
        rights.may_use_engine(&self.engine) && may_be_given
    }
}

/// Answers requests.
pub struct AskService {
    /// The selected engine, and the others of the pool.
    pub(crate) pool: Arc<EnginePool>,
    /// The fallback for the default model.
    pub(crate) fallback: Option<Arc<Fallback>>,
    /// Why the cloud is the selected engine, if that is only because no other engine answered.
    pub(crate) cloud_reason: Option<ModelReason>,
    pub(crate) default: DefaultModel,
    pub(crate) descriptions: ModelDescriptions,
    /// The names that mean other models.
    pub(crate) aliases: ModelAliases,
    /// The embedder for requests without a model; `None` if there is none.
    pub(crate) embedder: Option<Embedder>,
    pub(crate) agent: Option<Arc<dyn Agent>>,
    /// Replaced when tools are added or removed.
    pub(crate) tools: ArcSwap<ToolSet>,
    pub(crate) max_turns: u32,
    pub(crate) bus: EventBus,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) memory: Option<Arc<MemoryService>>,
    pub(crate) channels: ChannelSlot,
    /// Chooses the model for `auto`.
    pub(crate) router: Router,
    /// Rates answers.
    pub(crate) feedback: FeedbackService,
    pub(crate) images: ImageFetcher,
    pub(crate) documents: DocumentReader,
    /// The defaults for requests without a temperature or a token limit.
    pub(crate) defaults: AnswerDefaults,
    /// What the tool `llm` asks; `None` if there is no such tool.
    pub(crate) llm_target: Option<Arc<ArcSwap<LlmTarget>>>,
    /// The keys that requests may name.
    pub(crate) keys: Arc<dyn KeyRing>,
}

impl AskService {
    pub fn new(parts: AskServiceParts) -> Self {
        AskService {
            pool: Arc::new(EnginePool::new(parts.engine, Vec::new())),
            fallback: None,
            cloud_reason: None,
            default: DefaultModel::new(parts.default_model),
            descriptions: ModelDescriptions::default(),
            aliases: ModelAliases::default(),
            embedder: None,
            agent: parts.agent,
            tools: ArcSwap::from_pointee(parts.tools),
            max_turns: parts.max_turns,
            bus: parts.bus,
            recorder: Arc::new(Recorder::counting(parts.log)),
            memory: None,
            channels: ChannelSlot::default(),
            router: Router::default(),
            feedback: FeedbackService::default(),
            images: ImageFetcher::default(),
            documents: DocumentReader::default(),
            defaults: AnswerDefaults::default(),
            llm_target: None,
            keys: Arc::new(EmptyKeyRing),
        }
    }

    /// The same with further engines, which answer for models that earlier ones do not have.
    pub fn with_pool(self, pool: Arc<EnginePool>) -> Self {
        AskService { pool, ..self }
    }

    /// The same with a reader of the files in messages.
    pub fn with_documents(self, documents: DocumentReader) -> Self {
        AskService { documents, ..self }
    }

    /// Reads files that callers send.
    pub fn attachments(&self) -> &AttachmentReader {
        self.documents.reader()
    }

    /// The same with names that mean other models.
    pub fn with_aliases(self, aliases: ModelAliases) -> Self {
        AskService { aliases, ..self }
    }

    /// The same with a fallback for the default model.
    pub fn with_fallback(self, fallback: Option<Fallback>) -> Self {
        AskService { fallback: fallback.map(Arc::new), ..self }
    }

    /// The same with an embedder.
    pub fn with_embedder(self, embedder: Option<Embedder>) -> Self {
        AskService { embedder, ..self }
    }

    /// The same with a memory.
    pub fn with_memory(self, memory: Arc<MemoryService>) -> Self {
        AskService { memory: Some(memory), ..self }
    }

    /// The same with another router.
    pub fn with_router(self, router: Router) -> Self {
        let feedback = FeedbackService::new(router.service().clone(), None);
        AskService { router, feedback, ..self }
    }

    /// The defaults for requests without a temperature or a token limit.
    pub fn defaults(&self) -> AnswerDefaults {
        self.defaults
    }

    /// The same with keys that requests may name.
    pub fn with_keys(self, keys: Arc<dyn KeyRing>) -> Self {
        AskService { keys, ..self }
    }

    /// The same with channels.
    pub fn with_channels(self, channels: Option<Arc<ChannelService>>) -> Self {
        AskService { channels: ChannelSlot::holding(channels), ..self }
    }

    /// The selected engine.
    pub fn engine(&self) -> &dyn Engine {
        self.pool.selected().as_ref()
    }

    /// The selected engine, and the others of the pool.
    pub fn pool(&self) -> &EnginePool {
        &self.pool
    }

    /// The name of the agent, if there is one.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref().map(Agent::name)
    }

    /// The names of the agents that a request may name.
    pub fn agents() -> &'static [&'static str] {
        &hob_agents::AGENTS
    }

    /// The events of this process.
    pub fn bus(&self) -> &EventBus {
        &self.bus
    }

    /// The metrics of the engines since the start; `None` if metrics are off.
    pub fn metrics(&self) -> Option<&InferenceMetrics> {
        self.recorder.metrics.as_deref()
    }

    /// Sends traces to the collector.
    pub fn tracer(&self) -> &Tracer {
        &self.recorder.tracer
    }

    /// What measures the energy of answers.
    pub fn meters(&self) -> &EnergyMeters {
        &self.recorder.meters
    }

    /// The current tools.
    pub fn tools(&self) -> Arc<ToolSet> {
        self.tools.load_full()
    }

    /// Whether there is a tool of this name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.load().specs().any(|spec| spec.name == name)
    }

    /// Replaces the tools for runs that start from now on.
    pub(crate) fn replace_tools(&self, tools: ToolSet) {
        self.tools.store(Arc::new(tools));
    }

    /// The router, which chooses the model for `auto`.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Rates answers.
    pub fn feedback(&self) -> &FeedbackService {
        &self.feedback
    }

    /// The messaging channels.
    pub fn channels(&self) -> Option<Arc<ChannelService>> {
        self.channels.get()
    }

    /// The user's documents, if the memory is on.
    pub fn memory(&self) -> Option<&Arc<MemoryService>> {
        self.memory.as_ref()
    }

    /// The models of the selected engine, and of the others of the pool.
    pub async fn models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        Ok(self.pool.list().await?.into_iter().map(|listed| listed.model).collect())
    }

    /// The models that a caller may use, with the engines that answer for them.
    pub async fn listed_models(
        &self,
        rights: impl Into<CallerRights>,
    ) -> Result<Vec<ListedModel>, EngineError> {
        let rights = rights.into();
        let mut listed = self.pool.list().await?;
        listed
            .retain(|listed| rights.may_use_engine(&listed.engine) && rights.may_use_model(&listed.model.id));
        Ok(listed)
    }

    /// Whether there is a model that Hob may choose for a caller.
    pub async fn can_choose_for(&self, rights: &CallerRights) -> bool {
        let may_be_given = |listed: &ListedModel| {
            listed.model.kind == ModelKind::Text
                && rights.may_use_engine(&listed.engine)
                && rights.may_be_given(&listed.model.id)
        };
        self.pool.recent().await.is_ok_and(|models| models.iter().any(may_be_given))
    }

    /// The models that a caller may use, with the details that engines report only for single models.
    pub async fn described_models(
        &self,
        rights: impl Into<CallerRights>,
    ) -> Result<Vec<ListedModel>, EngineError> {
        Ok(self.descriptions.add_to(&self.pool, self.listed_models(rights).await?).await)
    }

    /// The same for one model.
    pub async fn described_model(&self, listed: ListedModel) -> ListedModel {
        let described = self.descriptions.add_to(&self.pool, vec![listed.clone()]).await;
        described.into_iter().next().unwrap_or(listed)
    }

    /// Whether an engine has a model of this name, as far as is known.
    async fn is_listed(&self, id: &str) -> bool {
        self.pool.recent().await.is_ok_and(|models| models.iter().any(|listed| listed.model.id == id))
    }

    /// Which of these models is the default; `None` where that is another, `auto`, or not known now.
    pub async fn default_among(&self, listed: &[ListedModel]) -> Option<usize> {
        let default = self.default_model().await.ok().flatten()?;
        listed.iter().position(|listed| self.pool.means(&default, listed))
    }

    /// What `id` stands for by `[models.aliases]`; else `id` itself.
    pub fn meant_by<'a>(&'a self, id: &'a str) -> &'a str {
        self.aliases.resolve(id).unwrap_or(id)
    }

    /// The model that a caller means by `id`, `default` and aliases included, if an engine lists it and the caller may use it.
    pub async fn listed_model(
        &self,
        id: &str,
        rights: impl Into<CallerRights>,
    ) -> Result<Option<ListedModel>, EngineError> {
        let id = self.meant_by(id);
        let default = match id {
            DEFAULT_MODEL => self.default_model().await?,
            _ => None,
        };
        let meant = default.as_deref().unwrap_or(id);
        Ok(self.listed_models(rights).await?.into_iter().find(|listed| self.pool.means(meant, listed)))
    }

    /// Whether the selected engine answers.
    pub async fn healthy(&self) -> bool {
        self.engine().health().await
    }

    /// The model that `default` means; `None` if the engine has no model.
    pub async fn default_model(&self) -> Result<Option<String>, EngineError> {
        self.default.get(&self.pool).await
    }

    /// Makes another model the default for requests from now on; `None` chooses one of the engine, as without a configured model.
    pub fn set_default_model(&self, model: Option<&str>) {
        self.default.configure(model.map(str::to_owned));
    }

    /// Lets another engine answer requests from now on, with `model` as the default model. An engine that is not in the pool is added to
    /// it; the others stay in it. Requests in progress keep their engine. Returns whether the engine is selected. Blocks.
    pub(crate) fn select_engine(&self, engine: &Arc<dyn Engine>, model: &str) -> bool {
        // First, so that no request of the engine finds no choice and makes its own.
        self.default.choose(engine.key(), model);
        if !self.pool.select(engine) {
            return false;
        }
        if self.default.configured().is_some_and(|configured| *configured != AUTO) {
            self.set_default_model(Some(model));
        }
        if let Some(target) = &self.llm_target {
            let (engine, model) = (engine.key().to_owned(), Some(model.to_owned()));
            target.store(Arc::new(LlmTarget { engine, model }));
        }
        true
    }

    /// Whether the router chooses the model for requests that name none.
    pub fn defaults_to_auto(&self) -> bool {
        self.default.configured().is_some_and(|model| *model == AUTO)
    }

    /// The model for work that always needs the same model: the default, or the chosen model
    /// of the engine if that is `auto`.
    pub async fn steady_model(&self) -> Result<Option<String>, EngineError> {
        self.default.steady(&self.pool).await
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
