//! Keeps `docs/reliability.md` true: the tests that it names exist, and its figures come from what the commands record.

#![expect(clippy::disallowed_methods, reason = "starts the scripts that make the page")]
#![expect(clippy::expect_used, reason = "a script that cannot start is a failed test")]

use std::path::Path;
use std::process::Command;

use hob_testkit::repository::{assert_named_paths_exist, named_paths, root};
use serde_json::{Value, json};

fn page() -> String {
    std::fs::read_to_string(root().join("docs/reliability.md")).expect("the page")
}

/// The names of the figures in the rows of a page.
fn figures(page: &str) -> Vec<&str> {
    page.split("<!-- figure: ").skip(1).filter_map(|rest| rest.split(' ').next()).collect()
}

/// Runs a script of `tests/reliability`. The first argument is the directory of the runs.
fn run(script: &str, directory: &Path, arguments: &[&str]) {
    let script = root().join("tests/reliability").join(script);
    let ran = Command::new("python3").arg(script).arg(directory).args(arguments).output().expect("python3");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// The runs that are recorded for a suite.
fn recorded(directory: &Path, suite: &str) -> Vec<Value> {
    let lines = std::fs::read_to_string(directory.join(format!("{suite}.jsonl"))).unwrap_or_default();
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_file_and_every_test_of_the_page_exists() {
    let page = page();
    assert!(named_paths(&page).len() > 5, "the page names the tests that keep faults away");
    assert_named_paths_exist(&page);
}

#[test]
fn every_row_is_filled_from_the_runs() {
    let directory = tempfile::tempdir().unwrap();
    let runs = directory.path();
    let report = runs.join("junit.xml");
    std::fs::write(&report, r#"<testsuites tests="4812" failures="0" errors="0" time="640.5"/>"#).unwrap();
    let report = report.to_str().unwrap();
    let printed = runs.join("printed");
    let text =
        "test result: ok. 15 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 41.20s\n";
    std::fs::write(&printed, text).unwrap();
    let printed = printed.to_str().unwrap();
    let commands: [&[&str]; 8] = [
        &["tests", "--tests", report],
        &["interleavings", "orders=2000", "--tests", printed],
        &["simulation", "seeds=200", "--tests", printed],
        &["fuzz", "targets=39", "executions=117000000", "seconds=5400", "edges=98765", "findings=0"],
        &["mutants", "caught=90", "missed=2", "timeout=1", "unviable=30", "not_accepted=1"],
        &["libraries", "packages=516", "libraries=97", "without_reason=1"],
        &["advisories", "known=0"],
        &["reproducible", "files=31", "different=2"],
    ];
    for command in commands {
        run("record.py", runs, command);
    }
    let page = page();
    let faults = figures(&page).into_iter().filter_map(|name| name.strip_prefix("faults."));
    let lines: String = faults
        .map(|name| {
            let run =
                json!({ "suite": "faults", "name": name, "count": 7, "unit": "changes", "failures": 0 });
            format!("{run}\n")
        })
        .collect();
    std::fs::write(runs.join("faults.jsonl"), lines).unwrap();
    let growth = |name: &str| json!({ "name": name, "slope": 0.5, "low": -0.25, "high": 1.25, "mean": 60.0 });
    let names = ["memory (MiB)", "descriptors", "threads", "p50 (ms)", "p99 (ms)", "database (MiB)"];
    let soak = json!({
        "suite": "soak", "minutes": 120.0, "operations": 9000, "failures": 0, "figures": names.map(growth),
    });
    std::fs::write(runs.join("soak.jsonl"), format!("{soak}\n")).unwrap();

    let copy = runs.join("page.md");
    std::fs::write(&copy, &page).unwrap();
    run("fill.py", runs, &[copy.to_str().unwrap()]);
    let filled = std::fs::read_to_string(&copy).unwrap();
    assert_eq!(figures(&filled), figures(&page));
    assert!(!filled.contains("| not run |"), "a row has no run: {filled}");
    let values = [
        "| 4,812 tests, in 11 minutes, 0 failures, 0 retries |",
        "| 15 tests, 2,000 orders each, in 41 s, 0 failures |",
        "| 15 tests, 200 seeds each, in 41 s, 0 failures |",
        "| 39 targets, 117,000,000 executions in 90 minutes, 0 findings |",
        "| 98,765 |",
        "| 91 of 93 noticed, 1 without a reason |",
        "| 7 changes, 0 failures |",
        "| 120 minutes, 9000 operations, 0 failures |",
        "| +0.50 an hour (-0.25 to 1.25), mean 60.0 |",
        "| 516 |",
        "| 97, 96 with a reason |",
        "| 0 |",
        "| no, 2 of 31 files differ |",
    ];
    for value in values {
        assert!(filled.contains(value), "{value} is not in {filled}");
    }

    let empty = tempfile::tempdir().unwrap();
    run("fill.py", empty.path(), &[copy.to_str().unwrap()]);
    let emptied = std::fs::read_to_string(&copy).unwrap();
    assert_eq!(emptied.matches("| not run |").count(), figures(&page).len(), "{emptied}");
}

#[test]
fn tests_that_fail_or_crash_are_recorded_as_failures() {
    let directory = tempfile::tempdir().unwrap();
    let record = |name: &str, text: &str, status: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        let arguments = ["tests", "--tests", file.to_str().unwrap(), "--status", status];
        run("record.py", directory.path(), &arguments);
    };
    let good =
        "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.25s\n";
    let bad =
        "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.00s\n";
    record("failed", &format!("running 4 tests\n{good}{bad}"), "101");
    record("crashed", good, "101");
    record("not_compiled", "error: could not compile\n", "101");
    let report = r#"<testsuites tests="3" failures="1" errors="1" time="2.5"><testsuite><testcase>
        <flakyFailure/></testcase></testsuite></testsuites>"#;
    record("junit.xml", report, "100");
    assert_eq!(
        recorded(directory.path(), "tests"),
        [
            json!({ "suite": "tests", "tests": 6, "seconds": 3.25, "failures": 2 }),
            json!({ "suite": "tests", "tests": 3, "seconds": 1.25, "failures": 1 }),
            json!({ "suite": "tests", "tests": 3, "seconds": 2.5, "failures": 2, "retries": 1 }),
        ]
    );
}
