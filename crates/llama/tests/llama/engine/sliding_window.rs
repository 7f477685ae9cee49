//! The prefix cache of a model with sliding windows: the beginning of a conversation is used again although a layer no longer sees it.

use std::collections::HashMap;

use hob_core::{CompletionRequest, Engine, Generation, MaxTokens, Prompt, Sampling, Temperature};
use hob_llama::{LlamaEngine, LlamaOptions, PrefixStoreOptions};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{MODEL, model_file, options};

/// An architecture with the weights of the tests' model, of which it makes nonsense. It has a sliding window in every second layer.
const ARCHITECTURE: &[u8] = b"step35";
const WINDOW: u32 = 32;
const LAYERS: usize = 30;

/// The words of the model, which it has as 8-bit numbers. The architecture has another copy of them for its output.
const WIDTH: u64 = 576;
const WORDS: u64 = 49_152;
const WORD_BYTES: usize = 49_152 * 576 / 32 * 34;

/// The numbers of the format for types.
const U32: u32 = 4;
const FLAG: u32 = 7;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
const Q8_0: u32 = 8;
const ALIGNMENT: usize = 32;

/// Reads a file from its beginning.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        self.at += count;
        &self.bytes[self.at - count..self.at]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn size(&mut self) -> usize {
        let number = u64::from_le_bytes(self.take(8).try_into().expect("eight bytes"));
        usize::try_from(number).expect("a size")
    }

    fn text(&mut self) -> &'a [u8] {
        let size = self.size();
        self.take(size)
    }

    fn skip(&mut self, kind: u32) {
        let size = match kind {
            TEXT => self.size(),
            ARRAY => {
                let (kind, count) = (self.u32(), self.size());
                (0..count).for_each(|_| self.skip(kind));
                0
            }
            0 | 1 | FLAG => 1,
            2 | 3 => 2,
            10..=12 => 8,
            _ => 4,
        };
        self.take(size);
    }
}

fn text(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text].concat()
}

fn own(name: &str) -> Vec<u8> {
    text(&[ARCHITECTURE, b".", name.as_bytes()].concat())
}

fn number(name: &str, number: u32) -> Vec<u8> {
    [own(name), U32.to_le_bytes().to_vec(), number.to_le_bytes().to_vec()].concat()
}

fn pad(file: &mut Vec<u8>) {
    file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
}

/// The model of the tests with sliding windows.
fn sliding_model() -> Vec<u8> {
    let file = std::fs::read(model_file()).expect("the model");
    let mut input = Reader { bytes: &file, at: 8 };
    let (tensors, entries) = (input.size(), input.size());
    let mut header: Vec<u8> = Vec::new();
    for _ in 0..entries {
        let key = input.text();
        let from = input.at;
        let kind = input.u32();
        input.skip(kind);
        match key.strip_prefix(b"llama.") {
            Some(name) => header.extend(own(std::str::from_utf8(name).expect("a name"))),
            None => header.extend(text(key)),
        }
        match key {
            b"general.architecture" => {
                header.extend(TEXT.to_le_bytes());
                header.extend(text(ARCHITECTURE));
            }
            _ => header.extend(&file[from..input.at]),
        }
    }
    header.extend(number("attention.sliding_window", WINDOW));
    header.extend(number("expert_feed_forward_length", 0));
    header.extend(own("attention.sliding_window_pattern"));
    header.extend([ARRAY, FLAG].map(u32::to_le_bytes).concat());
    header.extend((LAYERS as u64).to_le_bytes());
    header.extend((0..LAYERS).map(|layer| u8::from(layer % 2 == 0)));

    let from = input.at;
    for number in 0..tensors {
        let name = input.text();
        assert!(number > 0 || name == b"token_embd.weight", "the words are not first");
        let dimensions = input.u32() as usize;
        input.take(8 * dimensions + 4 + 8);
    }
    header.extend(&file[from..input.at]);
    let mut weights = file[input.at.next_multiple_of(ALIGNMENT)..].to_vec();
    pad(&mut weights);
    header.extend(text(b"output.weight"));
    header.extend(2u32.to_le_bytes());
    header.extend([WIDTH, WORDS].map(u64::to_le_bytes).concat());
    header.extend(Q8_0.to_le_bytes());
    header.extend((weights.len() as u64).to_le_bytes());
    weights.extend_from_within(..WORD_BYTES);

    let counts = [tensors as u64 + 1, entries as u64 + 3].map(u64::to_le_bytes).concat();
    let mut made = [&file[..8], &counts, &header].concat();
    pad(&mut made);
    made.extend(weights);
    made
}

