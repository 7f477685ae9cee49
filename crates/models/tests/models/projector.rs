//! Projectors: found beside their model, pulled and removed with it.

use std::fs;

use hob_models::{ModelDirectory, PullSpec, StoredProjector, pull};

use crate::files::{Entry, Gguf, llama, names_in, words};
use crate::hub::{file_requests, options, proper_hub, spec};

/// A small projector that sees.
fn projector() -> Gguf {
    Gguf::new()
        .with("general.architecture", words("clip"))
        .with("clip.has_vision_encoder", Entry::Flag(true))
        .with("clip.projector_type", words("gemma3"))
        .tensor("v.patch_embd.weight", 40)
}

fn directory_with(files: &[(&str, Vec<u8>)]) -> (tempfile::TempDir, ModelDirectory) {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    let directory = ModelDirectory::new(dir.path());
    (dir, directory)
}

#[test]
fn a_model_has_the_projector_of_its_name() {
    let (model, seeing) = (llama().write(), projector().write());
    let (dir, directory) = directory_with(&[
        ("a-Q4_K_M.gguf", model.clone()),
        ("b.gguf", model.clone()),
        ("mmproj-A-f16.gguf", seeing.clone()),
    ]);
    let models = directory.list().unwrap();
    let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["a-Q4_K_M", "b"]);
    assert_eq!(
        models[0].projector,
        Some(StoredProjector {
            path: dir.path().join("mmproj-A-f16.gguf"),
            size: seeing.len() as u64,
            kind: Some("gemma3".into()),
            sees: true,
            hears: false,
        })
    );
    assert_eq!(models[0].size, (model.len() + seeing.len()) as u64);
    assert_eq!(models[1].projector, None);
}

#[test]
fn a_projector_without_a_model_is_listed_with_that_problem() {
    let seeing = projector().write();
    let (_dir, directory) = directory_with(&[
        ("a.gguf", llama().write()),
        ("mmproj-a.gguf", seeing[..seeing.len() - 4].to_vec()),
        ("mmproj-model-f16.gguf", seeing),
    ]);
    let problems: Vec<(String, String)> = directory
        .list()
        .unwrap()
        .into_iter()
        .map(|model| (model.id, model.problem.unwrap_or_default()))
        .collect();
    let [(_, none), (cut, missing), (other, unknown)] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!((none.as_str(), cut.as_str(), other.as_str()), ("", "mmproj-a", "mmproj-model-f16"));
    assert!(missing.contains("is incomplete"), "{missing}");
    assert!(unknown.contains("Rename it to 'mmproj-MODEL.gguf'"), "{unknown}");
}

#[test]
fn a_projector_is_removed_with_the_last_model_that_uses_it() {
    let (dir, directory) = directory_with(&[
        ("a-Q4_K_M.gguf", llama().write()),
        ("a-Q8_0.gguf", llama().write()),
        ("mmproj-a-f16.gguf", projector().write()),
        ("c.gguf", llama().write()),
        ("mmproj-c.gguf", projector().write()),
        ("mmproj-c.gguf.0123456789ab.part", b"half".to_vec()),
    ]);
    directory.remove("c").unwrap();
    directory.remove("a-Q8_0").unwrap();
    assert_eq!(names_in(dir.path()), ["a-Q4_K_M.gguf", "mmproj-a-f16.gguf"]);
    directory.remove("a-Q4_K_M").unwrap();
    assert_eq!(names_in(dir.path()), [""; 0]);
}

#[tokio::test]
async fn a_pull_brings_the_projector() {
    let (model, seeing) = (llama().write(), projector().write());
    let files = vec![
        ("tiny-Q4_K_M.gguf", model.clone()),
        ("mmproj-tiny-F32.gguf", projector().tensor("more", 9).write()),
        ("mmproj-tiny-Q8_0.gguf", seeing.clone()),
    ];
    let hub = proper_hub(files).await;
    let dir = tempfile::tempdir().unwrap();
    let directory = ModelDirectory::new(dir.path());
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(pulled.id, "tiny-Q4_K_M");
    assert_eq!(pulled.size, (model.len() + seeing.len()) as u64);
    assert_eq!(names_in(dir.path()), ["mmproj-tiny-Q4_K_M.gguf", "tiny-Q4_K_M.gguf"]);
    assert_eq!(fs::read(&pulled.projector.unwrap().path).unwrap(), seeing);
    // What is there is not fetched again; what is missing is.
    pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(file_requests(&hub).len(), 2);
    fs::remove_file(dir.path().join("mmproj-tiny-Q4_K_M.gguf")).unwrap();
    let again = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!((again.projector.is_some(), file_requests(&hub).len()), (true, 3));
}

#[tokio::test]
async fn a_local_model_brings_the_projector_beside_it() {
    let (source, _) = directory_with(&[
        ("eye.gguf", llama().write()),
        ("mmproj-eye-f16.gguf", projector().write()),
        ("mmproj-other.gguf", projector().write()),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let directory = ModelDirectory::new(dir.path());
    let spec = PullSpec::File(source.path().join("eye.gguf"));
    let pulled = pull(&spec, &directory, &Default::default()).await.unwrap();
    assert!(pulled.projector.is_some());
    assert_eq!(names_in(dir.path()), ["eye.gguf", "mmproj-eye.gguf"]);
}
