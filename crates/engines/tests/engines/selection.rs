//! The selection of an engine, with scripted engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::{Engine, EngineError, GenerateRequest, Generation, GenerationStream, ModelInfo};
use hob_engines::selection::{
    NoEngine, RejectedEngine, RejectionReason, SelectionReason, SelectionRules, healthy, others_of_pool,
    probe_all, select,
};
use hob_net::BindAddress;
use tokio::time::Instant;

/// How an engine responds to a probe.
#[derive(Debug, Clone, Copy)]
enum Health {
    Well,
    Ill,
    /// Healthy, after this many seconds.
    Slow(u64),
    /// Never answers.
    Silent,
}

struct Scripted {
    key: &'static str,
    address: String,
    health: Health,
    probes: AtomicUsize,
}

impl Scripted {
    fn new(key: &'static str, health: Health) -> Arc<Self> {
        Self::at(key, health, &format!("http://{key}.lan:1"))
    }

    fn at(key: &'static str, health: Health, address: &str) -> Arc<Self> {
        Arc::new(Scripted { key, address: address.to_owned(), health, probes: AtomicUsize::new(0) })
    }

    fn probes(&self) -> usize {
        self.probes.load(Ordering::Relaxed)
    }

    fn tried(&self, why_not: RejectionReason) -> RejectedEngine {
        RejectedEngine { key: self.key.to_owned(), address: self.address.clone(), why_not }
    }
}

#[async_trait]
impl Engine for Scripted {
    fn key(&self) -> &str {
        self.key
    }

    fn address(&self) -> &str {
        &self.address
    }

    async fn generate(&self, _: &GenerateRequest) -> Result<Generation, EngineError> {
        unreachable!("selection asks for nothing")
    }

    async fn stream(&self, _: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        unreachable!("selection asks for nothing")
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        unreachable!("selection asks for nothing")
    }

    async fn health(&self) -> bool {
        self.probes.fetch_add(1, Ordering::Relaxed);
        match self.health {
            Health::Well => true,
            Health::Ill => false,
            Health::Slow(seconds) => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                true
            }
            Health::Silent => std::future::pending().await,
        }
    }
}

fn as_engines(engines: &[&Arc<Scripted>]) -> Vec<Arc<dyn Engine>> {
    engines.iter().map(|engine| Arc::clone(engine) as Arc<dyn Engine>).collect()
}

fn given(key: &str) -> SelectionRules {
    SelectionRules { key: Some(key.into()), ..SelectionRules::default() }
}

fn by_default(key: &str) -> SelectionRules {
    SelectionRules { default: Some(key.into()), ..SelectionRules::default() }
}

/// The key of the selected engine, and the reason.
async fn chosen(
    engines: &[&Arc<Scripted>],
    wanted: &SelectionRules,
) -> Result<(String, SelectionReason), NoEngine> {
    select(&as_engines(engines), wanted).await.map(|chosen| (chosen.engine.key().to_owned(), chosen.because))
}

fn instead_of(key: &str) -> SelectionReason {
    SelectionReason::Fallback { instead_of: Some(key.into()) }
}

#[tokio::test]
async fn a_named_engine_is_taken_and_no_other_is_asked() {
    let (ollama, vllm) = (Scripted::new("ollama", Health::Well), Scripted::new("vllm", Health::Well));
    let wanted = SelectionRules { default: Some("ollama".into()), ..given("vllm") };
    assert_eq!(chosen(&[&ollama, &vllm], &wanted).await, Ok(("vllm".into(), SelectionReason::Given)));
    assert_eq!((ollama.probes(), vllm.probes()), (0, 1));
}

#[tokio::test]
async fn a_named_engine_that_is_ill_is_not_replaced() {
    let (ollama, vllm) = (Scripted::new("ollama", Health::Well), Scripted::new("vllm", Health::Ill));
    let outcome = chosen(&[&ollama, &vllm], &given("vllm")).await;
    assert_eq!(outcome, Err(NoEngine::Given(vllm.tried(RejectionReason::Unhealthy))));
    assert_eq!(outcome.unwrap_err().to_string(), "vllm at http://vllm.lan:1 does not answer");
}

