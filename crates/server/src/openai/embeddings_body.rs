//! The bodies of `POST /v1/embeddings`: the request as typed → as resolved, and the answer.

use std::fmt;

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::request_budget::{EMBEDDING_INPUTS, EMBEDDING_TOKENS};
use hob_core::{AnswerWarning, EmbedInputs, EmbedRequest, Embeddings, OverBudget, Overlong, is_annotation};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::ignored_fields::IgnoredFields;
use super::required_model;
use crate::answer::vectors;
use crate::error::{ApiError, ApiResult};
use crate::json::{check_model_name, over_budget, push_json, read_bounded};
use crate::limits::body_limit::BodyPermit;
use crate::whole_number::{WholeNumber, whole};

/// Fields of other embedding APIs that change the vectors. They are refused, because ignoring them would return wrong vectors.
const OF_OTHER_APIS: [&str; 14] = [
    "add_special_tokens",
    "embedding_types",
    "input_type",
    "instruction",
    "late_chunking",
    "normalize",
    "output_dimension",
    "output_dtype",
    "prompt",
    "prompt_name",
    "task",
    "task_type",
    "truncate",
    "truncate_prompt_tokens",
];

/// The encoding of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Float,
    /// Little-endian 32-bit floats. OpenAI's own clients request it by default.
    Base64,
}

/// A valid request.
#[derive(Debug, PartialEq)]
pub(crate) struct EmbeddingsRequest {
    pub(crate) request: EmbedRequest,
    pub(crate) encoding: Encoding,
    /// Whom the request is for, in the words of the client.
    pub(crate) user: Option<String>,
    /// Fields of the request that have no effect.
    pub(crate) warnings: Vec<AnswerWarning>,
}

/// The request before it is checked. A body can have millions of tokens, so each is read into its four bytes, and the values of
/// unknown fields are skipped.
#[derive(Default)]
struct WireRequest {
    model: Option<String>,
    input: Option<Input>,
    encoding_format: Option<String>,
    dimensions: Option<WholeNumber>,
    user: Option<Value>,
    /// Unknown fields that are not null, up to [`MAX_UNKNOWN_FIELDS`].
    unknown: Vec<String>,
}

/// Unknown fields that are remembered.
const MAX_UNKNOWN_FIELDS: usize = 64;

impl<'de> Deserialize<'de> for WireRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RequestVisitor;

        impl<'de> Visitor<'de> for RequestVisitor {
            type Value = WireRequest;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireRequest, A::Error> {
                let mut request = WireRequest::default();
                while let Some(field) = map.next_key::<String>()? {
                    match field.as_str() {
                        "model" => request.model = once("model", request.model, &mut map)?,
                        "input" => request.input = once("input", request.input, &mut map)?,
                        "encoding_format" => {
                            request.encoding_format =
                                once("encoding_format", request.encoding_format, &mut map)?;
                        }
                        "dimensions" => {
                            request.dimensions = once("dimensions", request.dimensions, &mut map)?
                        }
                        // It does not affect the vectors, so any value is accepted.
                        "user" => request.user = map.next_value()?,
                        _ => {
                            let is_there = map.next_value::<Option<IgnoredAny>>()?.is_some();
                            if is_there && request.unknown.len() < MAX_UNKNOWN_FIELDS {
                                request.unknown.push(field);
                            }
                        }
                    }
                }
                Ok(request)
            }
        }

        deserializer.deserialize_map(RequestVisitor)
    }
}

/// Reads a field that can occur once.
fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    field: &'static str,
    before: Option<T>,
    map: &mut A,
) -> Result<Option<T>, A::Error> {
    match before {
        Some(_) => Err(A::Error::duplicate_field(field)),
        None => map.next_value(),
    }
}

/// Texts or tokens with their count. What is over the limit is counted and not stored.
struct Input {
    inputs: EmbedInputs,
    count: usize,
    tokens: usize,
}

/// An element of `input`.
enum Item {
    Text(String),
    Token(u32),
    Tokens(TokenList),
}

struct TokenList {
    kept: Vec<u32>,
    count: usize,
}

