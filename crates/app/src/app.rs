//! Opens everything once: creates the engines, starts the managed llama.cpp server, selects the engine that answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use hob_agents::ImageFetcher;
use hob_agents::builtin::{LlmOptions, WebFetchOptions};
use hob_channels::ChannelError;
use hob_config::{Config, EngineName};
use hob_conversations::{ChatStore, ResponseStore, chat_store, response_store};
use hob_core::{AnswerDefaults, Ask, Engine, EngineError, EventBus, KeyRing, ReadinessCheck};
use hob_db::postgres::{DatabaseMonitor, PostgresDatabase};
use hob_db::{DbResult, Storage};
use hob_engines::selection::{
    NoEngine, RejectedEngine, RejectionReason, SelectedEngine, SelectionReason, failure_of,
};
use hob_engines::{
    DefaultModel, EnginePool, EngineWait, ManagedError, ManagedServer, ModelAliases, ModelDescriptions,
};
use hob_keys::KeyService;
use hob_memory::{ChunkOptionsError, DocumentLibrary, JobScope, ReaderProcess};
use hob_models::{FirstRun, OfferFn, PullError};
use hob_routing::FeedbackService;
use hob_tasks::{Scheduler, SchedulerOptions, SchedulerParts};
use hob_telemetry::{Recorder, TelemetryService, TraceExporter, has_answered};
use thiserror::Error;

use crate::ask::AskService;
use crate::ask::attached_files::DocumentReader;
use crate::channel_opener::ChannelOpener;
use crate::databases::{Databases, StorageError};
use crate::embedded_engine::{EmbeddedEngine, EmbeddedEngineParts};
use crate::model_management::ModelManagement;
use crate::recorded_calls::RecordedCalls;
use crate::service_slot::ChannelSlot;
use crate::source_opener::SourceOpener;
use crate::startup::channels::{ChannelParts, open_channels};
use crate::startup::embedder::{charged, embedder, embedding_engine};
use crate::startup::engines::{awaited, beside, choose, engines, fallback};
use crate::startup::keys::key_service;
use crate::startup::llm_tool::llm_tool;
use crate::startup::local_models::local_models;
use crate::startup::managed_server::start_managed;
use crate::startup::memory::{MemoryWiring, open_document_library, open_memory};
use crate::startup::routing::open_router;
use crate::startup::sources::open_sources;
use crate::startup::tasks::{task_options_for, task_service};
use crate::startup::telemetry::telemetry_options;
use crate::tool_registry::{ToolRegistry, ToolRegistryError, ToolRegistryParts};

/// What the command line asks for beyond the configuration.
#[derive(Clone, Default)]
pub struct AppOptions {
    /// Only this engine.
    pub engine: Option<EngineName>,
    /// Whether to start without an engine that does not answer yet, if `hosts` or `discover` list its servers.
    pub waits_for_engine: bool,
    /// What to do if no engine answers and none was chosen.
    pub first_run: FirstRun,
    /// Asked about a better model than the starter model before that is downloaded.
    pub offer: Option<OfferFn>,
    /// The process that reads files that a server should not read itself; `None` reads them in this process.
    pub reader: Option<ReaderProcess>,
    /// The databases, if the caller uses them too; `None` opens those of the configuration.
    pub databases: Option<Databases>,
}

