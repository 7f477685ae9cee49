//! Keeps `docs/reliability.md` true: the tests that it names exist, and its figures come from what the commands record.

#![expect(clippy::disallowed_methods, reason = "starts the scripts that make the page")]

use std::collections::{BTreeMap, BTreeSet};
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

/// The filters of `./dev test --faults` in the rows of a page, by the name of the fault.
fn fault_filters(page: &str) -> BTreeMap<&str, &str> {
    let rows = page.split("<!-- figure: faults.").skip(1);
    rows.map(|row| {
        let (name, rest) = row.split_once(" --> `./dev test --faults ").expect("a row with its command");
        (name, rest.split('`').next().unwrap_or_default())
    })
    .collect()
}

/// The tests of faults that record a figure, by the name of the fault.
fn recorded_faults() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates/cli/tests/cli/faults")).expect("the tests of faults") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a file");
        for function in text.split("async fn ").skip(1) {
            let test = function.split('(').next().unwrap_or_default();
            for call in ["report(\"", "serve_until_each(\""] {
                for rest in function.split(call).skip(1) {
                    let name = rest.split('"').next().unwrap_or_default();
                    found.insert(name.to_owned(), test.to_owned());
                }
            }
        }
    }
    found
}

/// Runs a script of `tests/reliability`. The first argument is the directory of the runs.
fn run(script: &str, directory: &Path, arguments: &[&str]) {
    run_with(&[], script, directory, arguments);
}

/// The same with these of the variables that `./dev` sets.
fn run_with(variables: &[(&str, &str)], script: &str, directory: &Path, arguments: &[&str]) {
    let script = root().join("tests/reliability").join(script);
    let ran = Command::new("python3")
        .arg(script)
        .arg(directory)
        .args(arguments)
        .env_remove("HOB_TEST_DATE")
        .env_remove("HOB_TEST_COMMIT")
        .envs(variables.iter().copied())
        .output()
        .expect("python3");
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
    let commands: [&[&str]; 9] = [
        &["tests", "--tests", report],
        &["interleavings", "orders=2000", "--tests", printed],
        &["simulation", "seeds=200", "--tests", printed],
        &["fuzz", "targets=39", "executions=117000000", "seconds=5400", "edges=98765", "findings=0"],
        &["fuzz_targets", "target=sse", "executions=3000000", "seconds=50", "edges=765", "findings=0"],
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
        "suite": "soak", "minutes": 120.0, "operations": 9000, "failures": 0, "grown": [],
        "figures": names.map(growth),
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
        "| 1 targets, 3,000,000 executions in 50 s of processor time, findings in 0 of 1 runs of a target |",
        "| 98,765 |",
        "| 91 of 93 noticed, 1 without a reason |",
        "| 7 changes, 0 failures |",
        "| 120 minutes, 9000 operations, 0 failures, nothing over its bound |",
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
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), filled, "rows without a new run keep their figures");
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

#[test]
fn a_figure_says_when_and_on_which_commit_it_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let runs = directory.path();
    let first = [("HOB_TEST_DATE", "2026-11-16"), ("HOB_TEST_COMMIT", "1a2b3c4d")];
    let last = [("HOB_TEST_DATE", "2026-11-17"), ("HOB_TEST_COMMIT", "67a835eb+")];
    run_with(&first, "record.py", runs, &["advisories", "known=3"]);
    run_with(&last, "record.py", runs, &["advisories", "known=0"]);
    run_with(&last[..1], "record.py", runs, &["reproducible", "files=31", "different=0"]);
    run("record.py", runs, &["libraries", "packages=516", "libraries=97", "without_reason=0"]);
    assert_eq!(
        recorded(runs, "advisories"),
        [
            json!({ "suite": "advisories", "known": 3, "date": "2026-11-16", "commit": "1a2b3c4d" }),
            json!({ "suite": "advisories", "known": 0, "date": "2026-11-17", "commit": "67a835eb+" }),
        ]
    );
    // The second soak is too short for the growth of a figure, so that the one of the first stays.
    let soak = |date: &str, commit: &str, slope: Option<f64>| {
        let figure = json!({ "name": "threads", "slope": slope, "low": -0.25, "high": 1.25, "mean": 60.0 });
        let run = json!({
            "suite": "soak", "minutes": 5.0, "operations": 9, "failures": 0, "figures": [figure],
            "date": date, "commit": commit,
        });
        format!("{run}\n")
    };
    let soaks = soak("2026-11-16", "1a2b3c4d", Some(0.5)) + &soak("2026-11-17", "67a835eb+", None);
    std::fs::write(runs.join("soak.jsonl"), soaks).unwrap();

    let copy = runs.join("page.md");
    std::fs::write(&copy, page()).unwrap();
    // The second time, the rows have dates already.
    for _ in 0..2 {
        run("fill.py", runs, &[copy.to_str().unwrap()]);
        let filled = std::fs::read_to_string(&copy).unwrap();
        let rows = [
            "| 0 | 2026-11-17, 67a835eb+ | <!-- figure: advisories -->",
            "| yes, 31 files are equal | 2026-11-17 | <!-- figure: reproducible -->",
            "| 516 |  | <!-- figure: libraries.packages -->",
            "| 5 minutes, 9 operations, 0 failures | 2026-11-17, 67a835eb+ | <!-- figure: soak.load -->",
            "| +0.50 an hour (-0.25 to 1.25), mean 60.0 | 2026-11-16, 1a2b3c4d | <!-- figure: soak.threads -->",
        ];
        for row in rows {
            assert!(filled.contains(row), "{row} is not in {filled}");
        }
    }
}

