//! Damaged and unexpected database files are errors, never panics.

mod files {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use hob_app::HOB_MIGRATIONS;
    use hob_core::{FinishReason, RequestSource, Usage};
    use hob_db::{Database, DatabaseError};
    use hob_telemetry::{CallExport, Inference, InferenceEnd, Prices, SqliteTelemetryStore, TelemetryStore};

    fn inference() -> Inference {
        Inference {
            started: SystemTime::now(),
            run: "run".into(),
            source: RequestSource::Ask,
            engine: "ollama".to_owned(),
            model: "m".to_owned(),
            agent: None,
            key: None,
            end_user: None,
            details: Default::default(),
            streamed: false,
            usage: Usage {
                prompt_tokens: 3,
                completion_tokens: 2,
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

    fn telemetry(path: &Path) -> Result<Arc<dyn TelemetryStore>, DatabaseError> {
        Ok(Arc::new(SqliteTelemetryStore::new(Database::open(path, HOB_MIGRATIONS)?)))
    }

    fn log_of(path: &Path) -> PathBuf {
        PathBuf::from(format!("{}-wal", path.display()))
    }

    #[test]
    fn a_file_that_is_not_a_database_is_an_error_and_stays_unchanged() {
        let root = tempfile::tempdir().unwrap();
        for (name, bytes) in [
            ("text", b"not a database, but somebody's diary of more than a hundred bytes. ".repeat(20)),
            ("zeros", vec![0; 100_000]),
            ("short", b"SQLite format 3\0".to_vec()),
        ] {
            let path = root.path().join(name);
            fs::write(&path, &bytes).unwrap();
            if let Err(error) = Database::open(&path, HOB_MIGRATIONS) {
                assert!(error.to_string().contains(name), "{error}");
                assert_eq!(fs::read(&path).unwrap(), bytes, "{name}");
            } else {
                assert_ne!(name, "text", "a diary is no database");
            }
        }
        let directory = root.path().join("directory.db");
        fs::create_dir(&directory).unwrap();
        assert!(Database::open(&directory, HOB_MIGRATIONS).is_err());
        assert!(directory.is_dir());
    }

    #[test]
    fn a_truncated_log_keeps_complete_records() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("hob.db");
        let open = telemetry(&path).unwrap();
        for _ in 0..20 {
            open.record_batch(&[inference()], &Prices::standard()).unwrap();
        }
        // As after a power cut: the database is not closed.
        let (database, log) = (fs::read(&path).unwrap(), fs::read(log_of(&path)).unwrap());
        let mut seen = Vec::new();
        for part in 0..=16 {
            let copy = root.path().join(format!("{part}.db"));
            fs::write(&copy, &database).unwrap();
            fs::write(log_of(&copy), &log[..log.len() * part / 16]).unwrap();
            let left = telemetry(&copy).unwrap();
            let figures = left.overview(None).unwrap().figures;
            let rows = CallExport::new(Arc::clone(&left), None)
                .try_fold(0, |rows, row| row.map(|_| rows + 1))
                .unwrap();
            assert_eq!((figures.calls, figures.prompt_tokens), (rows, 3 * rows), "{part}");
            left.record_batch(&[inference()], &Prices::standard()).unwrap();
            seen.push(rows);
        }
        assert!(seen.is_sorted() && seen[16] == 20, "{seen:?}");
    }

    #[test]
    fn a_truncated_database_is_an_error_and_no_panic() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("hob.db");
        telemetry(&path).unwrap().record_batch(&[inference()], &Prices::standard()).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.len() > 4096, "a closed database has everything itself");
        for length in [1, 99, 100, 512, 4095, 4096, 4097, bytes.len() / 2, bytes.len() - 1] {
            let copy = root.path().join("cut.db");
            fs::write(&copy, &bytes[..length]).unwrap();
            if let Ok(left) = telemetry(&copy) {
                // The damage may be noticed only when the missing part is read.
                let _ = left.overview(None);
                let _ = left.record_batch(&[inference()], &Prices::standard());
            }
            for file in [copy.clone(), log_of(&copy), PathBuf::from(format!("{}-shm", copy.display()))] {
                let _ = fs::remove_file(file);
            }
        }
    }
}