fn models_dir() -> TempDir {
    let dir = TempDir::new().expect("a directory for models");
    std::fs::write(dir.path().join("model.gguf"), sliding_model()).expect("a model");
    dir
}

/// Two conversations at a time.
fn two(dir: &TempDir) -> LlamaOptions {
    LlamaOptions { parallel: Some(2), ..options(dir) }
}

fn tokens(count: usize, seed: u64) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| random.u32(200..40_000)).collect()
}

/// The first token after a text, with its alternatives.
async fn next(engine: &LlamaEngine, prompt: &[u32]) -> Generation {
    let request = CompletionRequest {
        model: MODEL.into(),
        prompt: Prompt::Tokens(prompt.to_vec()),
        temperature: Some(Temperature::new(0.0).expect("zero is allowed")),
        max_tokens: Some(MaxTokens::new(1).expect("positive")),
        sampling: Sampling { logprobs: true, top_logprobs: Some(20), ..Sampling::default() },
        extra: Map::from_iter([("ignore_eos".to_owned(), json!(true))]),
        ..CompletionRequest::default()
    };
    engine.complete(&request).await.expect("an answer")
}

fn cached(generation: &Generation) -> Option<u64> {
    generation.usage.as_ref().and_then(|usage| usage.cached_tokens)
}

/// The same tokens are likely after both. Without what the window has passed, nearly all of them are others.
fn assert_alike(one: &Generation, other: &Generation) {
    let likely = |generation: &Generation| -> HashMap<i64, f64> {
        let logprobs = generation.answer.logprobs.as_ref().expect("probabilities");
        let top = logprobs["content"][0]["top_logprobs"].as_array().expect("alternatives");
        let pair = |token: &Value| Some((token["id"].as_i64()?, token["logprob"].as_f64()?));
        top.iter().map(|token| pair(token).expect("a token")).collect()
    };
    let (one, other) = (likely(one), likely(other));
    let common: Vec<f64> =
        one.iter().filter_map(|(token, logprob)| Some((logprob - other.get(token)?).abs())).collect();
    assert!(common.len() >= 12 && common.iter().all(|apart| *apart < 0.6), "{one:?} {other:?}");
}

#[tokio::test]
async fn the_beginning_of_a_text_is_used_again_after_others_were_read() {
    let dir = models_dir();
    let engine = LlamaEngine::new(two(&dir));
    let long = tokens(260, 1);
    let again = [&long[..180], &tokens(4, 2)[..]].concat();
    // The third text takes the place of the first, and reaches that of the second.
    next(&engine, &tokens(40, 3)).await;
    next(&engine, &long).await;
    next(&engine, &tokens(250, 4)).await;
    let answer = next(&engine, &again).await;
    assert_eq!(cached(&answer), Some(180));
    drop(engine);
    assert_alike(&answer, &next(&LlamaEngine::new(two(&dir)), &again).await);
}

#[tokio::test]
async fn the_beginning_of_a_saved_text_is_used_again() {
    let dir = models_dir();
    let store = PrefixStoreOptions { directory: dir.path().join("prefixes"), bytes: 64 << 20 };
    let options = LlamaOptions { prefix_store: Some(store), ..two(&dir) };
    let long = tokens(260, 1);
    let again = [&long[..180], &tokens(4, 2)[..]].concat();
    let engine = LlamaEngine::new(options.clone());
    next(&engine, &long).await;
    drop(engine);
    let engine = LlamaEngine::new(options);
    let answer = next(&engine, &again).await;
    assert_eq!(cached(&answer), Some(180));
    drop(engine);
    assert_alike(&answer, &next(&LlamaEngine::new(two(&dir)), &again).await);
}
