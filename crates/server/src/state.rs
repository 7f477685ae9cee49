//! What handlers share: the services behind the routes, and the limits before them. Knows no route.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::State;
use hob_app::{AskService, EmbeddedEngine, ModelManagement};
use hob_channels::whatsapp::WhatsappLinking;
use hob_config::ServerConfig;
use hob_conversations::{ChatStore, ResponseStore};
use hob_core::ReadinessCheck;
use hob_db::postgres::PostgresDatabase;
use hob_engines::HealthCache;
use hob_keys::{IdentityService, KeyService};
use hob_memory::DocumentLibrary;
use hob_tasks::Scheduler;
use hob_telemetry::TelemetryService;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::blocking_pool::BlockingPool;
use crate::limits::concurrency_limit::ConcurrencyLimit;
use crate::limits::live_streams::LiveStreams;
use crate::limits::read_body::BodyReader;
use crate::model_downloads::ModelDownloads;
use crate::pages::changes::{Audience, Changes, Topic};
use crate::readiness::Readiness;
use crate::request_metrics::RequestMetrics;
use crate::responses::{BackgroundRuns, ConversationLocks};
use crate::server_settings::ServerSettings;
use crate::shutdown::ServerStop;

/// Reports that are computed at once: each takes a thread.
const MAX_REPORTS: usize = 2;

/// Files that are read at once for questions: one may take long, and other work needs the threads too.
const MAX_DOCUMENTS_READ: usize = 4;

/// Models that are downloaded at once.
const MAX_PULLS: usize = 4;

/// The services that a server needs.
pub struct ServerParts {
    pub system: Arc<AskService>,
    /// The recorded calls, for the savings.
    pub record: TelemetryService,
    /// Stores and runs tasks. Without it `/v1/tasks` answers 503.
    pub scheduler: Option<Arc<Scheduler>>,
    /// Stores responses and conversations. Without it none are stored.
    pub responses: Option<Arc<dyn ResponseStore>>,
    /// Stores chats. Without it `/v1/chats` answers 503.
    pub chats: Option<Arc<dyn ChatStore>>,
    /// Downloads and deletes models. Without it `/api/pull` answers 503.
    pub model_management: Option<Arc<ModelManagement>>,
    /// Lets the embedded engine answer later. Without it `/v1/engines/embedded` answers 503.
    pub embedded: Option<Arc<EmbeddedEngine>>,
    /// Adds documents in the background. Without it documents can only be searched.
    pub documents: Option<DocumentLibrary>,
    /// Links an account to WhatsApp while the channel is off. Without it that answers 503.
    pub linking: Option<Arc<WhatsappLinking>>,
    /// The named API keys. Without them `/v1/keys` answers 503.
    pub keys: Option<Arc<KeyService>>,
    /// Accepts tokens of an identity provider. `None` accepts none.
    pub identity: Option<Arc<IdentityService>>,
    /// The configuration file. Without it `/v1/settings` answers 503.
    pub settings: Option<Arc<ServerSettings>>,
    /// What must work before `/health/ready` answers 200.
    pub readiness: Vec<Arc<dyn ReadinessCheck>>,
    /// The database that other servers use too: pages also show their changes. `None` if the state is in files.
    pub shared_database: Option<PostgresDatabase>,
}

impl From<Arc<AskService>> for ServerParts {
    /// Without a record, without tasks, without stored responses and without model management.
    fn from(system: Arc<AskService>) -> Self {
        ServerParts {
            system,
            record: TelemetryService::default(),
            scheduler: None,
            responses: None,
            chats: None,
            model_management: None,
            embedded: None,
            documents: None,
            linking: None,
            keys: None,
            identity: None,
            settings: None,
            readiness: Vec::new(),
            shared_database: None,
        }
    }
}

/// The state, as handlers take it.
pub(crate) type SharedState = State<Arc<ServerState>>;

