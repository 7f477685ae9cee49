//! `POST /api/embed`, and the older `POST /api/embeddings`.

use std::time::Instant;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hob_core::model::DEFAULT_MODEL;
use hob_core::request_budget::{EMBEDDING_INPUTS, OLLAMA_EMBEDDING_INPUTS};
use hob_core::{
    AgentPreference, AnswerWarning, Caller, EmbedInputs, EmbedRequest, Embeddings, OverBudget, Overlong,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::options::WireOptions;
use super::settings::{Purpose, says_nothing};
use super::{chat, model_name, respond};
use crate::answer::stream::StreamClient;
use crate::answer::vectors::{in_pieces, memory_of, room};
use crate::answer::{self, Received, new_id};
use crate::error::{ApiError, ApiResult};
use crate::json::{check_model_name, over_budget, push_json, read};
use crate::limits::body_limit::BodyPermit;
use crate::limits::peer_share::PeerKey;
use crate::openai::ignored_fields::IgnoredFields;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::warning_header::with_warnings;
use crate::whole_number::WholeNumber;

/// The bodies of both before they are checked.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireEmbed {
    model: Option<String>,
    input: Option<Input>,
    /// The older name of `input`.
    prompt: Option<String>,
    truncate: Option<bool>,
    dimensions: Option<WholeNumber>,
    options: Option<WireOptions>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum Input {
    One(String),
    Several(Vec<String>),
}

/// A valid request.
#[derive(Debug, PartialEq)]
pub(super) struct OllamaEmbed {
    pub(super) request: EmbedRequest,
    pub(super) warnings: Vec<AnswerWarning>,
}

/// The answer of `embed`.
#[derive(Serialize)]
struct EmbedAnswer<'a> {
    model: &'a str,
    embeddings: Vec<Vec<f32>>,
    total_duration: u128,
    load_duration: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_eval_count: Option<u64>,
}

/// Texts as vectors of length one.
pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    respond(request, async |request| {
        let started = Instant::now();
        let (requested, warnings, made) = vectors(&state, request, parse).await?;
        let (made, permit) = made.map_or((None, None), |made| (Some(made.embeddings), made.permit));
        let (vectors, tokens, load_time) =
            made.map_or_else(Default::default, |made| (made.vectors, made.prompt_tokens, made.load_time));
        let answer = EmbedAnswer {
            model: &requested,
            embeddings: Vec::new(),
            total_duration: started.elapsed().as_nanos(),
            load_duration: load_time.unwrap_or_default().as_nanos(),
            prompt_eval_count: tokens,
        };
        let response = match permit {
            None => {
                let embeddings = vectors.into_iter().map(of_length_one).collect();
                Json(EmbedAnswer { embeddings, ..answer }).into_response()
            }
            Some(permit) => {
                let write = |_, vector, out: &mut Vec<u8>| push_json(out, &of_length_one(vector));
                in_pieces(&answer, "embeddings", vectors, write, permit)
            }
        };
        Ok(with_warnings(response, warnings.iter()))
    })
    .await
}

/// One text as a vector, as the engine made it.
pub(crate) async fn create_one(State(state): SharedState, request: Request) -> ApiResult<Response> {
    respond(request, async |request| {
        let (_, warnings, made) = vectors(&state, request, parse_one).await?;
        let vector = made.and_then(|made| made.embeddings.vectors.into_iter().next()).unwrap_or_default();
        Ok(with_warnings(Json(json!({ "embedding": vector })).into_response(), warnings.iter()))
    })
    .await
}

/// Vectors, and the permit for their memory if that is counted.
struct CountedVectors {
    embeddings: Embeddings,
    permit: Option<BodyPermit>,
}

/// The vectors, the model, and the warnings. Without a text the model is only loaded.
async fn vectors(
    state: &ServerState,
    request: Request,
    parse: fn(&[u8]) -> ApiResult<OllamaEmbed>,
) -> ApiResult<(String, Vec<AnswerWarning>, Option<CountedVectors>)> {
    let peer = RequestContext::peer_key(request.extensions());
    let Received { parsed, caller, mut client } =
        answer::receive(state, request, new_id("embd-"), parse).await?;
    let OllamaEmbed { mut request, warnings } = parsed;
    let requested = request.model;
    request.model = model_name::meant(state, &requested, caller.rights()).await;
    let meant = request.model.clone();
    let caller = Caller { agent: AgentPreference::None, ..caller };
    let embeddings = match request.inputs.is_empty() {
        true => chat::in_memory(state, &request.model, Purpose::Load, caller.rights()).await.map(|()| None),
        false => embed(state, request, &caller, peer, &mut client).await.map(Some),
    };
    drop(client);
    let embeddings = embeddings.map_err(|error| error.for_missing_model(&requested))?;
    // The name is the caller's, unless that stands for another.
    let model = match &embeddings {
        Some(made) if meant == DEFAULT_MODEL || state.system.meant_by(&meant) != meant => {
            made.embeddings.model.clone()
        }
        _ => requested,
    };
    Ok((model, warnings, embeddings))
}

