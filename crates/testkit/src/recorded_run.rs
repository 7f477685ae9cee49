//! The figures of a run, for `docs/reliability.md`. `tests/reliability/record.py` does the same for scripts.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

/// Fields of a line, and the variables that `./dev` sets for them when it starts; see `scripts/dev/figures.sh`.
const MEASURED: [(&str, &str); 2] = [("date", "HOB_TEST_DATE"), ("commit", "HOB_TEST_COMMIT")];

/// Adds a run to `SUITE.jsonl` in the directory, with its date and its commit. The run is an object whose `suite` is the name.
pub fn record_run(directory: &Path, run: Value) {
    let suite = run["suite"].as_str().expect("the name of the suite");
    let path = directory.join(format!("{suite}.jsonl"));
    let line = line(run, |variable| std::env::var(variable).ok());
    let mut file = File::options().create(true).append(true).open(path).expect("a file for the figures");
    // In one write, because other tests add lines at the same time.
    file.write_all(line.as_bytes()).expect("the figures are written");
}

fn line(mut run: Value, environment: impl Fn(&str) -> Option<String>) -> String {
    for (field, variable) in MEASURED {
        if let Some(value) = environment(variable) {
            run[field] = json!(value);
        }
    }
    format!("{run}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_the_date_and_the_commit_that_dev_sets() {
        let run = json!({ "suite": "soak", "failures": 0 });
        let all = |variable: &str| match variable {
            "HOB_TEST_DATE" => Some("2026-11-17".to_owned()),
            "HOB_TEST_COMMIT" => Some("67a835eb+".to_owned()),
            _ => None,
        };
        let expected = r#"{"suite":"soak","failures":0,"date":"2026-11-17","commit":"67a835eb+"}"#;
        assert_eq!(line(run.clone(), all), format!("{expected}\n"));
        assert_eq!(line(run, |_| None), "{\"suite\":\"soak\",\"failures\":0}\n");
    }

    #[test]
    fn runs_are_added_to_the_file_of_their_suite() {
        let directory = tempfile::tempdir().unwrap();
        for failures in [1, 2] {
            record_run(directory.path(), json!({ "suite": "soak", "failures": failures }));
        }
        let text = std::fs::read_to_string(directory.path().join("soak.jsonl")).unwrap();
        let runs: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let failures: Vec<Option<u64>> = runs.iter().map(|run| run["failures"].as_u64()).collect();
        assert_eq!(failures, [Some(1), Some(2)]);
    }
}
