use hob_testkit::ScriptedEngine;

use super::*;

fn catalog_of(engine: ScriptedEngine) -> (Catalog, Arc<ScriptedEngine>) {
    let engine = Arc::new(engine);
    (Catalog::new(Arc::clone(&engine) as Arc<dyn Engine>), engine)
}

#[tokio::test(start_paused = true)]
async fn a_known_model_costs_one_look_up_in_half_a_minute() {
    let (catalog, engine) = catalog_of(ScriptedEngine::saying(&["hi"]));
    for _ in 0..100 {
        catalog.check("m").await.unwrap();
    }
    assert_eq!(engine.lists(), 1);
    tokio::time::advance(FRESH).await;
    catalog.check("m").await.unwrap();
    assert_eq!(engine.lists(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_model_is_refused_with_the_names_there_are() {
    let (catalog, _engine) = catalog_of(ScriptedEngine::saying(&["hi"]).with_models(&["a", "b"]));
    let error = catalog.check("gpt-4").await.unwrap_err();
    assert_eq!(error.to_string(), "scripted has no model 'gpt-4'; it has a, b");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_unknown_names_does_not_flood_the_engine() {
    let (catalog, engine) = catalog_of(ScriptedEngine::saying(&["hi"]));
    for attempt in 0..100 {
        catalog.check(&format!("nope-{attempt}")).await.unwrap_err();
    }
    assert_eq!(engine.lists(), 1);
    tokio::time::advance(RECHECK).await;
    catalog.check("nope").await.unwrap_err();
    assert_eq!(engine.lists(), 2);
}