/// Why the app cannot start.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    NoEngine(#[from] NoEngine),
    /// The same, where only [`FirstRun::Refuse`] keeps Hob from downloading a model.
    #[error(transparent)]
    DownloadRefused(NoEngine),
    #[error(transparent)]
    Managed(#[from] ManagedError),
    #[error(transparent)]
    Tools(#[from] ToolRegistryError),
    #[error(transparent)]
    Channels(#[from] ChannelError),
    /// The settings of the memory are invalid.
    #[error("[memory] chunk_size and chunk_overlap do not fit: {0}")]
    Memory(#[from] ChunkOptionsError),
    /// The starter model cannot be downloaded.
    #[error("no engine is running, and the starter model cannot be downloaded: {0}")]
    FirstRun(#[from] PullError),
}

/// The running app: the service that answers requests, and the other services.
pub struct App {
    pub system: Arc<AskService>,
    /// Why this engine was chosen.
    pub because: SelectionReason,
    /// The recorded calls.
    pub record: TelemetryService,
    /// Runs nothing until it is started.
    pub scheduler: Arc<Scheduler>,
    /// Stores responses of the HTTP API.
    pub responses: Arc<dyn ResponseStore>,
    /// Stores the chats of the pages and the terminal.
    pub chats: Arc<dyn ChatStore>,
    /// Downloads and deletes models.
    pub model_management: Arc<ModelManagement>,
    /// Lets the embedded engine answer later.
    pub embedded: Arc<EmbeddedEngine>,
    /// Adds documents in the background. Watches nothing until it is started.
    pub documents: DocumentLibrary,
    /// The named API keys. None is known until they are started.
    pub keys: Arc<KeyService>,
    /// What must work before this process should get requests. Parts on this machine are not in it.
    pub readiness: Vec<Arc<dyn ReadinessCheck>>,
    /// `None` if everything is stored in files.
    database_monitor: Option<Arc<DatabaseMonitor>>,
    /// `None` if the engine answered at the start.
    engine_wait: Option<Arc<EngineWait>>,
    managed: Option<ManagedServer>,
    traces: TraceExporter,
    registry: ToolRegistry,
    /// Empty if none is configured.
    channels: ChannelSlot,
    /// For channels that are opened later, and for other servers.
    storage: Storage,
    home: PathBuf,
}

impl App {
    /// `home` is Hob's home directory.
    pub async fn open(config: &Config, home: &Path, wishes: &AppOptions) -> Result<Self, OpenError> {
        let databases = match &wishes.databases {
            Some(databases) => databases.clone(),
            None => Databases::open(config, home)?,
        };
        let database = databases.hob.clone();
        let engines = engines(config, home)?;
        let managed = start_managed(config, wishes.engine).await?;
        let selected = select_engine(config, home, wishes, &engines, &database).await;
        let (SelectedEngine { engine, because }, awaited) = match selected {
            Ok(selected) => selected,
            Err(error) => {
                if let Some(managed) = managed {
                    managed.shutdown().await;
                }
                return Err(error);
            }
        };
        let cloud_reason = because.cloud_reason(engine.key());
        let keys = key_service(config, database.clone());
        let record = TelemetryService::open(&telemetry_options(config), database.clone());
        let traces = TraceExporter::open(config.telemetry.otlp_endpoint.as_deref());
        let recorder = Recorder::new(&telemetry_options(config), &record, traces.tracer().clone());
        let default = DefaultModel::new(config.default_model().map(str::to_owned)).recorded_at(home);
        let bus = EventBus::new();
        let others = match wishes.engine {
            // Only this engine.
            Some(_) => Vec::new(),
            None => beside(&engine, &engines, config),
        };
        let pool = EnginePool::new(engine, others);
        let pool = Arc::new(pool.allow_cloud(config.intelligence.allow_cloud_fallback));
        let embedded = embedded_engine(&pool, &engines);
        let model_management = ModelManagement::open(config, home, Arc::clone(&pool))?;
        let model_management = Arc::new(match wishes.first_run {
            FirstRun::Fetch(_) => model_management,
            FirstRun::Refuse => model_management.offline(),
        });
        let embedder = embedder(config, home, &embedding_engine(config, &pool, embedded.as_ref()).await);
        let wiring = MemoryWiring {
            bus: bus.clone(),
            embedder: embedder.clone().map(charged),
            // An answer does not wait for a download.
            first_use: FirstRun::Refuse,
            reader: wishes.reader.clone(),
        };
        let memory = open_memory(config, home, databases.memory.clone(), wiring)?;
        let document_library = open_document_library(home, Arc::clone(&memory));
        let parts = ChannelParts { storage: database.clone(), events: bus.clone() };
        let channels = open_channels(config, home, parts)?;
        let channel_slot = ChannelSlot::holding(channels);
        let tasks = task_service(database.clone(), task_options_for(channel_slot.clone()));
        let defaults = AnswerDefaults {
            temperature: config.intelligence.temperature,
            max_tokens: config.intelligence.max_tokens,
        };
        let (llm_target, llm) =
            llm_tool(&pool, default.sibling(), &recorder, Arc::clone(&keys) as Arc<dyn KeyRing>).await;
        let llm = LlmOptions { defaults, ..llm };
        let registry = ToolRegistry::open(
            config,
            ToolRegistryParts {
                home: Some(home.to_owned()),
                llm: Some(llm),
                memory: Some(Arc::clone(&memory)),
                sources: open_sources(&config.sources, database.clone()),
                tasks: Some(tasks.clone()),
                audit: Some(keys.audit()),
                channels: channel_slot.clone(),
            },
        );
        let storage = database.clone();
        let responses = response_store(database.clone());
        let chats = chat_store(database.clone());
        let calls = RecordedCalls { record: record.clone(), database };
        let router = open_router(config, &calls);
        let feedback = FeedbackService::new(router.service().clone(), Some(Arc::new(calls)));
        let system = Arc::new(AskService {
            pool,
            fallback: fallback(config, &engines).map(Arc::new),
            cloud_reason,
            default,
            descriptions: ModelDescriptions::default(),
            aliases: ModelAliases::new(&config.models.aliases),
            embedder,
            agent: config.server.agent.and_then(|key| hob_agents::agent(key.as_str())),
            tools: ArcSwap::from_pointee(registry.tools()?),
            max_turns: u32::try_from(config.agent.max_turns).unwrap_or(u32::MAX),
            bus,
            recorder: Arc::new(recorder),
            memory: Some(memory),
            channels: channel_slot.clone(),
            router,
            feedback,
            images: ImageFetcher::default(),
            documents: DocumentReader::new(WebFetchOptions::default(), wishes.reader.clone()),
            defaults,
            llm_target: Some(llm_target),
            keys: Arc::clone(&keys) as Arc<dyn KeyRing>,
        });
        registry.keep_up(&system);
        let scheduler = Scheduler::new(SchedulerParts {
            tasks,
            ask: Arc::clone(&system) as Arc<dyn Ask>,
            bus: system.bus().clone(),
            options: SchedulerOptions {
                poll_interval: config.scheduler.poll_interval,
                max_concurrent: config.scheduler.max_concurrent,
                ..SchedulerOptions::default()
            },
        });
        let scheduler = Arc::new(scheduler);
        let database_monitor =
            databases.postgres().map(|database| Arc::new(DatabaseMonitor::new(database.clone())));
        let engine_wait = awaited.map(|engine| Arc::new(EngineWait::start(engine)));
        let embedded = EmbeddedEngine::new(EmbeddedEngineParts {
            system: Arc::clone(&system),
            model_management: Arc::clone(&model_management),
            engine: embedded,
            only: wishes.engine,
        });
        let embedded = Arc::new(embedded.ending(engine_wait.clone()));
        let mut readiness: Vec<Arc<dyn ReadinessCheck>> = Vec::new();
        readiness
            .extend(database_monitor.iter().map(|monitor| Arc::clone(monitor) as Arc<dyn ReadinessCheck>));
        readiness.extend(engine_wait.iter().map(|wait| Arc::clone(wait) as Arc<dyn ReadinessCheck>));
        Ok(App {
            system,
            because,
            record,
            scheduler,
            responses,
            chats,
            model_management,
            embedded,
            documents: document_library,
            keys,
            readiness,
            database_monitor,
            engine_wait,
            managed,
            traces,
            registry,
            channels: channel_slot,
            storage,
            home: home.to_owned(),
        })
    }

    /// Connects the channels and answers incoming messages.
    pub fn listen(&self) {
        if let Some(channels) = self.channels.get() {
            channels.listen(&(Arc::clone(&self.system) as Arc<dyn Ask>));
        }
    }

    /// Keeps watched folders up to date until the app is closed, and indexes uploads that an earlier process did not, on account of the
    /// keys that uploaded them.
    pub fn watch_documents(&self) {
        let (system, keys) = (Arc::clone(&self.system), Arc::clone(&self.keys));
        self.documents.start(move |payer| {
            let (system, keys) = (Arc::clone(&system), Arc::clone(&keys));
            Box::pin(async move {
                let key = keys.stored_grant(&payer.key, payer.rule.as_deref()).await?;
                let scope: JobScope =
                    Box::new(move |work| Box::pin(async move { system.charged_to(Some(key), work).await }));
                Some(scope)
            })
        });
    }

    /// Replaces the channels later.
    pub fn channel_opener(&self) -> ChannelOpener {
        ChannelOpener {
            slot: self.channels.clone(),
            storage: self.storage.clone(),
            system: Arc::clone(&self.system),
            home: self.home.clone(),
        }
    }

    /// Replaces the sources and the mailbox later.
    pub fn source_opener(&self) -> SourceOpener {
        self.registry.source_opener(self.storage.clone(), Arc::clone(&self.system))
    }

    /// The database that other processes may use too; `None` if everything is stored in files.
    pub fn shared_database(&self) -> Option<PostgresDatabase> {
        match &self.storage {
            Storage::Postgres(database) => Some(database.clone()),
            Storage::Sqlite(_) => None,
        }
    }

    /// Connects to PostgreSQL, if it is used, and watches it until the app is closed. A server that cannot be reached now is not an
    /// error: the app answers without it, and uses it when it is back.
    pub async fn watch_database(&self) -> DbResult<()> {
        match &self.database_monitor {
            Some(monitor) => monitor.start().await,
            None => Ok(()),
        }
    }

    /// Whether no engine has answered yet.
    pub fn is_waiting_for_engine(&self) -> bool {
        self.engine_wait.as_ref().is_some_and(|wait| wait.problem().is_some())
    }

    /// Warms up the embedded engine in the background, until the app is closed.
    pub fn warm(&self) {
        self.registry.warm(&self.system);
    }

    /// Stops what was started.
    pub async fn close(self) {
        if let Some(wait) = &self.engine_wait {
            wait.stop();
        }
        self.documents.close().await;
        // Before the channels, which deliver results.
        self.scheduler.close().await;
        drop(self.scheduler);
        if let Some(channels) = self.channels.get() {
            channels.close().await;
        }
        self.registry.close().await;
        self.system.router().service().clone().close().await;
        drop((self.embedded, self.system));
        self.traces.close().await;
        // After the answers, which spend.
        self.keys.close().await;
        flush_responses(self.responses).await;
        self.record.close().await;
        if let Some(monitor) = self.database_monitor {
            monitor.stop();
        }
        if let Some(managed) = self.managed {
            managed.shutdown().await;
        }
    }
}

/// Writes the responses that are not on the disk yet.
async fn flush_responses(responses: Arc<dyn ResponseStore>) {
    match hob_db::spawn_blocking(move || responses.flush()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(
            %error,
            "responses were not stored before Hob stopped. 'hob doctor' checks the database"
        ),
        Err(error) => tracing::error!(
            %error,
            "responses were not stored before Hob stopped. Report this bug with the panic message on \
             standard error"
        ),
    }
}

/// The engine that answers; a second time if it does not answer yet and is waited for.
async fn select_engine(
    config: &Config,
    home: &Path,
    wishes: &AppOptions,
    engines: &[Arc<dyn Engine>],
    database: &Storage,
) -> Result<(SelectedEngine, Option<Arc<dyn Engine>>), OpenError> {
    let none = match choose(engines, config, wishes.engine).await {
        // An unused recommendation needs no warning at every question.
        Ok(SelectedEngine { engine, because: SelectionReason::Fallback { .. } })
            if !is_default_missed(config, database) =>
        {
            let because = SelectionReason::Fallback { instead_of: None };
            return Ok((SelectedEngine { engine, because }, None));
        }
        Ok(selected) => return Ok((selected, None)),
        Err(none) => none,
    };
    if wishes.waits_for_engine
        && let Some(engine) = awaited(engines, config, wishes.engine, &none)
    {
        let because = wishes.engine.map_or(SelectionReason::Default, |_| SelectionReason::Given);
        return Ok((SelectedEngine { engine: Arc::clone(&engine), because }, Some(engine)));
    }
    let first = match none {
        NoEngine::NoneHealthy { tried } => first_run(config, home, wishes, database, tried).await,
        none => Err(none.into()),
    };
    match first {
        Ok(selected) => Ok((selected, None)),
        Err(OpenError::NoEngine(none)) => Err(explained(none, engines).await),
        Err(error) => Err(error),
    }
}

/// The error of the engine that would have been selected, if its server runs; else that it does not answer.
async fn explained(none: NoEngine, engines: &[Arc<dyn Engine>]) -> OpenError {
    let first = none.tried().first().filter(|tried| tried.why_not == RejectionReason::Unhealthy);
    let engine = first.and_then(|tried| engines.iter().find(|engine| engine.key() == tried.key));
    let failure = match engine {
        Some(engine) => failure_of(engine.as_ref()).await,
        None => None,
    };
    failure.map_or_else(|| none.into(), OpenError::Engine)
}

/// Downloads a first model if no engine is running and none was chosen.
async fn first_run(
    config: &Config,
    home: &Path,
    wishes: &AppOptions,
    database: &Storage,
    tried: Vec<RejectedEngine>,
) -> Result<SelectedEngine, OpenError> {
    let none = NoEngine::NoneHealthy { tried };
    if wishes.engine.is_some() || is_default_missed(config, database) {
        return Err(none.into());
    }
    let models = local_models(config, home);
    let FirstRun::Fetch(progress) = &wishes.first_run else {
        let has_engine = models.engine().is_some();
        return Err(if has_engine { OpenError::DownloadRefused(none) } else { none.into() });
    };
    match models.fetch_first_model(wishes.offer.as_ref(), Arc::clone(progress)).await? {
        Some(engine) => {
            Ok(SelectedEngine { engine, because: SelectionReason::Fallback { instead_of: None } })
        }
        None => Err(none.into()),
    }
}

/// The embedded engine: the one of the pool, else the one that could be added to it. `None` in a build without it.
fn embedded_engine(pool: &EnginePool, engines: &[Arc<dyn Engine>]) -> Option<Arc<dyn Engine>> {
    let key = EngineName::Embedded.as_str();
    pool.with_key(key).or_else(|| engines.iter().find(|engine| engine.key() == key)).cloned()
}

/// Whether to report that the default engine does not answer: the user chose it, or it has answered before. An engine that
/// `hob init` recommended and that was never set up is not reported. Reads the database, so it blocks.
pub fn is_default_missed(config: &Config, database: &Storage) -> bool {
    let engine = &config.engine;
    // Without records, an unnecessary warning is better than none.
    let has_answered =
        |key: EngineName| !config.telemetry.enabled || has_answered(database, key.as_str()).unwrap_or(true);
    engine.is_chosen() || engine.default.is_some_and(has_answered)
}
