//! The rights of callers, through the service.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hob_agents::builtin::WebFetchOptions;
use hob_agents::{ImageFetcher, ToolSet};
use hob_core::{
    AnswerWarning, AskError, Caller, CallerRole, Content, ContentPart, EmbedRequest, Engine, EngineError,
    EventBus, GenerateRequest, Image, Message, Permit, RequestSource, Role,
};
use hob_engines::fallback::Fallback;
use hob_engines::pool::EnginePool;
use hob_memory::Embedder;
use hob_net::egress::AddressPolicy;
use hob_telemetry::NoInferenceLog;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::json;

use crate::ask::{AskService, AskServiceParts};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";

fn caller(role: CallerRole) -> Caller {
    Caller { role, permit: Permit::up_to(role.reach()), ..Caller::trusted(RequestSource::Server, "run") }
}

fn stranger() -> Caller {
    caller(CallerRole::Stranger)
}

fn owner() -> Caller {
    caller(CallerRole::Owner)
}

fn asking(model: &str) -> GenerateRequest {
    GenerateRequest {
        model: model.into(),
        messages: vec![Message::new(Role::User, "hi")],
        ..GenerateRequest::default()
    }
}

fn parts(engine: &Arc<ScriptedEngine>, default_model: Option<&str>) -> AskServiceParts {
    AskServiceParts {
        engine: Arc::clone(engine) as Arc<dyn Engine>,
        default_model: default_model.map(str::to_owned),
        agent: None,
        tools: ToolSet::default(),
        max_turns: 10,
        bus: EventBus::new(),
        log: Arc::new(NoInferenceLog),
    }
}

fn engine(key: &str, models: &[&str]) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::saying(&["hi"]).called(key).with_models(models))
}

/// A service with one engine.
fn local_service() -> (AskService, Arc<ScriptedEngine>) {
    let engine = engine("vllm", &["m"]);
    (AskService::new(parts(&engine, None)), engine)
}

/// A service with a local engine and the cloud.
fn house_with_cloud(default_model: Option<&str>) -> (AskService, Arc<ScriptedEngine>, Arc<ScriptedEngine>) {
    let (here, cloud) = (engine("vllm", &["m"]), engine("cloud", &["gpt-5.2"]));
    let pool =
        EnginePool::new(Arc::clone(&here) as Arc<dyn Engine>, vec![Arc::clone(&cloud) as Arc<dyn Engine>]);
    let system = AskService::new(parts(&here, default_model)).with_pool(Arc::new(pool));
    (system, here, cloud)
}

fn ignored(warnings: &[AnswerWarning]) -> Vec<String> {
    warnings.iter().map(|warning| warning.text().into_owned()).collect()
}

fn showing(url: &str) -> GenerateRequest {
    let image = ContentPart::Image(Image { url: url.into(), detail: None });
    let mut request = asking("m");
    request
        .messages
        .push(Message::new(Role::User, Content::Parts(vec![ContentPart::Text("look".into()), image])));
    request
}

