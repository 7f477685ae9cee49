//! The llama.cpp server that Hob starts itself, according to the configuration.

use hob_config::{Config, EngineName};
use hob_engines::{ManagedError, ManagedOptions, ManagedServer};

/// Starts the llama.cpp server if one is configured and may be used. `only` is the engine that the command line names.
pub(crate) async fn start_managed(
    config: &Config,
    only: Option<EngineName>,
) -> Result<Option<ManagedServer>, ManagedError> {
    let llamacpp = &config.engine.llamacpp;
    let Some(binary) = &llamacpp.binary_path else { return Ok(None) };
    let preferred = only.or(config.engine.default);
    let in_pool = only.is_none() && config.engine.pool.contains(&EngineName::Llamacpp);
    if preferred.is_some_and(|key| key != EngineName::Llamacpp) && !in_pool {
        return Ok(None);
    }
    let options = ManagedOptions {
        model: llamacpp.model_path.clone(),
        args: llamacpp.args.clone(),
        start_timeout: llamacpp.start_timeout,
        ..ManagedOptions::new(binary, &llamacpp.server.host)
    };
    match ManagedServer::start(options).await {
        Ok(managed) => Ok(Some(managed)),
        // Another Hob process of this user has started it; the health check shows its state.
        Err(error @ ManagedError::AddressTaken { .. }) => {
            tracing::info!(%error, "using the llama.cpp server that runs already");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
