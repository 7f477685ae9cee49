//! A server that records calls, and can be stopped and started again at the same address.

use std::path::Path;
use std::sync::Arc;

use hob_app::hob_database;
use hob_app::startup::telemetry::telemetry_options;
use hob_config::{Config, ServerConfig};
use hob_conversations::{ChatStore, SqliteConversationStore};
use hob_core::{Delta, FinishReason, Usage};
use hob_server::ServerParts;
use hob_telemetry::Inference;
use hob_telemetry::TelemetryService;
use hob_testkit::{ScriptedEngine, free_port};
use serde_json::json;
use tempfile::TempDir;

use crate::admin::savings::recorded_in;
use crate::client::asking;
use crate::fixtures::loopback_config;
use crate::support::TestServer;

/// The tokens of every answer: it would cost 0.0075 dollars at 5 and 25 dollars per million.
const USAGE: Usage = Usage {
    prompt_tokens: 1000,
    completion_tokens: 100,
    cached_tokens: None,
    reasoning_tokens: None,
    load_time: None,
};

pub struct RecordingServer {
    home: TempDir,
    models: Vec<&'static str>,
    config: ServerConfig,
    record: TelemetryService,
    pub http: TestServer,
}

impl RecordingServer {
    pub async fn open(models: &[&'static str]) -> Self {
        Self::open_with(models, loopback_config()).await
    }

    pub async fn open_with(models: &[&'static str], config: ServerConfig) -> Self {
        let home = tempfile::tempdir().unwrap();
        // Its own also while the server is stopped.
        let config = ServerConfig { port: free_port(), ..config };
        let (record, server) = start(home.path(), models, &config).await;
        RecordingServer { home, models: models.to_vec(), config, record, http: server }
    }

    pub fn dashboard(&self) -> String {
        self.http.url("/dashboard")
    }

    /// Adds recorded calls.
    pub fn record(&self, calls: &[Inference]) {
        self.record.store().unwrap().record_batch(calls, self.record.prices()).unwrap();
    }

    /// Asks each of the models once, through the API.
    pub async fn ask_all(&self) {
        for model in &self.models {
            let answer = self.http.chat(&asking(json!({ "model": model, "stream": true }))).await;
            assert_eq!(answer.status(), 200);
            assert!(answer.text().await.unwrap().ends_with("data: [DONE]\n\n"));
        }
    }

    /// Stops the server; what it recorded is on disk afterwards.
    pub async fn stop(self) -> Stopped {
        let RecordingServer { home, models, config, record, http: server } = self;
        server.stop().await;
        record.close().await;
        Stopped { home, models, config }
    }
}

pub struct Stopped {
    home: TempDir,
    models: Vec<&'static str>,
    config: ServerConfig,
}

impl Stopped {
    pub async fn start(self) -> RecordingServer {
        let Stopped { home, models, config } = self;
        let (record, server) = start(home.path(), &models, &config).await;
        RecordingServer { home, models, config, record, http: server }
    }
}

async fn start(home: &Path, models: &[&str], config: &ServerConfig) -> (TelemetryService, TestServer) {
    let record = TelemetryService::open(&telemetry_options(&Config::default()), hob_database(home));
    let engine = ScriptedEngine::new(|_| {
        vec![
            Ok(Delta::text("Hello")),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }),
            Ok(Delta::Done { usage: Some(USAGE) }),
        ]
    });
    let chats: Arc<dyn ChatStore> = Arc::new(SqliteConversationStore::new(hob_database(home)));
    let parts = recorded_in(&record, Arc::new(engine.with_models(models)));
    let parts = ServerParts { chats: Some(chats), ..parts };
    (record, TestServer::start_parts(parts, config.clone()).await)
}
