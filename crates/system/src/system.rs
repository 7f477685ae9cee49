//! The household: one engine, its models, the agents and their tools.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::{StreamExt, stream};
use hob_agent::ToolBox;
use hob_core::{
    Agent, AgentContext, AgentOutcome, Channels, DeltaStream, EmbedRequest, Embeddings, Engine, EngineError,
    EventBus, GenerateRequest, GenerationStream, InferenceLog, Listener, ModelInfo, NoChannels, Passage,
    Permit, Reach, RunEvents, Source, Tools, Warning,
};
use hob_memory::Documents;

use crate::accounts::Accounts;
use crate::agent_stream::{AgentStream, ear};
use crate::caller::{AgentWish, AskError, Caller};
use crate::catalog::Catalog;
use crate::embedder::{self, Embedder};
use crate::inbound::MEMORY_READS;
use crate::lane::{Delivery, Lane, Wish, lane};
use crate::memory::HouseMemory;
use crate::metered::{Metered, Origin};
use crate::metrics::Totals;
use crate::trace::{Span, Spans, TracedStream, TracedTools, kind_of, kind_of_refusal, request_span, under};

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
    memory: Option<HouseMemory>,
    channels: Arc<dyn Channels>,
}

impl System {
    pub fn new(parts: SystemParts) -> Self {
        let totals = Arc::new(Totals::before(parts.log));
        System {
            catalog: Catalog::new(Arc::clone(&parts.engine)),
            engine: parts.engine,
            default_model: parts.default_model,
            embedder: None,
            agent: parts.agent,
            tools: ArcSwap::from_pointee(parts.tools),
            max_turns: parts.max_turns,
            bus: parts.bus,
            log: Arc::clone(&totals) as Arc<dyn InferenceLog>,
            totals: Some(totals),
            spans: Spans::default(),
            memory: None,
            channels: Arc::new(NoChannels),
        }
    }

    /// The same with somebody who makes vectors.
    pub fn with_embedder(self, embedder: Option<Embedder>) -> Self {
        System { embedder, ..self }
    }

    /// The same with a memory.
    pub fn with_memory(self, memory: HouseMemory) -> Self {
        System { memory: Some(memory), ..self }
    }

    /// The same with accounts that others write into as well.
    pub(crate) fn with_accounts(self, accounts: Accounts) -> Self {
        let Accounts { log, totals, spans } = accounts;
        System { log, totals, spans, ..self }
    }

