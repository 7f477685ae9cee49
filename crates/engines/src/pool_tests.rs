use hob_testkit::ScriptedEngine;

use super::*;
use crate::model_list_cache::USABLE_FOR;

fn engine(key: &str, models: &[&str]) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::saying(&["hi"]).called(key).with_models(models))
}

/// The cloud, which does not list all its models.
fn cloud(models: &[&str]) -> Arc<ScriptedEngine> {
    let cloud = ScriptedEngine::saying(&["hi"]).called(CLOUD).with_models(models);
    Arc::new(cloud.with_unlisted_models())
}

fn pool(engines: &[&Arc<ScriptedEngine>]) -> EnginePool {
    let mut engines = engines.iter().map(|engine| Arc::clone(engine) as Arc<dyn Engine>);
    EnginePool::new(engines.next().unwrap(), engines.collect())
}

async fn answers(pool: &EnginePool, model: &str) -> Result<String, String> {
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
async fn no_list_is_requested_while_the_model_is_on_a_known_one() {
    let (ollama, vllm) = (engine("ollama", &["small"]), engine("vllm", &["large"]));
    let pool = pool(&[&ollama, &vllm]);
    for _ in 0..10 {
        answers(&pool, "large").await.unwrap();
        answers(&pool, "small").await.unwrap();
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
    }
    assert_eq!((ollama.lists(), vllm.lists()), (1, 1));
}

/// An engine that takes this long to list its models.
struct SlowToList(Arc<ScriptedEngine>, std::time::Duration);

#[async_trait::async_trait]
impl Engine for SlowToList {
    fn key(&self) -> &str {
        self.0.key()
    }

    fn address(&self) -> &str {
        self.0.address()
    }

    async fn generate(
        &self,
        request: &hob_core::GenerateRequest,
    ) -> Result<hob_core::Generation, EngineError> {
        self.0.generate(request).await
    }

    async fn stream(
        &self,
        request: &hob_core::GenerateRequest,
    ) -> Result<hob_core::GenerationStream, EngineError> {
        self.0.stream(request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        tokio::time::sleep(self.1).await;
        self.0.list_models().await
    }

    async fn health(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn one_slow_engine_does_not_keep_the_callers_of_others_waiting() {
    let second = std::time::Duration::from_secs(1);
    let slow = |key: &str, models: &[&str], took| -> Arc<dyn Engine> {
        Arc::new(SlowToList(engine(key, models), took))
    };
    let (ollama, vllm) = (slow("ollama", &["small"], 3 * second), slow("vllm", &["large"], 2 * second));
    let pool = EnginePool::new(ollama, vec![vllm]);
    let began = tokio::time::Instant::now();
    assert_eq!(answers(&pool, "large").await.as_deref(), Ok("vllm"));
    assert_eq!(began.elapsed(), 3 * second, "they are asked side by side");
    for _ in 0..10 {
        tokio::time::advance(20 * second).await;
        let began = tokio::time::Instant::now();
        for (model, key) in [("small", "ollama"), ("large", "vllm")] {
            assert_eq!(answers(&pool, model).await.as_deref(), Ok(key));
        }
        assert_eq!(began.elapsed(), std::time::Duration::ZERO);
        tokio::time::sleep(5 * second).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_hangs_delays_only_models_that_no_other_engine_has() {
    let forever = std::time::Duration::from_secs(1_000_000);
    let hung: Arc<dyn Engine> = Arc::new(SlowToList(engine("ollama", &["small"]), forever));
    let pool = EnginePool::new(hung, vec![engine("vllm", &["large"])]);
    assert_eq!(answers(&pool, "large").await.as_deref(), Ok("vllm"));
    tokio::time::advance(std::time::Duration::from_secs(20)).await;
    let began = tokio::time::Instant::now();
    assert_eq!(answers(&pool, "large").await.as_deref(), Ok("vllm"));
    assert_eq!(pool.recent().await.unwrap().len(), 1, "nor does who chooses among all");
    assert_eq!(began.elapsed(), std::time::Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_returns_is_found_again() {
    let (ollama, vllm) = (engine("ollama", &["small"]), engine("vllm", &["large"]));
    let pool = pool(&[&ollama, &vllm]);
    [&ollama, &vllm].into_iter().for_each(|engine| engine.set_gone(true));
    assert!(pool.recent().await.is_err());
    ollama.set_gone(false);
    assert_eq!(pool.recent().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_down_is_not_listed_and_named_by_its_models() {
    let (ollama, vllm) = (engine("ollama", &["small"]), engine("vllm", &["large"]));
    let pool = pool(&[&ollama, &vllm]);
    assert_eq!(pool.list().await.unwrap().len(), 2);
    vllm.set_gone(true);
    tokio::time::advance(USABLE_FOR).await;
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
    tokio::time::advance(USABLE_FOR).await;
    assert!(pool.list().await.is_err(), "a list without engines is an error");
    vllm.set_gone(false);
    assert_eq!(answers(&pool, "large").await.as_deref(), Ok("vllm"), "it is found as soon as it is back");
}

#[tokio::test(start_paused = true)]
async fn a_chosen_engine_that_is_down_returns_its_own_error() {
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
    assert_eq!(answers(&pool, "gpt-5.2").await.as_deref(), Ok(CLOUD));
    assert_eq!(answers(&pool, "qwen3:8b").await.as_deref(), Ok("ollama"), "what is here is answered here");
    assert!(answers(&pool, "qwen3:8").await.is_err(), "a misspelt name is not sent to the cloud");
    ollama.set_gone(true);
    tokio::time::advance(USABLE_FOR).await;
    let answered = answers(&pool, "qwen3:8b").await;
    assert!(answered.as_deref().is_err_and(|error| error.contains("cannot reach ollama")), "{answered:?}");
}

#[tokio::test(start_paused = true)]
async fn a_chosen_cloud_does_not_take_models_of_other_engines() {
    let (cloud, ollama) = (cloud(&["gpt-5.2"]), engine("ollama", &["qwen3:8b"]));
    let pool = pool(&[&cloud, &ollama]);
    assert_eq!(answers(&pool, "qwen3:8b").await.as_deref(), Ok("ollama"));
    assert_eq!(answers(&pool, "gpt-preview").await.as_deref(), Ok(CLOUD), "it knows more than it lists");
}

#[tokio::test(start_paused = true)]
async fn of_two_that_know_more_than_they_list_the_chosen_one_is_asked() {
    let litellm = ScriptedEngine::saying(&["hi"]).called("litellm").with_unlisted_models();
    let (cloud, litellm) = (cloud(&["gpt-5.2"]), Arc::new(litellm));
    assert_eq!(answers(&pool(&[&cloud, &litellm]), "preview").await.as_deref(), Ok(CLOUD));
    assert_eq!(answers(&pool(&[&litellm, &cloud]), "preview").await.as_deref(), Ok("litellm"));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_both_have_is_answered_here_wherever_the_cloud_is_in_the_order() {
    let both = ["qwen3:8b"];
    let (cloud, ollama) = (cloud(&["qwen3:8b", "gpt-5.2"]), engine("ollama", &both));
    let pool = pool(&[&cloud, &ollama]);
    for _ in 0..2 {
        assert_eq!(answers(&pool, "qwen3:8b").await.as_deref(), Ok("ollama"));
        assert_eq!(answers(&pool, "gpt-5.2").await.as_deref(), Ok(CLOUD));
    }
    let owner = |listed: &ListedModel| (listed.model.id == "qwen3:8b").then(|| listed.engine.clone());
    assert_eq!(pool.list().await.unwrap().iter().find_map(owner).as_deref(), Some("ollama"));
    ollama.set_gone(true);
    tokio::time::advance(USABLE_FOR).await;
    let answered = answers(&pool, "qwen3:8b").await;
    assert!(answered.as_deref().is_err_and(|error| error.contains("cannot reach ollama")), "{answered:?}");
}

#[tokio::test(start_paused = true)]
async fn a_local_model_is_not_sent_to_the_cloud_unless_named_or_allowed() {
    let engines = || (engine("ollama", &["small"]), engine("vllm", &["both"]), cloud(&["both"]));
    for (down, allowed, named_by, key) in [
        ("vllm", false, NamedBy::Hob, Err("cannot reach vllm")),
        ("ollama", false, NamedBy::Hob, Err("cannot reach ollama")),
        ("vllm", true, NamedBy::Hob, Ok(CLOUD)),
        ("vllm", false, NamedBy::Caller, Ok(CLOUD)),
    ] {
        let (ollama, vllm, cloud) = engines();
        // It has not answered yet, so its models are not known.
        let vllm = if down == "ollama" { engine("vllm", &["large"]) } else { vllm };
        (if down == "ollama" { &ollama } else { &vllm }).set_gone(true);
        let pool = pool(&[&ollama, &vllm, &cloud]).allow_cloud(allowed);
        let found = pool.find("both", named_by).await;
        assert_eq!(found.as_ref().is_ok_and(|found| found.instead_of.is_some()), allowed);
        let found = found.map(|found| found.engine.key().to_owned()).map_err(|error| error.to_string());
        match key {
            Ok(key) => assert_eq!(found.as_deref(), Ok(key)),
            Err(start) => assert!(found.as_ref().is_err_and(|error| error.starts_with(start)), "{found:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_engine_is_unchanged() {
    let ollama = engine("ollama", &["small"]);
    let pool = pool(&[&ollama]);
    assert_eq!(answers(&pool, "small").await.as_deref(), Ok("ollama"));
    assert_eq!(answers(&pool, "huge").await.unwrap_err(), "ollama has no model 'huge'; it has small");
    assert_eq!(pool.others().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_list_its_models_is_not_waited_for_even_when_it_is_alone() {
    let slow = SlowToList(engine("ollama", &["small"]), std::time::Duration::from_secs(3600));
    let pool = EnginePool::new(Arc::new(slow), Vec::new());
    let listed = tokio::time::timeout(std::time::Duration::from_secs(10), pool.list()).await;
    assert!(matches!(listed.expect("in time"), Err(EngineError::Timeout { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_selected_later_answers_and_the_others_stay() {
    let (ollama, embedded) = (engine("ollama", &["small"]), engine("embedded", &["tiny"]));
    let pool = pool(&[&ollama]);
    let before = Arc::clone(pool.selected());
    let later: Arc<dyn Engine> = embedded.clone();
    // Two callers select the same engine.
    assert!(pool.select(&later) && pool.select(&later));
    assert_eq!((pool.selected().key(), before.key()), ("embedded", "ollama"));
    assert_eq!(pool.others().collect::<Vec<_>>(), ["ollama"]);
    assert_eq!(pool.engines().count(), 2);
    for (model, key) in [("tiny", "embedded"), ("small", "ollama")] {
        assert_eq!(answers(&pool, model).await.as_deref(), Ok(key), "{model}");
    }
    ollama.set_gone(true);
    tokio::time::advance(USABLE_FOR).await;
    assert_eq!(answers(&pool, "tiny").await.as_deref(), Ok("embedded"), "the other engine is away");
    // No second engine can be added, and one of the pool can be selected again.
    let third: Arc<dyn Engine> = engine("vllm", &["large"]);
    assert!(!pool.select(&third));
    assert!(pool.select(&before));
    assert_eq!(pool.engines().map(|engine| engine.key()).collect::<Vec<_>>(), ["ollama", "embedded"]);
}