const EXPECTED: &str = "a string, an array of strings, or an array (of arrays) of tokens";

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InputVisitor;

        impl<'de> Visitor<'de> for InputVisitor {
            type Value = Input;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(EXPECTED)
            }

            fn visit_str<E>(self, text: &str) -> Result<Input, E> {
                Ok(Input { inputs: EmbedInputs::Texts(vec![text.to_owned()]), count: 1, tokens: 0 })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Input, A::Error> {
                match sequence.next_element::<Item>()? {
                    None => Ok(Input { inputs: EmbedInputs::default(), count: 0, tokens: 0 }),
                    Some(Item::Text(first)) => texts(first, sequence),
                    Some(Item::Token(first)) => {
                        let list = tokens(vec![first], sequence)?;
                        let inputs = EmbedInputs::Tokens(vec![list.kept]);
                        Ok(Input { inputs, count: 1, tokens: list.count })
                    }
                    Some(Item::Tokens(first)) => token_lists(first, sequence),
                }
            }
        }

        deserializer.deserialize_any(InputVisitor)
    }
}

fn texts<'de, A: SeqAccess<'de>>(first: String, mut sequence: A) -> Result<Input, A::Error> {
    let mut kept = vec![first];
    while kept.len() < EMBEDDING_INPUTS
        && let Some(text) = sequence.next_element()?
    {
        kept.push(text);
    }
    let count = kept.len() + rest(sequence)?;
    Ok(Input { inputs: EmbedInputs::Texts(kept), count, tokens: 0 })
}

fn token_lists<'de, A: SeqAccess<'de>>(first: TokenList, mut sequence: A) -> Result<Input, A::Error> {
    let mut tokens = first.count;
    let mut kept = vec![first.kept];
    while kept.len() < EMBEDDING_INPUTS
        && tokens <= EMBEDDING_TOKENS
        && let Some(list) = sequence.next_element::<TokenList>()?
    {
        tokens += list.count;
        kept.push(list.kept);
    }
    let count = kept.len() + rest(sequence)?;
    Ok(Input { inputs: EmbedInputs::Tokens(kept), count, tokens })
}

fn tokens<'de, A: SeqAccess<'de>>(mut kept: Vec<u32>, mut sequence: A) -> Result<TokenList, A::Error> {
    while kept.len() < EMBEDDING_TOKENS
        && let Some(Token(token)) = sequence.next_element()?
    {
        kept.push(token);
    }
    let count = kept.len() + rest(sequence)?;
    Ok(TokenList { kept, count })
}

/// Counts the remaining elements.
fn rest<'de, A: SeqAccess<'de>>(mut sequence: A) -> Result<usize, A::Error> {
    let mut count = 0;
    while sequence.next_element::<IgnoredAny>()?.is_some() {
        count += 1;
    }
    Ok(count)
}

struct Token(u32);

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Item::deserialize(deserializer)? {
            Item::Token(token) => Ok(Token(token)),
            Item::Text(_) | Item::Tokens(_) => Err(D::Error::custom("expected tokens only, or texts only")),
        }
    }
}

