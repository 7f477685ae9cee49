//! Packages: manual pages, the Debian package, the systemd unit, the bill of materials.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use hob_testkit::repository::root;
use serde_json::Value;
use tokio::process::Command;

use crate::home::Home;

/// Runs a program of the system; `None` if it is not installed.
async fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).kill_on_drop(true).output().await {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{program}: {error}"),
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// The commands that `--help` lists.
async fn commands(home: &Home, of: &[&str]) -> Vec<String> {
    let help = home.run(&[of, &["--help"]].concat()).await.stdout;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn every_command_has_a_manual_page() {
    let home = Home::empty();
    let directory = home.directory().join("deep/man1");
    let ran = home.run(&["man", path(&directory)]).await;
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
    let pages: BTreeSet<String> = std::fs::read_dir(&directory)
        .expect("the directory was made")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    let mut expected = BTreeSet::from(["hob.1".to_owned()]);
    for command in commands(&home, &[]).await {
        for inner in commands(&home, &[&command]).await {
            expected.insert(format!("hob-{command}-{inner}.1"));
        }
        expected.insert(format!("hob-{command}.1"));
    }
    assert!(expected.contains("hob-serve.1") && expected.contains("hob-model-pull.1"), "{expected:?}");
    assert_eq!(pages, expected);
    for page in pages {
        let page = std::fs::read_to_string(directory.join(page)).expect("text");
        assert!(page.contains(".SH NAME") && !page.contains('\u{1b}'), "{page}");
    }
    let blocked = home.run(&["man", path(&home.directory().join("deep/man1/hob.1/x"))]).await;
    assert!(
        blocked.code == Some(1) && blocked.stderr.contains("cannot write the manual pages"),
        "{blocked:?}"
    );
}

/// Needs Debian's tools. Does nothing without them.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_debian_package_has_all_files() {
    if run("dpkg-deb", &["--version"]).await.is_none() || run("objdump", &["--version"]).await.is_none() {
        return;
    }
    let home = Home::empty();
    let out = home.directory().join("out");
    let made = Command::new(root().join("packaging/deb.sh"))
        .args([env!("CARGO_BIN_EXE_hob"), path(&out), path(&root().join("README.md"))])
        .env("HOB_DEB_COMPRESSION", "none")
        .kill_on_drop(true)
        .output()
        .await
        .expect("bash is there");
    assert!(made.status.success(), "{}", text(&made));
    let package = String::from_utf8(made.stdout).expect("a path");
    let package = package.trim();

    let fields = text(&run("dpkg-deb", &["--field", package]).await.expect("it was there"));
    for needle in [
        "Package: hob\n",
        concat!("Version: ", env!("CARGO_PKG_VERSION"), "\n"),
        "Depends: libc6 (>= 2.",
        "libstdc++6 (>= ",
    ] {
        assert!(fields.contains(needle), "{needle}: {fields}");
    }
    let root = home.directory().join("root");
    let control = home.directory().join("control");
    for (flag, directory) in [("--extract", &root), ("--control", &control)] {
        let unpacked = run("dpkg-deb", &[flag, package, path(directory)]).await.expect("it was there");
        assert!(unpacked.status.success(), "{}", text(&unpacked));
    }
    for file in [
        "etc/hob/config.toml",
        "usr/bin/hob",
        "usr/lib/systemd/system/hob.service",
        "usr/lib/sysusers.d/hob.conf",
        "usr/share/bash-completion/completions/hob",
        "usr/share/doc/hob/CHANGELOG.md.gz",
        "usr/share/doc/hob/README.md.gz",
        "usr/share/doc/hob/changelog.gz",
        "usr/share/doc/hob/copyright",
        "usr/share/fish/vendor_completions.d/hob.fish",
        "usr/share/hob/installed-by",
        "usr/share/man/man1/hob-serve.1.gz",
        "usr/share/man/man1/hob.1.gz",
        "usr/share/zsh/vendor-completions/_hob",
    ] {
        let length = root.join(file).metadata().map(|metadata| metadata.len());
        assert!(length.is_ok_and(|length| length > 0), "{file} is missing or empty");
    }
    let conffiles = std::fs::read_to_string(control.join("conffiles")).expect("text");
    assert_eq!(conffiles, "/etc/hob/config.toml\n", "an upgrade keeps what the administrator wrote");
    for script in ["postinst", "prerm", "postrm"] {
        let checked = run("sh", &["-n", path(&control.join(script))]).await.expect("a shell");
        assert!(checked.status.success(), "{script}: {}", text(&checked));
    }
    // The configuration of the service is valid and causes no warning.
    let mut doctor = home.hob(&["model", "info", "x"]);
    let ran = doctor.env("HOB_CONFIG", root.join("etc/hob/config.toml")).output().await.expect("hob runs");
    assert!(!text(&ran).contains("warning"), "{}", text(&ran));
}

/// Needs a tool of systemd. Does nothing without it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_unit_is_valid_and_restricts_permissions() {
    if run("systemd-analyze", &["--version"]).await.is_none() {
        return;
    }
    let home = Home::empty();
    let unit = std::fs::read_to_string(root().join("packaging/hob.service")).expect("text");
    let unit = unit.replace("/usr/bin/hob", env!("CARGO_BIN_EXE_hob"));
    let file = home.directory().join("hob.service");
    std::fs::write(&file, unit).expect("a file");
    let checked = run("systemd-analyze", &["verify", "--man=no", path(&file)]).await.expect("it was there");
    let complaints = text(&checked);
    let about_us: Vec<&str> = complaints.lines().filter(|line| line.contains("hob.service")).collect();
    assert_eq!(about_us, Vec::<&str>::new(), "{complaints}");

    // In tenths; a unit without any hardening has 96.
    let arguments = ["security", "--offline=true", "--threshold=15", "--no-pager", path(&file)];
    let exposed = run("systemd-analyze", &arguments).await.expect("it was there");
    assert!(exposed.status.success(), "{}", text(&exposed));
}

