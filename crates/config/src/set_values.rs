//! Writes several values into the configuration file for a command on this machine. Unlike changes over HTTP, it may write any key.

use std::path::PathBuf;

use crate::edit::set_text;
use crate::env::Environment;
use crate::kind::quote;
use crate::load::{SetError, read_file, shown};
use crate::read::{Source, read};
use crate::write::{Overwrite, write_new};

/// A value to write. A text may be a password, so it cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub enum NewValue<'a> {
    Text(&'a str),
    Flag(bool),
    Number(i64),
}

/// One key with its section, such as `mail` and `imap_host`.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSetting<'a> {
    pub section: &'static str,
    pub key: &'static str,
    pub value: NewValue<'a>,
}

/// Writes the values into the configuration file, which is made where there is none, and keeps all else that is in it. The result must be a
/// valid configuration, or nothing changes. The file that was written.
pub fn set_values(environment: &Environment, settings: &[NewSetting<'_>]) -> Result<PathBuf, SetError> {
    let path = environment.config_file()?;
    let file = shown(&path, environment.home());
    let mut text = read_file(&path, &file)?.unwrap_or_default();
    for NewSetting { section, key, value } in settings {
        let literal = match value {
            NewValue::Text(text) => quote(text),
            NewValue::Flag(flag) => flag.to_string(),
            NewValue::Number(number) => number.to_string(),
        };
        text = set_text(&text, section, key, &literal)
            .ok_or_else(|| SetError::Form { file: file.clone(), key: *key })?;
    }
    read(Source { file: &file, text: &text, home: environment.home() })?;
    write_new(&path, &text, Overwrite::Force)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load;

    fn environment(home: &std::path::Path) -> Environment {
        [("HOB_HOME", home.as_os_str().to_owned())].into_iter().collect()
    }

    #[test]
    fn values_are_written_and_the_rest_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let environment = environment(home.path());
        std::fs::write(home.path().join("config.toml"), "# mine\n[server]\nport = 9000\n").unwrap();
        let settings = [
            NewSetting { section: "mail", key: "imap_host", value: NewValue::Text("imap.example.org") },
            NewSetting { section: "mail", key: "imap_port", value: NewValue::Number(143) },
            NewSetting { section: "channel.email", key: "enabled", value: NewValue::Flag(true) },
        ];
        let path = set_values(&environment, &settings).unwrap();
        assert!(std::fs::read_to_string(path).unwrap().contains("# mine"));
        let config = load(&environment).unwrap().config;
        assert_eq!(config.mail.imap_host.as_deref(), Some("imap.example.org"));
        assert_eq!((config.mail.imap_port, config.server.port), (143, 9000));
        assert!(config.channel.email.enabled);
    }

    #[test]
    fn an_invalid_value_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let environment = environment(home.path());
        let settings = [NewSetting { section: "mail", key: "imap_port", value: NewValue::Number(0) }];
        assert!(set_values(&environment, &settings).is_err());
        assert!(!home.path().join("config.toml").exists());
    }
}