#[tokio::test]
async fn an_unknown_name_is_an_error_with_the_known_ones() {
    let (ollama, vllm) = (Scripted::new("ollama", Health::Well), Scripted::new("vllm", Health::Well));
    let error = chosen(&[&ollama, &vllm], &given("olama")).await.unwrap_err();
    assert_eq!(error.to_string(), "unknown engine 'olama'; known engines: ollama, vllm");
}

#[tokio::test]
async fn the_default_is_taken_when_it_is_well() {
    let (ollama, vllm) = (Scripted::new("ollama", Health::Well), Scripted::new("vllm", Health::Well));
    assert_eq!(
        chosen(&[&ollama, &vllm], &by_default("vllm")).await,
        Ok(("vllm".into(), SelectionReason::Default))
    );
}

#[tokio::test]
async fn any_healthy_engine_stands_in_for_the_default() {
    let (ollama, vllm, sglang) = (
        Scripted::new("ollama", Health::Ill),
        Scripted::new("vllm", Health::Ill),
        Scripted::new("sglang", Health::Well),
    );
    assert_eq!(
        chosen(&[&ollama, &vllm, &sglang], &by_default("ollama")).await,
        Ok(("sglang".into(), instead_of("ollama")))
    );
    assert_eq!(
        chosen(&[&ollama, &vllm, &sglang], &SelectionRules::default()).await,
        Ok(("sglang".into(), SelectionReason::Fallback { instead_of: None }))
    );
}

#[tokio::test]
async fn without_an_engine_all_attempts_are_reported() {
    let (ollama, vllm) = (
        Scripted::at("ollama", Health::Ill, "http://localhost:11434"),
        Scripted::at("vllm", Health::Ill, "http://localhost:8000"),
    );
    let error = chosen(&[&ollama, &vllm], &by_default("vllm")).await.unwrap_err();
    let tried = vec![vllm.tried(RejectionReason::Unhealthy), ollama.tried(RejectionReason::Unhealthy)];
    assert_eq!(error, NoEngine::NoneHealthy { tried });
    assert_eq!(
        error.to_string(),
        "no engine answers: vllm at http://localhost:8000 does not answer, \
         ollama at http://localhost:11434 does not answer"
    );
    let error = chosen(&[], &SelectionRules::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "no engine answers: none is configured");
}

#[tokio::test]
async fn the_cloud_replaces_an_engine_only_if_allowed() {
    let ollama = Scripted::new("ollama", Health::Ill);
    let cloud = Scripted::at("cloud", Health::Well, "");
    let error = chosen(&[&ollama, &cloud], &by_default("ollama")).await.unwrap_err();
    let tried = vec![ollama.tried(RejectionReason::Unhealthy), cloud.tried(RejectionReason::CloudNotAllowed)];
    assert_eq!(error, NoEngine::NoneHealthy { tried });
    assert_eq!(cloud.probes(), 0);

    let allowed = SelectionRules { allow_cloud_fallback: true, ..by_default("ollama") };
    assert_eq!(chosen(&[&ollama, &cloud], &allowed).await, Ok(("cloud".into(), instead_of("ollama"))));
    assert_eq!(
        chosen(&[&ollama, &cloud], &by_default("cloud")).await,
        Ok(("cloud".into(), SelectionReason::Default))
    );
    assert_eq!(
        chosen(&[&ollama, &cloud], &given("cloud")).await,
        Ok(("cloud".into(), SelectionReason::Given))
    );
}

#[tokio::test]
async fn a_server_never_picks_or_even_asks_itself() {
    let vllm = Scripted::at("vllm", Health::Well, "http://localhost:8000");
    let ollama = Scripted::new("ollama", Health::Well);
    let serving = |wanted: SelectionRules| SelectionRules {
        own_address: Some(BindAddress { host: "0.0.0.0".into(), port: 8000 }),
        ..wanted
    };
    assert_eq!(
        chosen(&[&vllm, &ollama], &serving(by_default("vllm"))).await,
        Ok(("ollama".into(), instead_of("vllm")))
    );
    let error = chosen(&[&vllm, &ollama], &serving(given("vllm"))).await.unwrap_err();
    assert_eq!(error.to_string(), "vllm at http://localhost:8000 is Hob's own address");
    let listed = healthy(&as_engines(&[&vllm, &ollama]), &serving(SelectionRules::default())).await;
    assert_eq!(keys(&listed), ["ollama"]);
    assert_eq!(vllm.probes(), 0);
}

