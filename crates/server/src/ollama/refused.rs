//! `POST /api/create`, `POST /api/push` and `/api/blobs`: Hob makes and publishes no models, and says what to do instead.

use crate::error::{ApiError, ErrorFormat};

pub(crate) async fn create() -> ApiError {
    refuse(
        "Hob does not create models. Put the model's settings into each request, or create the model with Ollama itself",
    )
}

pub(crate) async fn push() -> ApiError {
    refuse("Hob does not publish models. Publish the model with Ollama itself")
}

pub(crate) async fn blobs() -> ApiError {
    refuse("Hob takes no uploads of model files. Run 'hob model pull FILE.gguf' on the server's machine")
}

fn refuse(message: &str) -> ApiError {
    ApiError::beyond_hob(message).in_format(ErrorFormat::Ollama)
}
