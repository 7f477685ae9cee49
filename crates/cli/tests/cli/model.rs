//! `hob model`.

use std::time::Duration;

use hob_testkit::{FakeServer, Reply, part};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::fakes;
use crate::home::{Home, NOWHERE, Ran, engines_config};
use crate::terminal::Terminal;

async fn two_engines() -> (FakeServer, FakeServer, Home) {
    let (ollama, vllm) = (fakes::ollama().await, fakes::vllm().await);
    let home = Home::with_engines(&[("ollama", &ollama.url()), ("vllm", &vllm.url())]);
    (ollama, vllm, home)
}

#[tokio::test]
async fn one_table_lists_the_models_of_all_engines() {
    let (_ollama, _vllm, home) = two_engines().await;
    let ran = home.run(&["model", "list"]).await;
    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(ran.stdout, @r"
    ENGINE  MODEL                     PARAMS  CONTEXT    SIZE
    ollama  smollm2:latest (default)  134.5M       8k  ~94 MB
    ollama  smollm2-tools:latest      134.5M       8k  ~94 MB
    vllm    smollm2                        -       2k       -
    ");
    insta::assert_snapshot!(ran.stderr, @r"
    Not running: sglang at http://127.0.0.1:9, llamacpp at http://127.0.0.1:9, litellm at http://127.0.0.1:9
    ");
}

#[tokio::test]
async fn a_program_reads_the_list_as_json() {
    let (_ollama, _vllm, home) = two_engines().await;
    let ran = home.run(&["model", "list", "--json"]).await;
    let list: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(3), "{list}");
    let expected = json!({
        "engine": "ollama",
        "model": "smollm2:latest",
        "parameters": 134515008,
        "context": 8192,
        "size": 98363034,
        "quantization": "Q4_1",
        "kind": "text",
        "default": true,
    });
    assert_eq!(list[0], expected);
    assert_eq!(list[1]["default"], false);
}

#[tokio::test]
async fn a_model_is_chosen_by_name_and_the_file_keeps_its_comments() {
    let (_ollama, _vllm, home) = two_engines().await;
    let before = format!("# mine\n{}", std::fs::read_to_string(home.config_file()).expect("a file"));
    std::fs::write(home.config_file(), &before).expect("written");
    let ran = home.run(&["model", "use", "smollm2-tools"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("The default model is now smollm2-tools:latest ("), "{}", ran.stdout);
    let after = std::fs::read_to_string(home.config_file()).expect("a file");
    assert_eq!(after, format!("{before}\n[intelligence]\ndefault_model = \"smollm2-tools:latest\"\n"));
    let listed = home.run(&["model", "list"]).await.stdout;
    assert!(listed.contains("smollm2-tools:latest (default)"), "{listed}");
    assert!(!listed.contains("smollm2:latest (default)"), "{listed}");

    let auto = home.run(&["model", "use", "auto"]).await;
    assert_eq!(auto.code, Some(0), "{}", auto.stderr);
    let after = std::fs::read_to_string(home.config_file()).expect("a file");
    assert!(after.ends_with("[intelligence]\ndefault_model = \"auto\"\n"), "{after}");
}

#[tokio::test]
async fn only_an_existing_model_can_become_the_default() {
    let (_ollama, _vllm, home) = two_engines().await;
    let before = std::fs::read_to_string(home.config_file()).expect("a file");
    for (name, said) in [("smolm2", "Did you mean smollm2"), ("default", "is an alias for the default model")]
    {
        let ran = home.run(&["model", "use", name]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert_eq!(std::fs::read_to_string(home.config_file()).expect("a file"), before);
}

#[tokio::test]
async fn a_chosen_model_without_effect_is_a_warning() {
    let (_ollama, vllm, home) = two_engines().await;
    let only_there = FakeServer::start(|request| match request.path.as_str() {
        "/v1/models" => Reply::json(200, r#"{"object":"list","data":[{"id":"large","object":"model"}]}"#),
        _ => Reply::json(404, "{}"),
    })
    .await;
    let text = std::fs::read_to_string(home.config_file()).expect("a file");
    std::fs::write(home.config_file(), text.replace(&vllm.url(), &only_there.url())).expect("written");
    let ran = home.run(&["model", "use", "large"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("vllm has this model, but ollama answers."), "{}", ran.stderr);
}

/// An Ollama with these models.
async fn ollama_with(models: &'static [&'static str]) -> FakeServer {
    FakeServer::start(move |request| match request.path.as_str() {
        "/api/tags" => {
            let models: Vec<Value> =
                models.iter().map(|name| json!({ "name": name, "model": name })).collect();
            Reply::json(200, json!({ "models": models }).to_string())
        }
        "/api/chat" => Reply::ndjson(format!("{}{}", fakes::piece("hi"), fakes::END)),
        _ => Reply::json(404, "{}"),
    })
    .await
}

#[tokio::test]
async fn the_default_stays_when_another_model_is_pulled() {
    let before = ollama_with(&["mistral:latest"]).await;
    let home = Home::with_engines(&[("ollama", &before.url())]);
    assert_eq!(home.run(&["ask", "hello"]).await.code, Some(0));
    // The same machine with another model, which is first in the list.
    let after = ollama_with(&["alpha:latest", "mistral:latest"]).await;
    std::fs::write(home.config_file(), engines_config(&[("ollama", &after.url())])).expect("written");
    let listed = home.run(&["model", "list"]).await.stdout;
    assert!(listed.contains("mistral:latest (default)"), "{listed}");
    for name in [&[][..], &["-m", "default"]] {
        let ran = home.run(&[&["ask", "hello"], name].concat()).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let asked = after.requests().into_iter().rfind(|request| request.path == "/api/chat").expect("asked");
        assert!(asked.text().contains("mistral:latest"), "{}", asked.text());
    }
    // A removed model cannot stay the default.
    let without = ollama_with(&["alpha:latest", "beta:latest"]).await;
    std::fs::write(home.config_file(), engines_config(&[("ollama", &without.url())])).expect("written");
    let ran = home.run(&["ask", "hello"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the default model is gone"), "{}", ran.stderr);
    let again = home.run(&["ask", "hello"]).await;
    assert!(!again.stderr.contains("gone"), "it is said once: {}", again.stderr);
}

#[tokio::test]
async fn without_an_engine_there_is_no_list() {
    let home = Home::with_engines(&[]);
    for command in [&["model", "list", "--json"][..], &["run", "nope", "Hello"]] {
        let ran = home.run(command).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
        assert!(
            ran.stderr.starts_with("error: no engine answers: ollama at http://127.0.0.1:9, "),
            "{}",
            ran.stderr
        );
    }
}

#[tokio::test]
async fn names_from_engines_cannot_control_the_terminal() {
    let evil = "{\"models\": [{\"name\": \"a\\u001b]0;owned\\u0007b\\nc\"}]}";
    let ollama = FakeServer::start(move |request| match request.path.as_str() {
        "/api/tags" => Reply::json(200, evil),
        _ => Reply::json(404, "{}"),
    })
    .await;
    let ran = Home::with_engines(&[("ollama", &ollama.url())]).run(&["model", "list"]).await;
    assert!(ran.stdout.contains("a]0;ownedb c"), "{:?}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
}

#[tokio::test]
async fn a_model_is_described_for_every_engine_that_has_it() {
    let (ollama, vllm, home) = two_engines().await;
    let ran = home.run(&["model", "info", "smollm2"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let stdout = ran.stdout.replace(&ollama.url(), "http://OLLAMA").replace(&vllm.url(), "http://VLLM");
    insta::assert_snapshot!(stdout, @r"
    Model         smollm2:latest
    Engine        ollama at http://OLLAMA
    Family        llama
    Parameters    134.5M
    Quantisation  Q4_1
    Context       8k tokens
    Memory        about 94 MB, plus its context
    Capabilities  completion
    Licence       apache-2.0

    Model    smollm2
    Engine   vllm at http://VLLM
    Context  2k tokens
    ");
    let ran = home.run(&["model", "info", "smollm2", "--json"]).await;
    let known: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&known[0]["engine"], &known[1]["engine"]), (&json!("ollama"), &json!("vllm")));
    assert_eq!(known[0]["family"], "llama");
}

#[tokio::test]
async fn an_unknown_model_gets_suggestions() {
    let (_ollama, _vllm, home) = two_engines().await;
    let ran = home.run(&["model", "info", "smolm2:latest"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(ran.stderr, @r"
    error: no engine has the model 'smolm2:latest'. Did you mean smollm2:latest, smollm2, smollm2-tools:latest? 'hob model list' lists all models, 'hob model list --available' those to download.
    ");
    let ran = home.run(&["show", "default"]).await;
    assert_eq!(
        ran.stderr,
        "error: 'default' is no model of its own: Hob chooses one. 'hob' shows the default model.\n"
    );
}

/// An Ollama that downloads.
async fn downloading(body: String) -> FakeServer {
    FakeServer::start(move |request| match request.path.as_str() {
        "/api/tags" => Reply::transcript("ollama/tags"),
        "/api/pull" => Reply::ndjson(body.clone()),
        _ => Reply::json(404, "{}"),
    })
    .await
}

#[tokio::test]
async fn a_download_shows_its_progress() {
    let layer = |completed: u64| json!({ "status": "pulling abc", "digest": "sha256:abcdef0123456789", "total": 400 << 20, "completed": completed << 20 });
    let steps = [
        json!({ "status": "pulling manifest" }),
        layer(0),
        layer(150),
        layer(400),
        json!({ "status": "verifying sha256 digest" }),
        json!({ "status": "success" }),
    ];
    let ollama = downloading(steps.iter().map(|step| format!("{step}\n")).collect()).await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let ran = home.run(&["model", "pull", "qwen3:0.6b"]).await;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "qwen3:0.6b is ready. Try it: hob ask -m qwen3:0.6b 'Hello'\n")
    );
    insta::assert_snapshot!(ran.stderr, @r"
    pulling manifest
    abcdef012345: 0 % of 400 MB
    abcdef012345: 25 % of 400 MB
    abcdef012345: 100 % of 400 MB
    verifying sha256 digest
    success
    ");
    let pull = ollama.requests().into_iter().find(|request| request.path == "/api/pull").expect("a download");
    assert_eq!(pull.text(), "{\"model\":\"qwen3:0.6b\"}");
    let log = home.run(&["audit", "export"]).await.stdout;
    assert!(log.contains(r#""action":"model.pull","subject":"qwen3:0.6b""#), "{log}");
}

#[tokio::test]
async fn a_download_that_fails_says_why() {
    let offline = FakeServer::start(|request| match request.path.as_str() {
        "/api/tags" => Reply::transcript("ollama/tags"),
        _ => Reply::transcript("ollama/pull_offline"),
    })
    .await;
    let ran = Home::with_engines(&[("ollama", &offline.url())]).run(&["model", "pull", "tinyllama"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("no such host"), "{}", ran.stderr);

    let broken = downloading("{\"status\": \"pulling manifest\"}\n".into()).await;
    let ran = Home::with_engines(&[("ollama", &broken.url())]).run(&["model", "pull", "tinyllama"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
}

#[tokio::test]
async fn a_download_needs_ollama() {
    let ran = Home::with_engines(&[("ollama", NOWHERE)]).run(&["model", "pull", "qwen9"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(ran.stderr, @r"
    error: Unknown model 'qwen9'. Did you mean qwen3:4b, qwen3:8b, qwen3:14b? 'hob model search qwen9' looks for it; or start Ollama to pull from its library. Ollama does not answer on http://127.0.0.1:9. Start it with 'OLLAMA_HOST=127.0.0.1:9 ollama serve'.
    ");
}

#[tokio::test]
async fn a_repository_without_the_hub_is_not_a_missing_file_only() {
    let ran = Home::with_engines(&[]).run(&["model", "pull", "foo/bar"]).await;
    let stderr = "error: there is no file foo/bar. If you mean the hub: hob model pull hf:foo/bar\n";
    assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr: stderr.to_owned() });
}

#[tokio::test]
async fn an_interrupted_tuning_leaves_no_files() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let home = Home::with_engines(&[]);
        let models = home.directory().join("models");
        std::fs::create_dir(&models).expect("a directory");
        std::os::unix::fs::symlink(part("HOB_TEST_MODEL"), models.join("smollm2.gguf")).expect("a link");
        let mut child = home.hob(&["model", "tune", "smollm2"]).spawn().expect("hob starts");
        let work = models.join("tuned/smollm2.gguf.part");
        while !work.join("model.gguf").exists() {
            assert_eq!(child.try_wait().expect("our child"), None, "it ended before it began");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)).expect("it runs");
        kill_process(pid, signal).expect("it runs");
        let ran = Ran::from(child.wait_with_output().await.expect("it ends"));
        let said = "Stopped. smollm2 is unchanged; the incomplete requantised file was removed.\n";
        assert_eq!(ran, Ran { code: Some(code), stdout: String::new(), stderr: said.to_owned() });
        assert!(!work.exists(), "{signal:?}");
    }
}

#[tokio::test]
async fn the_default_model_is_not_deleted_without_a_question_or_a_note() {
    let config = format!("{}[intelligence]\ndefault_model = \"mine\"\n", engines_config(&[]));
    let home = Home::with_config(&config);
    let directory = home.directory().join("models");
    std::fs::create_dir(&directory).expect("a directory");
    let put = |name: &str| {
        let file = directory.join(format!("{name}.gguf"));
        std::fs::write(&file, "GGUF, but no more").expect("written");
        file
    };
    let note = "mine was the default model. Choose another one: hob model use NAME\n";

    let file = put("mine");
    let ran = home.run(&["model", "rm", "mine"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Deleted mine.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains(note) && !file.exists(), "{}", ran.stderr);
    put("other");
    let ran = home.run(&["model", "rm", "other"]).await;
    assert!(ran.code == Some(0) && !ran.stderr.contains("default"), "{}", ran.stderr);

    put("mine");
    for (answer, is_kept) in [("n", true), ("y", false)] {
        let mut terminal = Terminal::start(&home, &["model", "rm", "mine"]);
        terminal.sees("mine is the default model. Delete it? [y/N] ").await;
        terminal.line(answer).await;
        assert_eq!((terminal.end().await, file.exists()), (Some(0), is_kept), "{}", terminal.text());
    }
    put("mine");
    let mut terminal = Terminal::start(&home, &["model", "rm", "-y", "mine"]);
    assert_eq!((terminal.end().await, file.exists()), (Some(0), false), "{}", terminal.text());
}

#[tokio::test]
async fn the_address_of_a_file_that_is_no_model_says_which_form_works() {
    let home = Home::with_engines(&[]);
    let ran = home.run(&["model", "pull", "https://huggingface.co/a/b/blob/v2/x.gguf"]).await;
    assert!(ran.code == Some(1) && ran.stderr.contains("Write hf:owner/repo:file.gguf"), "{}", ran.stderr);
}