/// What handlers share.
pub(crate) struct ServerState {
    pub(crate) system: Arc<AskService>,
    pub(crate) record: TelemetryService,
    pub(crate) scheduler: Option<Arc<Scheduler>>,
    pub(crate) responses: Option<Arc<dyn ResponseStore>>,
    pub(crate) chats: Option<Arc<dyn ChatStore>>,
    pub(crate) background: Arc<BackgroundRuns>,
    pub(crate) conversation_locks: Arc<ConversationLocks>,
    pub(crate) model_management: Option<Arc<ModelManagement>>,
    pub(crate) embedded: Option<Arc<EmbeddedEngine>>,
    pub(crate) documents: Option<DocumentLibrary>,
    pub(crate) linking: Option<Arc<WhatsappLinking>>,
    pub(crate) keys: Option<Arc<KeyService>>,
    pub(crate) settings: Option<Arc<ServerSettings>>,
    pub(crate) pull_slots: Arc<Semaphore>,
    /// Those in progress.
    pub(crate) downloads: Arc<ModelDownloads>,
    /// Replaced when another engine is selected.
    pub(crate) health: ArcSwap<HealthCache>,
    pub(crate) readiness: Readiness,
    /// `None` if `[telemetry] metrics` is off.
    pub(crate) metrics: Option<Arc<RequestMetrics>>,
    pub(crate) report_slots: Semaphore,
    pub(crate) concurrency_limit: ConcurrencyLimit,
    /// For files that are read for questions.
    pub(crate) document_limit: ConcurrencyLimit,
    /// The open streams of `/pages/live`.
    pub(crate) live_streams: Arc<LiveStreams>,
    pub(crate) body_reader: BodyReader,
    pub(crate) blocking: BlockingPool,
    /// Tells the open pages what has changed.
    pub(crate) changes: Changes,
    /// Cancelled when the server stops, for answers that would otherwise never end.
    pub(crate) stopping: CancellationToken,
}

impl ServerState {
    pub(crate) fn new(
        parts: ServerParts,
        config: &ServerConfig,
        metrics: Option<Arc<RequestMetrics>>,
        stop: ServerStop,
        background: Arc<BackgroundRuns>,
    ) -> Self {
        let ServerParts {
            system,
            record,
            scheduler,
            responses,
            chats,
            model_management,
            embedded,
            documents,
            linking,
            keys,
            identity: _,
            settings,
            readiness,
            shared_database: _,
        } = parts;
        let ServerStop { draining, stopping } = stop;
        let changes = Changes::new();
        if let Some(library) = &documents {
            let changes = changes.clone();
            library.on_change(move |collection| {
                changes.publish(Topic::Documents, &Audience::Collection(collection.clone()));
            });
        }
        ServerState {
            readiness: Readiness::new(readiness, draining),
            health: ArcSwap::from_pointee(HealthCache::new(system.pool().engines(), &stopping)),
            system,
            record,
            scheduler,
            responses,
            chats,
            background,
            conversation_locks: Arc::default(),
            model_management,
            embedded,
            documents,
            linking,
            keys,
            settings,
            pull_slots: Arc::new(Semaphore::new(MAX_PULLS)),
            downloads: Arc::new(ModelDownloads::new(changes.clone())),
            metrics,
            report_slots: Semaphore::new(MAX_REPORTS),
            concurrency_limit: ConcurrencyLimit::new(
                config.max_in_flight,
                config.max_waiting,
                config.queue_timeout,
            ),
            document_limit: ConcurrencyLimit::new(
                MAX_DOCUMENTS_READ,
                config.max_waiting,
                config.queue_timeout,
            ),
            live_streams: Arc::default(),
            body_reader: BodyReader::new(config),
            blocking: BlockingPool::new(),
            changes,
            stopping,
        }
    }

    /// Checks the health of the engines that are in the pool now.
    pub(crate) fn check_other_engines(&self) {
        self.health.store(Arc::new(HealthCache::new(self.system.pool().engines(), &self.stopping)));
    }
}
