//! `hob feedback`: rates an answer. Writes to the database directly, so no server and no engine need to run.

use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use hob_app::startup::routing::open_feedback;
use hob_routing::{RateError, RatingResult};
use hob_telemetry::TelemetryService;
use jiff::SignedDuration;
use serde_json::json;

use crate::args::FeedbackArgs;
use crate::output;
use crate::output::text::one_line;
use crate::output::time::span;
use crate::settings;

pub fn run(args: &FeedbackArgs) -> Result<ExitCode> {
    let databases = settings::databases(&settings::load()?)?;
    let feedback = open_feedback(databases.hob, TelemetryService::default());
    let rated = feedback.rate(args.id.as_deref(), args.rating).map_err(explain)?;
    if args.json {
        let RatingResult { answer, rating, learnt } = &rated;
        let object = json!({
            "id": answer.run,
            "rating": rating.as_str(),
            "model": answer.model,
            "engine": answer.engine,
            "learnt": learnt,
        });
        output::json(&object)?;
    } else {
        output::line(summary(&rated, SystemTime::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Which answer was rated, and what the router does with the rating.
fn summary(rated: &RatingResult, now: SystemTime) -> String {
    let RatingResult { answer, rating, learnt } = rated;
    let ago = now.duration_since(answer.at.time()).unwrap_or_default();
    let ago = span(SignedDuration::try_from(ago).unwrap_or(SignedDuration::ZERO));
    let comes_of_it = match learnt {
        true => "The router learns from it.",
        false => "The router did not choose that model, so it learns nothing from it.",
    };
    format!(
        "Rated {}: the answer of {} on {}, {ago} ago ({}). {comes_of_it}",
        rating.as_str(),
        one_line(&answer.model),
        one_line(&answer.engine),
        one_line(&answer.run),
    )
}

/// The error with a hint.
fn explain(error: RateError) -> anyhow::Error {
    match error {
        RateError::NoSuchAnswer { .. } => {
            anyhow::anyhow!(
                "{error}. The ID is in the server's response, e.g. chatcmpl-…; without an ID, Hob rates the last answer."
            )
        }
        RateError::NoAnswer => {
            anyhow::anyhow!(
                "{error}. Ask a question first; Hob records answers while [telemetry] enabled = true."
            )
        }
        RateError::Store(_) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_core::Moment;
    use hob_routing::{RatableAnswer, Rating};

    use super::*;

    #[test]
    fn the_rated_answer_is_named() {
        let now = SystemTime::now();
        let answer = RatableAnswer {
            run: "ask-1".into(),
            engine: "ollama".into(),
            model: "qwen3:8b".into(),
            source: "ask".into(),
            at: Moment::of(now - Duration::from_secs(130)),
        };
        let rated = RatingResult { answer, rating: Rating::Good, learnt: true };
        assert_eq!(
            summary(&rated, now),
            "Rated good: the answer of qwen3:8b on ollama, 2 minutes ago (ask-1). The router learns from it."
        );
    }
}