#[tokio::test]
async fn a_release_is_signed_and_a_changed_byte_is_noticed() {
    let script = root().join("tests/packages/signing.sh");
    let ran = run(path(&script), &[]).await.expect("the script is there");
    assert!(ran.status.success(), "{}", text(&ran));
    assert_eq!(text(&ran).lines().filter(|line| line.starts_with("ok ")).count(), 10, "{}", text(&ran));
}

#[tokio::test]
async fn a_release_has_a_bill_of_materials() {
    let home = Home::empty();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let directory =
        Path::new(&cargo).parent().map(|directory| directory.display().to_string()).unwrap_or_default();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap_or_default());
    let made = Command::new("python3")
        .arg(root().join("packaging/inventory.py"))
        .arg(home.directory())
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .env("PATH", path)
        .env("SOURCE_DATE_EPOCH", "0")
        .kill_on_drop(true)
        .output()
        .await
        .expect("Python is there");
    assert!(made.status.success(), "{}", text(&made));

    let bill = std::fs::read_to_string(home.directory().join("sbom.cdx.json")).expect("text");
    let bill: Value = serde_json::from_str(&bill).expect("JSON");
    assert_eq!(
        (&bill["bomFormat"], &bill["metadata"]["timestamp"]),
        (&"CycloneDX".into(), &"1970-01-01T00:00:00Z".into())
    );
    let components = bill["components"].as_array().expect("components");
    let names: BTreeSet<&str> =
        components.iter().filter_map(|component| component["name"].as_str()).collect();
    for inside in ["tokio", "rusqlite", "llama-cpp-sys-2", "hob-server"] {
        assert!(names.contains(inside), "{inside} is missing");
    }
    // Scanners search for the library that has the vulnerability, not for the crate around it.
    let inside = components.iter().filter_map(|component| component["components"][0]["purl"].as_str());
    let inside: BTreeSet<&str> = inside.filter_map(|purl| purl.split('@').next()).collect();
    assert_eq!(inside, BTreeSet::from(["pkg:generic/ggml", "pkg:generic/mimalloc", "pkg:generic/sqlite"]));
    for outside in ["insta", "proptest", "hob-testkit"] {
        assert!(!names.contains(outside), "{outside} is for tests only");
    }
    // Every library is listed once, and every dependency refers to a listed library.
    let references: BTreeSet<&str> = components
        .iter()
        .chain([&bill["metadata"]["component"]])
        .map(|component| component["bom-ref"].as_str().expect("a name"))
        .collect();
    assert_eq!(references.len(), components.len() + 1);
    for dependency in bill["dependencies"].as_array().expect("dependencies") {
        for needed in dependency["dependsOn"].as_array().expect("names") {
            assert!(references.contains(needed.as_str().expect("a name")), "{needed}");
        }
    }
    let licences = std::fs::read_to_string(home.directory().join("third-party-licences.txt")).expect("text");
    // The last two are in crates with another name.
    for needle in
        ["Permission is hereby granted", "llama-cpp-sys-2 ", "The ggml authors", "Microsoft Corporation"]
    {
        assert!(licences.contains(needle), "{needle}");
    }
}