#[test]
fn the_largest_run_counts_and_a_later_failure_is_not_hidden() {
    let directory = tempfile::tempdir().unwrap();
    let runs = directory.path();
    let first = [("HOB_TEST_DATE", "2026-11-16"), ("HOB_TEST_COMMIT", "1a2b3c4d")];
    let last = [("HOB_TEST_DATE", "2026-11-17"), ("HOB_TEST_COMMIT", "67a835eb")];
    let fuzz = |variables: &[(&str, &str)], executions: &str, findings: &str| {
        let figures = ["fuzz", executions, findings, "targets=39", "seconds=60", "edges=98765"];
        run_with(variables, "record.py", runs, &figures);
    };
    let fuzz_sse = |variables: &[(&str, &str)], findings: &str| {
        let figures = ["fuzz_targets", "target=sse", "executions=3000000", findings, "seconds=90", "edges=7"];
        run_with(variables, "record.py", runs, &figures);
    };
    let copy = runs.join("page.md");
    std::fs::write(&copy, page()).unwrap();
    let assert_rows = |rows: &[&str]| {
        run("fill.py", runs, &[copy.to_str().unwrap()]);
        let filled = std::fs::read_to_string(&copy).unwrap();
        for row in rows {
            assert!(filled.contains(row), "{row} is not in {filled}");
        }
    };

    fuzz(&first, "executions=117000000", "findings=0");
    fuzz_sse(&first, "findings=0");
    fuzz(&last, "executions=90000", "findings=2");
    fuzz_sse(&last, "findings=1");
    let failed = "39 targets, 117,000,000 executions in 60 s, 0 findings; \
                  a later run (90,000 executions, 2026-11-17, 67a835eb) failed | 2026-11-16, 1a2b3c4d |";
    let all = "| 1 targets, 6,000,000 executions in 3 minutes of processor time, \
               findings in 1 of 2 runs of a target | 2026-11-16 to 2026-11-17 |";
    assert_rows(&[failed, "| 98,765 | 2026-11-16, 1a2b3c4d |", all]);

    fuzz(&last, "executions=90000", "findings=0");
    assert_rows(&["| 39 targets, 117,000,000 executions in 60 s, 0 findings | 2026-11-16, 1a2b3c4d |"]);
    // The same command does not always do exactly the same work.
    fuzz(&last, "executions=116999000", "findings=0");
    assert_rows(&["| 39 targets, 116,999,000 executions in 60 s, 0 findings | 2026-11-17, 67a835eb |"]);
}

