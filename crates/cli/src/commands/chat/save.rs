//! Conversations written to files of the user's choosing.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hob_config::Environment;

use super::session::{Overwrite, Save};

/// `~` is the user's home, as in shells.
pub fn expand(file: &Path) -> PathBuf {
    let environment = Environment::from_process();
    match (file.strip_prefix("~"), environment.home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => file.to_owned(),
    }
}

/// Writes it.
pub fn write(file: &Path, save: &Save) -> io::Result<()> {
    let mut options = OpenOptions::new();
    match save.overwrite {
        Overwrite::Allowed => options.write(true).create(true).truncate(true),
        Overwrite::Refused => options.write(true).create_new(true),
    };
    options.open(file)?.write_all(save.text.as_bytes())
}
