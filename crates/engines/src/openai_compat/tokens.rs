//! The tokenizers of llama.cpp, vLLM and SGLang: `POST /tokenize` and `POST /detokenize`. A LiteLLM proxy has none.

use hob_core::{
    DetokenizeRequest, EngineError, GenerateRequest, ReplyMode, TokenizeInput, TokenizeRequest, Tokenized,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::request::{ChatBodyOptions, LengthField, ReasoningFields, ToolsField, body};
use super::style::ServerKind;
use crate::wire::client::Endpoint;
use crate::wire::error_response::unknown_model;

#[derive(Deserialize)]
struct Answer {
    tokens: Vec<WireToken>,
    /// vLLM.
    token_strs: Option<Vec<String>>,
    /// vLLM and SGLang.
    max_model_len: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WireToken {
    Id(u32),
    /// llama.cpp, where the pieces are asked for.
    WithPiece {
        id: u32,
        piece: WirePiece,
    },
}

/// Text, or bytes that are no whole characters.
#[derive(Deserialize)]
#[serde(untagged)]
enum WirePiece {
    Text(String),
    Bytes(Vec<u8>),
}

/// Splits a text.
pub(super) async fn tokenize(
    endpoint: &Endpoint,
    server: ServerKind,
    request: &TokenizeRequest,
) -> Result<Tokenized, EngineError> {
    let json = match (&request.input, server) {
        (_, ServerKind::Generic) => return Err(endpoint.unsupported("tokenize", None)),
        (TokenizeInput::Text { text, add_special, parse_special }, ServerKind::LlamaCpp) => {
            content(text, *add_special, *parse_special, request.pieces)
        }
        (TokenizeInput::Text { parse_special: false, .. }, _) => {
            let hint = "its tokenizer always reads control tokens in a text";
            return Err(endpoint.unsupported("parse_special", Some(hint)));
        }
        (TokenizeInput::Text { text, add_special, .. }, _) => {
            let mut json =
                json!({ "model": request.model, "prompt": text, "add_special_tokens": add_special });
            if request.pieces && server == ServerKind::Vllm {
                json["return_token_strs"] = true.into();
            }
            json
        }
        (TokenizeInput::Conversation(conversation), ServerKind::LlamaCpp) => {
            let prompt = apply_template(endpoint, conversation).await?;
            content(&prompt, true, true, request.pieces)
        }
        (TokenizeInput::Conversation(conversation), ServerKind::Vllm) => {
            let mut json = chat_body(endpoint, conversation)?;
            json["return_token_strs"] = request.pieces.into();
            json
        }
        (TokenizeInput::Conversation(_), ServerKind::Sglang) => {
            return Err(endpoint.unsupported("messages", Some("it splits text only; send 'prompt'")));
        }
    };
    let answer: Answer = post(endpoint, "/tokenize", &json, &request.model).await?;
    let mut pieces = answer.token_strs.map(|strings| strings.into_iter().map(String::into_bytes).collect());
    let mut tokens = Vec::with_capacity(answer.tokens.len());
    for token in answer.tokens {
        match token {
            WireToken::Id(id) => tokens.push(id),
            WireToken::WithPiece { id, piece } => {
                tokens.push(id);
                pieces.get_or_insert_with(Vec::new).push(match piece {
                    WirePiece::Text(text) => text.into_bytes(),
                    WirePiece::Bytes(bytes) => bytes,
                });
            }
        }
    }
    if request.pieces && pieces.as_ref().map_or(0, Vec::len) != tokens.len() {
        return Err(endpoint.unsupported("with_pieces", Some("it returns only the numbers of tokens")));
    }
    Ok(Tokenized { tokens, pieces, context: answer.max_model_len })
}

/// Puts tokens together.
pub(super) async fn detokenize(
    endpoint: &Endpoint,
    server: ServerKind,
    request: &DetokenizeRequest,
) -> Result<String, EngineError> {
    if server == ServerKind::Generic {
        return Err(endpoint.unsupported("detokenize", None));
    }
    let json = json!({ "model": request.model, "tokens": request.tokens });
    let answer: Value = post(endpoint, "/detokenize", &json, &request.model).await?;
    // Under the names of llama.cpp, vLLM and SGLang.
    let text = ["content", "prompt", "text"].iter().find_map(|name| answer.get(name)?.as_str());
    text.map(str::to_owned).ok_or_else(|| endpoint.malformed("it has no text"))
}

/// Whether a marker is one token of the model.
pub(super) async fn is_one_token(
    endpoint: &Endpoint,
    server: ServerKind,
    model: &str,
    marker: &str,
) -> Result<bool, EngineError> {
    let input = TokenizeInput::Text { text: marker.to_owned(), add_special: false, parse_special: true };
    let request = TokenizeRequest { model: model.to_owned(), input, pieces: false };
    Ok(tokenize(endpoint, server, &request).await?.tokens.len() == 1)
}

/// llama.cpp's own body.
fn content(text: &str, add_special: bool, parse_special: bool, pieces: bool) -> Value {
    json!({ "content": text, "add_special": add_special, "parse_special": parse_special, "with_pieces": pieces })
}

/// The text that llama.cpp makes of a conversation.
async fn apply_template(endpoint: &Endpoint, conversation: &GenerateRequest) -> Result<String, EngineError> {
    let json = chat_body(endpoint, conversation)?;
    let answer: Value = post(endpoint, "/apply-template", &json, &conversation.model).await?;
    let prompt = answer.get("prompt").and_then(Value::as_str);
    prompt.map(str::to_owned).ok_or_else(|| endpoint.malformed("it has no prompt"))
}

fn chat_body(endpoint: &Endpoint, conversation: &GenerateRequest) -> Result<Value, EngineError> {
    let options = ChatBodyOptions {
        reply_mode: ReplyMode::Complete,
        tools: ToolsField::Offered,
        length_field: LengthField::MaxTokens,
        reasoning: ReasoningFields::Text,
    };
    let written = body(conversation, options).and_then(|json| serde_json::from_slice(&json));
    written.map_err(|error| endpoint.malformed(error.to_string()))
}

async fn post<T: for<'de> Deserialize<'de>>(
    endpoint: &Endpoint,
    path: &str,
    json: &Value,
    model: &str,
) -> Result<T, EngineError> {
    let response = endpoint.post(path, json.to_string().into_bytes()).await?;
    let response = endpoint.accept(response).await.map_err(|error| unknown_model(error, model))?;
    let body = endpoint.body(response).await?;
    serde_json::from_slice(&body).map_err(|error| endpoint.malformed(error.to_string()))
}