/// Makes the vectors of many texts in several requests, each of which counts for the limits of a key.
async fn embed(
    state: &ServerState,
    request: EmbedRequest,
    caller: &Caller,
    peer: Option<PeerKey>,
    client: &mut StreamClient,
) -> ApiResult<CountedVectors> {
    let count = request.inputs.len();
    if count <= EMBEDDING_INPUTS {
        let embeddings = state.system.embed(request, caller).await?;
        client.release_body();
        let permit = room(&state.body_reader, peer, memory_of(count, &embeddings.vectors)).await?;
        return Ok(CountedVectors { embeddings, permit });
    }
    let texts = request.inputs.texts().unwrap_or_default();
    let part = |texts: &[String]| EmbedRequest {
        model: request.model.clone(),
        inputs: EmbedInputs::Texts(texts.to_vec()),
        dimensions: request.dimensions,
        overlong: request.overlong,
    };
    let (first, rest) = texts.split_at(EMBEDDING_INPUTS);
    let mut all = state.system.embed(part(first), caller).await?;
    let of_vectors = memory_of(count, &all.vectors);
    let of_texts: usize = texts.iter().map(String::len).sum();
    // The texts are still needed, so they are counted again, together with the vectors.
    client.release_body();
    let mut permit = room(&state.body_reader, peer, of_vectors.saturating_add(of_texts)).await?;
    for texts in rest.chunks(EMBEDDING_INPUTS) {
        let more = state.system.embed(part(texts), caller).await?;
        all.vectors.extend(more.vectors);
        all.prompt_tokens = all.prompt_tokens.zip(more.prompt_tokens).map(|(all, more)| all + more);
        all.load_time = all.load_time.or(more.load_time);
    }
    if let Some(permit) = &mut permit {
        permit.shrink_to(of_vectors);
    }
    Ok(CountedVectors { embeddings: all, permit })
}

/// Parses the body of `embed`. The error names the field.
pub(super) fn parse(body: &[u8]) -> ApiResult<OllamaEmbed> {
    let mut body: WireEmbed = read(body)?;
    let mut ignored = IgnoredFields::default();
    if body.prompt.take().is_some() {
        ignored.note("prompt");
    }
    let texts = match body.input.take() {
        None => Vec::new(),
        Some(Input::One(text)) if text.is_empty() => Vec::new(),
        Some(Input::One(text)) => vec![text],
        Some(Input::Several(texts)) => texts,
    };
    body.resolve(texts, ignored)
}

/// The same of the older `embeddings`.
pub(super) fn parse_one(body: &[u8]) -> ApiResult<OllamaEmbed> {
    let mut body: WireEmbed = read(body)?;
    let mut ignored = IgnoredFields::default();
    for (field, is_given) in [("input", body.input.is_some()), ("dimensions", body.dimensions.is_some())] {
        if is_given {
            ignored.note(field);
        }
    }
    body.dimensions = None;
    let prompt = body.prompt.take().filter(|prompt| !prompt.is_empty());
    body.resolve(prompt.into_iter().collect(), ignored)
}

impl WireEmbed {
    fn resolve(self, texts: Vec<String>, mut ignored: IgnoredFields) -> ApiResult<OllamaEmbed> {
        let model = model_name::required(self.model, None)?;
        check_model_name(&model)?;
        if texts.len() > OLLAMA_EMBEDDING_INPUTS {
            let over = OverBudget::too_many("input", texts.len(), "inputs", OLLAMA_EMBEDDING_INPUTS);
            return Err(over_budget(over));
        }
        if let Some(at) = texts.iter().position(String::is_empty) {
            return Err(ApiError::invalid(format!("input[{at}]"), format!("input[{at}] is empty")));
        }
        if let Some(options) = self.options {
            options.ignore(&mut ignored);
        }
        for (field, _) in self.rest.iter().filter(|(_, value)| !says_nothing(value)) {
            ignored.note(field);
        }
        let request = EmbedRequest {
            model,
            inputs: EmbedInputs::Texts(texts),
            dimensions: self.dimensions.map(dimensions).transpose()?,
            // Ollama truncates by default.
            overlong: if self.truncate == Some(false) { Overlong::Refuse } else { Overlong::Cut },
        };
        Ok(OllamaEmbed { request, warnings: ignored.into_warnings() })
    }
}

fn dimensions(WholeNumber(wanted): WholeNumber) -> ApiResult<u32> {
    u32::try_from(wanted).ok().filter(|wanted| *wanted > 0).ok_or_else(|| {
        ApiError::invalid("dimensions", format!("dimensions must be a positive number, got {wanted}"))
    })
}

/// The vector with the length one, which clients rely on when they compare vectors.
fn of_length_one(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 && length.is_finite() {
        vector.iter_mut().for_each(|number| *number = (f64::from(*number) / length) as f32);
    }
    vector
}
