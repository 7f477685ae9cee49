//! `POST /tokenize` and `POST /detokenize`, in the forms of llama.cpp and of vLLM. An answer has the fields of both.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hob_core::model::DEFAULT_MODEL;
use hob_core::request_budget::{self, EMBEDDING_TOKENS};
use hob_core::{
    AnswerWarning, DetokenizeRequest, GenerateRequest, OverBudget, TokenizeInput, TokenizeRequest, Tokenized,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::ignored_fields::IgnoredFields;
use super::message::{LastCalls, WireMessage};
use super::tools::WireTool;
use crate::answer::{self, Received, new_id};
use crate::error::{ApiError, ApiResult};
use crate::json::{check_model_name, over_budget, read, read_bounded};
use crate::request_context::RequestContext;
use crate::state::SharedState;
use crate::warning_header::with_warnings;
use crate::whole_number::TokenId;

pub(crate) async fn split(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    let answered = async {
        let Received { parsed, caller, client: _held } =
            answer::receive(&state, request, new_id("tok-"), SplitRequest::parse).await?;
        let SplitRequest { request, form, warnings } = parsed;
        let tokenized = state.system.tokenize(request, &caller).await?;
        Ok(with_warnings(Json(Tokens::new(tokenized, form)).into_response(), warnings.iter()))
    };
    answered.await.map_err(|error: ApiError| error.for_caller(role))
}

pub(crate) async fn join(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    let answered = async {
        let Received { parsed, caller, client: _held } =
            answer::receive(&state, request, new_id("tok-"), parse_tokens).await?;
        let text = state.system.detokenize(parsed, &caller).await?;
        // Under the names of llama.cpp and of vLLM.
        Ok(Json(json!({ "content": text, "prompt": text })).into_response())
    };
    answered.await.map_err(|error: ApiError| error.for_caller(role))
}

/// Whose form the request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenForm {
    /// Each token comes with its text.
    LlamaCpp,
    /// Pieces are a list of their own.
    Vllm,
}

