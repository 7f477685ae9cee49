//! What stands in for the models on this machine's own disk in a build without the embedded engine: nothing.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use hob_config::Config;
use hob_core::Engine;

use crate::embedder::Embedder;
use crate::household::FirstRun;

/// There is no download to hear of.
pub type OnProgress = Arc<dyn Fn(Infallible) + Send + Sync>;

/// What is never fetched never fails.
pub type PullError = Infallible;

pub(crate) fn engine(_config: &Config, _home: &Path) -> Option<Arc<dyn Engine>> {
    None
}

pub(crate) async fn fetch_starter(
    _config: &Config,
    _home: &Path,
    _progress: OnProgress,
) -> Result<Option<Arc<dyn Engine>>, PullError> {
    Ok(None)
}

pub(crate) fn embedder(_config: &Config, _home: &Path, _engine: &Arc<dyn Engine>) -> Option<Embedder> {
    None
}

pub(crate) async fn fetch_embedding_model(
    _config: &Config,
    _home: &Path,
    _first_use: &FirstRun,
) -> Result<(), PullError> {
    Ok(())
}

pub(crate) fn comes_with_hob(_model: &str) -> bool {
    false
}
