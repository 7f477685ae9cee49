//! BERT: its configuration, and the names of its tensors in both formats.

use serde::Deserialize;

use super::error::ConvertError;
use super::gguf_file::{GgufFile, Storage};
use super::q8;
use super::vocabulary::Vocabulary;

const FILE: &str = "config.json";

/// The used fields of `config.json`. The limits are far above the largest model of this kind.
#[derive(Debug, Deserialize)]
pub(super) struct Settings {
    model_type: String,
    hidden_act: String,
    position_embedding_type: Option<String>,
    hidden_size: u32,
    intermediate_size: u32,
    layer_norm_eps: f32,
    max_position_embeddings: u32,
    num_attention_heads: u32,
    num_hidden_layers: u32,
    type_vocab_size: u32,
    pub vocab_size: u32,
}

impl Settings {
    pub fn read(json: &[u8]) -> Result<Self, ConvertError> {
        let settings: Settings =
            serde_json::from_slice(json).map_err(|error| ConvertError::bad(FILE, error.to_string()))?;
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), ConvertError> {
        let positions = self.position_embedding_type.as_deref().unwrap_or("absolute");
        for (key, found, understood) in [
            ("model_type", self.model_type.as_str(), "bert"),
            ("hidden_act", &self.hidden_act, "gelu"),
            ("position_embedding_type", positions, "absolute"),
        ] {
            if found != understood {
                let reason = format!("{key} is '{found}'; only '{understood}' is supported");
                return Err(ConvertError::bad(FILE, reason));
            }
        }
        for (key, found, most) in [
            ("hidden_size", self.hidden_size, 8192),
            ("intermediate_size", self.intermediate_size, 32768),
            ("max_position_embeddings", self.max_position_embeddings, 65536),
            ("num_attention_heads", self.num_attention_heads, 256),
            ("num_hidden_layers", self.num_hidden_layers, 256),
            ("type_vocab_size", self.type_vocab_size, 16),
            ("vocab_size", self.vocab_size, 1 << 20),
        ] {
            if !(1..=most).contains(&found) {
                let reason = format!("{key} is {found}, but must be between 1 and {most}");
                return Err(ConvertError::bad(FILE, reason));
            }
        }
        let in_blocks = |length: u32| (length as usize).is_multiple_of(q8::BLOCK);
        if !in_blocks(self.hidden_size) || !in_blocks(self.intermediate_size) {
            return Err(ConvertError::bad(FILE, "its sizes are not multiples of 32"));
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return Err(ConvertError::bad(FILE, "hidden_size is not a multiple of num_attention_heads"));
        }
        if !(self.layer_norm_eps.is_finite() && self.layer_norm_eps > 0.0) {
            return Err(ConvertError::bad(FILE, "layer_norm_eps is not a small number"));
        }
        Ok(())
    }
}

/// Writes the metadata of the model.
pub(super) fn describe(file: &mut GgufFile, name: &str, settings: &Settings, vocabulary: &Vocabulary) {
    /// The vector of a text is the mean of its tokens' vectors.
    const POOLING_MEAN: u32 = 1;
    /// Mostly Q8_0.
    const FILE_TYPE: u32 = 7;
    file.text("general.architecture", "bert");
    file.text("general.name", name);
    file.number("general.file_type", FILE_TYPE);
    file.number("bert.context_length", settings.max_position_embeddings);
    file.number("bert.embedding_length", settings.hidden_size);
    file.number("bert.feed_forward_length", settings.intermediate_size);
    file.number("bert.block_count", settings.num_hidden_layers);
    file.number("bert.attention.head_count", settings.num_attention_heads);
    file.float("bert.attention.layer_norm_epsilon", settings.layer_norm_eps);
    file.flag("bert.attention.causal", false);
    file.number("bert.pooling_type", POOLING_MEAN);

    let special = vocabulary.special;
    file.text("tokenizer.ggml.model", "bert");
    file.texts("tokenizer.ggml.tokens", &vocabulary.tokens);
    file.numbers("tokenizer.ggml.token_type", &vocabulary.kinds());
    file.number("tokenizer.ggml.token_type_count", settings.type_vocab_size);
    file.number("tokenizer.ggml.bos_token_id", special.opening);
    file.number("tokenizer.ggml.cls_token_id", special.opening);
    file.number("tokenizer.ggml.eos_token_id", special.closing);
    // Misspelt in the format.
    file.number("tokenizer.ggml.seperator_token_id", special.closing);
    file.number("tokenizer.ggml.unknown_token_id", special.unknown);
    file.number("tokenizer.ggml.padding_token_id", special.padding);
    file.number("tokenizer.ggml.mask_token_id", special.mask);
}

pub(super) struct TensorSource {
    pub from: String,
    pub to: String,
    pub shape: Vec<u64>,
    pub storage: Storage,
}

impl TensorSource {
    /// In the source.
    pub fn bytes(&self) -> u64 {
        Storage::F32.bytes(self.shape.iter().product())
    }
}

/// All tensors for embeddings. Others, such as the training head, are dropped.
pub(super) fn tensors(settings: &Settings) -> Vec<TensorSource> {
    let wide = u64::from(settings.hidden_size);
    let inner = u64::from(settings.intermediate_size);
    let source = |from: String, to: String, shape: Vec<u64>, storage: Storage| TensorSource {
        from,
        to,
        shape,
        storage,
    };
    let table = |from: &str, to: &str, rows: u32, storage| {
        source(format!("embeddings.{from}.weight"), format!("{to}.weight"), vec![rows.into(), wide], storage)
    };
    // A norm has a weight and a bias, which are too small to be quantised.
    let norm = |from: String, to: String| {
        ["weight", "bias"]
            .map(|part| source(format!("{from}.{part}"), format!("{to}.{part}"), vec![wide], Storage::F32))
    };
    let mut all = vec![
        table("word_embeddings", "token_embd", settings.vocab_size, Storage::Q8_0),
        table("position_embeddings", "position_embd", settings.max_position_embeddings, Storage::F32),
        table("token_type_embeddings", "token_types", settings.type_vocab_size, Storage::F32),
    ];
    all.extend(norm("embeddings.LayerNorm".to_owned(), "token_embd_norm".to_owned()));
    for layer in 0..settings.num_hidden_layers {
        let from = |name: &str| format!("encoder.layer.{layer}.{name}");
        let to = |name: &str| format!("blk.{layer}.{name}");
        for (theirs, ours, rows, columns) in [
            ("attention.self.query", "attn_q", wide, wide),
            ("attention.self.key", "attn_k", wide, wide),
            ("attention.self.value", "attn_v", wide, wide),
            ("attention.output.dense", "attn_output", wide, wide),
            ("intermediate.dense", "ffn_up", inner, wide),
            ("output.dense", "ffn_down", wide, inner),
        ] {
            let (theirs, ours) = (from(theirs), to(ours));
            let matrix = vec![rows, columns];
            all.push(source(format!("{theirs}.weight"), format!("{ours}.weight"), matrix, Storage::Q8_0));
            all.push(source(format!("{theirs}.bias"), format!("{ours}.bias"), vec![rows], Storage::F32));
        }
        all.extend(norm(from("attention.output.LayerNorm"), to("attn_output_norm")));
        all.extend(norm(from("output.LayerNorm"), to("layer_output_norm")));
    }
    all
}
