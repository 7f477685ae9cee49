use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use async_trait::async_trait;
use hob_core::{Engine, GenerateRequest, Generation, GenerationStream, ModelInfo};
use hob_testkit::{CapturedLog, ScriptedEngine};
use tokio::sync::Notify;

use super::*;

/// Lists its models when it is notified.
struct WaitingEngine {
    inner: ScriptedEngine,
    listing: Notify,
}

#[async_trait]
impl Engine for WaitingEngine {
    fn key(&self) -> &str {
        self.inner.key()
    }

    fn address(&self) -> &str {
        self.inner.address()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        self.inner.generate(request).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.inner.stream(request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.listing.notified().await;
        self.inner.list_models().await
    }

    async fn health(&self) -> bool {
        true
    }
}

fn engine(models: &[&str]) -> Arc<dyn Engine> {
    Arc::new(ScriptedEngine::saying(&["hi"]).with_models(models))
}

/// The model that `default` means in a new process.
async fn started(home: &Path, models: &[&str]) -> Option<String> {
    let default = DefaultModel::new(None).recorded_at(home);
    default.get(&EnginePool::new(engine(models), Vec::new())).await.unwrap()
}

fn record(home: &Path) -> Option<String> {
    fs::read_to_string(home.join(FILE)).ok()
}

#[tokio::test]
async fn a_model_that_is_pulled_later_does_not_become_the_default() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(started(home.path(), &["mistral"]).await.as_deref(), Some("mistral"));
    assert_eq!(started(home.path(), &["a-new-one", "mistral"]).await.as_deref(), Some("mistral"));
    assert_eq!(record(home.path()).as_deref(), Some("{\n  \"scripted\": \"mistral\"\n}\n"));
}

#[tokio::test]
async fn a_removed_default_is_replaced_once() {
    let home = tempfile::tempdir().unwrap();
    started(home.path(), &["mistral"]).await;
    assert_eq!(started(home.path(), &["b", "c"]).await.as_deref(), Some("b"));
    assert_eq!(started(home.path(), &["a", "b", "c"]).await.as_deref(), Some("b"));
    assert_eq!(started(home.path(), &[]).await, None);
    assert_eq!(started(home.path(), &["c"]).await.as_deref(), Some("c"));
}

#[tokio::test]
async fn each_engine_has_its_own_default() {
    let home = tempfile::tempdir().unwrap();
    started(home.path(), &["mistral"]).await;
    let other: Arc<dyn Engine> = Arc::new(ScriptedEngine::saying(&[]).called("other").with_models(&["x"]));
    let default = DefaultModel::new(None).recorded_at(home.path());
    assert_eq!(default.get(&EnginePool::new(other, Vec::new())).await.unwrap().as_deref(), Some("x"));
    assert_eq!(started(home.path(), &["a", "mistral"]).await.as_deref(), Some("mistral"));
}

#[tokio::test]
async fn an_engine_that_does_not_answer_keeps_its_default() {
    let home = tempfile::tempdir().unwrap();
    started(home.path(), &["mistral"]).await;
    let down = Arc::new(ScriptedEngine::saying(&[]).with_models(&["a", "mistral"]));
    down.set_gone(true);
    let pool = EnginePool::new(down, Vec::new());
    let default = DefaultModel::new(None).recorded_at(home.path());
    assert_eq!(default.get(&pool).await.unwrap().as_deref(), Some("mistral"));
}

#[tokio::test]
async fn a_configured_default_is_neither_replaced_nor_recorded() {
    let home = tempfile::tempdir().unwrap();
    let default = DefaultModel::new(Some("named".into())).recorded_at(home.path());
    let pool = EnginePool::new(engine(&["a"]), Vec::new());
    assert_eq!(default.get(&pool).await.unwrap().as_deref(), Some("named"));
    assert_eq!(default.steady(&pool).await.unwrap().as_deref(), Some("named"));
    assert_eq!(record(home.path()), None);
    let auto = DefaultModel::new(Some(AUTO.into())).recorded_at(home.path());
    assert_eq!(auto.get(&pool).await.unwrap().as_deref(), Some(AUTO));
    assert_eq!(auto.steady(&pool).await.unwrap().as_deref(), Some("a"));
}

#[tokio::test]
async fn another_default_applies_at_once_and_without_one_the_recorded_choice_applies_again() {
    let home = tempfile::tempdir().unwrap();
    let default = DefaultModel::new(None).recorded_at(home.path());
    let pool = EnginePool::new(engine(&["a", "b"]), Vec::new());
    assert_eq!(default.get(&pool).await.unwrap().as_deref(), Some("a"));
    default.configure(Some("b".into()));
    assert_eq!(default.get(&pool).await.unwrap().as_deref(), Some("b"));
    assert_eq!(default.steady(&pool).await.unwrap().as_deref(), Some("b"));
    default.configure(None);
    assert_eq!(default.get(&pool).await.unwrap().as_deref(), Some("a"));
}

