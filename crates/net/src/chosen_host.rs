//! Which of several hosts got a request. The code that records a request asks for it, and the code that chooses a host says it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

/// The last host that was chosen. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct HostNote(Arc<Mutex<Option<Arc<str>>>>);

impl HostNote {
    /// Its address; `None` if none was chosen yet.
    pub fn get(&self) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

tokio::task_local! {
    static NOTE: HostNote;
}

/// Runs the work, and writes the host that it chooses into `note`.
pub async fn noting_host<F: Future>(note: Option<HostNote>, work: F) -> F::Output {
    match note {
        Some(note) => NOTE.scope(note, work).await,
        None => work.await,
    }
}

/// The current request goes to the host with this address.
pub fn note_host(address: &str) {
    // Without a note, the answer is no.
    let _ = NOTE.try_with(|note| {
        *note.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::from(address));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_host_of_a_request_is_noted_and_no_other() {
        let note = HostNote::default();
        assert_eq!(note.get(), None);
        noting_host(Some(note.clone()), async {
            note_host("http://a:1");
            note_host("http://b:1");
        })
        .await;
        note_host("http://c:1");
        assert_eq!(note.get().as_deref(), Some("http://b:1"));
    }
}
