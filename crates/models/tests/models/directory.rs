//! The directory of models: what is listed, found and removed.

use std::fs;
use std::path::Path;

use hob_models::{ModelDirectory, ModelDirectoryError, StoredModel};

use crate::files::{llama, names_in, shard};

fn directory_with(files: &[(&str, Vec<u8>)]) -> (tempfile::TempDir, ModelDirectory) {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    let directory = ModelDirectory::new(dir.path());
    (dir, directory)
}

/// Ids with their problems.
fn summary(directory: &ModelDirectory) -> Vec<(String, Option<String>)> {
    let models = directory.list().unwrap();
    models.into_iter().map(|model| (model.id, model.problem)).collect()
}

#[test]
fn a_store_that_was_never_used_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let directory = ModelDirectory::new(dir.path().join("not/yet"));
    assert_eq!(directory.list().unwrap(), []);
    assert!(matches!(directory.remove("x"), Err(ModelDirectoryError::NotFound { .. })));
    assert!(!directory.dir().exists());
}

#[test]
fn models_are_listed_with_their_properties() {
    let bytes = llama().write();
    let (dir, directory) = directory_with(&[("tiny-Q4.gguf", bytes.clone())]);
    let path = dir.path().join("tiny-Q4.gguf");
    let models = directory.list().unwrap();
    assert_eq!(
        models,
        [StoredModel {
            id: "tiny-Q4".into(),
            path: path.clone(),
            files: vec![path],
            projector: None,
            draft: None,
            size: bytes.len() as u64,
            parameters: 150,
            header: models[0].header.clone(),
            problem: None,
        }]
    );
    assert_eq!(models[0].header.as_ref().unwrap().name.as_deref(), Some("Tiny"));
    assert_eq!(models[0].needs().unwrap().weights, bytes.len() as u64);
    assert_eq!(directory.find("tiny-Q4.gguf").unwrap().as_ref(), Some(&models[0]));
    assert_eq!(directory.find("tiny").unwrap(), None);
}

#[test]
fn broken_files_are_listed_with_their_problem() {
    let whole = llama().write();
    let (dir, directory) = directory_with(&[
        ("cut.gguf", whole[..whole.len() - 10].to_vec()),
        ("foreign.gguf", b"<!DOCTYPE html>".to_vec()),
        ("good.gguf", whole),
    ]);
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.path().join("gone"), dir.path().join("link.gguf")).unwrap();
    let summary = summary(&directory);
    let problem = |id: &str| {
        let found = summary.iter().find(|(known, _)| known == id);
        found.unwrap().1.clone().unwrap_or_default()
    };
    assert!(problem("cut").contains("is incomplete: 10 of its"), "{}", problem("cut"));
    assert!(problem("foreign").contains("a web page"), "{}", problem("foreign"));
    assert_eq!(problem("good"), "");
    #[cfg(unix)]
    assert!(problem("link").contains("cannot read it"), "{}", problem("link"));
}

#[test]
fn unfinished_hidden_and_other_files_are_not_models() {
    let (dir, directory) = directory_with(&[
        ("x.gguf.0123456789ab.part", b"half".to_vec()),
        (".hidden.gguf", b"x".to_vec()),
        ("notes.txt", b"x".to_vec()),
        ("gguf", b"x".to_vec()),
    ]);
    fs::create_dir(dir.path().join("folder.gguf")).unwrap();
    assert_eq!(directory.list().unwrap(), []);
}

#[test]
fn several_files_of_one_model_are_one_model() {
    let (dir, directory) = directory_with(&[
        ("big-00001-of-00002.gguf", shard(1, 2)),
        ("big-00002-of-00002.gguf", shard(2, 2)),
        ("torn-00002-of-00003.gguf", shard(2, 3)),
    ]);
    let models = directory.list().unwrap();
    assert_eq!(models.len(), 2);
    let [big, torn] = &models[..] else { unreachable!() };
    assert_eq!((big.id.as_str(), big.problem.as_deref()), ("big", None));
    assert_eq!(big.path, dir.path().join("big-00001-of-00002.gguf"));
    assert_eq!(big.files.len(), 2);
    assert_eq!(big.parameters, 150 + 2000);
    assert_eq!(big.size, (shard(1, 2).len() + shard(2, 2).len()) as u64);
    assert_eq!(torn.problem.as_deref(), Some("2 of its 3 files are missing. Pull it again."));
    assert_eq!(torn.header, None);

    directory.remove("big").unwrap();
    assert_eq!(names_in(dir.path()), ["torn-00002-of-00003.gguf"]);
}

#[test]
fn a_file_that_changes_is_read_again() {
    let (dir, directory) = directory_with(&[("x.gguf", b"junk".to_vec())]);
    assert!(summary(&directory)[0].1.is_some());
    fs::write(dir.path().join("x.gguf"), llama().write()).unwrap();
    assert_eq!(summary(&directory), [("x".to_owned(), None)]);
}

#[test]
fn removing_includes_broken_and_unfinished_files() {
    let (dir, directory) = directory_with(&[
        ("x.gguf", b"junk".to_vec()),
        ("x.gguf.0123456789ab.part", b"half".to_vec()),
        ("y-00001-of-00002.gguf.0123456789ab.part", b"half".to_vec()),
        ("xy.gguf", b"junk".to_vec()),
    ]);
    directory.remove("x.gguf").unwrap();
    directory.remove("y").unwrap();
    assert_eq!(names_in(dir.path()), ["xy.gguf"]);
    let error = directory.remove("x").unwrap_err().to_string();
    assert!(error.contains("there is no model 'x'"), "{error}");
}

#[test]
fn nothing_outside_the_store_can_be_named() {
    let outer = tempfile::tempdir().unwrap();
    fs::write(outer.path().join("outside.gguf"), llama().write()).unwrap();
    let directory = ModelDirectory::new(outer.path().join("models"));
    fs::create_dir(directory.dir()).unwrap();
    for id in ["../outside", "..", "", "/etc/passwd"] {
        assert_eq!(directory.find(id).unwrap(), None, "{id}");
        assert!(matches!(directory.remove(id), Err(ModelDirectoryError::NotFound { .. })), "{id}");
    }
    assert!(Path::new(&outer.path().join("outside.gguf")).exists());
}