impl<'de> Deserialize<'de> for TokenList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Item::deserialize(deserializer)? {
            Item::Tokens(list) => Ok(list),
            Item::Text(_) | Item::Token(_) => Err(D::Error::custom("expected arrays of tokens only")),
        }
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemVisitor;

        impl<'de> Visitor<'de> for ItemVisitor {
            type Value = Item;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string, a token or an array of tokens")
            }

            fn visit_str<E>(self, text: &str) -> Result<Item, E> {
                Ok(Item::Text(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, token: u64) -> Result<Item, E> {
                let token = u32::try_from(token).map_err(|_| E::custom("a token is a number below 2^32"))?;
                Ok(Item::Token(token))
            }

            fn visit_i64<E: Error>(self, token: i64) -> Result<Item, E> {
                Err(E::invalid_value(Unexpected::Signed(token), &self))
            }

            fn visit_f64<E: Error>(self, token: f64) -> Result<Item, E> {
                let token = whole(token).and_then(|token| u32::try_from(token).ok());
                token.map(Item::Token).ok_or_else(|| E::custom("a token is a whole number below 2^32"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Item, A::Error> {
                tokens(Vec::new(), sequence).map(Item::Tokens)
            }
        }

        deserializer.deserialize_any(ItemVisitor)
    }
}

impl EmbeddingsRequest {
    /// Parses a body. The error names the field.
    pub(crate) fn parse(body: &[u8]) -> ApiResult<Self> {
        read_bounded::<WireRequest>(body)?.resolve()
    }
}

impl WireRequest {
    fn resolve(self) -> ApiResult<EmbeddingsRequest> {
        let model = required_model(self.model)?;
        check_model_name(&model)?;
        let input = self.input.ok_or_else(|| ApiError::invalid("input", "'input' is required"))?;
        let mut ignored = IgnoredFields::default();
        for field in self.unknown.iter().filter(|field| !is_annotation(field)) {
            if OF_OTHER_APIS.contains(&field.as_str()) {
                return Err(ApiError::invalid(
                    field.as_str(),
                    format!("'{field}' is not supported for embeddings"),
                ));
            }
            ignored.note(field);
        }
        Ok(EmbeddingsRequest {
            request: EmbedRequest {
                model,
                inputs: inputs(input)?,
                dimensions: self.dimensions.map(dimensions).transpose()?,
                overlong: Overlong::Refuse,
            },
            encoding: encoding(self.encoding_format.as_deref())?,
            user: self.user.and_then(|user| user.as_str().map(str::to_owned)),
            warnings: ignored.into_warnings(),
        })
    }
}

fn inputs(input: Input) -> ApiResult<EmbedInputs> {
    if input.count > EMBEDDING_INPUTS {
        return Err(over_budget(OverBudget::too_many("input", input.count, "inputs", EMBEDDING_INPUTS)));
    }
    if input.tokens > EMBEDDING_TOKENS {
        return Err(over_budget(OverBudget::too_many("input", input.tokens, "tokens", EMBEDDING_TOKENS)));
    }
    if input.inputs.is_empty() {
        return Err(ApiError::invalid("input", "'input' must not be empty"));
    }
    let empty = match &input.inputs {
        EmbedInputs::Texts(texts) => texts.iter().position(String::is_empty),
        EmbedInputs::Tokens(lists) => lists.iter().position(Vec::is_empty),
    };
    match empty {
        Some(at) => Err(ApiError::invalid(format!("input[{at}]"), format!("input[{at}] is empty"))),
        None => Ok(input.inputs),
    }
}

fn dimensions(WholeNumber(wanted): WholeNumber) -> ApiResult<u32> {
    u32::try_from(wanted).ok().filter(|wanted| *wanted > 0).ok_or_else(|| {
        ApiError::invalid("dimensions", format!("'dimensions' must be a positive number, got {wanted}"))
    })
}

fn encoding(wanted: Option<&str>) -> ApiResult<Encoding> {
    match wanted {
        None | Some("float") => Ok(Encoding::Float),
        Some("base64") => Ok(Encoding::Base64),
        Some(other) => {
            let message = format!("'encoding_format' must be 'float' or 'base64', got '{other}'");
            Err(ApiError::invalid("encoding_format", message))
        }
    }
}

/// The response body.
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
        let datum = |(index, numbers): (usize, &'a Vec<f32>)| Datum::new(index, numbers, encoding);
        let tokens = embeddings.prompt_tokens.unwrap_or(0);
        EmbeddingList {
            object: "list",
            data: embeddings.vectors.iter().enumerate().map(datum).collect(),
            model: &embeddings.model,
            usage: Usage { prompt_tokens: tokens, total_tokens: tokens },
        }
    }
}

/// The same as a response, whose vectors are written while they are sent.
pub(crate) fn in_pieces(mut embeddings: Embeddings, encoding: Encoding, permit: BodyPermit) -> Response {
    let made = std::mem::take(&mut embeddings.vectors);
    let around = EmbeddingList::new(&embeddings, encoding);
    let write = move |index, numbers: Vec<f32>, out: &mut Vec<u8>| {
        push_json(out, &Datum::new(index, &numbers, encoding));
    };
    vectors::in_pieces(&around, "data", made, write, permit)
}

impl<'a> Datum<'a> {
    fn new(index: usize, numbers: &'a [f32], encoding: Encoding) -> Self {
        Datum { object: "embedding", index, embedding: Vector { numbers, encoding } }
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
