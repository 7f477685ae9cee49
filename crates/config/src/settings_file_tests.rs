use std::path::Path;
use std::time::Instant;

use serde_json::json;
use tempfile::TempDir;

use super::*;

const TEXT: &str = "# Mine.\n[server]\nport = 9000 # of the house\napi_key = \"s3cret\"\n\n[memory]\n# small ones\nchunk_size = 256\n";

fn home(text: &str) -> (TempDir, SettingsFile) {
    with_variables(text, &[])
}

fn with_variables(text: &str, variables: &[(&'static str, &str)]) -> (TempDir, SettingsFile) {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::write(home.path().join("config.toml"), text).expect("written");
    let path = home.path().as_os_str().to_owned();
    let variables = variables.iter().map(|(name, value)| (*name, value.into()));
    let environment: Environment = variables.chain([("HOB_HOME", path)]).collect();
    (home, SettingsFile::new(environment))
}

fn text_in(home: &Path) -> String {
    std::fs::read_to_string(home.join("config.toml")).expect("readable")
}

fn setting(file: &SettingsFile, key: &str) -> Setting {
    let sections = file.list().expect("a valid file");
    sections
        .into_iter()
        .flat_map(|section| section.settings)
        .find(|setting| setting.key == key)
        .expect("a key")
}

fn wanted(changes: &[(&str, Value)]) -> BTreeMap<String, Option<Value>> {
    changes
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (!value.is_null()).then(|| value.clone())))
        .collect()
}

#[test]
fn a_setting_has_its_value_and_says_where_it_comes_from() {
    let (_home, file) = home(TEXT);
    let port = setting(&file, "server.port");
    assert_eq!(
        port,
        Setting {
            key: "server.port".into(),
            about: "Port to listen on.",
            expected: port.expected,
            choices: &[],
            default: json!(8000),
            value: Some(json!(9000)),
            is_set: true,
            source: SettingSource::File,
            is_changeable: false,
        }
    );
    let agent = setting(&file, "server.agent");
    assert_eq!((agent.source, agent.value), (SettingSource::Default, Some(json!("orchestrator"))));
    assert_eq!(agent.choices, ["simple", "orchestrator", "react", "codeact"]);
    // The same value as the default, and yet written.
    let (_home, file) = home("[server]\nport = 8000\n");
    assert_eq!(setting(&file, "server.port").source, SettingSource::File);
}

#[test]
fn a_secret_is_never_shown() {
    let (_home, file) = home(TEXT);
    let key = setting(&file, "server.api_key");
    assert_eq!((key.value, key.is_set, key.is_changeable), (None, true, false));
    assert!(!format!("{:?}", file.list().expect("a valid file")).contains("s3cret"));
}

#[test]
fn what_a_variable_sets_cannot_be_changed() {
    let (home, file) = with_variables(TEXT, &[("HOB_DATABASE_URL", "postgres://db/hob")]);
    assert_eq!(setting(&file, "database.url").source, SettingSource::Environment("HOB_DATABASE_URL"));
    let error =
        file.change(&wanted(&[("database.url", json!("postgres://other/hob"))])).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "database.url is set by $HOB_DATABASE_URL. Change or unset that variable, and restart Hob."
    );
    assert_eq!(text_in(home.path()), TEXT);
}

#[test]
fn a_change_keeps_comments_and_order() {
    let (home, file) = home(TEXT);
    let changes = [("memory.chunk_size", json!(300)), ("server.access_log", json!("json"))];
    let changed = file.change(&wanted(&changes)).expect("changed");
    assert_eq!(changed.keys, ["server.access_log", "memory.chunk_size"]);
    let expected = TEXT.replace("= 256", "= 300").replace("[server]\n", "[server]\naccess_log = \"json\"\n");
    assert_eq!(text_in(home.path()), expected);
    // Back to the default.
    let changed = file.change(&wanted(&[("memory.chunk_size", Value::Null)])).expect("changed");
    assert_eq!(changed.keys, ["memory.chunk_size"]);
    assert_eq!(text_in(home.path()), expected.replace("chunk_size = 300\n", ""));
}

#[test]
fn a_wrong_value_changes_nothing() {
    let (home, file) = home(TEXT);
    let changes = [("agent.max_turns", json!(4)), ("memory.chunk_size", json!("large"))];
    match file.change(&wanted(&changes)).expect_err("refused") {
        SettingsError::Invalid(bad) => {
            assert_eq!((bad.key.as_str(), bad.got.as_str()), ("memory.chunk_size", "\"large\""))
        }
        error => panic!("{error}"),
    }
    assert!(matches!(
        file.change(&wanted(&[("memory.chunk_size", json!({ "a": 1 }))])),
        Err(SettingsError::Invalid(_))
    ));
    assert_eq!(text_in(home.path()), TEXT);
}

