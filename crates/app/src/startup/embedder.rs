//! The engine and model that make vectors: the model that the user configured, else the small one that Hob downloads.

use std::path::Path;
use std::sync::Arc;

use hob_config::Config;
use hob_core::{Engine, EngineError};
use hob_memory::Embedder;
use hob_models::PullError;
use thiserror::Error;

use crate::startup::local_models::{self, FirstRun};

/// Why there is no embedder.
#[derive(Debug, Error)]
pub enum EmbedderError {
    /// Hob's own embedding model cannot be downloaded.
    #[error("the embedding model cannot be fetched: {0}")]
    Fetch(#[from] PullError),
    /// No engine here makes vectors.
    #[error(transparent)]
    NoEngine(#[from] EngineError),
}

/// The configured embedder, even if its model is not downloaded yet; `None` in a build without the embedded engine
/// if the user configured no model. `engine` is the selected engine: a configured model is one of its models.
pub fn embedder(config: &Config, home: &Path, engine: &Arc<dyn Engine>) -> Option<Embedder> {
    match &config.memory.embedding_model {
        Some(model) => Some(Embedder { engine: Arc::clone(engine), model: model.clone() }),
        None => local_models::embedder(config, home, engine),
    }
}

/// The same with its model ready for use. Hob's own model is downloaded on its first use, if `first_use` allows
/// it. A configured model is never downloaded or replaced.
pub async fn open_embedder(
    config: &Config,
    home: &Path,
    engine: &Arc<dyn Engine>,
    first_use: &FirstRun,
) -> Result<Embedder, EmbedderError> {
    if config.memory.embedding_model.is_none() {
        local_models::fetch_embedding_model(config, home, first_use).await?;
    }
    Ok(embedder(config, home, engine).ok_or_else(not_configured)?)
}

/// The engine's error, with what to do if Hob's own embedding model was never downloaded.
pub(crate) fn explain(error: EngineError) -> EngineError {
    match error {
        EngineError::ModelNotFound { engine, model, .. } if local_models::comes_with_hob(&model) => {
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
