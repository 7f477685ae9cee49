//! The backend of a call: the one that its caller or the configuration names, else, for `backend = "auto"`, the one that suits what is
//! indexed. Reads no database: the caller passes in whether there are vectors.

use std::future::Future;

use crate::embed::EmbedderDownload;
use crate::types::MemoryBackend;

/// What a caller and the configuration say about the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendChoice {
    Named(MemoryBackend),
    /// `auto`.
    Automatic,
}

impl BackendChoice {
    /// The backend of a caller overrides the configured one.
    pub(crate) fn new(asked: Option<MemoryBackend>, configured: Option<MemoryBackend>) -> Self {
        asked.or(configured).map_or(BackendChoice::Automatic, BackendChoice::Named)
    }

    pub(crate) fn is_automatic(self) -> bool {
        self == BackendChoice::Automatic
    }

    /// `auto` is by words and by meaning once there are vectors, else by words. `has_vectors` is not awaited for a named backend.
    pub(crate) async fn resolve<E>(
        self,
        has_vectors: impl Future<Output = Result<bool, E>>,
    ) -> Result<MemoryBackend, E> {
        Ok(match self {
            BackendChoice::Named(backend) => backend,
            BackendChoice::Automatic if has_vectors.await? => MemoryBackend::Hybrid,
            BackendChoice::Automatic => MemoryBackend::Sqlite,
        })
    }

    /// Without a named backend, no model is downloaded.
    pub(crate) fn download(self) -> EmbedderDownload {
        if self.is_automatic() { EmbedderDownload::Refused } else { EmbedderDownload::Allowed }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn auto_is_hybrid_once_there_are_vectors_and_a_named_backend_stays() {
        use MemoryBackend::{Hybrid, Sqlite, Vector};
        for (asked, configured, has_vectors, expected) in [
            (None, None, false, Sqlite),
            (None, None, true, Hybrid),
            (None, Some(Vector), false, Vector),
            (Some(Sqlite), Some(Vector), true, Sqlite),
        ] {
            let choice = BackendChoice::new(asked, configured);
            assert_eq!(choice.resolve(ready(Ok::<_, ()>(has_vectors))).await, Ok(expected), "{choice:?}");
        }
        let named = BackendChoice::new(None, Some(Vector));
        assert_eq!(named.resolve(ready(Err("not read"))).await, Ok(Vector));
    }
}
