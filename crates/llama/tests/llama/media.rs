//! Pictures and sound with a real model and a projector of random weights: the whole path from a file to an answer.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hob_core::{
    Content, ContentPart, Engine, EngineError, GenerateRequest, Generation, Image, MaxTokens, Message,
    ModelCapabilities, Role, Sampling, Temperature, TokenizeInput, TokenizeRequest,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_testkit::gguf::{MetadataValue, copy_with_metadata};
use hob_testkit::tiny_projector::{PICTURE_VECTORS, PictureOrder, SOUND_VECTORS, TinyProjector};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use serde_json::{Map, Value, json};
use tempfile::{NamedTempFile, TempDir};
use tokio::sync::OnceCell;

use crate::support::{MODEL, lasting_models_dir, model_file, models_dir};

/// The width and the layers of the short model.
const WIDTH: u32 = 576;
const LAYERS: u32 = 4;

/// An engine whose model has this projector.
fn engine_with(projector: Option<TinyProjector>) -> (TempDir, LlamaEngine) {
    let dir = models_dir();
    if let Some(projector) = projector {
        projector.write(&dir.path().join("mmproj-model.gguf")).expect("a projector");
    }
    let engine = open(&dir);
    (dir, engine)
}

/// The same for a model whose positions have several coordinates: that of the tests under another architecture, which writes
/// nonsense.
fn engine_with_grid() -> (TempDir, LlamaEngine) {
    use MetadataValue::{Float, Number, Signed, Text};
    let dir = TempDir::new().expect("a directory for models");
    let entries = [
        ("general.architecture", Text("qwen2vl")),
        ("qwen2vl.context_length", Number(8192)),
        ("qwen2vl.embedding_length", Number(WIDTH)),
        ("qwen2vl.block_count", Number(LAYERS)),
        ("qwen2vl.feed_forward_length", Number(1536)),
        ("qwen2vl.attention.head_count", Number(9)),
        ("qwen2vl.attention.head_count_kv", Number(3)),
        ("qwen2vl.attention.layer_norm_rms_epsilon", Float(1e-5)),
        ("qwen2vl.rope.dimension_sections", Signed(8)),
    ];
    copy_with_metadata(&model_file(), &dir.path().join("model.gguf"), &entries).expect("a copy of the model");
    let projector = TinyProjector { order: PictureOrder::Grid, hears: false, ..TinyProjector::new(WIDTH) };
    projector.write(&dir.path().join("mmproj-model.gguf")).expect("a projector");
    let engine = open(&dir);
    (dir, engine)
}

fn open(dir: impl AsRef<Path>) -> LlamaEngine {
    let options = LlamaOptions { context: Some(2048), threads: 1, ..LlamaOptions::new(dir.as_ref()) };
    LlamaEngine::new(options)
}

async fn engine() -> Arc<LlamaEngine> {
    static ENGINE: OnceCell<Arc<LlamaEngine>> = OnceCell::const_new();
    let made = async || {
        let dir = lasting_models_dir("media", &model_file());
        // Another process may read the one that is there.
        let projector = NamedTempFile::new_in(&dir).expect("a file");
        TinyProjector::new(WIDTH).write(projector.path()).expect("a projector");
        projector.persist(dir.join("mmproj-model.gguf")).expect("renamed");
        Arc::new(open(dir))
    };
    Arc::clone(ENGINE.get_or_init(made).await)
}

fn png(color: [u8; 3], side: u32) -> Vec<u8> {
    let mut picture = RgbImage::from_pixel(side, side, Rgb(color));
    // A pattern, because one colour alone says little.
    for at in 0..side / 2 {
        picture.put_pixel(at, at * 2 % side, Rgb([255 - color[0], color[1], 255 - color[2]]));
    }
    let mut file = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture).write_to(&mut file, ImageFormat::Png).expect("a picture");
    file.into_inner()
}

