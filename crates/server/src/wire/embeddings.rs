//! The bodies of `POST /v1/embeddings`: the request as typed → as resolved, and the answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::{EmbedRequest, Embeddings, Overlong, is_annotation};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::read::{read, required_model};
use crate::error::ApiError;

/// As many texts as OpenAI takes at once.
const MAX_INPUTS: usize = 2048;

/// How vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Float,
    /// The bytes of 32-bit floats, lowest first. OpenAI's own clients ask for it unless told otherwise.
    Base64,
}

/// A request that makes sense.
#[derive(Debug, PartialEq)]
pub(crate) struct EmbeddingsRequest {
    pub(crate) request: EmbedRequest,
    pub(crate) encoding: Encoding,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireRequest {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    input: Option<Input>,
    #[serde(default)]
    encoding_format: Option<String>,
    #[serde(default)]
    dimensions: Option<i64>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum Input {
    One(String),
    Several(Vec<String>),
    Tokens(Vec<i64>),
    SeveralTokens(Vec<Vec<i64>>),
}

impl EmbeddingsRequest {
    /// Reads a body; the error names the field at fault.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        read::<WireRequest>(body)?.resolve()
    }
}

impl WireRequest {
    fn resolve(self) -> Result<EmbeddingsRequest, ApiError> {
        let model = required_model(self.model)?;
        let input = self.input.ok_or_else(|| ApiError::invalid("input", "'input' is required"))?;
        if let Some((field, _)) =
            self.extra.iter().find(|(field, value)| !value.is_null() && !is_annotation(field))
        {
            return Err(ApiError::invalid(field.as_str(), format!("'{field}' is no field of embeddings")));
        }
        Ok(EmbeddingsRequest {
            request: EmbedRequest {
                model,
                inputs: texts(input)?,
                dimensions: self.dimensions.map(dimensions).transpose()?,
                overlong: Overlong::Refuse,
            },
            encoding: encoding(self.encoding_format.as_deref())?,
        })
    }
}

fn texts(input: Input) -> Result<Vec<String>, ApiError> {
    let inputs = match input {
        Input::One(text) => vec![text],
        Input::Several(texts) => texts,
        Input::Tokens(tokens) => return Err(not_text(tokens.len())),
        Input::SeveralTokens(lists) => return Err(not_text(lists.iter().map(Vec::len).sum())),
    };
    match inputs.len() {
        0 => Err(ApiError::invalid("input", "'input' must not be empty")),
        count if count > MAX_INPUTS => {
            let message = format!("'input' has {count} texts, and {MAX_INPUTS} are the most for one request");
            Err(ApiError::invalid("input", message))
        }
        _ => match inputs.iter().position(String::is_empty) {
            Some(at) => Err(ApiError::invalid(format!("input[{at}]"), format!("input[{at}] is empty"))),
            None => Ok(inputs),
        },
    }
}

fn not_text(tokens: usize) -> ApiError {
    let message =
        format!("'input' is {tokens} tokens, whose meaning depends on the tokenizer; send the text itself");
    ApiError::invalid("input", message)
}

fn dimensions(wanted: i64) -> Result<u32, ApiError> {
    u32::try_from(wanted).ok().filter(|wanted| *wanted > 0).ok_or_else(|| {
        ApiError::invalid("dimensions", format!("'dimensions' must be a positive number, got {wanted}"))
    })
}

fn encoding(wanted: Option<&str>) -> Result<Encoding, ApiError> {
    match wanted {
        None | Some("float") => Ok(Encoding::Float),
        Some("base64") => Ok(Encoding::Base64),
        Some(other) => {
            let message = format!("'encoding_format' must be 'float' or 'base64', got '{other}'");
            Err(ApiError::invalid("encoding_format", message))
        }
    }
}

/// The answer.
#[derive(Serialize)]
pub(crate) struct EmbeddingList<'a> {
    object: &'static str,
    data: Vec<Datum<'a>>,
    model: &'a str,
    usage: Usage,
}

#[derive(Serialize)]
struct Datum<'a> {
    object: &'static str,
    index: usize,
    embedding: Vector<'a>,
}

struct Vector<'a> {
    numbers: &'a [f32],
    encoding: Encoding,
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: u64,
    total_tokens: u64,
}

impl<'a> EmbeddingList<'a> {
    pub(crate) fn new(embeddings: &'a Embeddings, encoding: Encoding) -> Self {
        let datum = |(index, numbers): (usize, &'a Vec<f32>)| Datum {
            object: "embedding",
            index,
            embedding: Vector { numbers, encoding },
        };
        let tokens = embeddings.prompt_tokens.unwrap_or(0);
        EmbeddingList {
            object: "list",
            data: embeddings.vectors.iter().enumerate().map(datum).collect(),
            model: &embeddings.model,
            usage: Usage { prompt_tokens: tokens, total_tokens: tokens },
        }
    }
}

impl Serialize for Vector<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.encoding {
            Encoding::Float => self.numbers.serialize(serializer),
            Encoding::Base64 => {
                let bytes: Vec<u8> = self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                serializer.serialize_str(&STANDARD.encode(bytes))
            }
        }
    }
}
