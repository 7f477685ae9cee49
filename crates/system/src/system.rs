//! The household: one engine, its models, the agents and their tools.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::{StreamExt, stream};
use hob_agent::ToolBox;
use hob_core::routing::AUTO;
use hob_core::{
    Agent, AgentContext, AgentOutcome, Channels, DeltaStream, EmbedRequest, Embeddings, Engine, EngineError,
    EventBus, GenerateRequest, Generation, GenerationStream, InferenceLog, Listener, ModelInfo, ModelReason,
    NoChannels, Passage, Permit, Reach, RunEvents, Source, ToolResult, Tools, Warning,
};
use hob_memory::Documents;

use crate::accounts::Accounts;
use crate::agent_stream::{AgentStream, ear};
use crate::caller::{AgentWish, AskError, Caller, Recall};
use crate::embedder::{self, Embedder};
use crate::energy::Meters;
use crate::fallback::{Fallback, is_not_found};
use crate::inbound::MEMORY_READS;
use crate::lane::{Delivery, Lane, Wish, lane};
use crate::memory::HouseMemory;
use crate::metered::{Metered, Origin};
use crate::metrics::Totals;
use crate::pool::{Found, ListedModel, NamedBy, Pool};
use crate::route::Route;
use crate::routing::{Routed, Router};
use crate::trace::{Span, Spans, TracedStream, TracedTools, kind_of, kind_of_refusal, request_span, under};

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

/// A whole answer, and how it came to be.
#[derive(Debug)]
pub struct Answered {
    /// The key of the engine that answered.
    pub engine: String,
    /// Its usage is the sum over all turns.
    pub generation: Generation,
    pub turns: u32,
    pub tool_results: Vec<ToolResult>,
    /// Why this model; `None` when it is the one that was asked for.
    pub reason: Option<ModelReason>,
}

/// An answer under way.
pub struct Streaming {
    /// The key of the engine that answers.
    pub engine: String,
    /// The model that answers.
    pub model: String,
    /// Why this model; `None` when it is the one that was asked for.
    pub reason: Option<ModelReason>,
    pub warnings: Vec<Warning>,
    pub deltas: DeltaStream,
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

    /// Puts what the memory has on the question into the request, where the caller may know it, and says what that was.
    /// Agents are told by themselves; a request that was told already is left as it is.
    pub async fn recall(&self, request: &mut GenerateRequest, caller: &Caller) -> Vec<Passage> {
        match &self.memory {
            Some(memory) if may_recall(caller) => memory.recall(request, &self.events(caller)).await,
            _ => Vec::new(),
        }
    }

    /// The whole answer, and how an agent got to it.
    pub async fn complete(&self, request: GenerateRequest, caller: &Caller) -> Result<Answered, AskError> {
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
    ) -> Result<Answered, AskError> {
        let wish = self.wish(&caller.agent)?;
        let mut route = self.route(&mut request, caller).await?;
        let outcome = self.ask(&route, request, wish, caller, span).await;
        if let Some(ticket) = route.take_ticket() {
            ticket.conclude(&outcome);
        }
        let AgentOutcome { mut generation, turns, tool_results } = outcome?;
        let told = route.tell(span);
        generation.warnings.extend(told.warning);
        Ok(Answered { engine: told.engine, generation, turns, tool_results, reason: told.reason })
    }

