use hob_testkit::ScriptedEngine;

use super::*;

fn engine(key: &str, models: &[&str]) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::saying(&["hi"]).called(key).with_models(models))
}

/// The cloud, which knows more than it lists.
fn cloud(models: &[&str]) -> Arc<ScriptedEngine> {
    let cloud = ScriptedEngine::saying(&["hi"]).called(CLOUD_KEY).with_models(models);
    Arc::new(cloud.with_unlisted_models())
}

fn pool(engines: &[&Arc<ScriptedEngine>]) -> Pool {
    let mut engines = engines.iter().map(|engine| Arc::clone(engine) as Arc<dyn Engine>);
    Pool::new(engines.next().unwrap(), engines.collect())
}

async fn answers(pool: &Pool, model: &str) -> Result<String, String> {
    let found = pool.engine_of(model).await;
    found.map(|engine| engine.key().to_owned()).map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_model_is_answered_by_the_first_engine_that_has_it() {
    let (ollama, vllm) = (engine("ollama", &["small", "both"]), engine("vllm", &["both", "large"]));
    let pool = pool(&[&ollama, &vllm]);
    for (model, key) in [("small", "ollama"), ("both", "ollama"), ("large", "vllm")] {
        assert_eq!(answers(&pool, model).await.as_deref(), Ok(key), "{model}");
    }
    assert_eq!(
        answers(&pool, "huge").await.unwrap_err(),
        "the pool (ollama, vllm) has no model 'huge'; it has small, both, large"
    );
    let listed: Vec<(String, String)> =
        pool.list().await.unwrap().into_iter().map(|listed| (listed.engine, listed.model.id)).collect();
    let expected = [("ollama", "small"), ("ollama", "both"), ("vllm", "large")];
    assert_eq!(listed, expected.map(|(engine, model)| (engine.to_owned(), model.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn the_chosen_engine_is_asked_alone_while_it_has_the_model() {
    let (ollama, vllm) = (engine("ollama", &["small"]), engine("vllm", &["large"]));
    let pool = pool(&[&ollama, &vllm]);
    for _ in 0..10 {
        answers(&pool, "small").await.unwrap();
    }
    assert_eq!((ollama.lists(), vllm.lists()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_down_is_left_out_of_the_list_and_named_by_its_models() {
    let (ollama, vllm) = (engine("ollama", &["small"]), engine("vllm", &["large"]));
    let pool = pool(&[&ollama, &vllm]);
    assert_eq!(pool.list().await.unwrap().len(), 2);
    vllm.set_gone(true);
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    assert_eq!(
        answers(&pool, "large").await.unwrap_err(),
        "cannot reach vllm at http://vllm: Connection refused"
    );
    assert_eq!(
        answers(&pool, "huge").await.unwrap_err(),
        "the pool (ollama, vllm; no answer from vllm) has no model 'huge'; it has small"
    );
    let listed: Vec<String> = pool.list().await.unwrap().into_iter().map(|listed| listed.model.id).collect();
    assert_eq!(listed, ["small"]);
    assert_eq!(answers(&pool, "small").await.as_deref(), Ok("ollama"));

    ollama.set_gone(true);
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    assert!(pool.list().await.is_err(), "a list of nobody is no list");
    vllm.set_gone(false);
    assert_eq!(answers(&pool, "large").await.as_deref(), Ok("vllm"), "it is found as soon as it is back");
}

#[tokio::test(start_paused = true)]
async fn a_chosen_engine_that_is_down_tells_so_itself() {
    let (ollama, vllm) = (engine("ollama", &["small"]), engine("vllm", &["large"]));
    ollama.set_gone(true);
    let pool = pool(&[&ollama, &vllm]);
    assert_eq!(answers(&pool, "large").await.as_deref(), Ok("vllm"));
    assert_eq!(answers(&pool, "small").await.as_deref(), Ok("ollama"), "what it has is not known");
}

#[tokio::test(start_paused = true)]
async fn the_cloud_gets_the_names_it_lists_and_no_others() {
    let (ollama, cloud) = (engine("ollama", &["qwen3:8b"]), cloud(&["gpt-5.2", "qwen3:8b"]));
    let pool = pool(&[&ollama, &cloud]);
    assert_eq!(answers(&pool, "gpt-5.2").await.as_deref(), Ok(CLOUD_KEY));
    assert_eq!(answers(&pool, "qwen3:8b").await.as_deref(), Ok("ollama"), "what is here is answered here");
    assert!(answers(&pool, "qwen3:8").await.is_err(), "a slip of the pen is not told to strangers");
    ollama.set_gone(true);
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let answered = answers(&pool, "qwen3:8b").await;
    assert!(answered.as_deref().is_err_and(|error| error.contains("cannot reach ollama")), "{answered:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_was_chosen_does_not_capture_what_another_engine_has() {
    let (cloud, ollama) = (cloud(&["gpt-5.2"]), engine("ollama", &["qwen3:8b"]));
    let pool = pool(&[&cloud, &ollama]);
    assert_eq!(answers(&pool, "qwen3:8b").await.as_deref(), Ok("ollama"));
    assert_eq!(answers(&pool, "gpt-preview").await.as_deref(), Ok(CLOUD_KEY), "it knows more than it lists");
}

#[tokio::test(start_paused = true)]
async fn a_single_engine_is_what_it_always_was() {
    let ollama = engine("ollama", &["small"]);
    let pool = pool(&[&ollama]);
    assert_eq!(answers(&pool, "small").await.as_deref(), Ok("ollama"));
    assert_eq!(answers(&pool, "huge").await.unwrap_err(), "ollama has no model 'huge'; it has small");
    assert_eq!(pool.others().count(), 0);
}
