//! The models in memory when a thread cannot start, or takes long to end.

use std::sync::atomic::AtomicBool;

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

#[tokio::test]
async fn a_model_is_loaded_after_all_that_were_removed_have_freed_their_memory() {
    /// How many other threads each thread waits for.
    static WAITED_FOR: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    static MAY_END: AtomicBool = AtomicBool::new(false);
    let dir = tempfile::TempDir::new().expect("a directory");
    for name in ["a", "b", "c"] {
        std::fs::write(dir.path().join(format!("{name}.gguf")), b"GGUF").expect("written");
    }
    let mut cache = ModelCache::new(LlamaOptions::new(dir.path()));
    Arc::get_mut(&mut cache).expect("the only owner").spawn = |builder, thread, state| {
        WAITED_FOR.lock().push(thread.leaving.len());
        builder.spawn(move || {
            while !MAY_END.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            drop(state);
        })
    };
    drop(cache.load("a").await.expect("it is being loaded"));
    let number = cache.state.lock().entries["a"].number;
    assert!(Arc::clone(&cache).retire("a", number));
    drop(cache.load("b").await.expect("it is being loaded"));
    let unloading = tokio::spawn({
        let cache = Arc::clone(&cache);
        async move { cache.unload("b").await }
    });
    while !cache.loaded().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(cache.load("c").await.expect("it is being loaded"));
    MAY_END.store(true, Ordering::Relaxed);
    unloading.await.expect("no panic").expect("unloaded");
    assert_eq!(*WAITED_FOR.lock(), [0, 1, 2]);
}