    async fn ask(
        &self,
        route: &Route,
        mut request: GenerateRequest,
        wish: Wish<Arc<dyn Agent>>,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<AgentOutcome, AskError> {
        match lane(&request, Delivery::Whole, wish) {
            Lane::Engine => {
                let generation = route.metered(self.origin(caller, None)).generate(&request).await?;
                Ok(AgentOutcome { generation, turns: 1, tool_results: Vec::new() })
            }
            Lane::Agent(agent) => {
                by_agent(span, agent.name());
                self.recall(&mut request, caller).await;
                let context = self.context(route, caller, agent.name(), None)?;
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
            Ok(mut streaming) => {
                let deltas = streaming.deltas;
                streaming.deltas = Box::pin(TracedStream { deltas, span });
                Ok(streaming)
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
        let mut route = self.route(&mut request, caller).await?;
        let model = request.model.clone();
        let begun = self.first_piece(&route, request, wish, caller, span).await;
        let GenerationStream { mut warnings, deltas } = match (begun, route.take_ticket()) {
            (Ok(begun), Some(ticket)) => ticket.watch(begun),
            (Err(error), Some(ticket)) => {
                ticket.give_up(&error);
                return Err(error);
            }
            (begun, None) => begun?,
        };
        let told = route.tell(span);
        warnings.extend(told.warning);
        let model = told.model.unwrap_or(model);
        Ok(Streaming { engine: told.engine, model, reason: told.reason, warnings, deltas })
    }

    /// A stream whose first piece is there.
    async fn first_piece(
        &self,
        route: &Route,
        mut request: GenerateRequest,
        wish: Wish<Arc<dyn Agent>>,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<GenerationStream, AskError> {
        let GenerationStream { warnings, mut deltas } = match lane(&request, Delivery::Streamed, wish) {
            Lane::Engine => route.metered(self.origin(caller, None)).stream(&request).await?,
            Lane::Agent(agent) => {
                by_agent(span, agent.name());
                self.recall(&mut request, caller).await;
                self.agent_stream(route, request, agent, caller)?
            }
        };
        let first = match deltas.next().await {
            Some(first) => first?,
            None => {
                let engine = route.engine().to_owned();
                let reason = "it ended before it began".to_owned();
                return Err(EngineError::Interrupted { engine, reason }.into());
            }
        };
        Ok(GenerationStream { warnings, deltas: Box::pin(stream::iter([Ok(first)]).chain(deltas)) })
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
                let engine = self.pool.engine_of(&request.model).await?;
                return self.metered_on(&engine, caller).embed(&request).await;
            }
        };
        request.model.clone_from(&house.model);
        let engine = self.metered_on(&house.engine, caller);
        engine.embed(&request).await.map_err(embedder::explain)
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

    /// The model for work that needs one and the same: the default, or where that is `auto`, the first of the engine.
    pub async fn steady_model(&self) -> Result<Option<String>, EngineError> {
        self.pool.steady(self.default_model.as_deref()).await
    }

    fn agent_stream(
        &self,
        route: &Route,
        request: GenerateRequest,
        agent: Arc<dyn Agent>,
        caller: &Caller,
    ) -> Result<GenerationStream, AskError> {
        let (ear, pieces) = ear(&self.bus, &caller.run);
        let context = self.context(route, caller, agent.name(), Some(Arc::new(ear)))?;
        let run = Box::pin(async move { agent.run(&request, &context).await });
        Ok(GenerationStream { warnings: Vec::new(), deltas: Box::pin(AgentStream::new(run, pieces)) })
    }

    fn context(
        &self,
        route: &Route,
        caller: &Caller,
        agent: &str,
        listener: Option<Arc<dyn Listener>>,
    ) -> Result<AgentContext, AskError> {
        let events = self.events(caller);
        Ok(AgentContext {
            engine: route.metered(self.origin(caller, Some(agent))),
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

    /// An engine, with its work put down to this caller.
    fn metered_on(&self, engine: &Arc<dyn Engine>, caller: &Caller) -> Metered {
        Metered::new(Arc::clone(engine), self.origin(caller, None))
    }

    fn origin(&self, caller: &Caller, agent: Option<&str>) -> Origin {
        Origin {
            run: Arc::clone(&caller.run),
            source: caller.source,
            agent: agent.map(str::to_owned),
            events: self.events(caller),
            log: Arc::clone(&self.log),
            spans: self.spans.clone(),
            meters: self.meters.clone(),
            trace_parent: caller.trace_parent,
        }
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

    /// Puts the name of a real model in the place of the one asked for, and says why where that was for us to choose.
    async fn resolve_model(
        &self,
        request: &mut GenerateRequest,
        caller: &Caller,
    ) -> Result<Option<Routed>, AskError> {
        if request.model == DEFAULT_MODEL
            && let Some(model) = self.default_model().await?
        {
            request.model = model;
        }
        if request.model != AUTO {
            return Ok(None);
        }
        let models = self.pool.recent().await?;
        // Who has a model of this name means that one.
        if models.iter().any(|listed| listed.model.id == AUTO) {
            return Ok(None);
        }
        let routed = self.router.route(request, caller, &models, self.engine().key()).await?;
        request.model.clone_from(&routed.model);
        Ok(Some(routed))
    }

    /// Who answers. Where the model was ours to choose, and cannot be had, the fallback does.
    async fn route(&self, request: &mut GenerateRequest, caller: &Caller) -> Result<Route, AskError> {
        let fallback = self.fallback.as_ref().filter(|_| is_ours_to_choose(&request.model));
        let route = match (self.find(request, caller).await, fallback) {
            (Ok(route), None) => route,
            (Ok(route), Some(fallback)) => route.before(fallback, &self.pool),
            (Err(AskError::Engine(error)), Some(fallback)) if is_not_found(&error) => {
                let Some(stand_in) = fallback.find(&self.pool, &request.model, &error).await else {
                    return Err(error.into());
                };
                request.model.clone_from(&stand_in.model);
                Route::to_stand_in(stand_in)
            }
            (Err(error), _) => return Err(error),
        };
        Ok(route.instead_of(self.for_want.as_ref()))
    }

    async fn find(&self, request: &mut GenerateRequest, caller: &Caller) -> Result<Route, AskError> {
        let named_by = if is_ours_to_choose(&request.model) { NamedBy::House } else { NamedBy::Caller };
        let Some(Routed { engine, reason, ticket, .. }) = self.resolve_model(request, caller).await? else {
            let Found { engine, instead_of } = self.pool.find(&request.model, named_by).await?;
            let route = Route::to(engine, None);
            return Ok(match instead_of {
                Some(error) => route.for_want_of(&error),
                None => route,
            });
        };
        // The engine whose model was chosen, whoever else has one of that name.
        let engine = match self.pool.with_key(&engine) {
            Some(engine) => Arc::clone(engine),
            None => self.pool.find(&request.model, named_by).await?.engine,
        };
        Ok(Route::to(engine, Some(reason)).watched(ticket))
    }
}

/// Whether this name leaves the choice of a model to us.
fn is_ours_to_choose(model: &str) -> bool {
    model == DEFAULT_MODEL || model == AUTO
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
    if caller.recall == Recall::Unwanted {
        return false;
    }
    match caller.source {
        Source::Channel => reads_memory(also),
        Source::Scheduler => *most >= Reach::Read && only.as_ref().is_none_or(reads_memory),
        _ => *most >= Reach::Read,
    }
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
