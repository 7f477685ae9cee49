//! The embedding model that comes with Hob, made of the real package and asked for real vectors.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_core::{
    Cut, EmbedInputs, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Message, ModelKind,
    Overlong, Role,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_models::catalogue::{EMBEDDING, ModelSource};
use hob_models::pull::DownloadRetry;
use hob_models::{ModelDirectory, PullOptions, PullSpec, pull};
use hob_testkit::{FakeServer, Reply};
use serde::Deserialize;

/// Vectors of the same texts, computed from the same weights by other means.
#[derive(Deserialize)]
struct Reference {
    texts: Vec<Known>,
}

#[derive(Deserialize)]
struct Known {
    text: String,
    tokens: u64,
    vector: Vec<f32>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../fixtures/all_minilm_l6_v2.json")).expect("JSON")
}

/// The package that `./dev test` fetched.
fn wheel() -> PathBuf {
    let path = std::env::var_os("HOB_TEST_EMBEDDING_WHEEL").expect(
        "HOB_TEST_EMBEDDING_WHEEL is not set: these tests need the real model. Run them with './dev test'.",
    );
    PathBuf::from(path)
}

/// A pip that has the package already.
fn pip(dir: &Path) -> String {
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nwhile [ \"$1\" != --dest ]; do shift; done\ncp '{}' \"$2/\"\n",
        wheel().display()
    );
    let path = dir.join("pip");
    fs::write(&path, script).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its owner");
    path.display().to_string()
}

/// No hub, and that pip.
fn package_only(dir: &Path) -> PullOptions {
    let retry = DownloadRetry { attempts: 0, pause: Duration::ZERO };
    let hub = "http://127.0.0.1:9".to_owned();
    PullOptions { hub, retry, pip: vec![vec![pip(dir)]], ..PullOptions::default() }
}

/// The directory with the model. It stays beside the package, so that only the first test ever makes it; its directory is named by
/// what the model should be.
async fn directory() -> ModelDirectory {
    let ModelSource::Pinned(pinned) = EMBEDDING.source else { panic!("the embedding model is pinned") };
    let name: String = pinned.sha256.to_string().chars().take(12).collect();
    let dir = wheel().parent().expect("a directory").join(format!("converted-{name}"));
    let scripts = tempfile::tempdir().expect("a directory");
    let options = package_only(scripts.path());
    let directory = ModelDirectory::new(dir);
    let model = pull(&PullSpec::Catalogue(EMBEDDING), &directory, &options).await.expect("the pinned model");
    assert_eq!((model.id.as_str(), model.size, model.problem), (EMBEDDING.name, EMBEDDING.size, None));
    directory
}

async fn engine() -> LlamaEngine {
    // Tests run side by side; more threads than cores only wait for each other.
    LlamaEngine::new(LlamaOptions { threads: 1, ..LlamaOptions::new(directory().await.dir()) })
}

fn request(inputs: &[&str]) -> EmbedRequest {
    let inputs = inputs.iter().map(ToString::to_string).collect();
    EmbedRequest {
        model: EMBEDDING.name.into(),
        inputs: EmbedInputs::Texts(inputs),
        ..EmbedRequest::default()
    }
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

#[tokio::test]
async fn a_package_that_was_never_converted_is_converted_once_and_leaves_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let models = ModelDirectory::new(dir.path().join("models"));
    let options = package_only(dir.path());
    let model = pull(&PullSpec::Catalogue(EMBEDDING), &models, &options).await.expect("the pinned model");
    let header = model.header.expect("a header");
    assert_eq!((header.architecture.as_deref(), header.context_length), (Some("bert"), Some(512)));
    assert_eq!((header.quantization, header.embedding_length), (Some("Q8_0"), Some(384)));
    assert!(header.is_embedding);
    let left =
        fs::read_dir(models.dir()).expect("a directory").map(|entry| entry.expect("a file").file_name());
    let left: Vec<_> = left.filter(|name| !name.to_string_lossy().ends_with(".lock")).collect();
    assert_eq!(left, ["all-minilm-l6-v2.gguf"]);
}

#[tokio::test]
async fn a_hub_with_the_original_files_gives_the_same_model() {
    let ModelSource::Pinned(pinned) = EMBEDDING.source else { panic!("the embedding model is pinned") };
    let mut archive = zip::ZipArchive::new(fs::File::open(wheel()).expect("a file")).expect("an archive");
    let files = pinned.members().into_iter().map(|member| {
        let mut bytes = Vec::new();
        archive.by_name(member.path).expect("a member").read_to_end(&mut bytes).expect("its content");
        let path = format!("/{}/resolve/{}/{}", pinned.hub.repo, pinned.hub.commit, member.file_name());
        (path, bytes)
    });
    let files: Vec<(String, Vec<u8>)> = files.collect();
    let hub = FakeServer::start(move |request| match files.iter().find(|(path, _)| *path == request.path) {
        Some((_, bytes)) => Reply::new(200, "application/octet-stream", bytes.clone()),
        None => Reply::json(404, "{}"),
    })
    .await;

    let dir = tempfile::tempdir().expect("a directory");
    let models = ModelDirectory::new(dir.path().join("models"));
    let options = PullOptions { hub: hub.url(), pip: Vec::new(), ..PullOptions::default() };
    let model = pull(&PullSpec::Catalogue(EMBEDDING), &models, &options).await.expect("the pinned model");
    assert_eq!((model.size, model.problem), (EMBEDDING.size, None));
}

