//! Walks the files below a path: no hidden or ignored files, and no links, so that a walk always ends.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// A step of a walk.
pub(super) enum Step {
    File(PathBuf),
    /// Unreadable. Its content is unknown, not deleted.
    Problem {
        path: PathBuf,
        reason: String,
    },
}

/// All files below `root`, or `root` itself if it is a file.
pub(super) fn walk(root: &Path) -> impl Iterator<Item = Step> + use<> {
    let fallback = root.to_owned();
    WalkBuilder::new(root)
        .follow_links(false)
        // A `.gitignore` also counts outside a repository.
        .require_git(false)
        .build()
        .filter_map(move |entry| match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                // An error in an ignore file does not skip the file.
                Some(Step::File(entry.into_path()))
            }
            // Directories are walked; links, FIFOs, sockets and devices are skipped.
            Ok(_) => None,
            Err(error) => Some(Step::Problem {
                path: path_of(&error).unwrap_or_else(|| fallback.clone()),
                reason: error.to_string(),
            }),
        })
}

fn path_of(error: &ignore::Error) -> Option<PathBuf> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.clone()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        ignore::Error::Partial(errors) => errors.first().and_then(path_of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn files(root: &Path) -> Vec<String> {
        let mut files: Vec<String> = walk(root)
            .map(|step| match step {
                Step::File(path) => path.strip_prefix(root).unwrap().to_string_lossy().into_owned(),
                Step::Problem { path, reason } => panic!("{}: {reason}", path.display()),
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn hidden_and_ignored_files_are_skipped_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in ["notes", ".git", "target"] {
            fs::create_dir(at(directory)).unwrap();
        }
        for file in ["a.md", "notes/b.txt", ".secret", ".git/config", "target/c.txt", "notes/skip.log"] {
            fs::write(at(file), "x").unwrap();
        }
        fs::write(at(".gitignore"), "target\n*.log\n").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.path(), at("notes/loop")).unwrap();
            std::os::unix::fs::symlink("/etc/hostname", at("notes/link")).unwrap();
        }
        assert_eq!(files(root.path()), ["a.md", "notes/b.txt"]);
    }

    #[test]
    fn a_single_file_is_itself() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a.md");
        fs::write(&file, "x").unwrap();
        assert_eq!(files(&file), [""]);
    }
}
