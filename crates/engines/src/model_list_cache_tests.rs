use hob_testkit::ScriptedEngine;
use tokio::sync::Notify;

use super::*;

fn cache_of(engine: ScriptedEngine) -> (ModelListCache, Arc<ScriptedEngine>) {
    let engine = Arc::new(engine);
    (ModelListCache::new(Arc::clone(&engine) as Arc<dyn Engine>), engine)
}

#[tokio::test(start_paused = true)]
async fn a_known_model_is_looked_up_once_in_half_a_minute_in_the_background() {
    let (list, engine) = cache_of(ScriptedEngine::saying(&["hi"]));
    for _ in 0..100 {
        list.check("m").await.unwrap();
    }
    assert_eq!(engine.lists(), 1);
    tokio::time::advance(FRESH_FOR).await;
    for _ in 0..100 {
        list.check("m").await.unwrap();
    }
    assert_eq!(engine.lists(), 1, "it was not waited for");
    background().await;
    assert_eq!(engine.lists(), 2);
}

/// Lets the background tasks run.
async fn background() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_old_or_whose_engine_has_failed_is_not_used() {
    let (list, engine) = cache_of(ScriptedEngine::saying(&["hi"]));
    list.check("m").await.unwrap();
    tokio::time::advance(FRESH_FOR).await;
    engine.set_gone(true);
    assert!(matches!(list.look_up("m").await, Lookup::Has));
    background().await;
    assert!(matches!(list.look_up("m").await, Lookup::Silent { had: true, .. }));
    engine.set_gone(false);
    assert!(matches!(list.look_up("m").await, Lookup::Has));
    engine.set_gone(true);
    tokio::time::advance(USABLE_FOR).await;
    assert!(matches!(list.look_up("m").await, Lookup::Silent { had: true, .. }));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_model_is_refused_with_the_names_there_are() {
    let (list, _engine) = cache_of(ScriptedEngine::saying(&["hi"]).with_models(&["a", "b"]));
    let error = list.check("gpt-4").await.unwrap_err();
    assert_eq!(error.to_string(), "scripted has no model 'gpt-4'; it has a, b");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_unknown_names_does_not_flood_the_engine() {
    let (list, engine) = cache_of(ScriptedEngine::saying(&["hi"]));
    for attempt in 0..100 {
        list.check(&format!("nope-{attempt}")).await.unwrap_err();
    }
    assert_eq!(engine.lists(), 1);
    tokio::time::advance(RECHECK_AFTER).await;
    list.check("nope").await.unwrap_err();
    assert_eq!(engine.lists(), 2);
}

/// An engine that reads its models when it is asked, and answers when the test lets it.
#[derive(Default)]
struct Changing {
    models: Mutex<Vec<&'static str>>,
    asked: Notify,
    answers: Notify,
}

#[async_trait::async_trait]
impl Engine for Changing {
    fn key(&self) -> &str {
        "changing"
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, _: &hob_core::GenerateRequest) -> Result<hob_core::Generation, EngineError> {
        std::future::pending().await
    }

    async fn stream(&self, _: &hob_core::GenerateRequest) -> Result<hob_core::GenerationStream, EngineError> {
        std::future::pending().await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        let models = self.models.lock().iter().map(|id| ModelInfo::named(*id)).collect();
        self.asked.notify_one();
        self.answers.notified().await;
        Ok(models)
    }

    async fn health(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_before_a_hung_engine_waits_once_and_not_in_series() {
    // It never answers.
    let list = ModelListCache::new(Arc::new(Changing::default()));
    let began = Instant::now();
    let crowd = futures::future::join_all((0..100).map(|_| list.check("m"))).await;
    // Without a list, the engine itself decides.
    assert!(crowd.iter().all(Result::is_ok));
    assert_eq!(began.elapsed(), LIST_TIMEOUT);
    // A caller right after them does not wait again.
    list.check("m").await.unwrap();
    assert_eq!(began.elapsed(), LIST_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_was_requested_before_a_change_is_not_used_after_it() {
    let engine = Arc::new(Changing::default());
    let list = ModelListCache::new(Arc::clone(&engine) as Arc<dyn Engine>);
    engine.models.lock().push("old");
    let change = async {
        engine.asked.notified().await;
        engine.models.lock().push("new");
        list.forget();
        engine.answers.notify_one();
    };
    let (before, ()) = tokio::join!(list.list(), change);
    assert_eq!(before.unwrap().len(), 1);
    assert_eq!(list.contains("new"), None, "it is not known");
    engine.answers.notify_one();
    assert_eq!(list.list().await.unwrap().len(), 2);
    assert_eq!(list.contains("new"), Some(true));
}
