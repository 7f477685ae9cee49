//! Saves conversations to files.

use std::path::{Path, PathBuf};

use hob_config::Environment;
use hob_process::{WriteError, write_new};

use super::session::SaveFile;

/// `~` is the user's home, as in shells.
pub fn expand(file: &Path) -> PathBuf {
    let environment = Environment::from_process();
    match (file.strip_prefix("~"), environment.home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => file.to_owned(),
    }
}

/// Writes the file atomically: a full disk does not destroy an earlier version.
pub fn write(file: &Path, save: &SaveFile) -> Result<(), WriteError> {
    write_new(file, &save.text, save.overwrite)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hob_process::Overwrite;

    use super::*;

    #[test]
    fn what_was_saved_before_is_there_until_all_of_the_new_text_is() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("said.md");
        let save = |text: &str, overwrite| {
            write(&file, &SaveFile { file: file.clone(), text: text.to_owned(), overwrite })
        };
        save("first", Overwrite::Refuse).expect("written");
        assert!(matches!(save("second", Overwrite::Refuse), Err(WriteError::Exists { .. })));
        // A process that has the file open keeps the old content.
        let seen = home.path().join("seen.md");
        fs::hard_link(&file, &seen).expect("linked");
        save("second", Overwrite::Force).expect("written");
        let texts = [&file, &seen].map(|file| fs::read_to_string(file).expect("a file"));
        assert_eq!(texts, ["second", "first"]);
    }
}