#[tokio::test]
async fn vectors_are_those_of_the_original() {
    let known = reference().texts;
    let texts: Vec<&str> = known.iter().map(|known| known.text.as_str()).collect();
    let Embeddings { model, vectors, prompt_tokens, cut, load_time } =
        engine().await.embed(&request(&texts)).await.expect("vectors");
    assert!(load_time.is_some(), "the engine knows how long it loaded the model");
    assert_eq!((model.as_str(), cut), (EMBEDDING.name, Cut::NONE));
    assert_eq!(prompt_tokens, Some(known.iter().map(|known| known.tokens).sum()));
    for (known, vector) in known.iter().zip(&vectors) {
        assert_eq!(vector.len(), known.vector.len());
        let alike = cosine(vector, &known.vector);
        assert!(alike > 0.99, "{alike} for {:?}", known.text);
    }
    for (one, first) in known.iter().zip(&vectors) {
        for (other, second) in known.iter().zip(&vectors) {
            let (should, is) = (cosine(&one.vector, &other.vector), cosine(first, second));
            assert!((should - is).abs() < 0.02, "{should} became {is}: {:?} and {:?}", one.text, other.text);
        }
    }
}

#[tokio::test]
async fn batched_texts_have_the_same_vectors_as_single_ones() {
    let engine = engine().await;
    let texts: Vec<String> =
        (0..150).map(|number| format!("{} sheep on the hill", "many ".repeat(number % 40))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = engine.embed(&request(&texts)).await.expect("vectors").vectors;
    assert_eq!(together.len(), texts.len());
    for at in [0, 39, 77, 149] {
        let alone = engine.embed(&request(&[texts[at]])).await.expect("a vector").vectors;
        let alike = cosine(&alone[0], &together[at]);
        assert!(alike > 0.9999, "{alike} for text {at}");
    }
}

#[tokio::test]
async fn a_text_beyond_the_context_is_refused_with_both_numbers_or_cut_and_reported() {
    let engine = engine().await;
    let long = "word ".repeat(600);
    let refused = engine.embed(&request(&["short", &long])).await.expect_err("a refusal");
    assert_eq!(
        refused.to_string(),
        "input[1] has 602 tokens; the maximum context length is 512 tokens for 'all-minilm-l6-v2'"
    );
    assert!(refused.is_context_overflow());

    let cut = |inputs: &[&str]| EmbedRequest { overlong: Overlong::Cut, ..request(inputs) };
    let embeddings = engine.embed(&cut(&["short", &long])).await.expect("vectors");
    assert_eq!((embeddings.cut, embeddings.prompt_tokens), (Cut::Inputs(vec![1]), Some(3 + 512)));
    let beginning = engine.embed(&request(&[&"word ".repeat(510)])).await.expect("a vector");
    let alike = cosine(&beginning.vectors[0], &embeddings.vectors[1]);
    assert!(alike > 0.9999, "what was cut is the beginning, opened and closed as any text: {alike}");
}

#[tokio::test]
async fn it_is_listed_as_an_embedding_model_and_does_not_answer() {
    let engine = engine().await;
    let models = engine.list_models().await.expect("a list");
    assert_eq!((models[0].kind, models[0].context), (ModelKind::Embedding, Some(512)));
    assert!(models[0].parameters.is_some_and(|count| count > 22_000_000));
    assert!(!engine.health().await, "an embedding model alone is not healthy");

    let question = GenerateRequest {
        model: EMBEDDING.name.into(),
        messages: vec![Message::new(Role::User, "Hello?")],
        ..GenerateRequest::default()
    };
    let refused = engine.generate(&question).await.expect_err("a refusal");
    assert!(
        matches!(&refused, EngineError::Refused { status: 400, param: Some(param), .. } if param == "model"),
        "{refused}"
    );
    let shorter = EmbedRequest { dimensions: Some(100), ..request(&["a"]) };
    let refused = engine.embed(&shorter).await.expect_err("a refusal").to_string();
    assert!(refused.contains("has vectors of 384 numbers only"), "{refused}");
    let as_it_is = EmbedRequest { dimensions: Some(384), ..request(&["a"]) };
    assert_eq!(engine.embed(&as_it_is).await.expect("a vector").vectors[0].len(), 384);
}