#[test]
fn the_pool_is_in_its_order_without_the_selected_engine_and_hobs_own_address() {
    let (ollama, sglang) = (Scripted::new("ollama", Health::Well), Scripted::new("sglang", Health::Well));
    let litellm = Scripted::new("litellm", Health::Well);
    let vllm = Scripted::at("vllm", Health::Well, "http://localhost:8000");
    let own = BindAddress { host: "127.0.0.1".into(), port: 8000 };
    let engines = as_engines(&[&ollama, &sglang, &litellm, &vllm]);
    let pool = ["sglang", "vllm", "unknown", "litellm", "ollama"];
    assert_eq!(keys(&others_of_pool(litellm.as_ref(), &engines, &pool, &own)), ["sglang", "ollama"]);
}

fn keys(engines: &[Arc<dyn Engine>]) -> Vec<&str> {
    engines.iter().map(|engine| engine.key()).collect()
}

#[tokio::test]
async fn healthy_engines_are_listed_with_the_default_first() {
    let (ollama, vllm, sglang) = (
        Scripted::new("ollama", Health::Well),
        Scripted::new("vllm", Health::Ill),
        Scripted::new("sglang", Health::Well),
    );
    let engines = as_engines(&[&ollama, &vllm, &sglang]);
    assert_eq!(keys(&healthy(&engines, &by_default("sglang")).await), ["sglang", "ollama"]);
    assert_eq!(keys(&healthy(&engines, &SelectionRules::default()).await), ["ollama", "sglang"]);
}

#[tokio::test(start_paused = true)]
async fn probes_run_concurrently_and_end_after_two_seconds() {
    let engines = [
        Scripted::new("ollama", Health::Silent),
        Scripted::new("vllm", Health::Slow(1)),
        Scripted::new("sglang", Health::Slow(3)),
        Scripted::new("llamacpp", Health::Silent),
        Scripted::new("litellm", Health::Well),
    ];
    let began = Instant::now();
    assert_eq!(probe_all(&as_engines(&engines.each_ref())).await, [false, true, false, false, true]);
    assert_eq!(began.elapsed().as_millis() / 100, 20);
}

#[tokio::test(start_paused = true)]
async fn without_a_running_engine_the_result_takes_two_seconds() {
    let engines = ["ollama", "vllm", "sglang", "llamacpp"].map(|key| Scripted::new(key, Health::Silent));
    let began = Instant::now();
    let outcome = chosen(&engines.each_ref(), &by_default("vllm")).await;
    assert!(matches!(&outcome, Err(NoEngine::NoneHealthy { tried }) if tried.len() == 4), "{outcome:?}");
    assert_eq!(began.elapsed().as_millis() / 100, 20);
}

#[tokio::test(start_paused = true)]
async fn a_default_that_is_well_does_not_wait_for_the_others() {
    let (ollama, vllm) = (Scripted::new("ollama", Health::Silent), Scripted::new("vllm", Health::Well));
    let began = Instant::now();
    assert_eq!(
        chosen(&[&ollama, &vllm], &by_default("vllm")).await,
        Ok(("vllm".into(), SelectionReason::Default))
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_default_that_is_slow_but_well_is_waited_for() {
    let (ollama, vllm) = (Scripted::new("ollama", Health::Slow(1)), Scripted::new("vllm", Health::Well));
    assert_eq!(
        chosen(&[&vllm, &ollama], &by_default("ollama")).await,
        Ok(("ollama".into(), SelectionReason::Default))
    );
}

#[test]
fn only_a_cloud_that_nobody_chose_says_why_it_answers() {
    let reason = |because: SelectionReason, key: &str| {
        because.cloud_reason(key).map(|reason| reason.as_str().to_owned())
    };
    let missing = "the cloud answers: ollama did not answer when Hob was started";
    assert_eq!(reason(instead_of("ollama"), "cloud").as_deref(), Some(missing));
    let none = SelectionReason::Fallback { instead_of: None };
    let silent = "the cloud answers: no other engine answered when Hob was started";
    assert_eq!(reason(none, "cloud").as_deref(), Some(silent));
    assert_eq!(reason(instead_of("ollama"), "vllm"), None);
    assert_eq!(reason(SelectionReason::Given, "cloud"), None);
    assert_eq!(reason(SelectionReason::Default, "cloud"), None);
}
