//! `POST /v1/feedback`: a rating of an answer. For the owner only, because it changes which model others get.

use axum::Json;
use axum::extract::{Request, State};
use hob_routing::{Rating, RatingResult};
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::read_json;
use crate::request_context::RequestContext;
use crate::state::SharedState;

/// The body before it is checked.
#[derive(Deserialize)]
struct FeedbackBody {
    /// The id of the answer.
    id: String,
    rating: String,
}

/// The rated answer.
#[derive(Serialize)]
pub(crate) struct Feedback {
    id: String,
    rating: &'static str,
    model: String,
    engine: String,
    /// Whether the router learns from the rating, which it does if it chose the model.
    learnt: bool,
}

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Json<Feedback>> {
    RequestContext::check_owner(request.extensions(), "/v1/feedback")?;
    let body = read_json(request, &state.body_reader).await?;
    let (id, rating) = parse(&body)?;
    let feedback = state.system.feedback().clone();
    let RatingResult { answer, rating, learnt } =
        state.blocking.run(move || feedback.rate(Some(&id), rating)).await?;
    Ok(Json(Feedback {
        id: answer.run,
        rating: rating.as_str(),
        model: answer.model,
        engine: answer.engine,
        learnt,
    }))
}

fn parse(body: &[u8]) -> ApiResult<(String, Rating)> {
    let FeedbackBody { id, rating } = read(body)?;
    if id.trim().is_empty() {
        return Err(ApiError::invalid("id", "id is empty; send the id of the answer, such as chatcmpl-…"));
    }
    let rating = Rating::parse(&rating).ok_or_else(|| {
        let known = Rating::ALL.map(Rating::as_str).join(", ");
        ApiError::invalid("rating", format!("rating: expected one of {known}"))
    })?;
    Ok((id, rating))
}