/// A second of sound in 16 bits.
fn wav(period: i32) -> Vec<u8> {
    let samples = (0..16_000).map(|at: i32| if at / period % 2 == 0 { 8000_i16 } else { -8000 });
    let data: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    for number in [1_u16, 1] {
        file.extend(number.to_le_bytes());
    }
    file.extend(16_000_u32.to_le_bytes());
    file.extend(32_000_u32.to_le_bytes());
    for number in [2_u16, 16] {
        file.extend(number.to_le_bytes());
    }
    file.extend(b"data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

fn picture_url(url: String) -> ContentPart {
    ContentPart::Image(Image { url, detail: None })
}

fn picture(file: &[u8]) -> ContentPart {
    picture_url(format!("data:image/png;base64,{}", BASE64_STANDARD.encode(file)))
}

fn sound(file: &[u8]) -> ContentPart {
    let audio = json!({ "data": BASE64_STANDARD.encode(file), "format": "wav" });
    ContentPart::Other(json!({ "type": "input_audio", "input_audio": audio }))
}

fn ask(parts: Vec<ContentPart>) -> GenerateRequest {
    GenerateRequest {
        model: MODEL.into(),
        messages: vec![Message::new(Role::User, Content::Parts(parts))],
        temperature: Some(Temperature::new(0.0).expect("zero is allowed")),
        max_tokens: Some(MaxTokens::new(4).expect("positive")),
        sampling: Sampling { logprobs: true, top_logprobs: Some(3), ..Sampling::default() },
        ..GenerateRequest::default()
    }
}

fn words(text: &str) -> ContentPart {
    ContentPart::Text(text.into())
}

fn about(file: ContentPart) -> GenerateRequest {
    ask(vec![file, words("What is this?")])
}

async fn answer(request: &GenerateRequest) -> Generation {
    engine().await.generate(request).await.expect("an answer")
}

/// The probabilities of the first token, which show what the model has read.
fn first_probabilities(generation: &Generation) -> Value {
    let logprobs = generation.answer.logprobs.clone().expect("probabilities");
    logprobs["content"][0]["top_logprobs"].clone()
}

/// The place in the request that a refusal names, and its message.
async fn refusal(engine: &LlamaEngine, request: &GenerateRequest) -> (String, String) {
    match engine.generate(request).await.expect_err("a refusal") {
        EngineError::Refused { status: 400, param, message, .. } => (param.unwrap_or_default(), message),
        EngineError::Unsupported { field, .. } => (field, String::new()),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_picture_is_read_and_counted() {
    let tokens = async |parts| answer(&ask(parts)).await.usage.expect("usage").prompt_tokens;
    let without = tokens(vec![words("What is this?")]).await;
    let one = picture(&png([200, 30, 30], 64));
    let with_one = tokens(vec![one.clone(), words("What is this?")]).await;
    assert_eq!(with_one, without + PICTURE_VECTORS);
    // The size of a picture makes no difference to this projector, which scales it.
    let other = picture(&png([30, 30, 200], 200));
    let with_two = tokens(vec![one, other, words("What is this?")]).await;
    assert_eq!(with_two, without + 2 * PICTURE_VECTORS);
}

#[tokio::test]
async fn what_a_picture_shows_makes_a_difference() {
    let [red, blue] = [[220, 20, 20], [20, 20, 220]].map(|color| about(picture(&png(color, 80))));
    let first = answer(&red).await;
    let again = answer(&red).await;
    let other = answer(&blue).await;
    let third = answer(&red).await;
    assert_eq!(first_probabilities(&first), first_probabilities(&third));
    assert_eq!(first.answer.content, again.answer.content);
    assert_ne!(first_probabilities(&first), first_probabilities(&other));
    // The picture is found in the memory, and another one is not taken for it.
    let [again, other] = [again, other].map(|generation| generation.usage.expect("usage"));
    let cached = again.cached_tokens.expect("counted");
    assert_eq!(cached, again.prompt_tokens - 1);
    assert!(other.cached_tokens.expect("counted") < cached - PICTURE_VECTORS, "{other:?}");
}

#[tokio::test]
async fn the_place_of_a_picture_makes_a_difference() {
    let file = picture(&png([20, 200, 20], 60));
    let before = answer(&ask(vec![file.clone(), words("What is this?")])).await;
    let after = answer(&ask(vec![words("What is this?"), file])).await;
    assert_ne!(first_probabilities(&before), first_probabilities(&after));
}

#[tokio::test]
async fn requests_with_and_without_pictures_run_beside_each_other() {
    let seen = about(picture(&png([90, 90, 20], 70)));
    let plain = GenerateRequest {
        max_tokens: Some(MaxTokens::new(24).expect("positive")),
        ..ask(vec![words("Name three rivers of Europe.")])
    };
    let alone = (answer(&seen).await, answer(&plain).await);
    let (_dir, fresh) = engine_with(Some(TinyProjector::new(WIDTH)));
    let (one, two, three) =
        tokio::join!(fresh.generate(&plain), fresh.generate(&seen), fresh.generate(&seen));
    let contents = [one, two, three].map(|generation| generation.expect("an answer").answer.content);
    assert_eq!(contents, [&alone.1, &alone.0, &alone.0].map(|generation| generation.answer.content.clone()));
}

#[tokio::test]
async fn several_answers_to_one_picture_share_it() {
    let mut request = about(picture(&png([10, 120, 200], 50)));
    request.sampling.n = std::num::NonZero::new(2);
    let generation = answer(&request).await;
    assert_eq!(generation.alternatives.len(), 1);
    assert_eq!(generation.alternatives[0].content, generation.answer.content);
}

#[tokio::test]
async fn a_conversation_about_a_picture_continues() {
    let mut request = about(picture(&png([120, 20, 200], 50)));
    let first = answer(&request).await;
    request.messages.push(Message::new(Role::Assistant, first.answer.content.as_str()));
    request.messages.push(Message::new(Role::User, "And what else?"));
    let usage = answer(&request).await.usage.expect("usage");
    assert!(usage.cached_tokens.expect("counted") > PICTURE_VECTORS, "{usage:?}");
}

#[tokio::test]
async fn tokens_of_a_conversation_with_a_picture_can_be_counted() {
    let request = about(picture(&png([1, 2, 3], 40)));
    let expected = answer(&request).await.usage.expect("usage").prompt_tokens;
    let input = TokenizeInput::Conversation(Box::new(request));
    let request = TokenizeRequest { model: MODEL.into(), input, pieces: true };
    let tokenized = engine().await.tokenize(&request).await.expect("tokens");
    assert_eq!(tokenized.tokens.len() as u64, expected);
    assert_eq!(tokenized.pieces.expect("pieces").len() as u64, expected);
}

#[tokio::test]
async fn sound_is_heard_and_counted() {
    let [low, high] = [80, 9].map(|period| about(sound(&wav(period))));
    let (first, again, other) = (answer(&low).await, answer(&low).await, answer(&high).await);
    assert_eq!(first.answer.content, again.answer.content);
    assert_ne!(first_probabilities(&first), first_probabilities(&other));
    let usage = first.usage.expect("usage");
    assert!((SOUND_VECTORS + 20..SOUND_VECTORS + 80).contains(&usage.prompt_tokens), "{usage:?}");
}

#[tokio::test]
async fn a_picture_of_rows_and_columns_takes_fewer_positions() {
    let ask_all = async |engine: &LlamaEngine, requests: &[&GenerateRequest]| {
        let mut last = None;
        for request in requests {
            last = Some(engine.generate(request).await.expect("an answer"));
        }
        last.expect("a request")
    };
    // 5 × 5 squares of 28 pixels.
    let first = about(picture(&png([200, 60, 10], 140)));
    let mut second = first.clone();
    second.messages.push(Message::new(Role::Assistant, "A square."));
    second.messages.push(Message::new(Role::User, "Which colour?"));
    let mut other = second.clone();
    other.messages[2] = Message::new(Role::User, "Which shape?");

    let (_dir, engine) = engine_with_grid();
    let with_cache = ask_all(&engine, &[&first, &second, &other]).await;
    let usage = with_cache.usage.expect("usage");
    assert!(usage.cached_tokens.expect("counted") > 25, "{usage:?}");
    let plain = ask_all(&engine, &[&ask(vec![words("What is this?")])]).await.usage.expect("usage");
    let seen = ask_all(&engine, &[&first]).await.usage.expect("usage");
    // Also the tokens of the marks around a picture, which this vocabulary spells.
    assert!((25..60).contains(&(seen.prompt_tokens - plain.prompt_tokens)), "{seen:?} {plain:?}");

    // What was cached is what would be read again.
    let (_dir, engine) = engine_with_grid();
    let without_cache = ask_all(&engine, &[&other]).await;
    assert_eq!(without_cache.usage.expect("usage").cached_tokens, Some(0));
    assert_eq!(without_cache.answer.content, with_cache.answer.content);
    // Nonsense may end at once, or begin with a part of a character.
    let colored = |color| GenerateRequest {
        max_tokens: Some(MaxTokens::new(32).expect("positive")),
        extra: Map::from_iter([("ignore_eos".to_owned(), json!(true))]),
        ..about(picture(&png(color, 140)))
    };
    let blue = ask_all(&engine, &[&colored([10, 60, 200])]).await;
    let red = ask_all(&engine, &[&colored([200, 60, 10])]).await;
    assert_ne!(first_probabilities(&blue), first_probabilities(&red));
}

#[tokio::test]
async fn a_picture_that_is_read_at_once_is_read_at_once() {
    let whole = TinyProjector { order: PictureOrder::Whole, hears: false, ..TinyProjector::new(WIDTH) };
    let (_dir, engine) = engine_with(Some(whole));
    let [red, blue] = [[220, 20, 20], [20, 20, 220]].map(|color| about(picture(&png(color, 80))));
    let mut answers = Vec::new();
    for request in [&red, &blue, &red] {
        answers.push(engine.generate(request).await.expect("an answer"));
    }
    assert_eq!(answers[0].answer.content, answers[2].answer.content);
    assert_ne!(first_probabilities(&answers[0]), first_probabilities(&answers[1]));
    let plain = engine.generate(&ask(vec![words("Name three rivers.")])).await.expect("an answer");
    assert!(!plain.answer.content.is_empty());
}

#[tokio::test]
async fn hostile_pictures_are_refused_with_their_place() {
    let engine = engine().await;
    let whole = png([9, 9, 9], 32);
    let mut huge = whole.clone();
    huge[16..24].copy_from_slice(&[0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60]);
    let mut one_pixel = Cursor::new(Vec::new());
    let small = DynamicImage::ImageRgb8(RgbImage::new(1, 1));
    small.write_to(&mut one_pixel, ImageFormat::Png).expect("a picture");
    let encoded = BASE64_STANDARD.encode(&whole);
    for (part, said) in [
        (picture(&whole[..whole.len() / 2]), "damaged"),
        (picture(&huge), ""),
        (picture(one_pixel.get_ref()), "1 × 1 pixels"),
        (picture(b"GIF89a"), "damaged"),
        (picture(b"not a picture"), "it is not a PNG"),
        (picture_url(format!("data:text/html;base64,{encoded}")), "must begin with 'image/'"),
        (picture_url(format!("data:image/png;base64,*{encoded}")), "not valid base64"),
        (picture_url(format!("data:image/png,{encoded}")), "must be a data: URL"),
    ] {
        let (place, message) = refusal(&engine, &ask(vec![words("Look:"), part])).await;
        assert_eq!(place, "messages[0].content[1].image_url", "{message}");
        assert!(message.contains(said), "{message}");
    }
    let (place, message) = refusal(&engine, &about(sound(b"RIFF\0\0\0\0WAVEjunk"))).await;
    assert_eq!(place, "messages[0].content[0].input_audio.data", "{message}");
    // The engine is as before.
    answer(&about(picture(&whole))).await;
}

#[tokio::test]
async fn pictures_that_do_not_fit_the_context_are_refused_before_the_work() {
    let request = ask(vec![sound(&wav(11)), sound(&wav(13)), sound(&wav(17)), words("What is this?")]);
    match engine().await.generate(&request).await.expect_err("a refusal") {
        EngineError::Refused { status: 400, code, message, .. } => {
            assert_eq!(code.as_deref(), Some("context_length_exceeded"));
            assert!(message.contains("messages[0].content[2].input_audio.data needs 7"), "{message}");
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_model_without_a_projector_refuses_by_name() {
    let (_dir, blind) = engine_with(None);
    let (field, _) = refusal(&blind, &about(picture(&png([1, 1, 1], 20)))).await;
    assert_eq!(field, "image_url");
    let (_dir, deaf) = engine_with(Some(TinyProjector { hears: false, ..TinyProjector::new(WIDTH) }));
    let (field, _) = refusal(&deaf, &about(sound(&wav(10)))).await;
    assert_eq!(field, "input_audio");
    let senses = async |engine: &LlamaEngine| {
        let models = engine.list_models().await.expect("models");
        let known: Vec<(String, ModelCapabilities)> =
            models.into_iter().map(|model| (model.id, model.capabilities)).collect();
        known
    };
    let capabilities = |vision, audio| {
        let tools = Some(true);
        let known = ModelCapabilities { vision, audio, tools, ..ModelCapabilities::default() };
        vec![(MODEL.to_owned(), known)]
    };
    assert_eq!(senses(&blind).await, capabilities(Some(false), Some(false)));
    assert_eq!(senses(&deaf).await, capabilities(Some(true), Some(false)));
}

#[tokio::test]
async fn a_projector_that_does_not_fit_is_an_error_and_not_a_crash() {
    let fitting = TinyProjector::new(WIDTH);
    for (broken, said) in [
        (TinyProjector { model_width: 64, ..fitting }, "mismatch between text model"),
        (TinyProjector { patch_size: 0, ..fitting }, "its header has 0 for clip.vision.patch_size"),
        (TinyProjector { inner_width: 24, ..fitting }, ""),
    ] {
        let (_dir, engine) = engine_with(Some(broken));
        let error = engine.generate(&about(picture(&png([5, 5, 5], 30)))).await.expect_err("no answer");
        assert!(error.to_string().contains(said), "{error}");
        let plain = engine.generate(&ask(vec![words("Hello.")])).await;
        assert!(plain.is_ok(), "a model without its projector still answers text");
    }
}

#[tokio::test]
async fn a_projector_that_could_not_be_loaded_is_tried_again() {
    let (dir, engine) = engine_with(Some(TinyProjector { patch_size: 0, ..TinyProjector::new(WIDTH) }));
    let request = about(picture(&png([5, 5, 5], 30)));
    let error = engine.generate(&request).await.expect_err("no answer");
    assert!(error.to_string().contains("clip.vision.patch_size"), "{error}");
    TinyProjector::new(WIDTH).write(&dir.path().join("mmproj-model.gguf")).expect("a projector");
    engine.generate(&request).await.expect("an answer");
    assert_eq!(engine.loads(), 1);
}
