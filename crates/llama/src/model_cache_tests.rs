//! The models in memory when a thread cannot start.

use super::*;

#[tokio::test]
async fn a_model_whose_thread_could_not_start_is_tried_again() {
    static TRIED: AtomicU64 = AtomicU64::new(0);
    let dir = tempfile::TempDir::new().expect("a directory");
    // No model, but enough of a file to be listed and tried.
    std::fs::write(dir.path().join("model.gguf"), b"GGUF").expect("written");
    let options = LlamaOptions::new(dir.path());
    let mut cache = ModelCache::new(options);
    Arc::get_mut(&mut cache).expect("the only owner").spawn =
        |builder, thread, state| match TRIED.fetch_add(1, Ordering::Relaxed) {
            0 => Err(io::Error::from(io::ErrorKind::WouldBlock)),
            _ => builder.spawn(move || thread.run(state)),
        };
    let first = cache.acquire("model").await.map(|_| ()).expect_err("no thread");
    assert!(matches!(first, EngineError::Refused { status: 429, .. }), "{first}");
    assert_eq!(cache.loaded(), [""; 0]);
    let second = cache.acquire("model").await.map(|_| ()).expect_err("no model").to_string();
    assert!(second.contains("is not usable"), "{second}");
    assert_eq!(TRIED.load(Ordering::Relaxed), 2);
}
