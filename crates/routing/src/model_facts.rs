//! Properties of a model, from the list of its engine, or else from its name.

use hob_core::{ModelInfo, ModelKind};

use crate::{ModelCandidate, ModelSpecialty};

/// Words in the names of models that cannot answer: embedding, ranking, image and audio models.
const NO_ANSWERS: [&str; 22] = [
    "embed",
    "embedding",
    "embeddings",
    "minilm",
    "bge",
    "gte",
    "e5",
    "rerank",
    "reranker",
    "colbert",
    "clip",
    "whisper",
    "transcribe",
    "tts",
    "dall",
    "imagen",
    "image",
    "sora",
    "veo",
    "moderation",
    "realtime",
    "bert",
];

/// Words in the names of models for code.
const FOR_CODE: [&str; 8] =
    ["code", "codestral", "codellama", "codegemma", "codeqwen", "codex", "devstral", "starcoder"];

/// Words in the names of models with vision.
const VISION: [&str; 11] = [
    "llava",
    "bakllava",
    "vl",
    "vision",
    "pixtral",
    "moondream",
    "gemma3",
    "internvl",
    "4o",
    "claude",
    "gemini",
];

/// Bits of a weight on disk if the quantisation is unknown.
const DEFAULT_BITS: f64 = 4.8;

/// The model as a candidate; `None` if it cannot answer.
pub fn model_candidate(info: &ModelInfo) -> Option<ModelCandidate> {
    let name = words(&info.id);
    let is_any_of = |list: &[&str]| name.iter().any(|word| list.contains(&word.as_str()));
    if info.kind == ModelKind::Embedding || is_any_of(&NO_ANSWERS) {
        return None;
    }
    let for_code = name.iter().any(|word| is_for_code(word));
    Some(ModelCandidate {
        model: info.id.clone(),
        parameters: info.parameters.or_else(|| parameters(&name)).or_else(|| weights_on_disk(info)),
        context: info.context,
        made_for: if for_code { ModelSpecialty::Code } else { ModelSpecialty::Everything },
        sees: info.capabilities.vision.unwrap_or_else(|| is_any_of(&VISION)),
        speed: None,
    })
}

/// The words of a name in lower case. A dot between digits is part of a number.
fn words(name: &str) -> Vec<String> {
    let bytes = name.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let spaced: String = name
        .char_indices()
        .map(|(at, c)| match c {
            '.' if is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1)) => c,
            c if c.is_alphanumeric() => c.to_ascii_lowercase(),
            _ => ' ',
        })
        .collect();
    spaced.split_whitespace().map(str::to_owned).collect()
}

fn is_for_code(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let coder = word.ends_with("coder") && !word.ends_with("decoder") && !word.ends_with("encoder");
    coder || FOR_CODE.contains(&word)
}

/// The number of parameters in a name: `7b`, `1.5b`, `8x7b`, `135m`. The largest number if there are several: active experts
/// (`30b-a3b`) or a context length (`7b-1m`) are smaller.
fn parameters(name: &[String]) -> Option<u64> {
    name.iter().filter_map(|word| weights(word)).max()
}

fn weights(word: &str) -> Option<u64> {
    // `e4b` is comparable to a model of 4b.
    let word = word.strip_prefix('e').unwrap_or(word);
    let (number, unit) = match word.strip_suffix('b') {
        Some(number) => (number, 1e9),
        None => (word.strip_suffix('m')?, 1e6),
    };
    let (experts, number) = match number.split_once('x') {
        Some((experts, number)) => (decimal(experts)?, number),
        None => (1.0, number),
    };
    let weights = experts * decimal(number)? * unit;
    // Nothing smaller or larger is a language model.
    (1e6..1e14).contains(&weights).then_some(weights as u64)
}

fn decimal(digits: &str) -> Option<f64> {
    let plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { digits.parse().ok() } else { None }
}

/// An estimate from the size of the file.
fn weights_on_disk(info: &ModelInfo) -> Option<u64> {
    let bits = info.quantization.as_deref().and_then(bits).unwrap_or(DEFAULT_BITS);
    info.size.filter(|size| *size > 0).map(|size| (size as f64 * 8.0 / bits) as u64)
}

