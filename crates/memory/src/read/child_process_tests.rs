//! This test program is also the reader process: it starts itself for the one test that serves.

use std::time::Instant;

use super::*;
use crate::read::samples;

fn in_a_process() -> ReadLimits {
    let arguments =
        ["--exact", "read::child_process::tests::the_reader_process_serves", "--ignored", "--nocapture"];
    let arguments = arguments.map(str::to_owned).to_vec();
    ReadLimits {
        reader_process: Some(ReaderProcess { program: std::env::current_exe().unwrap(), arguments }),
        ..ReadLimits::default()
    }
}

#[test]
#[ignore = "it is the other side of the tests below"]
fn the_reader_process_serves() {
    serve(io::stdin().lock(), io::stdout()).unwrap();
    // Before the test harness says something too.
    std::process::exit(0);
}

#[test]
fn the_child_process_returns_the_same_text() {
    let file = samples::pdf(&[&["Some words", "and more."], &["Page two."]]);
    let here = read_pdf(&file, &ReadLimits::default()).unwrap();
    assert_eq!(here.blocks.len(), 2);
    assert_eq!(read_pdf(&file, &in_a_process()).unwrap(), here);
}

#[test]
fn the_child_process_reports_errors() {
    let error = read_pdf(b"%PDF-1.7 nonsense", &in_a_process()).unwrap_err();
    assert_eq!(error.to_string(), "the file is broken: it is not a readable PDF");
    let short = ReadLimits { text_bytes: 10, ..in_a_process() };
    let error = read_pdf(&samples::pdf(&[&["More than ten letters."]]), &short).unwrap_err();
    assert_eq!(error.to_string(), "the file has more text than the limit of 10 bytes");
}

/// The test runner (cargo, nextest) sets many variables.
#[cfg(unix)]
#[test]
fn a_reader_has_an_empty_environment() {
    let directory = tempfile::tempdir().unwrap();
    let seen = directory.path().join("environment");
    let script = format!("/usr/bin/env > '{}'", seen.display());
    let reader = ReaderProcess { program: "/bin/sh".into(), arguments: vec!["-c".to_owned(), script] };
    read_pdf(b"%PDF-1.7", &ReadLimits { reader_process: Some(reader), ..ReadLimits::default() }).unwrap_err();
    let seen = std::fs::read_to_string(seen).unwrap();
    // The first three are the shell's own.
    let ours =
        |line: &&str| !["PWD=", "SHLVL=", "_=", "LD_LIBRARY_PATH="].iter().any(|name| line.starts_with(name));
    assert_eq!(seen.lines().find(ours), None, "{seen}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_hangs_is_stopped() {
    let hanging = ReaderProcess { program: "sleep".into(), arguments: vec!["600".to_owned()] };
    let limits = ReadLimits {
        reader_process: Some(hanging),
        time: Duration::from_millis(100),
        ..ReadLimits::default()
    };
    let began = Instant::now();
    let error = read_pdf(&vec![0; 1 << 20], &limits).unwrap_err();
    assert!(error.to_string().starts_with("the file is broken: reading it took more than"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[cfg(unix)]
#[test]
fn a_reader_that_dies_is_a_broken_file() {
    for program in ["true", "false"] {
        let limits = ReadLimits {
            reader_process: Some(ReaderProcess { program: program.into(), arguments: Vec::new() }),
            ..ReadLimits::default()
        };
        let error = read_pdf(b"%PDF-1.7", &limits).unwrap_err();
        assert_eq!(error.to_string(), "the file is broken: its reader ran out of memory or crashed");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_pdf_that_unpacks_to_a_gigabyte_breaks_its_reader_and_not_us() {
    let bomb = samples::pdf_bomb(1 << 30);
    assert!(bomb.len() < 16 << 20);
    let limits = ReadLimits { time: Duration::from_secs(120), ..in_a_process() };
    let error = read_pdf(&bomb, &limits).unwrap_err();
    assert_eq!(error.to_string(), "the file is broken: its reader ran out of memory or crashed");
}
