//! Installing Hob from the files of a release. Only Linux builds releases.

use std::path::Path;
use std::process::Output;

use hob_testkit::part;
use hob_testkit::repository::root;
use tokio::process::Command;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a Python program of `tests/packages`, which says itself what is wrong.
async fn check(program: &str, arguments: &[&Path]) {
    let ran = Command::new(part("HOB_TEST_PYTHON"))
        .arg(root().join("tests/packages").join(program))
        .args(arguments)
        .kill_on_drop(true)
        .output()
        .await
        .expect("Python is there");
    assert!(ran.status.success(), "{program}:\n{}", text(&ran));
}

/// The PATH of this process, with cargo and rustc.
fn path_with_cargo() -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let directory = Path::new(&cargo).parent().map(|directory| directory.display().to_string());
    format!("{}:{}", directory.unwrap_or_default(), std::env::var("PATH").unwrap_or_default())
}

/// With the binary of the tests, which is the same program in another profile.
#[tokio::test]
async fn every_file_of_a_release_gives_a_hob_that_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let release = directory.path().join("a release");
    // As that of a release. The names of all functions would be packed into every file.
    let binary = directory.path().join("hob");
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(&binary)
        .arg(env!("CARGO_BIN_EXE_hob"))
        .kill_on_drop(true)
        .status()
        .await
        .expect("the compiler comes with strip");
    assert!(stripped.success());
    let made = Command::new(root().join("packaging/release.sh"))
        .arg(&release)
        .env("PATH", path_with_cargo())
        .env("HOB_BINARY", &binary)
        .env("HOB_COMPRESSION_LEVEL", "1")
        .env("HOB_DEB_COMPRESSION", "none")
        // Not the time of the last commit: a copy of the sources has none.
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .kill_on_drop(true)
        .output()
        .await
        .expect("bash is there");
    assert!(made.status.success(), "{}", text(&made));
    check("install.py", &[release.as_path()]).await;
}

#[tokio::test]
async fn the_script_installs_nothing_from_a_release_that_is_damaged_or_hostile() {
    check("install_script.py", &[]).await;
}