#[test]
fn what_gives_power_over_the_machine_is_read_only() {
    let (home, file) = home(TEXT);
    for (key, value) in [
        ("server.host", json!("0.0.0.0")),
        ("server.api_key", json!("")),
        ("server.tls.cert", json!("/etc/passwd")),
        ("server.cors_origins", json!(["*"])),
        ("engine.llamacpp.binary_path", json!("/bin/sh")),
        ("engine.ollama.host", json!("http://evil.example")),
        ("intelligence.allow_cloud_fallback", json!(true)),
        ("sandbox.enabled", json!(false)),
        ("tools.file_roots", json!(["/"])),
        ("mcp.servers", json!("x")),
        ("telemetry.otlp_endpoint", json!("http://evil.example")),
        ("database.password_file", json!("/etc/passwd")),
        ("channel.trust", json!("x")),
    ] {
        let error = file.change(&wanted(&[(key, value)])).expect_err("refused");
        assert!(
            matches!(&error, SettingsError::Locked { key: refused, .. } if refused == key),
            "{key}: {error}"
        );
    }
    assert_eq!(text_in(home.path()), TEXT);
}

#[test]
fn the_cloud_is_not_newly_named_and_may_stay() {
    let (folder, file) = home(TEXT);
    for (key, value) in [("engine.default", json!("cloud")), ("engine.pool", json!(["ollama", "cloud"]))] {
        let error = file.change(&wanted(&[(key, value)])).expect_err("refused");
        assert!(matches!(&error, SettingsError::Cloud { key: refused, .. } if *refused == key), "{error}");
    }
    assert_eq!(text_in(folder.path()), TEXT);

    let (folder, file) = home("[engine]\ndefault = \"cloud\"\npool = [\"cloud\"]\n");
    file.change(&wanted(&[("engine.pool", json!(["cloud", "ollama"]))])).expect("changed");
    file.change(&wanted(&[("engine.default", json!("ollama"))])).expect("changed");
    assert_eq!(text_in(folder.path()), "[engine]\ndefault = \"ollama\"\npool = [\"cloud\", \"ollama\"]\n");
    let error = file.change(&wanted(&[("engine.default", json!("cloud"))])).expect_err("refused");
    assert!(matches!(error, SettingsError::Cloud { key: "engine.default", .. }), "{error}");
}

#[test]
fn a_change_never_makes_a_file_that_is_too_large_to_read() {
    let (folder, file) = home(TEXT);
    let long = json!("a".repeat(LONGEST_TEXT + 1));
    for value in [long.clone(), json!(["b", long])] {
        let error = file.change(&wanted(&[("server.model", value)])).expect_err("refused");
        assert_eq!(error.to_string(), "server.model: expected at most 10000 characters, got a longer text");
    }
    let many = vec![json!("a".repeat(LONGEST_TEXT)); LARGEST / LONGEST_TEXT + 1];
    let error = file.change(&wanted(&[("engine.pool", json!(many))])).expect_err("refused");
    assert!(matches!(error, SettingsError::TooLarge), "{error}");
    assert_eq!(text_in(folder.path()), TEXT);

    // One that has almost the largest size already.
    let full = format!("#{}\n{TEXT}", "x".repeat(LARGEST - TEXT.len() - 2));
    let (folder, file) = home(&full);
    let error = file.change(&wanted(&[("memory.chunk_size", json!(1024))])).expect_err("refused");
    assert!(matches!(error, SettingsError::TooLarge), "{error}");
    assert_eq!(text_in(folder.path()), full);
}

#[test]
fn a_name_that_no_setting_has_is_refused_with_the_nearest() {
    let (_home, file) = home(TEXT);
    let error = file.change(&wanted(&[("agent.max_turn", json!(4))])).expect_err("refused");
    assert_eq!(error.to_string(), "there is no setting 'agent.max_turn'. Did you mean 'agent.max_turns'?");
}

#[test]
fn every_pattern_of_changeable_keys_names_a_key() {
    let (_home, file) = home("");
    let sections = file.list().expect("a valid file");
    let keys: Vec<&Setting> = sections.iter().flat_map(|section| &section.settings).collect();
    for pattern in CHANGEABLE {
        let matches = |setting: &&&Setting| {
            setting.key == pattern
                || pattern.strip_suffix('*').is_some_and(|section| setting.key.starts_with(section))
        };
        assert!(keys.iter().any(|setting| matches(&setting)), "{pattern}");
    }
    // A value that is a table cannot be written by a change.
    assert!(keys.iter().filter(|setting| setting.is_changeable).all(|setting| !setting.default.is_object()));
}

