//! Entry for the fuzz target of `config.toml`. Takes any bytes and panics if a promise of the crate is broken. Only in builds with
//! `--cfg fuzzing`.

use std::path::Path;

use toml::de::DeTable;

use crate::config::Config;
use crate::edit::{has_key, remove_text, set_text};
use crate::error::ConfigError;
use crate::kind::quote;
use crate::read::{Source, read};

/// The text of a configuration file: read, and with one setting changed.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let lines = 1 + text.matches('\n').count();
    match read(Source { file: "config.toml", text, home: Some(Path::new("/home/ann")) }) {
        Ok((config, warnings)) => {
            let _ = Config::default().changed_keys(&config);
            assert!(warnings.iter().all(|warning| !warning.to_string().is_empty()), "a warning says nothing");
        }
        Err(ConfigError::BadValues(bad)) => {
            assert!(!bad.is_empty(), "a file is refused without a reason");
            assert!(bad.iter().all(|value| (1..=lines).contains(&value.line)), "a line is not in the file");
        }
        Err(ConfigError::Syntax { line, .. }) => {
            assert!((1..=lines).contains(&line), "a line is not in the file")
        }
        Err(other) => panic!("a text cannot cause this error: {other}"),
    }
    let (section, key) = ("intelligence", "default_model");
    let has =
        |text: &str| DeTable::parse(text).is_ok_and(|document| has_key(document.get_ref(), section, key));
    if let Some(edited) = set_text(text, section, key, &quote("a \"b\"\n")) {
        assert!(has(&edited), "a setting was not written");
        if let Some(removed) = remove_text(&edited, section, key) {
            assert!(!has(&removed), "a setting was not removed");
        }
    }
}
