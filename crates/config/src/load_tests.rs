//! Where the settings come from, and what can be wrong with a file as a file.

use std::fs;

use secrecy::ExposeSecret;
use tempfile::TempDir;

use super::*;
use crate::local_settings::{LocalSetting, write_local_settings};

/// A home directory, with a configuration file of these bytes.
fn home_with(bytes: &[u8]) -> TempDir {
    let home = empty_home();
    fs::create_dir(home.path().join(".hob")).expect("created");
    fs::write(home.path().join(".hob/config.toml"), bytes).expect("written");
    home
}

fn empty_home() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn environment(home: &TempDir, variables: &[(&'static str, &str)]) -> Environment {
    let home = ("HOME", home.path().as_os_str().to_owned());
    variables.iter().map(|(name, value)| (*name, value.into())).chain([home]).collect()
}

fn load_error(bytes: &[u8]) -> String {
    load(&environment(&home_with(bytes), &[])).expect_err("cannot be loaded").to_string()
}

fn assert_unreadable(error: &ConfigError, kind: ErrorKind) {
    assert_eq!(error.to_string(), "cannot read ~/.hob/config.toml");
    assert!(matches!(error, ConfigError::Unreadable { source, .. } if source.kind() == kind), "{error:?}");
}

fn api_key(loaded: &Loaded) -> Option<&str> {
    loaded.config.server.api_key.as_ref().map(ExposeSecret::expose_secret)
}

#[test]
fn without_a_file_there_are_the_defaults() {
    let loaded = load(&environment(&empty_home(), &[])).expect("no file is fine");
    assert_eq!(loaded.path, None);
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.server.port, 8000);
}

#[test]
fn the_file_in_the_home_directory_is_read() {
    let home = home_with(b"[server]\nport = 9000\n");
    let loaded = load(&environment(&home, &[])).expect("a good file");
    assert_eq!(loaded.path, Some(home.path().join(".hob/config.toml")));
    assert_eq!(loaded.config.server.port, 9000);
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_do_no_harm() {
    let home = home_with(b"\xef\xbb\xbf[server]\r\nport = 9000\r\n");
    assert_eq!(load(&environment(&home, &[])).expect("a good file").config.server.port, 9000);
}

#[test]
fn a_file_that_the_environment_names_must_exist() {
    let home = empty_home();
    let named = home.path().join("other.toml");
    let environment = environment(&home, &[("HOB_CONFIG", named.to_str().expect("text"))]);
    assert_eq!(
        load(&environment).expect_err("missing").to_string(),
        "~/other.toml does not exist, but $HOB_CONFIG names it. Create it with 'hob init', or unset HOB_CONFIG."
    );
    fs::write(&named, "server.port = 9001").expect("written");
    assert_eq!(load(&environment).expect("a good file").config.server.port, 9001);
}

#[test]
fn the_environments_key_goes_before_the_files() {
    let home = home_with(b"[server]\napi_key = 'from-file'");
    let loaded = load(&environment(&home, &[])).expect("a good file");
    assert_eq!(api_key(&loaded), Some("from-file"));
    let loaded = load(&environment(&home, &[("HOB_API_KEY", "from-environment")])).expect("a good file");
    assert_eq!(api_key(&loaded), Some("from-environment"));
    let loaded = load(&environment(&home, &[("HOB_API_KEY", "")])).expect("a good file");
    assert_eq!(api_key(&loaded), Some("from-file"));
}

#[test]
fn the_database_may_be_named_by_the_environment_and_is_never_shown() {
    let home = home_with(b"[database]\nurl = 'postgres://hob:secret-one@file/x'");
    let url = |loaded: &Loaded| {
        loaded.config.database.url.as_ref().map(|url| url.expose_secret().to_owned()).expect("a URL")
    };
    let loaded = load(&environment(&home, &[])).expect("a good file");
    assert_eq!(url(&loaded), "postgres://hob:secret-one@file/x");
    assert_eq!(loaded.config.passfile, Some(home.path().join(".pgpass")));
    assert!(!format!("{:?}", loaded.config).contains("secret-one"));
    let variables =
        [("HOB_DATABASE_URL", "postgres://hob:secret-two@environment/x"), ("PGPASSFILE", "/etc/pgpass")];
    let loaded = load(&environment(&home, &variables)).expect("a good file");
    assert_eq!(url(&loaded), "postgres://hob:secret-two@environment/x");
    assert_eq!(loaded.config.passfile, Some("/etc/pgpass".into()));
    assert!(!format!("{:?}", loaded.config).contains("secret-two"));
}

#[test]
fn the_providers_keys_come_from_the_environment() {
    let loaded =
        load(&environment(&empty_home(), &[("ANTHROPIC_API_KEY", "sk-ant")])).expect("no file is fine");
    let keys = loaded.config.provider_keys;
    assert_eq!(keys.anthropic.as_ref().map(ExposeSecret::expose_secret), Some("sk-ant"));
    assert!(keys.openai.is_none() && keys.gemini.is_none());
}

#[test]
fn a_file_that_is_not_text_is_told_with_its_line() {
    assert_eq!(
        load_error(b"[server]\nhost = '\xff\xfe'"),
        "~/.hob/config.toml:2: the text is not UTF-8. Save the file with that encoding."
    );
}

#[test]
fn a_file_that_is_far_too_large_is_refused() {
    assert_eq!(
        load_error(&vec![b'#'; LARGEST + 1]),
        "~/.hob/config.toml is larger than 1048576 bytes, too large for a configuration. Check that it is the right file."
    );
    assert!(load(&environment(&home_with(&vec![b'#'; LARGEST]), &[])).is_ok());
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_without_an_end_is_too_large_rather_than_endless() {
    let loaded = load(&environment(&empty_home(), &[("HOB_CONFIG", "/dev/zero")]));
    assert!(matches!(loaded, Err(ConfigError::TooLarge { .. })));
}

#[test]
fn a_directory_is_no_file() {
    let home = empty_home();
    fs::create_dir_all(home.path().join(".hob/config.toml")).expect("created");
    let error = load(&environment(&home, &[])).expect_err("a directory");
    assert_eq!(
        error.to_string(),
        "~/.hob/config.toml is a directory, not a configuration file. Move it away, then run 'hob init'."
    );
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_not_taken_for_a_missing_file() {
    let home = empty_home();
    fs::create_dir(home.path().join(".hob")).expect("created");
    std::os::unix::fs::symlink("nowhere", home.path().join(".hob/config.toml")).expect("linked");
    assert_unreadable(&load(&environment(&home, &[])).expect_err("a dead link"), ErrorKind::NotFound);
}

#[test]
fn a_home_that_is_no_directory_is_told() {
    let home = empty_home();
    fs::write(home.path().join(".hob"), "").expect("written");
    assert_unreadable(
        &load(&environment(&home, &[])).expect_err("not a directory"),
        ErrorKind::NotADirectory,
    );
}

#[test]
fn a_telegram_bot_is_added_to_what_the_file_has_and_the_environment_overrides_its_token() {
    let home = empty_home();
    let path = home.path().join(".hob/config.toml");
    fs::create_dir(home.path().join(".hob")).expect("created");
    fs::write(&path, "# mine\n[channel.telegram]\ngroups = false\n").expect("written");
    let settings = [
        LocalSetting::new("channel.telegram", "token", "1:new-token"),
        LocalSetting::new("channel.telegram", "enabled", true),
    ];
    let written = write_local_settings(&environment(&home, &[]), &settings).expect("written");
    assert!(written.ends_with("config.toml"), "{written}");
    assert!(fs::read_to_string(&path).expect("text").starts_with("# mine\n"));
    let token = |variables: &[(&'static str, &str)]| {
        let telegram = load(&environment(&home, variables)).expect("a good file").config.channel.telegram;
        assert!(telegram.enabled && !telegram.groups);
        telegram.token.map(|token| token.expose_secret().to_owned())
    };
    assert_eq!(token(&[]).as_deref(), Some("1:new-token"));
    assert_eq!(token(&[("HOB_TELEGRAM_TOKEN", "2:other")]).as_deref(), Some("2:other"));
}
