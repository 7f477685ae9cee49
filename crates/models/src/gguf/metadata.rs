//! The key-value entries of a header. Stores short values, and only the presence of long ones.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::error::GgufError;
use super::header::{GgufHeader, GgufSplit, PerLayer, ProjectorHeader, Recurrence};
use super::input::Input;

/// Real models have about fifty.
pub(super) const MAX_ENTRIES: u64 = 1 << 14;

/// What the format allows.
const MAX_KEY_BYTES: u64 = (1 << 16) - 1;

/// Names and licences are shorter; of templates, only the presence matters.
const MAX_KEPT_TEXT: u64 = 1 << 10;

/// Numbers per layer are fewer; of token lists, only the length matters.
const MAX_KEPT_ITEMS: u64 = 1 << 10;

/// Nested arrays, which no real file has.
const MAX_DEPTH: u8 = 4;

/// All keys and short values together.
const MAX_KEPT_BYTES: u64 = 4 << 20;

/// The architecture of files that read pictures or sound for a model.
const PROJECTOR: &str = "clip";

#[derive(Debug)]
enum Value {
    Number(u64),
    Flag(bool),
    Text(String),
    LongText,
    Array {
        length: u64,
        numbers: Vec<u64>,
    },
    /// Negative or invalid numbers.
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Metadata {
    entries: BTreeMap<String, Value>,
}

impl Metadata {
    pub fn read(input: &mut Input<impl BufRead>, count: u64) -> Result<Self, GgufError> {
        let mut entries = BTreeMap::new();
        let mut kept = 0;
        for _ in 0..count {
            let key = input.text("the length of a key", MAX_KEY_BYTES)?;
            let kind = input.u32()?;
            let value = read_value(input, kind)?;
            kept += key.len() as u64 + value.weight();
            if kept > MAX_KEPT_BYTES {
                return Err(GgufError::TooBig {
                    what: "the bytes of its entries",
                    found: kept,
                    limit: MAX_KEPT_BYTES,
                });
            }
            entries.insert(key, value);
        }
        Ok(Metadata { entries })
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        match self.entries.get(key)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        match self.entries.get(key)? {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }

    fn per_layer(&self, key: &str) -> Option<PerLayer> {
        match self.entries.get(key)? {
            Value::Number(number) => Some(PerLayer::Same(*number)),
            Value::Array { length, numbers } if numbers.len() as u64 == *length => {
                Some(PerLayer::Each(numbers.clone()))
            }
            _ => None,
        }
    }

    fn is_false(&self, key: &str) -> bool {
        matches!(self.entries.get(key), Some(Value::Flag(false)))
    }

    fn is_true(&self, key: &str) -> bool {
        matches!(self.entries.get(key), Some(Value::Flag(true)))
    }

    fn projector(&self) -> ProjectorHeader {
        let kinds = ["clip.projector_type", "clip.vision.projector_type", "clip.audio.projector_type"];
        ProjectorHeader {
            kind: kinds.iter().find_map(|key| self.text(key)),
            sees: self.is_true("clip.has_vision_encoder"),
            hears: self.is_true("clip.has_audio_encoder"),
        }
    }

    /// The header from the entries, without the values from the tensors.
    pub fn describe(&self, version: u32) -> GgufHeader {
        let architecture = self.text("general.architecture");
        let key = |name: &str| format!("{}.{name}", architecture.as_deref().unwrap_or_default());
        let number = |name: &str| self.number(&key(name));
        let vocabulary = match self.entries.get("tokenizer.ggml.tokens") {
            Some(Value::Array { length, .. }) => Some(*length),
            _ => number("vocab_size"),
        };
        let split = self
            .number("split.count")
            .map(|count| GgufSplit { number: self.number("split.no").unwrap_or(0), count });
        GgufHeader {
            version,
            name: self.text("general.name"),
            license: self.text("general.license"),
            quantization: None,
            parameters: 0,
            tensors: 0,
            context_length: number("context_length"),
            embedding_length: number("embedding_length"),
            block_count: number("block_count"),
            head_count: self.per_layer(&key("attention.head_count")),
            head_count_kv: self.per_layer(&key("attention.head_count_kv")),
            key_length: number("attention.key_length"),
            value_length: number("attention.value_length"),
            has_latent_cache: number("attention.key_length_mla").is_some_and(|length| length > 0),
            shared_kv_layers: number("attention.shared_kv_layers").unwrap_or(0),
            feed_forward_length: self.per_layer(&key("feed_forward_length")),
            recurrence: recurrence(number),
            expert_count: number("expert_count"),
            vocabulary,
            has_chat_template: matches!(
                self.entries.get("tokenizer.chat_template"),
                Some(Value::Text(_) | Value::LongText)
            ),
            is_causal: !self.is_false(&key("attention.causal")),
            is_embedding: self.entries.contains_key(&key("pooling_type"))
                || architecture.as_deref().is_some_and(|name| name.contains("bert")),
            split,
            input_bytes: 0,
            output_bytes: 0,
            projector: (architecture.as_deref() == Some(PROJECTOR)).then(|| self.projector()),
            expected_size: 0,
            architecture,
        }
    }
}

/// The state of recurrent layers, as llama.cpp sizes it for each family of models.
fn recurrence(number: impl Fn(&str) -> Option<u64>) -> Option<Recurrence> {
    let of = |name: &str| number(name).unwrap_or(0);
    let (width, heads) = (of("embedding_length"), of("attention.head_count"));
    let (head, short, kda) = (of("wkv.head_size"), of("shortconv.l_cache"), of("kda.head_dim"));
    let (inner, state) = (of("ssm.inner_size"), of("ssm.state_size"));
    let conv = of("ssm.conv_kernel").saturating_sub(1);
    let numbers = if head > 0 {
        width.saturating_mul(of("token_shift_count").saturating_add(head))
    } else if short > 0 {
        width.saturating_mul(short - 1)
    } else if kda > 0 {
        let row = heads.saturating_mul(kda);
        row.saturating_mul(kda).saturating_add(row.saturating_mul(3).saturating_mul(conv))
    } else {
        let groups = of("ssm.group_count").saturating_mul(state).saturating_mul(2);
        inner.saturating_mul(state).saturating_add(conv.saturating_mul(inner.saturating_add(groups)))
    };
    (numbers > 0).then(|| Recurrence {
        numbers,
        attention_interval: number("full_attention_interval").filter(|interval| *interval > 0),
    })
}

impl Value {
    fn weight(&self) -> u64 {
        match self {
            Value::Text(text) => text.len() as u64,
            Value::Array { numbers, .. } => 8 * numbers.len() as u64,
            _ => 0,
        }
    }
}

fn read_value(input: &mut Input<impl BufRead>, kind: u32) -> Result<Value, GgufError> {
    Ok(match kind {
        kind::TEXT => {
            let length = input.u64()?;
            if length > MAX_KEPT_TEXT {
                input.skip(length)?;
                Value::LongText
            } else {
                Value::Text(input.text_of(length)?)
            }
        }
        kind::FLAG => Value::Flag(input.bytes::<1>()? != [0]),
        kind::ARRAY => read_array(input, 0)?,
        _ => read_number(input, kind)?.map_or(Value::Other, Value::Number),
    })
}

fn read_array(input: &mut Input<impl BufRead>, depth: u8) -> Result<Value, GgufError> {
    if depth == MAX_DEPTH {
        return Err(GgufError::Malformed("its arrays are nested too deep"));
    }
    let kind = input.u32()?;
    let length = input.u64()?;
    let mut numbers = Vec::new();
    match kind {
        // Every text and array uses bytes of the limit, so a wrong length ends these loops soon.
        kind::TEXT => {
            for _ in 0..length {
                let bytes = input.u64()?;
                input.skip(bytes)?;
            }
        }
        kind::ARRAY => {
            for _ in 0..length {
                read_array(input, depth + 1)?;
            }
        }
        _ if length <= MAX_KEPT_ITEMS && kind != kind::FLAG => {
            for _ in 0..length {
                numbers.extend(read_number(input, kind)?);
            }
        }
        _ => {
            let bytes = width(kind)?.checked_mul(length);
            input.skip(bytes.ok_or(GgufError::Malformed("an array is longer than any file"))?)?;
        }
    }
    Ok(Value::Array { length, numbers })
}

/// A number if it is an integer and not negative; others are skipped.
fn read_number(input: &mut Input<impl BufRead>, kind: u32) -> Result<Option<u64>, GgufError> {
    Ok(match (kind, width(kind)?) {
        (kind::I8, _) => i8::from_le_bytes(input.bytes()?).try_into().ok(),
        (kind::I16, _) => i16::from_le_bytes(input.bytes()?).try_into().ok(),
        (kind::I32, _) => i32::from_le_bytes(input.bytes()?).try_into().ok(),
        (kind::I64, _) => i64::from_le_bytes(input.bytes()?).try_into().ok(),
        (kind::F32 | kind::F64, width) => {
            input.skip(width)?;
            None
        }
        (_, 1) => Some(u8::from_le_bytes(input.bytes()?).into()),
        (_, 2) => Some(u16::from_le_bytes(input.bytes()?).into()),
        (_, 4) => Some(input.u32()?.into()),
        _ => Some(input.u64()?),
    })
}

/// The bytes of a value with a fixed length.
fn width(kind: u32) -> Result<u64, GgufError> {
    match kind {
        kind::U8 | kind::I8 | kind::FLAG => Ok(1),
        kind::U16 | kind::I16 => Ok(2),
        kind::U32 | kind::I32 | kind::F32 => Ok(4),
        kind::U64 | kind::I64 | kind::F64 => Ok(8),
        _ => Err(GgufError::Malformed("an entry has an unknown type")),
    }
}

/// The value types of the format.
pub(crate) mod kind {
    pub const U8: u32 = 0;
    pub const I8: u32 = 1;
    pub const U16: u32 = 2;
    pub const I16: u32 = 3;
    pub const U32: u32 = 4;
    pub const I32: u32 = 5;
    pub const F32: u32 = 6;
    pub const FLAG: u32 = 7;
    pub const TEXT: u32 = 8;
    pub const ARRAY: u32 = 9;
    pub const U64: u32 = 10;
    pub const I64: u32 = 11;
    pub const F64: u32 = 12;
}
