//! What handlers share: the services behind the routes, and the limits before them. Knows no route.

use std::sync::Arc;

use hob_app::{AskService, ModelLibrary, ReadinessCheck};
use hob_config::ServerConfig;
use hob_conversations::ResponseStore;
use hob_engines::HealthCache;
use hob_keys::{IdentityService, KeyService};
use hob_tasks::Scheduler;
use hob_telemetry::TelemetryService;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::blocking_pool::BlockingPool;
use crate::limits::body::BodyReader;
use crate::limits::concurrency_limit::ConcurrencyLimit;
use crate::readiness::Readiness;
use crate::request_metrics::RequestMetrics;
use crate::responses::{BackgroundRuns, ConversationLocks};

/// Reports that are computed at once: each takes a thread.
const MAX_REPORTS: usize = 2;

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
    /// Downloads and deletes models. Without it `/api/pull` answers 503.
    pub library: Option<Arc<ModelLibrary>>,
    /// The named API keys. Without them `/v1/keys` answers 503.
    pub keys: Option<Arc<KeyService>>,
    /// Accepts tokens of an identity provider. `None` accepts none.
    pub identity: Option<Arc<IdentityService>>,
    /// What must work before `/health/ready` answers 200.
    pub readiness: Vec<Arc<dyn ReadinessCheck>>,
}

impl From<Arc<AskService>> for ServerParts {
    /// Without a record, without tasks, without stored responses and without a library of models.
    fn from(system: Arc<AskService>) -> Self {
        ServerParts {
            system,
            record: TelemetryService::default(),
            scheduler: None,
            responses: None,
            library: None,
            keys: None,
            identity: None,
            readiness: Vec::new(),
        }
    }
}

/// The steps in which a server stops.
#[derive(Clone, Default)]
pub(crate) struct ServerStop {
    /// The server is asked to stop, and still accepts requests.
    pub(crate) draining: CancellationToken,
    /// The server accepts no more requests.
    pub(crate) stopping: CancellationToken,
}

/// What handlers share.
pub(crate) struct ServerState {
    pub(crate) system: Arc<AskService>,
    pub(crate) record: TelemetryService,
    pub(crate) scheduler: Option<Arc<Scheduler>>,
    pub(crate) responses: Option<Arc<dyn ResponseStore>>,
    pub(crate) background: Arc<BackgroundRuns>,
    pub(crate) conversation_locks: Arc<ConversationLocks>,
    pub(crate) library: Option<Arc<ModelLibrary>>,
    pub(crate) keys: Option<Arc<KeyService>>,
    pub(crate) pull_slots: Arc<Semaphore>,
    pub(crate) health: HealthCache,
    pub(crate) readiness: Readiness,
    /// `None` if `[telemetry] metrics` is off.
    pub(crate) metrics: Option<Arc<RequestMetrics>>,
    pub(crate) report_slots: Semaphore,
    pub(crate) concurrency_limit: ConcurrencyLimit,
    pub(crate) body_reader: BodyReader,
    pub(crate) blocking: BlockingPool,
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
        let ServerParts { system, record, scheduler, responses, library, keys, identity: _, readiness } =
            parts;
        let ServerStop { draining, stopping } = stop;
        ServerState {
            readiness: Readiness::new(readiness, draining),
            health: HealthCache::new(system.pool().engines(), &stopping),
            system,
            record,
            scheduler,
            responses,
            background,
            conversation_locks: Arc::default(),
            library,
            keys,
            pull_slots: Arc::new(Semaphore::new(MAX_PULLS)),
            metrics,
            report_slots: Semaphore::new(MAX_REPORTS),
            concurrency_limit: ConcurrencyLimit::new(
                config.max_in_flight,
                config.max_waiting,
                config.queue_timeout,
            ),
            body_reader: BodyReader::new(config),
            blocking: BlockingPool::new(),
            stopping,
        }
    }
}
