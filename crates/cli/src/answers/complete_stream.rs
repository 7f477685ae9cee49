//! Detects broken streams: a stream that ends without `Done` is an error, never a complete answer.

use futures::{StreamExt, stream};
use hob_core::{Delta, DeltaStream, EngineError};

/// The deltas until `Done` or an error. A stream that ends with neither ends with an error here.
pub fn until_done(deltas: DeltaStream, engine: &str) -> DeltaStream {
    let rest = Some((deltas, engine.to_owned()));
    Box::pin(stream::unfold(rest, async |rest| {
        let (mut deltas, engine) = rest?;
        match deltas.next().await {
            Some(last @ (Ok(Delta::Done { .. }) | Err(_))) => Some((last, None)),
            Some(delta) => Some((delta, Some((deltas, engine)))),
            None => {
                let reason = "it ended without a finish".to_owned();
                Some((Err(EngineError::Interrupted { engine, reason }), None))
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn heard(deltas: Vec<Result<Delta, EngineError>>) -> Vec<Result<Delta, String>> {
        // Nothing after the end is awaited.
        let deltas = stream::iter(deltas).chain(stream::pending());
        let heard: Vec<_> = until_done(Box::pin(deltas), "ollama").collect().await;
        heard.into_iter().map(|delta| delta.map_err(|error| error.to_string())).collect()
    }

    #[tokio::test]
    async fn a_stream_that_just_ends_never_looks_complete() {
        let half = stream::iter([Ok(Delta::text("Par"))]);
        let mut deltas = until_done(Box::pin(half), "ollama");
        assert!(matches!(deltas.next().await, Some(Ok(Delta::Text(_)))));
        let error = deltas.next().await.expect("a last word").expect_err("a failure");
        assert_eq!(error.to_string(), "ollama broke off its answer: it ended without a finish");
        assert!(deltas.next().await.is_none());
    }

    #[tokio::test]
    async fn a_stream_with_an_end_is_unchanged() {
        let done = || Delta::Done { usage: None };
        assert_eq!(
            heard(vec![Ok(Delta::text("Paris")), Ok(done())]).await,
            [Ok(Delta::text("Paris")), Ok(done())]
        );
        let broken = EngineError::Interrupted { engine: "ollama".into(), reason: "it crashed".into() };
        let told = broken.to_string();
        assert_eq!(
            heard(vec![Ok(Delta::text("Par")), Err(broken)]).await,
            [Ok(Delta::text("Par")), Err(told)]
        );
    }
}