/// A valid request.
#[derive(Debug, PartialEq)]
pub(super) struct SplitRequest {
    request: TokenizeRequest,
    form: TokenForm,
    /// Fields of the request that have no effect.
    warnings: Vec<AnswerWarning>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireRequest {
    model: Option<String>,
    /// llama.cpp.
    content: Option<String>,
    add_special: Option<bool>,
    parse_special: Option<bool>,
    with_pieces: Option<bool>,
    /// vLLM.
    prompt: Option<String>,
    add_special_tokens: Option<bool>,
    return_token_strs: Option<bool>,
    messages: Option<Vec<WireMessage>>,
    tools: Option<Vec<WireTool>>,
    add_generation_prompt: Option<bool>,
    chat_template_kwargs: Option<Map<String, Value>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl SplitRequest {
    pub(super) fn parse(body: &[u8]) -> ApiResult<Self> {
        read::<WireRequest>(body)?.resolve()
    }
}

impl WireRequest {
    fn resolve(mut self) -> ApiResult<SplitRequest> {
        let mut ignored = IgnoredFields::default();
        for (field, value) in &self.rest {
            if !value.is_null() {
                ignored.note(field);
            }
        }
        let model = model_or_default(self.model.take())?;
        let messages = self.messages.take();
        let (form, input) = match (self.content.take(), self.prompt.take(), messages) {
            (Some(content), Some(prompt), None) if content != prompt => {
                return Err(ApiError::invalid(
                    "prompt",
                    "'content' and 'prompt' are the same field; send one",
                ));
            }
            (Some(text), _, None) => {
                let add_special = self.add_special.unwrap_or(false);
                let parse_special = self.parse_special.unwrap_or(true);
                (TokenForm::LlamaCpp, TokenizeInput::Text { text, add_special, parse_special })
            }
            (None, Some(text), None) => {
                let add_special = self.add_special_tokens.unwrap_or(true);
                (TokenForm::Vllm, TokenizeInput::Text { text, add_special, parse_special: true })
            }
            (None, None, Some(messages)) => {
                let conversation = self.conversation(&model, messages, &mut ignored)?;
                (TokenForm::Vllm, TokenizeInput::Conversation(Box::new(conversation)))
            }
            (None, None, None) => {
                let message = "'content', 'prompt' or 'messages' is required: what to split into tokens";
                return Err(ApiError::invalid("prompt", message));
            }
            (_, _, Some(_)) => {
                let message = "send 'messages', or a text in 'content' or 'prompt', not both";
                return Err(ApiError::invalid("messages", message));
            }
        };
        let pieces = match form {
            TokenForm::LlamaCpp => self.with_pieces,
            TokenForm::Vllm => self.return_token_strs,
        };
        let request = TokenizeRequest { model, input, pieces: pieces.unwrap_or(false) };
        Ok(SplitRequest { request, form, warnings: ignored.into_warnings() })
    }

    fn conversation(
        &mut self,
        model: &str,
        wire_messages: Vec<WireMessage>,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<GenerateRequest> {
        if self.add_generation_prompt == Some(false) {
            let message =
                "tokens are counted as for an answer, with the beginning of it; leave the field out";
            return Err(ApiError::invalid("add_generation_prompt", message));
        }
        let mut messages = Vec::with_capacity(wire_messages.len());
        let mut calls = LastCalls::default();
        for (index, message) in wire_messages.into_iter().enumerate() {
            let message = message.resolve(index, &messages, &mut calls, ignored)?;
            messages.push(message);
        }
        let mut tools = Vec::new();
        for (index, tool) in self.tools.take().into_iter().flatten().enumerate() {
            tools.push(tool.resolve(index, ignored)?);
        }
        let variables = self.chat_template_kwargs.take();
        let extra = variables.map(|variables| ("chat_template_kwargs".to_owned(), Value::Object(variables)));
        let request = GenerateRequest {
            model: model.to_owned(),
            messages,
            tools,
            extra: extra.into_iter().collect(),
            ..GenerateRequest::default()
        };
        request_budget::check_request(&request).map_err(over_budget)?;
        Ok(request)
    }
}

/// llama.cpp has one model, so its clients name none.
pub(super) fn model_or_default(model: Option<String>) -> ApiResult<String> {
    let model = model.filter(|model| !model.trim().is_empty()).unwrap_or_else(|| DEFAULT_MODEL.to_owned());
    check_model_name(&model)?;
    Ok(model)
}

/// The answer.
#[derive(Debug, Serialize)]
struct Tokens {
    tokens: Vec<Token>,
    count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_model_len: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_strs: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Token {
    Id(u32),
    WithPiece { id: u32, piece: Piece },
}

/// Text, or bytes that are no whole characters.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Bytes(Vec<u8>),
}

impl Tokens {
    fn new(tokenized: Tokenized, form: TokenForm) -> Self {
        let Tokenized { tokens, pieces, context } = tokenized;
        let count = tokens.len();
        let (tokens, token_strs) = match (pieces, form) {
            (None, _) => (tokens.into_iter().map(Token::Id).collect(), None),
            (Some(pieces), TokenForm::LlamaCpp) => {
                let piece = |bytes: Vec<u8>| match String::from_utf8(bytes) {
                    Ok(text) => Piece::Text(text),
                    Err(error) => Piece::Bytes(error.into_bytes()),
                };
                let token = |(id, bytes)| Token::WithPiece { id, piece: piece(bytes) };
                (tokens.into_iter().zip(pieces).map(token).collect(), None)
            }
            (Some(pieces), TokenForm::Vllm) => {
                let strings = pieces.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                (tokens.into_iter().map(Token::Id).collect(), Some(strings.collect()))
            }
        };
        Tokens { tokens, count, max_model_len: context, token_strs }
    }
}

/// A list of tokens can be long, so nothing else of the body is kept.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireTokens {
    model: Option<String>,
    tokens: Option<Vec<TokenId>>,
}

pub(super) fn parse_tokens(body: &[u8]) -> ApiResult<DetokenizeRequest> {
    let WireTokens { model, tokens } = read_bounded(body)?;
    let tokens = tokens.ok_or_else(|| ApiError::invalid("tokens", "'tokens' is required"))?;
    if tokens.len() > EMBEDDING_TOKENS {
        return Err(over_budget(OverBudget::too_many("tokens", tokens.len(), "tokens", EMBEDDING_TOKENS)));
    }
    let tokens = tokens.into_iter().map(|TokenId(id)| id).collect();
    Ok(DetokenizeRequest { model: model_or_default(model)?, tokens })
}