fn param(error: &AskError) -> &str {
    match error {
        AskError::Attachment { param, .. } => param,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn unknown_fields_reach_the_engine_only_for_the_owner() {
    let mut request = asking("m");
    for (field, value) in [
        ("user_config", json!({ "model_list": [] })),
        ("api_base", json!("http://evil.example")),
        ("n_discard", json!(1)),
        ("num_ctx", json!(1 << 20)),
        ("keep_alive", json!(-1)),
        ("chat_template", json!("{{ evil }}")),
        ("user", json!("ann")),
        ("logit_bias", json!({ "1": 5 })),
    ] {
        request.extra.insert(field.into(), value);
    }
    request.messages[0].extra.insert("cache_control".into(), json!({ "type": "ephemeral" }));
    request.messages[0].extra.insert("refusal".into(), json!("no"));
    let (system, engine) = local_service();

    system.complete(request.clone(), &owner()).await.unwrap();
    assert_eq!(engine.requests()[0].extra, request.extra, "everything for the owner");
    assert_eq!(engine.requests()[0].messages, request.messages);

    let whole = system.complete(request.clone(), &stranger()).await.unwrap().generation.warnings;
    let streamed = system.stream(request, &stranger()).await.unwrap().warnings;
    for (number, warnings) in [(1, whole), (2, streamed)] {
        let sent = &engine.requests()[number];
        let mut fields: Vec<_> = sent.extra.keys().collect();
        fields.sort();
        assert_eq!(fields, ["logit_bias", "user"]);
        assert_eq!(sent.messages[0].extra.keys().collect::<Vec<_>>(), ["refusal"]);
        let mut named = ignored(&warnings);
        named.sort();
        assert_eq!(
            named,
            [
                "ignored=api_base",
                "ignored=chat_template",
                "ignored=keep_alive",
                "ignored=messages[0].cache_control",
                "ignored=n_discard",
                "ignored=num_ctx",
                "ignored=user_config",
            ]
        );
    }
}

mod hostile {
    use super::*;

    #[tokio::test]
    async fn only_the_owner_may_send_image_urls() {
        let (system, engine) = local_service();
        for role in [CallerRole::Stranger, CallerRole::ChannelSender] {
            for url in [
                "http://169.254.169.254/latest/meta-data/",
                "https://example.org/cat.png",
                "HTTP://example.org/cat.png",
                "file:///etc/passwd",
                "/etc/passwd",
                " data:image/png;base64,AAAA",
                "",
            ] {
                let refused = system.complete(showing(url), &caller(role)).await.unwrap_err();
                assert_eq!(param(&refused), "messages[1].content[1].image_url", "{url}");
                let refused = system.stream(showing(url), &caller(role)).await.err().unwrap();
                assert_eq!(param(&refused), "messages[1].content[1].image_url", "{url}");
            }
            system.complete(showing("data:image/png;base64,AAAA"), &caller(role)).await.unwrap();
        }
        assert_eq!(engine.requests().len(), 2);
    }

    #[tokio::test]
    async fn files_and_private_addresses_are_refused_for_the_owner_too() {
        let (system, engine) = local_service();
        for (url, expected) in [
            ("file:///etc/passwd", "data: URL"),
            ("ftp://example.org/cat.png", "data: URL"),
            ("http://127.0.0.1:1/cat.png", "not a public address"),
            ("http://[::1]/cat.png", "not a public address"),
            ("http://169.254.169.254/latest/meta-data/", "not a public address"),
            ("http://localhost/cat.png", "not a public address"),
        ] {
            let refused = system.complete(showing(url), &owner()).await.unwrap_err();
            assert_eq!(param(&refused), "messages[1].content[1].image_url", "{url}");
            assert!(refused.to_string().contains(expected), "{url}: {refused}");
        }
        assert_eq!(engine.requests(), []);
    }

    #[tokio::test]
    async fn a_stranger_cannot_spend_the_owners_cloud_key() {
        for (default_model, asked) in [(None, "gpt-5.2"), (Some("gpt-5.2"), "default")] {
            let (system, here, cloud) = house_with_cloud(default_model);
            let refused = system.complete(asking(asked), &stranger()).await.unwrap_err();
            assert!(matches!(refused, AskError::CloudNotAllowed { .. }), "{refused}");
            let refused = system.stream(asking(asked), &stranger()).await.err().unwrap();
            assert!(matches!(refused, AskError::CloudNotAllowed { .. }), "{refused}");
            assert_eq!((here.requests().len(), cloud.requests().len()), (0, 0));
            system.complete(asking(asked), &owner()).await.unwrap();
            system.complete(asking(asked), &caller(CallerRole::ChannelSender)).await.unwrap();
            assert_eq!(cloud.requests().len(), 2);
        }
    }

    #[tokio::test]
    async fn a_stranger_gets_nothing_if_only_the_cloud_is_available() {
        for asked in ["gpt-5.2", "gpt-unlisted", "default", "auto"] {
            let cloud = ScriptedEngine::saying(&["hi"]).called("cloud").with_models(&["gpt-5.2"]);
            let cloud = Arc::new(cloud.with_unlisted_models());
            let system = AskService::new(parts(&cloud, None));
            let refused = system.complete(asking(asked), &stranger()).await.unwrap_err();
            assert!(matches!(refused, AskError::CloudNotAllowed { .. }), "{asked}: {refused}");
            assert_eq!(cloud.requests(), []);
            assert_eq!(system.listed_models(CallerRole::Stranger).await.unwrap(), []);
        }
    }

    #[tokio::test]
    async fn auto_never_chooses_the_cloud_for_a_stranger() {
        let (here, cloud) = (engine("vllm", &["m"]), engine("cloud", &["gpt-5.2"]));
        // The cloud is the selected engine, and the router may choose it for the owner.
        let others = vec![Arc::clone(&here) as Arc<dyn Engine>];
        let pool = EnginePool::new(Arc::clone(&cloud) as Arc<dyn Engine>, others);
        let system = AskService::new(parts(&cloud, Some("auto"))).with_pool(Arc::new(pool));
        for asked in ["auto", "default"] {
            system.complete(asking(asked), &stranger()).await.unwrap();
        }
        assert_eq!((here.requests().len(), cloud.requests().len()), (2, 0));
    }

    #[tokio::test]
    async fn the_cloud_is_no_fallback_for_a_stranger() {
        let (here, cloud) = (engine("vllm", &["m"]), engine("cloud", &["gpt-5.2"]));
        let fallback = Fallback::new("gpt-5.2", Some(Arc::clone(&cloud) as Arc<dyn Engine>));
        let system = AskService::new(parts(&here, Some("m"))).with_fallback(Some(fallback));
        let ask = |caller: Caller| {
            let system = &system;
            async move { system.complete(asking("default"), &caller).await }
        };
        ask(stranger()).await.unwrap();
        here.set_gone(true);
        let refused = ask(stranger()).await.unwrap_err();
        assert!(matches!(refused, AskError::Engine(EngineError::Unreachable { .. })), "{refused}");
        assert_eq!(cloud.requests(), []);
        ask(owner()).await.unwrap();
        assert_eq!(cloud.requests().len(), 1, "the owner allowed it for himself");
    }

    #[tokio::test]
    async fn a_strangers_texts_are_not_embedded_by_the_cloud() {
        let embedding = |key: &str, model: &str| {
            Arc::new(ScriptedEngine::saying(&[]).called(key).with_embedding_models(&[model]))
        };
        let (here, cloud) = (embedding("vllm", "e"), embedding("cloud", "text-embedding-3"));
        let embedder =
            Embedder { engine: Arc::clone(&cloud) as Arc<dyn Engine>, model: "text-embedding-3".into() };
        let others = vec![Arc::clone(&cloud) as Arc<dyn Engine>];
        let pool = EnginePool::new(Arc::clone(&here) as Arc<dyn Engine>, others);
        let system = AskService::new(parts(&here, None)).with_pool(Arc::new(pool));
        let embed = |system: &AskService, model: &str| {
            let request = EmbedRequest {
                model: model.into(),
                inputs: vec!["a".to_owned()].into(),
                ..EmbedRequest::default()
            };
            let caller = stranger();
            let embedded = futures::executor::block_on(system.embed(request, &caller));
            embedded.map(drop)
        };
        assert!(matches!(embed(&system, "text-embedding-3"), Err(AskError::CloudNotAllowed { .. })));
        embed(&system, "e").unwrap();
        let system = system.with_embedder(Some(embedder));
        assert!(matches!(embed(&system, "default"), Err(AskError::CloudNotAllowed { .. })));
        assert_eq!(cloud.embed_requests().len(), 0);
    }
}

#[tokio::test]
async fn a_caller_sees_the_models_that_it_may_use() {
    let (system, ..) = house_with_cloud(None);
    let ids = |role| {
        let system = &system;
        async move {
            let listed = system.listed_models(role).await.unwrap();
            listed.into_iter().map(|listed| listed.model.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(ids(CallerRole::Owner).await, ["m", "gpt-5.2"]);
    assert_eq!(ids(CallerRole::Stranger).await, ["m"]);
    assert!(system.listed_model("gpt-5.2", CallerRole::Stranger).await.unwrap().is_none());
    assert_eq!(system.listed_model("default", CallerRole::Stranger).await.unwrap().unwrap().model.id, "m");
}

/// A service that may download from this test server, and the address of a path on it.
async fn fetching_from(
    reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
) -> (AskService, Arc<ScriptedEngine>, FakeServer) {
    let server = FakeServer::start(move |request| reply(&request.path)).await;
    let options = WebFetchOptions {
        policy: AddressPolicy::public_only().with_exception(server.address()),
        ..WebFetchOptions::default()
    };
    let (system, engine) = local_service();
    (AskService { images: ImageFetcher::new(options), ..system }, engine, server)
}

#[tokio::test]
async fn an_image_that_the_owner_names_is_fetched_and_passed_on_as_data() {
    let (system, engine, server) = fetching_from(|path| match path {
        "/moved" => Reply::new(302, "text/plain", "").header("location", "/cat.png"),
        "/inside" => Reply::new(302, "text/plain", "").header("location", "http://127.0.0.1:9/cat.png"),
        "/page" => Reply::new(200, "image/png", "<html>"),
        "/missing" => Reply::new(404, "text/plain", ""),
        "/huge" => Reply::new(200, "image/jpeg", vec![0xff; (10 << 20) + 1]),
        _ => Reply::new(200, "image/png", PNG),
    })
    .await;
    let url = server.url();
    for path in ["/cat.png", "/moved"] {
        system.complete(showing(&format!("{url}{path}")), &owner()).await.unwrap();
        let requests = engine.requests();
        let sent = requests.last().unwrap().messages[1].content.images().next().unwrap().clone();
        let (media_type, payload) = sent.inline().unwrap();
        let bytes = BASE64_STANDARD.decode(payload).unwrap();
        assert_eq!((media_type, bytes.as_slice()), ("image/png", PNG));
    }
    for (path, expected) in [
        ("/inside", "not a public address"),
        ("/page", "no PNG"),
        ("/missing", "404"),
        ("/huge", "larger than 10 MiB"),
    ] {
        let refused = system.complete(showing(&format!("{url}{path}")), &owner()).await.unwrap_err();
        assert_eq!(param(&refused), "messages[1].content[1].image_url");
        assert!(refused.to_string().contains(expected), "{path}: {refused}");
    }
    let mut many = showing(&url);
    let Content::Parts(parts) = &mut many.messages[1].content else { unreachable!() };
    *parts = vec![parts[1].clone(); 17];
    let refused = system.complete(many, &owner()).await.unwrap_err();
    assert_eq!(param(&refused), "messages[1].content[16].image_url");
    assert_eq!(engine.requests().len(), 2);
}