#[test]
fn runs_of_fuzz_targets_are_kept_in_the_repository_and_count_once() {
    let checkout = tempfile::tempdir().unwrap();
    for path in ["tests/reliability/fill.py", "docs/reliability.md"] {
        let copy = checkout.path().join(path);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(root().join(path), copy).unwrap();
    }
    let fill = |runs: &Path| {
        let script = checkout.path().join("tests/reliability/fill.py");
        let ran = Command::new("python3").arg(script).arg(runs).output().expect("python3");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        std::fs::read_to_string(checkout.path().join("docs/reliability.md")).unwrap()
    };
    let found = |target: &str| {
        let directory = tempfile::tempdir().unwrap();
        let name = format!("target={target}");
        let run_of_target =
            ["fuzz_targets", &name, "executions=3000000", "seconds=90", "edges=7", "findings=0"];
        run("record.py", directory.path(), &run_of_target);
        directory
    };
    let sse = found("sse");
    for _ in 0..2 {
        assert!(fill(sse.path()).contains("| 1 targets, 3,000,000 executions in 90 s of processor time"));
    }
    let elsewhere = found("ndjson");
    assert!(
        fill(elsewhere.path()).contains("| 2 targets, 6,000,000 executions in 3 minutes of processor time")
    );
}

#[test]
fn a_run_has_the_date_and_the_commit_of_its_start() {
    let directory = tempfile::tempdir().unwrap();
    let checkout = directory.path();
    for path in ["scripts/dev/messages.sh", "scripts/dev/figures.sh", "tests/reliability/record.py"] {
        let copy = checkout.join(path);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(root().join(path), copy).unwrap();
    }
    std::fs::write(checkout.join(".gitignore"), "/target\n").unwrap();
    let script = r#"
        set -euo pipefail
        root=$PWD
        . scripts/dev/messages.sh
        . scripts/dev/figures.sh
        date() { [ "$*" = '-u +%Y-%m-%d' ] && echo "2026-11-$day"; }
        day=14
        export HOB_TEST_COMMIT=inherited
        begin_figures
        record_run advisories known=0
        git init --quiet
        day=15
        begin_figures
        record_run advisories known=1
        git add .
        git -c user.name=Ana -c user.email=ana@example.com commit --quiet --message first
        day=16
        begin_figures
        echo changed >new-file
        day=17
        record_run advisories known=2
        begin_figures
        record_run advisories known=3
        git rev-parse --short HEAD
    "#;
    let ran = Command::new("bash")
        .args(["-c", script])
        .current_dir(checkout)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .expect("bash");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let printed = String::from_utf8(ran.stdout).unwrap();
    let commit = printed.trim();
    assert!(commit.len() >= 7, "{commit}");
    assert_eq!(
        recorded(&checkout.join("target/reliability"), "advisories"),
        [
            json!({ "suite": "advisories", "known": 0, "date": "2026-11-14" }),
            json!({ "suite": "advisories", "known": 1, "date": "2026-11-15" }),
            json!({ "suite": "advisories", "known": 2, "date": "2026-11-16", "commit": commit }),
            json!({ "suite": "advisories", "known": 3, "date": "2026-11-17", "commit": format!("{commit}+") }),
        ]
    );
}

#[test]
fn every_recorded_fault_has_a_row_whose_command_runs_its_test() {
    let page = page();
    let (tests, filters) = (recorded_faults(), fault_filters(&page));
    assert!(
        tests.keys().map(String::as_str).eq(filters.keys().copied()),
        "recorded: {tests:?}, rows: {filters:?}"
    );
    for (name, filter) in filters {
        let test = &tests[name];
        assert!(test.contains(filter), "'./dev test --faults {filter}' does not run {test}");
    }
}

#[test]
fn every_figure_of_the_soak_has_a_row() {
    let source = root().join("crates/testkit/examples/soak/figures.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let kinds = source.split("Kind { name: \"").skip(1).filter_map(|rest| rest.split([' ', '"']).next());
    let expected: BTreeSet<&str> = kinds.chain(["load"]).collect();
    let page = page();
    let rows: BTreeSet<&str> =
        figures(&page).into_iter().filter_map(|name| name.strip_prefix("soak.")).collect();
    assert_eq!(rows, expected);
}

#[test]
fn only_fuzzing_of_all_targets_is_a_figure() {
    let is_complete = |arguments: &[&str]| {
        let program = "import run, sys; print(run.is_complete(run.parse(sys.argv[1:])))";
        let ran = Command::new("python3")
            .args(["-B", "-c", program, "directory"])
            .args(arguments)
            .env("PYTHONPATH", root().join("tests/fuzz"))
            .output()
            .expect("python3");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim() == "True"
    };
    assert!(is_complete(&["--runs", "3000000"]));
    assert!(!is_complete(&["sse", "--runs", "3000000"]));
    assert!(!is_complete(&["--runs", "3000000", "--without-llama"]));
}
