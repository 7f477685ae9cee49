//! Directories of models for engines that are static values of a test program.

use std::os::unix::fs::symlink;
use std::path::Path;

/// Makes the directory, with this model in it under this name. It must be the same directory every time: a static value is
/// never dropped, so nothing would remove a temporary one. Other processes may make it too.
pub fn link_model(directory: &Path, name: &str, model: &Path) {
    std::fs::create_dir_all(directory).expect("a directory for models");
    let link = tempfile::Builder::new().make_in(directory, |path| symlink(model, path));
    link.expect("a link to the model").persist(directory.join(format!("{name}.gguf"))).expect("renamed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_models_is_made_again_without_leaving_anything_else() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().join("models");
        let model = root.path().join("file");
        std::fs::write(&model, "GGUF").expect("a file");
        for _ in 0..2 {
            link_model(&directory, "m", &model);
        }
        let names: Vec<_> =
            std::fs::read_dir(&directory).expect("listed").flatten().map(|file| file.file_name()).collect();
        assert_eq!(names, ["m.gguf"]);
        assert!(directory.join("m.gguf").is_file());
    }
}