#[test]
fn the_file_is_parsed_once_for_all_settings() {
    let (_home, large) = home(&format!("{}{TEXT}", "#\n".repeat((LARGEST - TEXT.len()) / 2)));
    let (_home_of_small, small) = home(TEXT);
    // The shortest of several times, because other programs of the machine delay some.
    let shortest = |work: &dyn Fn()| {
        let times = (0..5).map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        });
        times.min().expect("several times")
    };
    let list = |file: &SettingsFile| drop(file.list().expect("a valid file"));
    let load_once = shortest(&|| drop(crate::load(&large.environment).expect("a valid file")));
    let (of_large, of_small) = (shortest(&|| list(&large)), shortest(&|| list(&small)));
    // There are hundreds of settings.
    assert!(of_large < of_small + load_once * 20, "{of_large:?} for a file that is loaded in {load_once:?}");
}

#[test]
fn without_a_file_a_change_makes_one() {
    let home = tempfile::tempdir().expect("a directory");
    let environment: Environment = [("HOB_HOME", home.path().as_os_str().to_owned())].into_iter().collect();
    let file = SettingsFile::new(environment);
    file.change(&wanted(&[("intelligence.default_model", json!("qwen3:8b"))])).expect("written");
    assert_eq!(text_in(home.path()), "[intelligence]\ndefault_model = \"qwen3:8b\"\n");
}

#[test]
fn changes_of_two_at_once_are_both_kept() {
    let (home, file) = home(TEXT);
    std::thread::scope(|scope| {
        for key in ["memory.chunk_size", "agent.max_turns"] {
            // Another process has its own value of this type too.
            let file = file.clone();
            scope.spawn(move || {
                for number in 100..140 {
                    file.change(&wanted(&[(key, json!(number))])).expect("changed");
                    assert_eq!(setting(&file, key).value, Some(json!(number)), "{key} was lost");
                }
            });
        }
        let environment: Environment =
            [("HOB_HOME", home.path().as_os_str().to_owned())].into_iter().collect();
        scope.spawn(move || {
            for number in 0..40 {
                let model = format!("model-{number}");
                let setting = crate::LocalSetting::new("intelligence", "default_model", model);
                crate::write_local_settings(&environment, &[setting]).expect("changed");
            }
        });
    });
    let values = ["memory.chunk_size", "agent.max_turns", "intelligence.default_model"]
        .map(|key| setting(&file, key).value.expect("no secret"));
    assert_eq!(values, [json!(139), json!(139), json!("model-39")]);
}

#[test]
fn whatsapp_is_turned_on_only_by_its_own_call() {
    let (folder, file) = home(TEXT);
    let error = file.change(&wanted(&[(WHATSAPP_SWITCH, json!(true))])).expect_err("refused");
    assert!(matches!(error, SettingsError::Locked { .. }), "{error}");
    assert_eq!(file.turn_on_whatsapp().expect("changed").keys, [WHATSAPP_SWITCH]);
    assert_eq!(text_in(folder.path()), format!("{TEXT}\n[channel.whatsapp]\nenabled = true\n"));
    assert_eq!(file.turn_on_whatsapp().expect("nothing to change").keys, [] as [&str; 0]);
}

#[test]
fn what_a_change_applies_is_in_effect_before_another_change_begins() {
    use std::time::Duration;
    let (home, file) = home("[intelligence]\ndefault_model = \"a\"\n");
    let path = home.path().join("config.toml");
    let mut applied = None;
    let chosen = |sections: &[SettingSection]| {
        assert!(sections.iter().any(|section| section.name == "intelligence"));
        wanted(&[("intelligence.default_model", json!("b"))])
    };
    let changed = file.change_and_apply(chosen, || {
        FileLock::take_within(&path, Duration::ZERO).expect_err("another change waits");
        applied = Some(text_in(home.path()));
    });
    assert_eq!(changed.expect("changed").keys, ["intelligence.default_model"]);
    assert_eq!(applied.as_deref(), Some("[intelligence]\ndefault_model = \"b\"\n"));
    FileLock::take_within(&path, Duration::ZERO).expect("free again");

    let unknown = |_: &[SettingSection]| wanted(&[("intelligence.no_such_setting", json!(1))]);
    let refused = file.change_and_apply(unknown, || panic!("nothing was written"));
    refused.expect_err("an unknown setting");
}
