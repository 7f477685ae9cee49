//! Models from the built-in list and from a model hub, Ollama's commands, and the first model of a new installation.

use std::fmt::Write;
use std::time::Instant;

use hob_models::catalogue;
use hob_testkit::repository::root;
use hob_testkit::{FakeServer, Recorded, Reply, part};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fakes;
use crate::home::{Home, NOWHERE, Ran, WAIT_LIMIT, engines_config, finish};
use crate::running::Running;
use crate::terminal::Terminal;

/// The checksum of the model that all names of this hub lead to.
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// A hub with these files of these repositories, all with the content of the small test model, and a search.
async fn hub(files: &'static [(&'static str, &'static str)]) -> FakeServer {
    let model = std::fs::read(part("HOB_TEST_MODEL")).expect("a model");
    FakeServer::start(move |request| answer(files, &model, request)).await
}

fn answer(files: &[(&str, &str)], model: &[u8], request: &Recorded) -> Reply {
    if request.path.starts_with("/api/models?search=") {
        return Reply::json(
            200,
            json!([
                { "id": "Qwen/Qwen3-8B-GGUF", "downloads": 250_000, "tags": ["gguf", "license:apache-2.0"] },
                { "id": "someone/odd\u{1b}[31m", "downloads": 3, "tags": ["gguf"] },
                { "id": "someone/mine", "tags": ["gguf"] },
            ])
            .to_string(),
        );
    }
    for (repo, file) in files {
        if request.path == format!("/api/models/{repo}/tree/main?recursive=1") {
            let lfs = json!({ "oid": SHA256, "size": model.len(), "pointerSize": 134 });
            let listed =
                json!([{ "type": "file", "path": file, "size": model.len(), "oid": "0123", "lfs": lfs }]);
            return Reply::json(200, listed.to_string());
        }
        if request.path == format!("/{repo}/resolve/main/{file}") {
            return Reply::new(200, "application/octet-stream", model);
        }
    }
    match request.path.ends_with("/SmolLM2-135M-Instruct.Q4_1.gguf") {
        true => Reply::new(200, "application/octet-stream", model),
        false => Reply::json(404, r#"{"error":"Repository not found"}"#),
    }
}

const QWEN3_8B: &[(&str, &str)] = &[("Qwen/Qwen3-8B-GGUF", "Qwen3-8B-Q4_K_M.gguf")];
const QWEN3_SMALL: &[(&str, &str)] = &[("Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf")];

/// A home without engines, whose embedded engine has this many megabytes.
fn home_with_memory(megabytes: u32) -> Home {
    // A small model may not come to an end by itself.
    Home::with_config(&format!(
        "{}\n[engine.embedded]\nmemory_mb = {megabytes}\n[intelligence]\nmax_tokens = 16\n",
        engines_config(&[])
    ))
}

fn with_hub(home: &Home, hub: &FakeServer, arguments: &[&str]) -> Command {
    let mut command = home.hob(arguments);
    command.env("HF_ENDPOINT", hub.url());
    command
}

async fn run(home: &Home, hub: &FakeServer, arguments: &[&str]) -> Ran {
    finish(with_hub(home, hub, arguments)).await
}

#[tokio::test]
async fn a_short_name_works_without_ollama_from_the_download_to_the_end() {
    let hub = hub(QWEN3_8B).await;
    let home = home_with_memory(4_000);
    let pulled = run(&home, &hub, &["model", "pull", "qwen3:8b"]).await;
    assert_eq!(pulled.code, Some(0), "{}", pulled.stderr);
    assert_eq!(pulled.stdout, "qwen3:8b is ready. Try it: hob ask -e embedded -m qwen3:8b 'Hello'\n");

    let shown = home.run(&["show", "qwen3:8b"]).await;
    insta::assert_snapshot!(shown.stdout, @r"
    Model           qwen3-8b
    Engine          embedded
    Family          llama
    Parameters      134.5M
    Quantisation    Q4_1
    Context         8k tokens, as it is trained for
    Weights         94 MB
    KV cache        180 MB for a conversation of 8k tokens, in f16
    Compute buffer  39 MB
    Slots           64 conversations at a time, 172544 tokens together
    Memory          about 184 MB at the start, 344 MB with one full conversation, 3.9 GB at most
    Capabilities    chat, tools, reasoning
    Licence         apache-2.0
    ");

    let used = home.run(&["model", "use", "qwen3:8b"]).await;
    assert!(used.stdout.starts_with("The default model is now qwen3-8b ("), "{}{}", used.stdout, used.stderr);
    let question = "What is the capital of France? Answer in one sentence.";
    let asked = home.run(&["ask", "--offline", "-t", "0", "-m", "qwen3:8b", question]).await;
    assert!(asked.stdout.contains("Paris"), "{}{}", asked.stdout, asked.stderr);
    // Ollama's way to ask, and its name without a tag.
    let asked = home.run(&["run", "qwen3", "Say", "hello."]).await;
    assert!(asked.code == Some(0) && !asked.stdout.is_empty(), "{}", asked.stderr);

    let removed = home.run(&["rm", "qwen3:8b"]).await;
    assert_eq!(removed.stdout, "Deleted qwen3:8b.\n");
    assert!(removed.stderr.contains("qwen3:8b was the default model."), "{}", removed.stderr);
    let gone = home.run(&["run", "qwen3:8b", "Hello"]).await;
    assert_eq!(gone.code, Some(1));
    insta::assert_snapshot!(gone.stderr, @"error: no engine has the model 'qwen3:8b'. Download it with 'hob model pull qwen3:8b' (about 4.7 GB, licence apache-2.0).");
}

#[tokio::test]
async fn a_running_ollama_pulls_short_names_and_hob_its_own() {
    let ollama = FakeServer::start(|request| match request.path.as_str() {
        "/api/tags" => Reply::transcript("ollama/tags"),
        "/api/pull" => Reply::ndjson("{\"status\":\"success\"}\n"),
        _ => Reply::json(404, "{}"),
    })
    .await;
    let hub = hub(QWEN3_8B).await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let pulled = run(&home, &hub, &["pull", "qwen3:8b"]).await;
    assert_eq!(
        pulled.stdout, "qwen3:8b is ready. Try it: hob ask -m qwen3:8b 'Hello'\n",
        "{}",
        pulled.stderr
    );
    assert_eq!(hub.requests(), []);
    let pulled = run(&home, &hub, &["pull", "qwen3-8b"]).await;
    assert_eq!(pulled.code, Some(0), "{}", pulled.stderr);
    assert!(home.directory().join("models/qwen3-8b.gguf").exists());
}

#[tokio::test]
async fn a_search_shows_the_built_in_list_and_the_hub() {
    let hub = hub(&[]).await;
    let home = Home::with_engines(&[]);
    let ran = run(&home, &hub, &["model", "search", "qwen3", "8b"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    insta::assert_snapshot!(ran.stdout, @r"
    NAME                      SIZE  DOWNLOADS  LICENCE
    qwen3:8b               ~4.7 GB          -  apache-2.0
    hf:Qwen/Qwen3-8B-GGUF        -     250000  apache-2.0
    hf:someone/mine              -          -  -
    ");
    let ran = run(&home, &hub, &["model", "search", "qwen3 8b", "-n", "1", "--json"]).await;
    let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let expected = json!([
        { "name": "qwen3:8b", "size": 5_030_000_000_u64, "downloads": null, "license": "apache-2.0", "built_in": true },
        { "name": "hf:Qwen/Qwen3-8B-GGUF", "size": null, "downloads": 250_000, "license": "apache-2.0", "built_in": false },
    ]);
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_search_without_the_hub_shows_the_built_in_list_and_says_why() {
    let home = Home::with_engines(&[]);
    let ran = home.run(&["model", "search", "qwen3:8b"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("qwen3:8b"), "{}", ran.stdout);
    let said = format!("error: the model hub at {NOWHERE} cannot be reached (");
    assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
    let ran = home.run(&["model", "search", "--offline", "qwen3:8b"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let ran = home.run(&["model", "search", "--offline", "no such model"]).await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "No model matches 'no such model'.\n"));
}

#[tokio::test]
async fn the_list_of_available_models_says_what_fits() {
    let home = home_with_memory(8_500);
    let ran = home.run(&["model", "list", "--available", "--json"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut list: Vec<Value> = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(list.len() > 30, "{}", list.len());
    let by_name = |list: &mut Vec<Value>, name: &str| {
        let mut found = list.iter().find(|model| model["name"] == name).expect(name).clone();
        let speed = found.as_object_mut().expect("an object").remove("tokens_per_second");
        (found, speed.expect("a speed"))
    };
    let (qwen, speed) = by_name(&mut list, "qwen3:8b");
    let expected = json!({
        "name": "qwen3:8b",
        "id": "qwen3-8b",
        "about": "general use, tools and reasoning with 16 GB of memory",
        "size": 5_030_000_000_u64,
        "license": "apache-2.0",
        "parameters": 8_190_000_000_u64,
        "context": 40960,
        "capabilities": ["chat", "tools", "reasoning"],
        // Weights, a usual conversation, buffers and the library.
        "memory": 5_030_000_000_u64 + 147_456 * 8192 + 87_885_760 + 72_582_912,
        "fits": true,
        "downloaded": false,
    });
    assert_eq!(qwen, expected);
    assert!(speed.as_f64().is_some_and(|speed| speed > 0.0), "{speed}");
    let (large, speed) = by_name(&mut list, "llama3.3:70b");
    assert_eq!((&large["fits"], &speed), (&json!(false), &Value::Null));

    let ran = home.run(&["model", "list", "--available"]).await;
    let line = |name: &str| ran.stdout.lines().find(|line| line.starts_with(name)).expect(name).to_owned();
    assert!(line("qwen3:8b ").contains("  yes") && line("qwen3:8b ").contains("  about "), "{}", ran.stdout);
    assert!(line("llama3.3:70b ").contains("no, needs 4"), "{}", ran.stdout);
    assert!(
        ran.stderr.starts_with("All figures are estimates. This machine has 8.3 GB of memory"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_model_that_is_not_here_is_described_and_can_be_chosen() {
    let home = home_with_memory(4_000);
    let shown = home.run(&["model", "info", "gemma3:4b"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    insta::assert_snapshot!(shown.stdout, @r"
    Model           gemma3:4b
    Engine          none yet: 'hob model pull gemma3:4b' downloads it (about 3.1 GB)
    Use             many languages; pictures
    Parameters      3.9B
    Source          hf:ggml-org/gemma-3-4b-it-GGUF:gemma-3-4b-it-Q4_K_M.gguf
    Context         4608 tokens; the model is trained for 128k
    Weights         3.1 GB
    KV cache        612 MB for a conversation of 4608 tokens, in f16
    Compute buffer  88 MB
    Slots           9 conversations at a time, 4608 tokens together
    Memory          about 3.4 GB at the start, 3.9 GB with one full conversation, 3.9 GB at most
    Capabilities    chat, vision
    Licence         gemma
    ");
    let used = home.run(&["model", "use", "gemma3:4b"]).await;
    assert!(used.stdout.starts_with("The default model is now gemma-3-4b-it ("), "{}", used.stdout);
    insta::assert_snapshot!(used.stderr, @"warning: No engine has gemma3:4b yet. Download it with 'hob model pull gemma3:4b' (about 3.1 GB, licence gemma).");
    let used = home.run(&["model", "use", "bge-m3"]).await;
    assert_eq!(
        used.stderr,
        "error: bge-m3 makes embeddings and cannot answer questions. Choose another model.\n"
    );
}

/// The models in memory, once there is one: on a busy machine, an engine may take longer to list them than Hob waits for it.
async fn models_in_memory(home: &Home) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let ran = home.run(&["ps", "--json"]).await;
        let models: Vec<Value> = serde_json::from_str(&ran.stdout).expect("JSON");
        if !models.is_empty() {
            return models;
        }
        assert!(started.elapsed() < WAIT_LIMIT, "{ran:?}");
    }
}

#[tokio::test]
async fn models_in_memory_are_listed_and_stopped() {
    let ollama = FakeServer::start(|request| match request.path.as_str() {
        "/api/tags" => Reply::transcript("ollama/tags"),
        "/api/ps" => Reply::transcript("ollama/ps_loaded"),
        "/api/chat" => Reply::transcript("ollama/chat_unload"),
        _ => Reply::json(404, "{}"),
    })
    .await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let models = models_in_memory(&home).await;
    let running = models[0]["model"].as_str().expect("a name").to_owned();
    assert_eq!(models[0]["engine"], "ollama");
    let stopped = home.run(&["stop", &running]).await;
    assert_eq!(stopped.stdout, format!("{running} is no longer in memory.\n"), "{}", stopped.stderr);
    let unloaded = ollama.requests().into_iter().rfind(|request| request.path == "/api/chat").expect("asked");
    assert!(unloaded.text().contains("\"keep_alive\":0"), "{}", unloaded.text());
    let absent = home.run(&["stop", "other"]).await;
    assert_eq!(absent.stderr, "error: 'other' is not in memory. 'hob ps' lists the models that are.\n");

    // A running server lists the engines that it uses, by the same names.
    let server = Running::start(&home, &[]).await;
    let served = models_in_memory(&home).await;
    assert_eq!((&served[0]["engine"], &served[0]["model"]), (&models[0]["engine"], &models[0]["model"]));
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn an_embedding_model_in_the_memory_of_a_servers_engine_is_listed_with_that_engine() {
    let ollama = FakeServer::start(|request| match request.path.as_str() {
        "/api/tags" => Reply::json(
            200,
            json!({ "models": [
                { "name": "smollm2:latest", "details": { "family": "llama" } },
                { "name": "all-minilm:latest", "details": { "family": "bert" } },
            ] })
            .to_string(),
        ),
        "/api/ps" => Reply::json(
            200,
            json!({ "models": [{ "name": "all-minilm:latest", "size": 1 << 20 }] }).to_string(),
        ),
        _ => Reply::json(404, "{}"),
    })
    .await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let server = Running::start(&home, &[]).await;
    let served = models_in_memory(&home).await;
    assert_eq!((&served[0]["engine"], &served[0]["model"]), (&json!("ollama"), &json!("all-minilm:latest")));
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_server_with_another_key_is_not_reported_as_empty() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let mut command = home.hob(&["serve", "--port", "0"]);
    command.env("HOB_API_KEY", "s3cret");
    let server = Running::of(command).await;
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    let refused = format!(
        "error: the server at http://localhost:{port} needs its key, which this shell does not have. Set HOB_API_KEY to it.\n"
    );
    for arguments in [&["ps"][..], &["stop", "smollm2"]] {
        let ran = home.run(arguments).await;
        assert_eq!((ran.code, &ran.stderr), (Some(1), &refused), "{arguments:?}");
    }
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_new_user_is_offered_the_best_model_that_fits() {
    let hub = hub(QWEN3_SMALL).await;
    // Only the smallest of the models that are offered fits.
    let home = home_with_memory(3_500);
    let mut terminal = Terminal::of(with_hub(&home, &hub, &["ask", "--max-tokens", "8", "Hello"]));
    // The line is wrapped to the terminal.
    for word in ["No engine is running.", "qwen3:0.6b", "609", "apache-2.0"] {
        terminal.sees(word).await;
    }
    terminal.sees("[y/N] ").await;
    terminal.line("y").await;
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.text());
    assert!(home.directory().join("models/qwen3-0.6b.gguf").exists());
    assert!(!home.directory().join("models/smollm2-135m-instruct.gguf").exists());
}

#[tokio::test]
async fn a_declined_offer_gets_the_small_model() {
    let hub = hub(QWEN3_SMALL).await;
    let home = home_with_memory(3_500);
    let mut terminal = Terminal::of(with_hub(&home, &hub, &["ask", "--max-tokens", "8", "Hello"]));
    terminal.sees("[y/N] ").await;
    terminal.line("").await;
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.text());
    assert!(home.directory().join("models/smollm2-135m-instruct.gguf").exists());
    assert!(!home.directory().join("models/qwen3-0.6b.gguf").exists());
}

#[tokio::test]
async fn ctrl_c_ends_the_question_of_the_first_run() {
    let hub = hub(QWEN3_SMALL).await;
    let home = home_with_memory(3_500);
    let mut terminal = Terminal::of(with_hub(&home, &hub, &["ask", "Hello"]));
    terminal.sees("[y/N] ").await;
    terminal.signal(Signal::INT);
    assert_eq!(terminal.end().await, Some(130), "{}", terminal.text());
}

#[tokio::test]
async fn a_script_gets_the_small_model_and_the_name_of_the_better_one() {
    let hub = hub(QWEN3_SMALL).await;
    let home = home_with_memory(3_500);
    let ran = run(&home, &hub, &["ask", "--max-tokens", "8", "Hello"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = "A better model fits this machine: qwen3:0.6b (about 609 MB, licence apache-2.0). Download and choose it with \
                'hob model pull qwen3:0.6b' and 'hob model use qwen3:0.6b'.\n";
    assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    assert!(!home.directory().join("models/qwen3-0.6b.gguf").exists());
    // A hub that does not have it gets no such line.
    let without = self::hub(&[]).await;
    let home = home_with_memory(3_500);
    let ran = run(&home, &without, &["ask", "--max-tokens", "8", "Hello"]).await;
    assert!(ran.code == Some(0) && !ran.stderr.contains("A better model fits"), "{}", ran.stderr);
}

#[test]
fn the_page_of_models_is_up_to_date() {
    const MARK: &str = "<!-- Made from the data file. To renew it: HOB_WRITE_DOCS=1 cargo nextest run -p hob the_page_of_models -->\n\n";
    let path = root().join("docs/models.md");
    let page = std::fs::read_to_string(&path).expect("docs/models.md");
    let (before, _) = page.split_once(MARK).expect("the mark");
    let mut table = "| Name | Also | Size | Licence | Context | Can | Use |\n| --- | --- | --- | --- | --- | --- | --- |\n".to_owned();
    for entry in catalogue() {
        let names: Vec<String> =
            [entry.name].iter().chain(entry.also.iter()).map(|name| format!("`{name}`")).collect();
        let can: Vec<&str> = entry.can.iter().map(|ability| ability.as_str()).collect();
        // In the units of the program.
        let megabytes = entry.total_size() as f64 / f64::from(1 << 20);
        let size = if megabytes < 999.5 {
            format!("{megabytes:.0} MB")
        } else {
            format!("{:.1} GB", megabytes / 1024.0)
        };
        let (short, names, can) = (entry.short_name, names.join(", "), can.join(", "));
        let (license, context, about) = (entry.license, entry.context, entry.about);
        writeln!(table, "| `{short}` | {names} | {size} | {license} | {context} | {can} | {about} |")
            .expect("a string");
    }
    let renewed = format!("{before}{MARK}{table}");
    if std::env::var_os("HOB_WRITE_DOCS").is_some() {
        std::fs::write(&path, &renewed).expect("docs/models.md can be written");
    }
    let written = std::fs::read_to_string(&path).expect("docs/models.md");
    assert!(
        written == renewed,
        "docs/models.md is out of date. Run: HOB_WRITE_DOCS=1 cargo nextest run -p hob the_page_of_models"
    );
}
