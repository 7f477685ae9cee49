//! Several servers as one engine, over real sockets: scripted servers, and real ones that are killed, stopped and
//! restarted.

// Only Linux has all of 127.0.0.0/8.
#[cfg(target_os = "linux")]
mod discovery;
mod memory;
#[cfg(unix)]
mod processes;
mod sockets;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::{
    Engine, EngineError, GenerateRequest, Generation, GenerationStream, MaxTokens, Message, ModelInfo, Role,
};
use hob_engines::{Endpoint, EndpointOptions, OpenAiCompat, Resend, Style};

/// A server that sends nothing for as long is not slow, even if it shares two busy cores with other servers.
const HEALTH_LIMIT: Duration = Duration::from_secs(10);

/// No answer here may end because its server was stopped for a while.
const READ_LIMIT: Duration = Duration::from_secs(1_200);

/// A server whose answers are counted.
struct Counted {
    engine: OpenAiCompat,
    answers: AtomicUsize,
}

impl Counted {
    fn at(style: Style, address: &str) -> Arc<Self> {
        Counted::resending(style, address, Resend::Unanswered)
    }

    fn resending(style: Style, address: &str, resend: Resend) -> Arc<Self> {
        let options =
            EndpointOptions { timeout: READ_LIMIT, resend, ..EndpointOptions::new(style.key, address) };
        let endpoint = Endpoint::new(options).unwrap();
        Arc::new(Counted { engine: OpenAiCompat::new(style, endpoint), answers: AtomicUsize::new(0) })
    }

    /// How many answers it gave or started.
    fn answers(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Engine for Counted {
    fn key(&self) -> &str {
        self.engine.key()
    }

    fn address(&self) -> &str {
        self.engine.address()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let generation = self.engine.generate(request).await?;
        self.answers.fetch_add(1, Ordering::Relaxed);
        Ok(generation)
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let stream = self.engine.stream(request).await?;
        self.answers.fetch_add(1, Ordering::Relaxed);
        Ok(stream)
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.engine.list_models().await
    }

    async fn health(&self) -> bool {
        tokio::time::timeout(HEALTH_LIMIT, self.engine.list_models()).await.is_ok_and(|listed| listed.is_ok())
    }
}

fn asking(question: &str, max_tokens: i64) -> GenerateRequest {
    GenerateRequest {
        model: "smollm2".into(),
        messages: vec![Message::new(Role::User, question)],
        max_tokens: Some(MaxTokens::new(max_tokens).unwrap()),
        ..GenerateRequest::default()
    }
}
