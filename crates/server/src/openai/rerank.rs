//! `POST /v1/rerank`, in the form of Jina and Cohere: documents in the order in which they answer a question.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hob_core::request_budget::EMBEDDING_INPUTS;
use hob_core::{AnswerWarning, OverBudget, RerankRequest};
use hob_engines::Reranked;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::chat_request::whole_within;
use super::ignored_fields::IgnoredFields;
use super::tokenize::model_or_default;
use crate::answer::{self, Received, new_id};
use crate::error::{ApiError, ApiResult};
use crate::json::{over_budget, read};
use crate::request_context::RequestContext;
use crate::state::SharedState;
use crate::warning_header::with_warnings;
use crate::whole_number::WholeNumber;

/// Fields of other services that change the order. They are refused, because ignoring them would return another order.
const OF_OTHER_APIS: [&str; 7] = [
    "max_chunks_per_doc",
    "max_tokens_per_doc",
    "rank_fields",
    "return_embeddings",
    "truncate",
    "truncate_prompt_tokens",
    "truncation",
];

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    let answered = async {
        let Received { parsed, caller, client: _held } =
            answer::receive(&state, request, new_id("rerank-"), DocumentsRequest::parse).await?;
        let DocumentsRequest { request, top, documents, mut warnings } = parsed;
        let texts = match documents {
            DocumentsShown::No => None,
            DocumentsShown::Yes => Some(request.documents.clone()),
        };
        let Reranked { reranking, warnings: of_answer } = state.system.rerank(request, &caller).await?;
        warnings.extend(of_answer);
        let result = |score: &hob_core::RelevanceScore| RankedDocument {
            index: score.index,
            relevance_score: score.score,
            document: texts.as_ref().and_then(|texts| texts.get(score.index)).map(|text| Document { text }),
        };
        let body = Ranking {
            id: &caller.run,
            object: "list",
            model: &reranking.model,
            results: reranking.scores.iter().take(top.unwrap_or(usize::MAX)).map(result).collect(),
            usage: RankingUsage::of(reranking.prompt_tokens.unwrap_or(0)),
        };
        Ok(with_warnings(Json(body).into_response(), warnings.iter()))
    };
    answered.await.map_err(|error: ApiError| error.for_caller(role))
}

/// Whether the answer repeats the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocumentsShown {
    Yes,
    No,
}

/// A valid request.
#[derive(Debug, PartialEq)]
pub(super) struct DocumentsRequest {
    request: RerankRequest,
    /// How many of the best are returned.
    top: Option<usize>,
    documents: DocumentsShown,
    /// Fields of the request that have no effect.
    warnings: Vec<AnswerWarning>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireRequest {
    model: Option<String>,
    query: Option<String>,
    documents: Option<Vec<WireDocument>>,
    top_n: Option<WholeNumber>,
    return_documents: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or an object with a 'text'")]
enum WireDocument {
    Text(String),
    Object { text: String },
}

impl DocumentsRequest {
    pub(super) fn parse(body: &[u8]) -> ApiResult<Self> {
        let WireRequest { model, query, documents, top_n, return_documents, rest } = read(body)?;
        let query = query.filter(|query| !query.trim().is_empty());
        let query = query.ok_or_else(|| ApiError::invalid("query", "'query' is required"))?;
        let documents = documents.ok_or_else(|| ApiError::invalid("documents", "'documents' is required"))?;
        if documents.is_empty() {
            return Err(ApiError::invalid("documents", "'documents' must not be empty"));
        }
        if documents.len() > EMBEDDING_INPUTS {
            let count = documents.len();
            return Err(over_budget(OverBudget::too_many("documents", count, "documents", EMBEDDING_INPUTS)));
        }
        let mut texts = Vec::with_capacity(documents.len());
        for (index, document) in documents.into_iter().enumerate() {
            let (WireDocument::Text(text) | WireDocument::Object { text }) = document;
            if text.is_empty() {
                let message = "a document must not be empty";
                return Err(ApiError::invalid(format!("documents[{index}]"), message));
            }
            texts.push(text);
        }
        let top = whole_within("top_n", top_n, 1..=i64::from(u32::MAX))?;
        let mut ignored = IgnoredFields::default();
        for (field, value) in &rest {
            if OF_OTHER_APIS.contains(&field.as_str()) && !value.is_null() {
                let message = format!("'{field}' is not supported");
                return Err(ApiError::invalid(field.as_str(), message));
            }
            if !value.is_null() && !hob_core::is_annotation(field) {
                ignored.note(field);
            }
        }
        let model = model_or_default(model)?;
        Ok(DocumentsRequest {
            request: RerankRequest { model, query, documents: texts },
            top: top.and_then(|top| usize::try_from(top).ok()),
            documents: match return_documents {
                Some(true) => DocumentsShown::Yes,
                Some(false) | None => DocumentsShown::No,
            },
            warnings: ignored.into_warnings(),
        })
    }
}

/// The answer.
#[derive(Debug, Serialize)]
struct Ranking<'a> {
    id: &'a str,
    object: &'static str,
    model: &'a str,
    results: Vec<RankedDocument<'a>>,
    usage: RankingUsage,
}

#[derive(Debug, Serialize)]
struct RankedDocument<'a> {
    index: usize,
    relevance_score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Document<'a>>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct RankingUsage {
    prompt_tokens: u64,
    total_tokens: u64,
}

impl RankingUsage {
    fn of(tokens: u64) -> Self {
        RankingUsage { prompt_tokens: tokens, total_tokens: tokens }
    }
}
