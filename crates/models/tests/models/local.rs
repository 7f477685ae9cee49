//! Models that are on this machine already.

use std::fs;
use std::path::Path;

use hob_models::pull::Network;
use hob_models::{ModelStore, PullError, PullOptions, PullSpec, StoredModel, pull};

use crate::files::{model, names_in, shard};

struct Place {
    dir: tempfile::TempDir,
    store: ModelStore,
}

impl Place {
    fn with(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let store = ModelStore::new(dir.path().join("models"));
        Place { dir, store }
    }

    async fn pull(&self, name: &str) -> Result<StoredModel, PullError> {
        let options = PullOptions { network: Network::Offline, ..PullOptions::default() };
        let spec = PullSpec::File(self.dir.path().join(name));
        pull(&spec, &self.store, &options).await
    }
}

#[tokio::test]
async fn a_file_is_taken_in_without_a_second_copy() {
    let place = Place::with(&[("own.gguf", &model(1))]);
    let pulled = place.pull("own.gguf").await.unwrap();
    assert_eq!((pulled.id.as_str(), pulled.problem.as_deref()), ("own", None));
    assert_eq!(fs::read(&pulled.path).unwrap(), model(1));
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(&pulled.path), inode(&place.dir.path().join("own.gguf")));
    }
    assert_eq!(names_in(place.store.dir()), ["own.gguf"]);
    assert_eq!(place.pull("own.gguf").await.unwrap(), pulled);
    // What is in the store already is found there.
    assert_eq!(place.pull("models/own.gguf").await.unwrap(), pulled);
}

#[tokio::test]
async fn one_part_brings_the_others() {
    let place =
        Place::with(&[("big-00001-of-00002.gguf", &shard(1, 2)), ("big-00002-of-00002.gguf", &shard(2, 2))]);
    let pulled = place.pull("big-00002-of-00002.gguf").await.unwrap();
    assert_eq!(pulled.id, "big");
    assert_eq!(pulled.files.len(), 2);

    fs::remove_file(place.dir.path().join("big-00001-of-00002.gguf")).unwrap();
    let error = place.pull("big-00002-of-00002.gguf").await.unwrap_err();
    assert!(error.to_string().contains("big-00001-of-00002.gguf"), "{error}");
}

#[tokio::test]
async fn what_is_no_whole_model_is_refused() {
    let place =
        Place::with(&[("cut.gguf", &model(1)[..10_000]), ("text.gguf", b"hello"), (".dot.gguf", &model(1))]);
    fs::create_dir(place.dir.path().join("folder.gguf")).unwrap();
    for (name, expected) in [
        ("cut.gguf", "it is cut short"),
        ("text.gguf", "no GGUF file"),
        ("folder.gguf", "not a file"),
        ("gone.gguf", "cannot be found"),
        (".dot.gguf", "cannot be a file's name"),
    ] {
        let error = place.pull(name).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
    assert_eq!(place.store.list().unwrap(), []);
}

#[tokio::test]
async fn another_model_of_the_same_name_stays() {
    let place = Place::with(&[("own.gguf", &model(1))]);
    place.pull("own.gguf").await.unwrap();
    let other = Place { dir: tempfile::tempdir().unwrap(), store: place.store.clone() };
    // Of the same size, so that only the content tells them apart.
    fs::write(other.dir.path().join("own.gguf"), model(2)).unwrap();
    let error = other.pull("own.gguf").await.unwrap_err();
    assert!(matches!(error, PullError::NameTaken { .. }), "{error}");
    assert_eq!(fs::read(place.store.dir().join("own.gguf")).unwrap(), model(1));
}
