//! The models in memory when a thread cannot start, or takes long to end, and on graphics cards that this machine need not have.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::batching::GrowthNeed;
use crate::fixtures::{self, GB, RESERVE, model_file};
use crate::model_memory::MemoryParts;
use crate::model_thread::ThreadOwner;

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

/// A card of 8 GB with so much free memory.
fn card(free: u64) -> Card {
    fixtures::card(0, free, 8 * GB)
}

/// A cache with the model of the tests under these names. Its models get no threads that load them: a test says when they are loaded,
/// and what the card has then.
fn cache_with_card(
    names: &[&str],
    cards: fn(GpuLayers) -> Vec<Card>,
) -> (tempfile::TempDir, Arc<ModelCache>) {
    let dir = tempfile::TempDir::new().expect("a directory");
    for name in names {
        std::fs::copy(model_file(), dir.path().join(format!("{name}.gguf"))).expect("a copy");
    }
    let options = LlamaOptions { context: Some(1024), parallel: Some(1), ..LlamaOptions::new(dir.path()) };
    let mut cache = ModelCache::new(LlamaOptions { memory_budget: 8 * GB, ..options });
    let own = Arc::get_mut(&mut cache).expect("the only owner");
    own.cards = cards;
    own.spawn = |builder, _, state| builder.spawn(move || drop(state));
    (dir, cache)
}

/// Loads a model, with the memory that was planned for it.
async fn load(cache: &Arc<ModelCache>, id: &str) -> (Lease, MemoryParts) {
    let ((lease, _), _) = cache.load(id).await.expect("it is being loaded");
    let planned = cache.state.lock().entries[id].memory.clone();
    cache.has_loaded(id, lease.number, Some(planned.clone()), Duration::from_millis(1));
    (lease, planned)
}

#[tokio::test]
async fn an_idle_model_leaves_the_card_for_the_next_one_and_one_in_use_does_not() {
    static FREE: AtomicU64 = AtomicU64::new(8 * GB);
    let (_dir, cache) = cache_with_card(&["a", "b"], |_| vec![card(FREE.load(Ordering::Relaxed))]);
    let (in_use, a) = load(&cache, "a").await;
    let size = a.on_cards();
    // There is room for one and a half of them.
    FREE.store(RESERVE + size / 2, Ordering::Relaxed);
    let (other, b) = load(&cache, "b").await;
    assert_eq!(cache.loaded(), ["a", "b"]);
    assert!(b.on_cards() < size, "{b:?}");
    drop(other);
    cache.unload("b").await.expect("not in use");
    drop(in_use);
    let (_, b) = load(&cache, "b").await;
    assert_eq!((cache.loaded(), b), (vec!["b".to_owned()], a));
    let vram: Vec<Option<u64>> = cache.running().into_iter().map(|model| model.size_vram).collect();
    assert_eq!(vram, [Some(size)]);
}

#[tokio::test]
async fn a_model_that_is_being_loaded_has_its_place_on_the_card() {
    static FREE: AtomicU64 = AtomicU64::new(8 * GB);
    let (_dir, cache) = cache_with_card(&["a", "b"], |_| vec![card(FREE.load(Ordering::Relaxed))]);
    let stored = cache.find("a").await.expect("the model");
    let whole = LoadPlan::on(vec![card(8 * GB)], &stored, &cache.options).expect("a header").at_start();
    // There is room for one and a half of them, and the first one does not have its memory yet.
    FREE.store(RESERVE + whole.on_cards() / 2 * 3, Ordering::Relaxed);
    let _first = cache.load("a").await.expect("it is being loaded");
    let _second = cache.load("b").await.expect("it is being loaded");
    let running = cache.running();
    assert_eq!(running[0].devices, whole.cards);
    assert!(running[1].size_vram < Some(whole.on_cards()), "{running:?}");
}

#[tokio::test]
async fn no_idle_model_leaves_the_card_for_memory_that_a_model_being_loaded_has_already() {
    static FREE: AtomicU64 = AtomicU64::new(8 * GB);
    let (dir, cache) = cache_with_card(&["a", "b", "c"], |_| vec![card(FREE.load(Ordering::Relaxed))]);
    std::fs::write(dir.path().join("unreadable.gguf"), b"GGUF").expect("written");
    let stored = cache.find("a").await.expect("the model");
    let whole = LoadPlan::on(vec![card(8 * GB)], &stored, &cache.options).expect("a header").at_start();
    // There is room for three of them and a quarter. One is idle, and half of the next one is loaded.
    let room = |quarters: u64| FREE.store(RESERVE + whole.on_cards() / 4 * quarters, Ordering::Relaxed);
    room(13);
    drop(load(&cache, "a").await);
    room(9);
    let _half_loaded = cache.load("b").await.expect("it is being loaded");
    room(7);
    let _on_no_card = cache.load("unreadable").await.expect("it is being loaded");
    let _third = cache.load("c").await.expect("it is being loaded");
    assert_eq!(cache.loaded(), ["a", "b", "c", "unreadable"]);
    assert_eq!(cache.running()[2].devices, whole.cards);
}

