//! Whether an engine has ever answered, without creating or migrating the database.

use std::path::Path;

use hob_db::{DbResult, peek};

/// Whether the database at `path` has an answer of `engine`. Fails if the database is too old. Blocks.
pub fn has_answered(path: &Path, engine: &str) -> DbResult<bool> {
    let answered = peek(path, |connection| {
        let sql = "SELECT EXISTS (SELECT 1 FROM telemetry_series WHERE engine = ?1 AND total_answered > 0)";
        connection.query_row(sql, [engine], |row| row.get(0))
    })?;
    Ok(answered.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    use hob_core::{FinishReason, RequestSource, Usage};
    use hob_db::Database;

    use super::*;
    use crate::inference::{Inference, InferenceEnd};
    use crate::savings::Prices;
    use crate::store::TelemetryStore;
    use crate::store::sqlite::{MIGRATIONS, SqliteTelemetryStore};

    fn answer(engine: &str) -> Inference {
        Inference {
            started: UNIX_EPOCH,
            run: "run".into(),
            source: RequestSource::Ask,
            engine: engine.to_owned(),
            model: "m".to_owned(),
            agent: None,
            key: None,
            end_user: None,
            details: Default::default(),
            streamed: false,
            usage: Usage {
                prompt_tokens: 1,
                completion_tokens: 1,
                cached_tokens: None,
                reasoning_tokens: None,
                load_time: None,
            },
            estimated: false,
            latency: Duration::from_millis(20),
            first_token: None,
            energy: None,
            ending: InferenceEnd::Complete(FinishReason::Stop),
        }
    }

    #[test]
    fn an_engine_has_answered_once_an_answer_of_its_is_recorded() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        assert!(!has_answered(&path, "ollama").expect("nothing is there"));
        assert!(!path.exists(), "looking makes nothing");

        let telemetry = SqliteTelemetryStore::new(Database::open(&path, &[MIGRATIONS]).expect("made"));
        let failed = Inference { ending: InferenceEnd::Failed("unreachable".into()), ..answer("vllm") };
        telemetry.record_batch(&[answer("ollama"), failed], &Prices::standard()).expect("recorded");
        for (engine, expected) in [("ollama", true), ("vllm", false), ("llamacpp", false)] {
            assert_eq!(has_answered(&path, engine).expect("readable"), expected, "{engine}");
        }

        let old = root.path().join("old.db");
        fs::write(&old, b"").expect("written");
        assert!(has_answered(&old, "ollama").is_err(), "it cannot tell");
    }
}