#[tokio::test]
async fn reading_records_nothing_and_a_damaged_record_is_ignored() {
    let home = tempfile::tempdir().unwrap();
    let shown = DefaultModel::new(None).read_from(home.path());
    let pool = EnginePool::new(engine(&["b"]), Vec::new());
    assert_eq!(shown.get(&pool).await.unwrap().as_deref(), Some("b"));
    assert_eq!(record(home.path()), None);
    fs::write(home.path().join(FILE), "{ half").unwrap();
    assert_eq!(started(home.path(), &["b"]).await.as_deref(), Some("b"));
    assert_eq!(started(home.path(), &["a", "b"]).await.as_deref(), Some("b"), "it was written anew");
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_reported_once() {
    for can_be_replaced in [true, false] {
        let home = tempfile::tempdir().unwrap();
        match can_be_replaced {
            true => fs::write(home.path().join(FILE), "{ half").unwrap(),
            false => fs::create_dir(home.path().join(FILE)).unwrap(),
        }
        let (log, _guard) = CapturedLog::of_thread();
        let default = DefaultModel::new(None).recorded_at(home.path());
        let pool = EnginePool::new(engine(&["a"]), Vec::new());
        for default in [default.sibling(), default] {
            assert_eq!(default.get(&pool).await.unwrap().as_deref(), Some("a"));
        }
        let lines = log.lines("cannot be read");
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}

#[tokio::test]
async fn another_selected_engine_has_the_model_that_was_chosen_for_it() {
    let home = tempfile::tempdir().unwrap();
    let pool = EnginePool::new(engine(&["mistral"]), Vec::new());
    let default = DefaultModel::new(None).recorded_at(home.path());
    assert_eq!(default.get(&pool).await.unwrap().as_deref(), Some("mistral"));
    let other: Arc<dyn Engine> =
        Arc::new(ScriptedEngine::saying(&[]).called("other").with_models(&["x", "y"]));
    default.choose("other", "y");
    assert!(pool.select(&other));
    assert_eq!(default.get(&pool).await.unwrap().as_deref(), Some("y"));
    assert_eq!(
        record(home.path()).as_deref(),
        Some("{\n  \"other\": \"y\",\n  \"scripted\": \"mistral\"\n}\n")
    );
}

#[tokio::test]
async fn a_choice_is_not_replaced_by_one_that_began_before() {
    let home = tempfile::tempdir().unwrap();
    let inner = ScriptedEngine::saying(&["hi"]).with_models(&["a", "b"]);
    let engine = Arc::new(WaitingEngine { inner, listing: Notify::new() });
    let pool = EnginePool::new(Arc::clone(&engine) as Arc<dyn Engine>, Vec::new());
    let default = DefaultModel::new(None).recorded_at(home.path());
    let choose = async {
        default.choose("scripted", "b");
        engine.listing.notify_one();
    };
    let (model, ()) = tokio::join!(biased; default.get(&pool), choose);
    assert_eq!(model.unwrap().as_deref(), Some("b"));
    assert_eq!(record(home.path()).as_deref(), Some("{\n  \"scripted\": \"b\"\n}\n"));
}

#[test]
fn choices_at_the_same_time_leave_one_model_in_memory_and_in_the_file() {
    const THREADS: usize = 4;
    let home = tempfile::tempdir().unwrap();
    let default = DefaultModel::new(None).recorded_at(home.path());
    for round in 0..20 {
        let together = Barrier::new(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (default, together) = (&default, &together);
                scope.spawn(move || {
                    together.wait();
                    default.choose("scripted", &format!("{round}-{thread}"));
                });
            }
        });
        let recorded = default.read().remove("scripted");
        assert!(recorded.is_some());
        assert_eq!(default.remembered("scripted"), recorded, "round {round}");
    }
}

#[test]
fn choices_of_several_processes_are_all_recorded() {
    const PROCESSES: usize = 6;
    let home = tempfile::tempdir().unwrap();
    let together = Barrier::new(PROCESSES);
    let engines: Vec<String> = (0..PROCESSES).map(|number| format!("engine-{number}")).collect();
    thread::scope(|scope| {
        for engine in &engines {
            // One for each: they share only the file.
            let default = DefaultModel::new(None).recorded_at(home.path());
            let together = &together;
            scope.spawn(move || {
                together.wait();
                default.choose(engine, "m");
            });
        }
    });
    let recorded = DefaultModel::new(None).recorded_at(home.path()).read();
    assert_eq!(recorded.into_keys().collect::<Vec<_>>(), engines);
}

#[tokio::test]
async fn a_request_does_not_wait_long_for_another_process_that_holds_the_file() {
    let home = tempfile::tempdir().unwrap();
    let held = FileLock::take(&home.path().join(FILE)).unwrap();
    let begun = Instant::now();
    assert_eq!(started(home.path(), &["a"]).await.as_deref(), Some("a"));
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    assert_eq!(record(home.path()), None);
    drop(held);
    assert_eq!(started(home.path(), &["a"]).await.as_deref(), Some("a"));
    assert_eq!(record(home.path()).as_deref(), Some("{\n  \"scripted\": \"a\"\n}\n"));
}

#[test]
fn a_choice_that_waits_for_the_file_does_not_hold_up_requests() {
    let home = tempfile::tempdir().unwrap();
    let default = DefaultModel::new(None).recorded_at(home.path());
    let held = FileLock::take(&home.path().join(FILE)).unwrap();
    thread::scope(|scope| {
        let choosing = scope.spawn(|| default.choose("scripted", "b"));
        let begun = Instant::now();
        // A request that replaces a model that is gone, until the other process is ready.
        while begun.elapsed() < Duration::from_millis(300) {
            let replacing = Instant::now();
            assert_eq!(default.replace("scripted", None, None), None);
            assert!(replacing.elapsed() < Duration::from_secs(9));
            thread::sleep(Duration::from_millis(10));
        }
        drop(held);
        choosing.join().unwrap();
    });
    assert_eq!(default.remembered("scripted").as_deref(), Some("b"));
    assert_eq!(default.read().remove("scripted").as_deref(), Some("b"));
}
