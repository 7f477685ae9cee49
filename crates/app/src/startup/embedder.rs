//! The engine and model that make vectors: the model that the user configured, else the small one that Hob downloads.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, EngineName};
use hob_core::engine::CLOUD;
use hob_core::{CallerRights, Engine, EngineError, KeyGrant};
use hob_engines::EnginePool;
use hob_memory::Embedder;
use hob_models::catalogue::EMBEDDING;
use hob_models::{FirstRun, PullError};
use hob_telemetry::ChargedEngine;
use thiserror::Error;

use crate::startup::local_models::local_models;

/// Why there is no embedder.
#[derive(Debug, Error)]
pub(crate) enum EmbedderError {
    /// Hob's own embedding model cannot be downloaded.
    #[error("the embedding model cannot be fetched: {0}")]
    Fetch(#[from] PullError),
    /// No engine here makes vectors.
    #[error(transparent)]
    NoEngine(#[from] EngineError),
}

/// The configured embedder, even if its model is not downloaded yet; `None` in a build without the embedded engine
/// if the user configured no model. `engine` is the selected engine: a configured model is one of its models.
pub(crate) fn embedder(config: &Config, home: &Path, engine: &Arc<dyn Engine>) -> Option<Embedder> {
    match &config.memory.embedding_model {
        Some(model) => Some(Embedder { engine: Arc::clone(engine), model: model.clone() }),
        None => own_embedder(config, home, engine),
    }
}

/// Hob's own embedding model, on the embedded engine; on the selected one if that is embedded. `None` in a build without it.
fn own_embedder(config: &Config, home: &Path, engine: &Arc<dyn Engine>) -> Option<Embedder> {
    // A second engine would not know how much memory the first one uses.
    let is_embedded = engine.key() == EngineName::Embedded.as_str();
    let engine = if is_embedded { Arc::clone(engine) } else { local_models(config, home).engine()? };
    Some(Embedder { engine, model: EMBEDDING.name.to_owned() })
}

/// The engine that makes vectors: the one of the pool with the configured embedding model, else the embedded engine. That is the same
/// one that may be selected later, because it has to know how much memory it uses.
pub(crate) async fn embedding_engine(
    config: &Config,
    pool: &EnginePool,
    embedded: Option<&Arc<dyn Engine>>,
) -> Arc<dyn Engine> {
    match &config.memory.embedding_model {
        Some(model) => pool.engine_for(Some(model)).await,
        None => Arc::clone(embedded.unwrap_or_else(|| pool.selected())),
    }
}

/// The same with its model ready for use. Hob's own model is downloaded on its first use, if `first_use` allows
/// it. A configured model is never downloaded or replaced.
pub(crate) async fn open_embedder(
    config: &Config,
    home: &Path,
    engine: &Arc<dyn Engine>,
    first_use: &FirstRun,
) -> Result<Embedder, EmbedderError> {
    if config.memory.embedding_model.is_none() {
        local_models(config, home).fetch_embedding_model(first_use).await?;
    }
    Ok(embedder(config, home, engine).ok_or_else(not_configured)?)
}

/// The embedder of the memory, whose vectors are charged to the key of the run that needs them.
pub(crate) fn charged(embedder: Embedder) -> Embedder {
    let engine = ChargedEngine { engine: embedder.engine, check: check_cloud };
    Embedder { engine: Arc::new(engine), ..embedder }
}

/// Refuses the cloud to a key that may not use it. The memory chose the engine, so no other check has seen it. The field is the one of a
/// search; passages for a question are then found by words.
fn check_cloud(engine: &str, key: &Arc<KeyGrant>) -> Result<(), EngineError> {
    let rights = CallerRights { role: key.role, key: Some(Arc::clone(key)) };
    if engine != CLOUD || rights.may_use_cloud() {
        return Ok(());
    }
    let hint = format!(
        "the key '{}' may not use the cloud, and the memory's embedding model is there. Search by words, with the backend 'sqlite'",
        key.name
    );
    Err(EngineError::Unsupported { engine: engine.to_owned(), field: "backend".to_owned(), hint: Some(hint) })
}

/// The engine's error, with what to do if Hob's own embedding model was never downloaded.
pub(crate) fn explain(error: EngineError) -> EngineError {
    match error {
        EngineError::ModelNotFound { engine, model, .. } if model == EMBEDDING.name => {
            let reason = format!(
                "its embedding model is not on this machine yet. Fetch it with 'hob model pull {model}', or name another \
                 in [memory] embedding_model"
            );
            EngineError::NotConfigured { engine, reason }
        }
        other => other,
    }
}

/// The error if no engine can make vectors.
pub(crate) fn not_configured() -> EngineError {
    EngineError::NotConfigured {
        engine: "embedded".to_owned(),
        reason: "no embedding model is configured. Set [memory] embedding_model to a model of your engine"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hob_testkit::ScriptedEngine;

    use super::*;

    fn answering() -> Arc<dyn Engine> {
        Arc::new(ScriptedEngine::saying(&["hi"]))
    }

    #[tokio::test]
    async fn a_configured_embedding_model_belongs_to_the_selected_engine() {
        let home = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.memory.embedding_model = Some("nomic".into());
        let opened = open_embedder(&config, home.path(), &answering(), &FirstRun::Refuse).await.unwrap();
        assert_eq!((opened.engine.key(), opened.model.as_str()), ("scripted", "nomic"));
    }

    #[cfg(feature = "embedded")]
    #[tokio::test]
    async fn the_default_embedding_model_is_not_downloaded_offline() {
        let home = tempfile::tempdir().unwrap();
        let (config, engine) = (Config::default(), answering());
        let refused = open_embedder(&config, home.path(), &engine, &FirstRun::Refuse).await.err().unwrap();
        assert!(matches!(refused, EmbedderError::Fetch(PullError::Offline { .. })), "{refused}");

        let embedder = embedder(&config, home.path(), &engine).unwrap();
        assert_eq!((embedder.engine.key(), embedder.model.as_str()), ("embedded", "all-minilm-l6-v2"));
        let request = hob_core::EmbedRequest {
            model: embedder.model.clone(),
            inputs: vec!["a".to_owned()].into(),
            ..hob_core::EmbedRequest::default()
        };
        let message = explain(embedder.engine.embed(&request).await.unwrap_err()).to_string();
        assert!(message.contains("'hob model pull all-minilm-l6-v2'"), "{message}");
    }

    #[cfg(not(feature = "embedded"))]
    #[tokio::test]
    async fn a_build_without_the_embedded_engine_says_what_to_set() {
        let (config, engine) = (Config::default(), answering());
        let refused = open_embedder(&config, Path::new(""), &engine, &FirstRun::Refuse).await.err().unwrap();
        assert!(refused.to_string().contains("[memory] embedding_model"), "{refused}");
    }
}