    /// The same with channels.
    pub fn with_channels(self, channels: Arc<dyn Channels>) -> Self {
        System { channels, ..self }
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

    /// What the engines did since the house was opened; `None` where that is not counted.
    pub fn totals(&self) -> Option<&Totals> {
        self.totals.as_deref()
    }

    /// The way of traces to their collector.
    pub fn spans(&self) -> &Spans {
        &self.spans
    }

    /// The tools there are now.
    pub fn tools(&self) -> Arc<ToolBox> {
        self.tools.load_full()
    }

    /// Runs that begin from now on have these tools.
    pub fn replace_tools(&self, tools: ToolBox) {
        self.tools.store(Arc::new(tools));
    }

    /// The ways out for messages.
    pub fn channels(&self) -> &Arc<dyn Channels> {
        &self.channels
    }

    /// The user's documents, where the house has a memory at all.
    pub fn memory(&self) -> Option<&Arc<Documents>> {
        self.memory.as_ref().map(HouseMemory::documents)
    }

    /// Puts what the memory has on the question into the request, where the caller may know it, and says what that was.
    /// Agents are told by themselves; a request that was told already is left as it is.
    pub async fn recall(&self, request: &mut GenerateRequest, caller: &Caller) -> Vec<Passage> {
        match &self.memory {
            Some(memory) if may_recall(caller) => memory.recall(request, &self.events(caller)).await,
            _ => Vec::new(),
        }
    }

    /// The whole answer, and how an agent got to it.
    pub async fn complete(
        &self,
        request: GenerateRequest,
        caller: &Caller,
    ) -> Result<AgentOutcome, AskError> {
        let mut span = request_span(&self.spans, caller, &request.model);
        let caller = under(caller, &span);
        let outcome = self.answer(request, &caller, &mut span).await;
        if let Err(error) = &outcome {
            span.fail(kind_of_refusal(error));
        }
        span.end();
        outcome
    }

    async fn answer(
        &self,
        mut request: GenerateRequest,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<AgentOutcome, AskError> {
        let wish = self.wish(&caller.agent)?;
        self.resolve_model(&mut request).await?;
        match lane(&request, Delivery::Whole, wish) {
            Lane::Engine => {
                let generation = self.metered(caller, None).generate(&request).await?;
                Ok(AgentOutcome { generation, turns: 1, tool_results: Vec::new() })
            }
            Lane::Agent(agent) => {
                by_agent(span, agent.name());
                self.recall(&mut request, caller).await;
                let context = self.context(caller, agent.name(), None)?;
                Ok(agent.run(&request, &context).await?)
            }
        }
    }

    /// The answer as it comes. Returns once the first piece is there, so that trouble before it is an error and not a
    /// stream that breaks at once.
    pub async fn stream(&self, request: GenerateRequest, caller: &Caller) -> Result<Streaming, AskError> {
        let mut span = request_span(&self.spans, caller, &request.model);
        let caller = under(caller, &span);
        match self.begin_stream(request, &caller, &mut span).await {
            Ok(streaming) if span.place().is_none() => Ok(streaming),
            Ok(Streaming { model, warnings, deltas }) => {
                Ok(Streaming { model, warnings, deltas: Box::pin(TracedStream { deltas, span }) })
            }
            Err(error) => {
                span.fail(kind_of_refusal(&error));
                span.end();
                Err(error)
            }
        }
    }

    async fn begin_stream(
        &self,
        mut request: GenerateRequest,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<Streaming, AskError> {
        let wish = self.wish(&caller.agent)?;
        self.resolve_model(&mut request).await?;
        let model = request.model.clone();
        let GenerationStream { warnings, mut deltas } = match lane(&request, Delivery::Streamed, wish) {
            Lane::Engine => self.metered(caller, None).stream(&request).await?,
            Lane::Agent(agent) => {
                by_agent(span, agent.name());
                self.recall(&mut request, caller).await;
                self.agent_stream(request, agent, caller)?
            }
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

    /// Texts as vectors. `default`, and the name of the model it stands for, mean the embedder of the house; any other name
    /// is a model of the engine.
    pub async fn embed(&self, request: EmbedRequest, caller: &Caller) -> Result<Embeddings, EngineError> {
        let mut span = request_span(&self.spans, caller, &request.model);
        let embeddings = self.vectors(request, &under(caller, &span)).await;
        if let Err(error) = &embeddings {
            span.fail(kind_of(error));
        }
        span.end();
        embeddings
    }

    async fn vectors(&self, mut request: EmbedRequest, caller: &Caller) -> Result<Embeddings, EngineError> {
        let house = match &self.embedder {
            None if request.model == DEFAULT_MODEL => return Err(embedder::nobody()),
            Some(house) if request.model == DEFAULT_MODEL || request.model == house.model => house,
            _ => {
                self.catalog.check(&request.model).await?;
                return self.metered(caller, None).embed(&request).await;
            }
        };
        request.model.clone_from(&house.model);
        let engine = self.metered_on(&house.engine, caller, None);
        engine.embed(&request).await.map_err(embedder::explain)
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
            tools: self.tools_for(caller, &events)?,
            events,
            max_turns: self.max_turns,
            listener,
        })
    }

    fn tools_for(&self, caller: &Caller, events: &RunEvents) -> Result<Arc<dyn Tools>, AskError> {
        let tools = Arc::new(self.tools.load().for_run(caller.permit.clone(), events.clone())?);
        Ok(match self.spans.are_heard() {
            true => Arc::new(TracedTools { tools, spans: self.spans.clone(), parent: caller.trace_parent }),
            false => tools,
        })
    }

    /// The engine, with its work put down to this caller.
    fn metered(&self, caller: &Caller, agent: Option<&str>) -> Metered {
        self.metered_on(&self.engine, caller, agent)
    }

    fn metered_on(&self, engine: &Arc<dyn Engine>, caller: &Caller, agent: Option<&str>) -> Metered {
        let origin = Origin {
            run: Arc::clone(&caller.run),
            source: caller.source,
            agent: agent.map(str::to_owned),
            events: self.events(caller),
            log: Arc::clone(&self.log),
            spans: self.spans.clone(),
            trace_parent: caller.trace_parent,
        };
        Metered::new(Arc::clone(engine), origin)
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

/// The request is an agent's to answer.
fn by_agent(span: &mut Span, agent: &str) {
    span.rename(|| format!("invoke_agent {agent}"));
    span.set("gen_ai.operation.name", "invoke_agent");
    span.set("gen_ai.agent.name", agent);
}

/// Whether the caller may know what is in the memory. Whoever writes on a channel needs leave by name, because there trust in
/// tools is given to everybody at once; and so does a task whose tools were chosen, because somebody on a channel may have
/// made it.
fn may_recall(caller: &Caller) -> bool {
    let reads_memory = |names: &Vec<String>| names.iter().any(|name| MEMORY_READS.contains(&name.as_str()));
    let Permit { most, also, only } = &caller.permit;
    match caller.source {
        Source::Channel => reads_memory(also),
        Source::Scheduler => *most >= Reach::Read && only.as_ref().is_none_or(reads_memory),
        _ => *most >= Reach::Read,
    }
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
