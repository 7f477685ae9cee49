//! Several processes on one file, and one that is killed. The test program starts itself as the other processes.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hob_core::{FinishReason, RequestSource, Usage};
use hob_db::Database;
use hob_testkit::test_process;

use crate::inference::{Inference, InferenceEnd, InferenceLog};
use crate::savings::Prices;
use crate::store::tests::rows;
use crate::store::{MIGRATIONS, SqliteTelemetryStore, TelemetryStore};
use crate::writer::{TelemetryWriter, WriterOptions};

/// The file for the other process.
const FILE: &str = "HOB_TEST_STORE";

fn inference() -> Inference {
    Inference {
        started: SystemTime::now(),
        run: Arc::from("run-1"),
        source: RequestSource::Server,
        engine: "ollama".to_owned(),
        model: "qwen3:8b".to_owned(),
        agent: None,
        key: None,
        end_user: None,
        details: Default::default(),
        streamed: true,
        usage: Usage {
            prompt_tokens: 3,
            completion_tokens: 2,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        },
        estimated: false,
        latency: Duration::from_millis(20),
        first_token: Some(Duration::from_millis(5)),
        energy: None,
        ending: InferenceEnd::Complete(FinishReason::Stop),
    }
}

fn telemetry(path: &Path) -> SqliteTelemetryStore {
    SqliteTelemetryStore::new(Database::open(path, &[MIGRATIONS]).expect("opened"))
}

/// Runs one of the ignored tests below in another process.
fn start(what: &str, path: &Path) -> Child {
    test_process(&format!("processes_tests::{what}")).env(FILE, path).spawn().expect("started")
}

fn file_of_this_process() -> PathBuf {
    std::env::var_os(FILE).expect("only started by another test").into()
}

#[test]
#[ignore = "a process that the other tests start"]
fn opens_and_records_one() {
    telemetry(&file_of_this_process()).record_batch(&[inference()], &Prices::standard()).expect("recorded");
}

#[test]
#[ignore = "a process that the other tests start and kill"]
fn records_until_it_is_killed() {
    let options = WriterOptions { prices: Arc::new(Prices::standard()), retention_days: 0 };
    let open = || Ok(Arc::new(telemetry(&file_of_this_process())) as Arc<dyn TelemetryStore>);
    let writer = TelemetryWriter::start(open, options).expect("started");
    loop {
        writer.record(inference());
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn processes_that_open_a_new_database_at_once_all_get_it() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let children: Vec<Child> = (0..6).map(|_| start("opens_and_records_one", &path)).collect();
    for mut child in children {
        assert!(child.wait().expect("it ended").success());
    }
    assert_eq!(telemetry(&path).overview(None).expect("readable").figures.calls, 6);
}

#[test]
fn a_process_that_is_killed_leaves_whole_records_behind() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let mut child = start("records_until_it_is_killed", &path);
    let ours = telemetry(&path);
    let calls = |telemetry: &SqliteTelemetryStore| telemetry.overview(None).expect("readable").figures.calls;
    // The other process never asks for its records to be written, and we see them all the same.
    let deadline = Instant::now() + Duration::from_secs(300);
    while calls(&ours) < 1000 {
        assert!(Instant::now() < deadline, "nothing is being recorded");
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("it ended");
    drop(ours);
    let after = telemetry(&path);
    let figures = after.overview(None).expect("readable").figures;
    let store: Arc<dyn TelemetryStore> = Arc::new(after.clone());
    let rows = rows(&store).len() as u64;
    assert!(rows >= 1000, "{rows}");
    assert_eq!((figures.calls, figures.prompt_tokens), (rows, 3 * rows));
    after.record_batch(&[inference()], &Prices::standard()).expect("it goes on");
    assert_eq!(calls(&after), rows + 1);
}