/// The bits of `Q4_K_M`, `IQ3_XS`, `F16` or `BF16`.
fn bits(quantization: &str) -> Option<f64> {
    let digits: String =
        quantization.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|bits| (1.0..=64.0).contains(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Option<ModelCandidate> {
        model_candidate(&ModelInfo::named(name))
    }

    #[test]
    fn the_size_is_read_from_the_name() {
        for (name, expected) in [
            ("qwen3:0.6b", Some(600_000_000)),
            ("llama3.2:1b", Some(1_000_000_000)),
            ("qwen2.5:1.5b-instruct-q4_K_M", Some(1_500_000_000)),
            ("mistralai/Mixtral-8x7B-Instruct-v0.1", Some(56_000_000_000)),
            ("SmolLM2-135M-Instruct.Q4_1", Some(135_000_000)),
            ("Qwen/Qwen3-30B-A3B", Some(30_000_000_000)),
            ("Qwen2.5-7B-Instruct-1M", Some(7_000_000_000)),
            ("gemma3n:e4b", Some(4_000_000_000)),
            ("Llama-3.2-1B.Q4_K_M.gguf", Some(1_000_000_000)),
            ("meta-llama/Llama-3.1-405B-FP8", Some(405_000_000_000)),
            ("TheBloke/Llama-2-70B-GPTQ-4bit", Some(70_000_000_000)),
            ("phi3:latest", None),
            ("gpt-4o-mini", None),
            ("claude-opus-4-6", None),
            ("llama3.2", None),
            ("b", None),
            ("x7b", None),
            ("1.2.3b", None),
            ("99999999999999999999b", None),
        ] {
            assert_eq!(named(name).and_then(|model| model.parameters), expected, "{name}");
        }
    }

    #[test]
    fn the_engine_overrides_the_name_and_the_file_is_last() {
        let told = ModelInfo { parameters: Some(7_620_000_000), ..ModelInfo::named("m:7b") };
        assert_eq!(model_candidate(&told).and_then(|model| model.parameters), Some(7_620_000_000));
        let file = |quantization: &str| {
            let info = ModelInfo {
                size: Some(4_000_000_000),
                quantization: Some(quantization.into()),
                ..ModelInfo::named("mystery")
            };
            model_candidate(&info).and_then(|model| model.parameters)
        };
        assert_eq!(file("F16"), Some(2_000_000_000));
        assert_eq!(file("Q8_0"), Some(4_000_000_000));
        assert_eq!(file("unheard of"), Some(6_666_666_666));
    }

    #[test]
    fn models_for_code_and_with_vision_are_recognised_by_name() {
        let kinds = |name: &str| named(name).map(|model| (model.made_for, model.sees));
        for name in [
            "qwen2.5-coder:7b",
            "deepseek-coder-v2",
            "codellama:13b",
            "starcoder2:3b",
            "codestral",
            "stable-code:3b",
            "gpt-5.2-codex",
        ] {
            assert_eq!(kinds(name), Some((ModelSpecialty::Code, false)), "{name}");
        }
        for name in ["llava:7b", "Qwen2.5-VL-7B", "llama3.2-vision", "gemma3:4b"] {
            assert_eq!(kinds(name), Some((ModelSpecialty::Everything, true)), "{name}");
        }
        for name in ["qwen3:8b", "gpt-oss:20b", "decoder-of-things", "revision-7b"] {
            assert_eq!(kinds(name), Some((ModelSpecialty::Everything, false)), "{name}");
        }
    }

    #[test]
    fn a_model_that_cannot_answer_is_never_a_candidate() {
        for name in [
            "nomic-embed-text",
            "text-embedding-3-small",
            "all-minilm-l6-v2",
            "bge-m3",
            "whisper-1",
            "tts-1-hd",
            "dall-e-3",
            "gpt-image-1",
            "omni-moderation-latest",
            "bge-reranker-v2",
        ] {
            assert_eq!(named(name), None, "{name}");
        }
        let told = ModelInfo { kind: ModelKind::Embedding, ..ModelInfo::named("looks-harmless:7b") };
        assert_eq!(model_candidate(&told), None);
    }
}