#[tokio::test]
async fn memory_for_vectors_beside_answers_is_found_and_counted_on_the_card() {
    static FREE: AtomicU64 = AtomicU64::new(8 * GB);
    let (_dir, cache) = cache_with_card(&["a", "b"], |_| vec![card(FREE.load(Ordering::Relaxed))]);
    let (answers, a) = load(&cache, "a").await;
    let (other, b) = load(&cache, "b").await;
    let more = b.on_cards();
    // The card is nearly full.
    FREE.store(RESERVE + more - 1, Ordering::Relaxed);
    let cards: Vec<DeviceShare> =
        a.cards.iter().map(|share| DeviceShare { bytes: share.bytes + more, ..share.clone() }).collect();
    let with_vectors = MemoryParts { main: a.main, cards };
    let resize = |wanted: &MemoryParts, need| cache.resize("a", answers.number, wanted.clone(), need);
    // The other one is in use, then idle.
    assert!(!resize(&with_vectors, GrowthNeed::Now));
    drop(other);
    assert!(!resize(&with_vectors, GrowthNeed::Later));
    assert_eq!((cache.running()[0].size_vram, cache.loaded().len()), (Some(a.on_cards()), 2));
    assert!(resize(&with_vectors, GrowthNeed::Now));
    assert_eq!((cache.running()[0].size_vram, cache.loaded().len()), (Some(a.on_cards() + more), 1));
    // Nothing must be found to give memory back.
    FREE.store(0, Ordering::Relaxed);
    assert!(resize(&a, GrowthNeed::Later));
    assert_eq!(cache.running()[0].size_vram, Some(a.on_cards()));
}

#[tokio::test]
async fn memory_is_given_back_also_beyond_the_limit() {
    let (_dir, cache) = cache_with_card(&["a"], |_| vec![card(8 * GB)]);
    let (lease, planned) = load(&cache, "a").await;
    // With fewer layers on the card than planned, for example.
    let with = |main| MemoryParts { main, ..planned.clone() };
    cache.has_loaded("a", lease.number, Some(with(10 * GB)), Duration::from_millis(1));
    let resize = |main| cache.resize("a", lease.number, with(main), GrowthNeed::Now);
    assert_eq!([resize(11 * GB), resize(9 * GB), resize(8 * GB)], [false, true, true]);
    assert_eq!(cache.running()[0].size, Some(8 * GB + planned.on_cards()));
}

#[tokio::test]
async fn a_model_that_is_being_unloaded_does_not_count_on_the_card() {
    static FREE: AtomicU64 = AtomicU64::new(8 * GB);
    static MAY_END: AtomicBool = AtomicBool::new(false);
    let (_dir, mut cache) = cache_with_card(&["a", "b"], |_| vec![card(FREE.load(Ordering::Relaxed))]);
    Arc::get_mut(&mut cache).expect("the only owner").spawn = |builder, _, _| {
        builder.spawn(|| {
            while !MAY_END.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let (lease, _) = cache.load("b").await.expect("it is being loaded");
    drop(lease);
    // Half of it is loaded when it is removed.
    let half = cache.running()[0].size_vram.expect("a part on the card") / 2;
    FREE.store(8 * GB - half, Ordering::Relaxed);
    let removed = cache.state.lock().remove("b").expect("it is being loaded");
    let stored = cache.find("b").await.expect("the model");
    assert_eq!(cache.needed(&stored).expect("within the limit").1, [card(8 * GB)]);
    MAY_END.store(true, Ordering::Relaxed);
    removed.thread.join();
    assert_eq!(cache.needed(&stored).expect("within the limit").1, [card(8 * GB - half)]);

    MAY_END.store(false, Ordering::Relaxed);
    FREE.store(8 * GB, Ordering::Relaxed);
    let (_lease, a) = load(&cache, "a").await;
    FREE.store(RESERVE, Ordering::Relaxed);
    let removed = cache.state.lock().remove("a").expect("it is loaded");
    // The card is still full, but the thread of the next one waits until it is not.
    let (_lease, b) = load(&cache, "b").await;
    assert_eq!(b, a);
    MAY_END.store(true, Ordering::Relaxed);
    removed.thread.join();
    cache.state.lock().entries.clear();
    assert_eq!(cache.needed(&stored).expect("within the limit").1, [card(RESERVE)]);
}
