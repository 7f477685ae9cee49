//! `hob serve`.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_testkit::{FakeServer, Hold, Reply};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::fakes::{self, END, STREAMED, WHOLE, piece};
use crate::home::{Home, NOWHERE, Ran, engines_config, finish, free_port};
use crate::http::{chat, get};
use crate::running::Running;
use crate::terminal::Terminal;

const QUESTION: &str = r#"{"model": "default", "messages": [{"role": "user", "content": "Capital?"}]}"#;
const STREAMED_QUESTION: &str =
    r#"{"model": "default", "stream": true, "messages": [{"role": "user", "content": "Capital?"}]}"#;

#[tokio::test]
async fn the_summary_has_four_lines_and_a_chat_is_answered() {
    let ollama = fakes::ollama().await;
    let server = Running::start(&Home::with_engines(&[("ollama", &ollama.url())]), &[]).await;
    let summary = server.summary.join("\n").replace(&ollama.url(), "http://OLLAMA");
    let summary = summary.replace(server.address(), "127.0.0.1:PORT");
    insta::assert_snapshot!(summary, @r"
    Engine  ollama at http://OLLAMA
    Model   smollm2:latest
    Agent   orchestrator
    URL     http://127.0.0.1:PORT
    ");

    let whole = chat(server.address(), QUESTION).await.all().await;
    assert!(whole.starts_with("HTTP/1.1 200") && whole.contains(WHOLE), "{whole}");
    let streamed = chat(server.address(), STREAMED_QUESTION).await.all().await;
    assert!(streamed.contains("data: [DONE]"), "{streamed}");
    let last = STREAMED.rsplit(' ').next().expect("a word");
    assert!(streamed.contains(&format!("\"content\":\" {last}\"")), "{streamed}");
    assert!(get(server.address(), "/health").await.all().await.contains("{\"status\":\"ok\"}"));

    let ran = server.terminate().await;
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
}

#[tokio::test]
async fn the_access_log_has_every_request_also_the_last() {
    let ollama = fakes::ollama().await;
    let logging = "[server]\naccess_log = \"text\"\n";
    let config = engines_config(&[("ollama", &ollama.url())]).replacen("[server]\n", logging, 1);
    let server = Running::start(&Home::with_config(&config), &[]).await;
    for _ in 0..50 {
        assert!(get(server.address(), "/health/live").await.all().await.starts_with("HTTP/1.1 200"));
    }
    let ran = server.terminate().await;
    assert_eq!(ran.stderr.matches(" GET /health/live 200 ").count(), 50, "{}", ran.stderr);
}

#[tokio::test]
async fn a_fallback_engine_names_the_one_it_replaces() {
    let vllm = fakes::vllm().await;
    let home = Home::with_engines(&[("ollama", NOWHERE), ("vllm", &vllm.url())]);
    let server = Running::start(&home, &[]).await;
    assert_eq!(server.summary[0], format!("Engine  vllm at {} (ollama does not answer)", vllm.url()));
}

#[tokio::test]
async fn without_an_engine_it_says_what_to_start() {
    let home = Home::with_engines(&[("ollama", NOWHERE)]);
    let ran = home.run(&["serve"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(ran.stderr, @r"
    error: no engine answered on http://127.0.0.1:9 (ollama). Start it with 'OLLAMA_HOST=127.0.0.1:9 ollama serve', or run 'hob doctor'.
    Also tried: vllm at http://127.0.0.1:9, sglang at http://127.0.0.1:9, llamacpp at http://127.0.0.1:9, litellm at http://127.0.0.1:9.
    ");
}

#[tokio::test]
async fn flags_override_the_file() {
    let ollama = fakes::ollama().await;
    let vllm = fakes::vllm().await;
    let home = Home::with_config(
        &engines_config(&[("ollama", &ollama.url()), ("vllm", &vllm.url())])
            .replace("[engine]", "port = 1\nmodel = \"from-file\"\n[engine]"),
    );
    let server = Running::start(&home, &["--host", "localhost", "-e", "vllm", "-m", "smollm2"]).await;
    assert_eq!(server.summary[0], format!("Engine  vllm at {}", vllm.url()));
    assert_eq!(server.summary[1], "Model   smollm2");
    assert!(server.summary[3].starts_with("URL     http://localhost:"), "{}", server.summary[3]);
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_missing_default_model_is_a_warning_unless_the_command_line_misspells_it() {
    let ollama = fakes::ollama().await;
    let config = engines_config(&[("ollama", &ollama.url())]);
    let configured = Home::with_config(&config.replace("[engine]", "model = \"nope\"\n[engine]"));
    let ran = Running::start(&configured, &[]).await.terminate().await;
    assert_eq!(ran.stderr, "warning: ollama has no model 'nope'; see 'hob model list'\n");

    // It can be downloaded later.
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let ran = Running::start(&home, &["-m", "qwen3:8b"]).await.terminate().await;
    assert_eq!(ran.stderr, "warning: ollama has no model 'qwen3:8b'; see 'hob model list'\n");

    let ran = home.run(&["serve", "--port", "0", "-m", "smolm2"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let words = "error: ollama has no model 'smolm2'; it has smollm2:latest, smollm2-tools:latest. Did you mean smollm2:latest";
    assert!(ran.stderr.starts_with(words), "{}", ran.stderr);
}

#[tokio::test]
async fn an_engine_that_does_not_list_its_models_at_the_start_is_still_served() {
    let is_probe = AtomicBool::new(true);
    let ollama = FakeServer::start(move |request| match request.path.as_str() {
        // It was healthy when it was selected, and fails since then.
        "/api/tags" if is_probe.swap(false, Ordering::SeqCst) => Reply::transcript("ollama/tags"),
        "/api/tags" => Reply::json(500, r#"{"error":"out of memory"}"#),
        _ => Reply::json(404, "{}"),
    })
    .await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let server = Running::start(&home, &[]).await;
    assert!(server.summary[1].starts_with("Model   not known yet: "), "{}", server.summary[1]);
    assert!(server.summary[1].contains("out of memory"), "{}", server.summary[1]);
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn the_agent_of_the_command_line_answers() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    for (asked, expected) in [("react", "Agent   react"), ("none", "Agent   none (directly to the engine)")] {
        let server = Running::start(&home, &["-a", asked]).await;
        assert_eq!(server.summary[2], expected);
        assert_eq!(server.terminate().await.stderr, "");
    }
}

#[tokio::test]
async fn a_public_address_without_a_key_prints_a_warning() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let warning = "warning: Anyone on your network can use this server: no API key is set. \
                   Set HOB_API_KEY, or use --host 127.0.0.1.\n";
    let open = Running::start(&home, &["--host", "0.0.0.0"]).await;
    assert!(open.summary[3].starts_with("URL     http://localhost:"), "{}", open.summary[3]);
    assert_eq!(open.terminate().await.stderr, warning);

    let mut command = home.hob(&["serve", "--port", "0", "--host", "0.0.0.0"]);
    command.env("HOB_API_KEY", "s3cret");
    let locked = Running::of(command).await;
    assert_eq!(locked.terminate().await.stderr, "");
}

#[tokio::test]
async fn allowed_hosts_without_a_key_print_a_warning() {
    let ollama = fakes::ollama().await;
    let engines = engines_config(&[("ollama", &ollama.url())]);
    let named = "[server]\nallowed_hosts = [\"hob.example.org\"]\n";
    let home = Home::with_config(&engines.replacen("[server]\n", named, 1));
    let open = Running::start(&home, &[]).await;
    let warning = "warning: Anyone who reaches this server as hob.example.org can use it: no API key is set. Set HOB_API_KEY.\n";
    assert_eq!(open.terminate().await.stderr, warning);
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_it() {
    let ollama = fakes::ollama().await;
    let port = ollama.address().port().to_string();
    let vllm = fakes::vllm().await;
    let home = Home::with_engines(&[("vllm", &vllm.url())]);
    let ran = home.run(&["serve", "--port", &port]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with(&format!("error: cannot listen on 127.0.0.1:{port}: ")), "{}", ran.stderr);
    assert!(ran.stderr.contains("--port"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_port_used_by_hob_is_recognised() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let server = Running::start(&home, &[]).await;
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    // No engine is needed: neither home directory has one that answers.
    let ran = Home::with_engines(&[]).run(&["serve", "-p", port]).await;
    let next = port.parse::<u16>().expect("a port") + 1;
    let stderr = format!(
        "error: Hob is already running on http://localhost:{port}. Use that server, stop it first, or choose another \
         port: 'hob serve --port {next}'.\n"
    );
    assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr });
}

#[tokio::test]
async fn an_answer_in_progress_is_finished_before_the_server_stops() {
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("Once")).then_held(&hold, piece(" more") + END);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let mut server = Running::start(&Home::with_engines(&[("ollama", &ollama.url())]), &[]).await;
    let mut answer = chat(server.address(), STREAMED_QUESTION).await;
    answer.until("Once").await;
    server.signal(Signal::TERM);
    server.says("press Ctrl-C again to stop immediately").await;
    hold.release();
    let answer = answer.all().await;
    assert!(answer.contains(" more") && answer.contains("data: [DONE]"), "{answer}");
    assert_eq!(server.end().await.code, Some(0));
}

/// What systemd waits for before it calls the service started.
#[tokio::test]
async fn a_service_manager_is_notified_of_readiness_and_stopping() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let place = home.directory().join("notify");
    let manager = tokio::net::UnixDatagram::bind(&place).expect("a socket");
    let mut command = home.hob(&["serve", "--port", "0"]);
    command.env("NOTIFY_SOCKET", &place);
    let server = Running::of(command).await;
    let mut heard = [0; 64];
    let length = manager.recv(&mut heard).await.expect("a message");
    assert_eq!(heard[..length].trim_ascii_end(), b"READY=1");
    assert!(get(server.address(), "/health").await.all().await.contains("{\"status\":\"ok\"}"));
    assert_eq!(server.terminate().await.code, Some(0));
    let length = manager.recv(&mut heard).await.expect("a message");
    assert_eq!(heard[..length].trim_ascii_end(), b"STOPPING=1");
}

#[tokio::test]
async fn a_second_signal_stops_immediately() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("Once")).then_silence()).await;
    let mut server = Running::start(&Home::with_engines(&[("ollama", &ollama.url())]), &[]).await;
    let mut answer = chat(server.address(), STREAMED_QUESTION).await;
    answer.until("Once").await;
    server.signal(Signal::INT);
    server.says("press Ctrl-C again to stop immediately").await;
    server.signal(Signal::INT);
    assert_eq!(server.end().await.code, Some(130));
    ollama.hung_up(1).await;
}

#[tokio::test]
async fn a_key_is_never_printed() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let mut command = home.hob(&["-vvv", "serve", "--port", "0"]);
    command.env("HOB_API_KEY", "s3cret-s3cret").env("OPENAI_API_KEY", "s3cret-s3cret");
    let server = Running::of(command).await;
    let refused = chat(server.address(), QUESTION).await.all().await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let ran = server.terminate().await;
    assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);

    let mut command = home.hob(&["doctor"]);
    command.env("HOB_API_KEY", "s3cret-s3cret").env("ANTHROPIC_API_KEY", "s3cret-s3cret");
    let ran = finish(command).await;
    assert!(!ran.stdout.contains("s3cret") && !ran.stderr.contains("s3cret"), "{ran:?}");
    assert!(ran.stdout.contains("for Anthropic"), "{}", ran.stdout);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_stops_with_its_terminal_unless_nohup_started_it() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let mut terminal = Terminal::start(&home, &["serve", "--port", "0"]);
    terminal.sees("URL").await;
    assert_eq!(terminal.close().await, Some(0));

    let hob = home.hob(&["serve", "--port", "0"]);
    let mut nohup = tokio::process::Command::new("nohup");
    nohup.arg(hob.as_std().get_program()).args(hob.as_std().get_args()).env_clear();
    for (name, value) in hob.as_std().get_envs() {
        nohup.env(name, value.expect("a variable that is set"));
    }
    nohup.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let server = Running::of(nohup).await;
    server.signal(Signal::HUP);
    assert!(chat(server.address(), QUESTION).await.all().await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn sigquit_stops_gracefully_and_user_signals_are_ignored() {
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("Once")).then_held(&hold, piece(" more") + END);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let server = Running::start(&Home::with_engines(&[("ollama", &ollama.url())]), &[]).await;
    let mut answer = chat(server.address(), STREAMED_QUESTION).await;
    answer.until("Once").await;
    server.signal(Signal::USR1);
    server.signal(Signal::USR2);
    assert!(get(server.address(), "/health").await.all().await.starts_with("HTTP/1.1 200"));
    server.signal(Signal::QUIT);
    hold.release();
    let answer = answer.all().await;
    assert!(answer.contains("data: [DONE]"), "{answer}");
    assert_eq!(server.end().await.code, Some(0));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn sighup_reloads_the_configuration_and_drops_no_connection() {
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("Once")).then_held(&hold, piece(" more") + END);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let config = engines_config(&[("ollama", &ollama.url())]);
    let home = Home::with_config(&config);
    let write = |text: &str| std::fs::write(home.config_file(), text).expect("a file");
    let mut server = Running::start(&home, &[]).await;
    let mut answer = chat(server.address(), STREAMED_QUESTION).await;
    answer.until("Once").await;

    let keyed = config.replace("[server]\n", "[server]\napi_key = \"s3cret-s3cret\"\nmax_in_flight = 7\n");
    write(&keyed);
    server.signal(Signal::HUP);
    server.says("configuration reloaded: server.api_key").await;
    server.says("server.max_in_flight: takes effect after a restart").await;
    assert!(get(server.address(), "/v1/models").await.all().await.starts_with("HTTP/1.1 401"));

    // An invalid file changes nothing.
    write("[server]\napi_key = 7\n");
    server.signal(Signal::HUP);
    server.says("the configuration was not reloaded; the old one stays in effect").await;
    assert!(get(server.address(), "/v1/models").await.all().await.starts_with("HTTP/1.1 401"));

    write(&config);
    server.signal(Signal::HUP);
    server.says("configuration reloaded: server.api_key").await;
    assert!(get(server.address(), "/v1/models").await.all().await.starts_with("HTTP/1.1 200"));

    hold.release();
    let answer = answer.all().await;
    assert!(answer.contains("data: [DONE]"), "the stream was not disturbed: {answer}");
    let ran = server.terminate().await;
    assert_eq!(ran.code, Some(0));
    assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_closed_stdout_does_not_stop_the_server() {
    let ollama = fakes::ollama().await;
    let port = free_port();
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let mut command = home.hob(&["-v", "serve", "--port", &port.to_string()]);
    // Its reader is gone before hob starts.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut child = command.stdout(writer).spawn().expect("hob starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    loop {
        let said = lines.next_line().await.expect("text").expect("hob says that it cannot print");
        if said.contains("cannot print the summary") {
            break;
        }
    }
    let answer = chat(&format!("127.0.0.1:{port}"), QUESTION).await.all().await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_server_without_telemetry_says_so() {
    let ollama = fakes::ollama().await;
    let config = engines_config(&[("ollama", &ollama.url())]);
    let home = Home::with_config(&format!("{config}[telemetry]\nmetrics = false\n"));
    let server = Running::start(&home, &[]).await;
    let answer = get(server.address(), "/metrics").await.all().await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("[telemetry] metrics = true"), "{answer}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_low_limit_of_open_files_is_raised_to_the_hard_limit() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let mut command = home.hob_after("ulimit -S -n 128 && ulimit -H -n 512", &["serve", "--port", "0"]);
    command.env("HOB_LOG", "hob_server=debug");
    let mut server = Running::of(command).await;
    server.says("raised the limit of open files").await;
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", server.pid().as_raw_nonzero())).expect("text");
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("the limit");
    assert_eq!(files.split_whitespace().collect::<Vec<_>>(), ["512", "512", "files"]);
}
