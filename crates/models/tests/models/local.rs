//! Models that are on this machine already.

use std::fs;
use std::path::Path;

use hob_models::pull::DownloadPolicy;
use hob_models::{ModelDirectory, PullError, PullOptions, PullSpec, StoredModel, pull};

use crate::files::{model, names_in, shard};

struct PullSetup {
    dir: tempfile::TempDir,
    directory: ModelDirectory,
}

impl PullSetup {
    fn with(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let directory = ModelDirectory::new(dir.path().join("models"));
        PullSetup { dir, directory }
    }

    async fn pull(&self, name: &str) -> Result<StoredModel, PullError> {
        let options = PullOptions { network: DownloadPolicy::Offline, ..PullOptions::default() };
        let spec = PullSpec::File(self.dir.path().join(name));
        pull(&spec, &self.directory, &options).await
    }
}

#[tokio::test]
async fn a_file_is_added_without_a_second_copy() {
    let setup = PullSetup::with(&[("own.gguf", &model(1))]);
    let pulled = setup.pull("own.gguf").await.unwrap();
    assert_eq!((pulled.id.as_str(), pulled.problem.as_deref()), ("own", None));
    assert_eq!(fs::read(&pulled.path).unwrap(), model(1));
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(&pulled.path), inode(&setup.dir.path().join("own.gguf")));
    }
    assert_eq!(names_in(setup.directory.dir()), ["own.gguf"]);
    assert_eq!(setup.pull("own.gguf").await.unwrap(), pulled);
    // What is in the directory already is found there.
    assert_eq!(setup.pull("models/own.gguf").await.unwrap(), pulled);
}

#[tokio::test]
async fn one_part_adds_all_parts() {
    let setup = PullSetup::with(&[
        ("big-00001-of-00002.gguf", &shard(1, 2)),
        ("big-00002-of-00002.gguf", &shard(2, 2)),
    ]);
    let pulled = setup.pull("big-00002-of-00002.gguf").await.unwrap();
    assert_eq!(pulled.id, "big");
    assert_eq!(pulled.files.len(), 2);

    fs::remove_file(setup.dir.path().join("big-00001-of-00002.gguf")).unwrap();
    let error = setup.pull("big-00002-of-00002.gguf").await.unwrap_err();
    assert!(error.to_string().contains("big-00001-of-00002.gguf"), "{error}");
}

#[tokio::test]
async fn an_incomplete_model_is_refused() {
    let setup = PullSetup::with(&[
        ("cut.gguf", &model(1)[..10_000]),
        ("text.gguf", b"hello"),
        (".dot.gguf", &model(1)),
    ]);
    fs::create_dir(setup.dir.path().join("folder.gguf")).unwrap();
    for (name, expected) in [
        ("cut.gguf", "it is incomplete"),
        ("text.gguf", "not a GGUF file"),
        ("folder.gguf", "not a file"),
        ("gone.gguf", "cannot be found"),
        (".dot.gguf", "is not a valid file name"),
    ] {
        let error = setup.pull(name).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
    assert_eq!(setup.directory.list().unwrap(), []);
}

#[tokio::test]
async fn another_model_with_the_same_name_stays() {
    let setup = PullSetup::with(&[("own.gguf", &model(1))]);
    setup.pull("own.gguf").await.unwrap();
    let other = PullSetup { dir: tempfile::tempdir().unwrap(), directory: setup.directory.clone() };
    // Of the same size, so that only the content differs.
    fs::write(other.dir.path().join("own.gguf"), model(2)).unwrap();
    let error = other.pull("own.gguf").await.unwrap_err();
    assert!(matches!(error, PullError::NameTaken { .. }), "{error}");
    assert_eq!(fs::read(setup.directory.dir().join("own.gguf")).unwrap(), model(1));
}
