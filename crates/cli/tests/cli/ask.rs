//! `hob ask`.

use std::process::Stdio;

use hob_testkit::{FakeServer, Hold, Reply};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fakes::{self, END, STREAMED, WHOLE, piece};
#[cfg(target_os = "linux")]
use crate::home::finish;
use crate::home::{Home, NOWHERE, Ran, engines_config};
use crate::terminal::Terminal;

fn home(ollama: &FakeServer) -> Home {
    Home::with_engines(&[("ollama", &ollama.url())])
}

/// The body of the last chat request.
fn asked(engine: &FakeServer) -> Value {
    let requests = engine.requests();
    let chat = requests.iter().rfind(|request| request.path == "/api/chat").expect("a chat");
    serde_json::from_slice(&chat.body).expect("JSON")
}

#[tokio::test]
async fn an_answer_streams_to_stdout_and_ends_with_a_newline() {
    let ollama =
        fakes::ollama_chatting(|_| Reply::ndjson([piece("Par"), piece("is."), END.into()].concat())).await;
    let ran = home(&ollama).run(&["ask", "-t", "0.5", "--max-tokens", "9", "Capital?"]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: "Paris.\n".into(), stderr: String::new() });
    let asked = asked(&ollama);
    assert_eq!(asked["model"], "smollm2:latest");
    assert_eq!(asked["messages"], json!([{ "role": "user", "content": "Capital?" }]));
    assert_eq!(
        (&asked["options"]["temperature"], &asked["options"]["num_predict"]),
        (&json!(0.5), &json!(9))
    );
    assert_eq!(asked["stream"], true);
}

#[tokio::test]
async fn a_question_needs_no_quotes() {
    let ollama = fakes::ollama().await;
    let ran = home(&ollama).run(&["ask", "why", "is", "-t", "0", "the", "sky", "blue"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(asked(&ollama)["messages"], json!([{ "role": "user", "content": "why is the sky blue" }]));
}

#[tokio::test]
async fn a_piece_is_printed_before_the_next_one_arrives() {
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("first")).then_held(&hold, END);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let home = home(&ollama);
    let mut child = home.hob(&["ask", "q"]).spawn().expect("hob starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut first = [0; 5];
    stdout.read_exact(&mut first).await.expect("a piece");
    assert_eq!(&first, b"first");
    hold.release();
    assert_eq!(child.wait().await.expect("hob ends").code(), Some(0));
}

#[tokio::test]
async fn a_truncated_answer_is_reported() {
    let ollama = fakes::ollama().await;
    let ran = home(&ollama).run(&["ask", "--max-tokens", "8", "Capital?"]).await;
    let stderr = "The answer was cut off at 8 tokens. Raise the limit with --max-tokens.\n";
    assert_eq!(ran, Ran { code: Some(0), stdout: format!("{STREAMED}\n"), stderr: stderr.into() });
}

#[tokio::test]
async fn no_answer_is_a_failure_and_says_so() {
    let ended = |reason: &str| END.replace("\"stop\"", &format!("\"{reason}\""));
    for (reason, expected) in
        [("stop", "the model returned no answer"), ("length", "the model gave no answer")]
    {
        let body = format!("{}{}", piece(" "), ended(reason));
        let ollama = fakes::ollama_chatting(move |request| {
            let is_streamed = request.text().contains("\"stream\":true");
            if is_streamed { Reply::ndjson(body.clone()) } else { Reply::json(200, ended(reason)) }
        })
        .await;
        let home = home(&ollama);
        for arguments in [&["ask", "q"][..], &["ask", "--no-stream", "q"], &["ask", "--json", "q"]] {
            let ran = home.run(arguments).await;
            assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.stdout);
            assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
        }
    }
}

#[tokio::test]
async fn without_a_stream_the_answer_is_printed_at_once() {
    let ollama = fakes::ollama().await;
    let ran = home(&ollama).run(&["ask", "--no-stream", "Capital?"]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: format!("{WHOLE}\n"), stderr: String::new() });
    assert_eq!(asked(&ollama)["stream"], false);
}

#[tokio::test]
async fn json_is_one_object_with_answer_and_usage() {
    let ollama = fakes::ollama().await;
    let ran = home(&ollama).run(&["ask", "--json", "Capital?"]).await;
    assert_eq!((ran.code, ran.stderr.as_str(), ran.stdout.lines().count()), (Some(0), "", 1));
    let object: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let usage = &object["usage"];
    let count = |name: &str| usage[name].as_u64().expect("a number");
    assert_eq!(count("total_tokens"), count("prompt_tokens") + count("completion_tokens"));
    assert_eq!(
        json!([object["content"], object["model"], object["engine"], object["finish_reason"]]),
        json!([WHOLE, "smollm2", "ollama", "stop"])
    );
}

#[tokio::test]
async fn the_question_may_come_from_stdin_or_precede_it() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama);
    for (arguments, stdin, expected) in [
        (&["ask"][..], "From stdin?\n", "From stdin?"),
        (&["ask", "-"], "From stdin?\n", "From stdin?"),
        (&["ask", "What is this?"], "some text\n", "What is this?\n\nsome text"),
        (&["ask", "What is this?"], "", "What is this?"),
    ] {
        let ran = home.run_with_stdin(arguments, stdin.as_bytes()).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(asked(&ollama)["messages"][0]["content"], expected);
    }
}

#[tokio::test]
async fn pictures_are_sent_with_the_question() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson([piece("A cat."), END.into()].concat())).await;
    let home = home(&ollama);
    let files = [("one.png", &b"\x89PNG\r\n\x1a\nx"[..]), ("two.jpg", b"\xff\xd8\xffy")];
    for (name, bytes) in files {
        std::fs::write(home.directory().join(name), bytes).expect("a picture");
    }
    let path = |name: &str| home.directory().join(name).to_str().expect("UTF-8").to_owned();
    let ran = home.run(&["ask", "-i", &path("one.png"), "--image", &path("two.jpg"), "What is this?"]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: "A cat.\n".into(), stderr: String::new() });
    let images = ["iVBORw0KGgp4", "/9j/eQ=="];
    let expected = json!([{ "role": "user", "content": "What is this?", "images": images }]);
    assert_eq!(asked(&ollama)["messages"], expected);
}

#[tokio::test]
async fn a_refused_picture_names_a_command_that_gets_a_model_for_it() {
    let refusal = r#"{"error": "this model is missing data required for image input"}"#;
    let ollama = fakes::ollama_chatting(move |_| Reply::json(400, refusal)).await;
    let home = home(&ollama);
    let picture = home.directory().join("one.png");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\nx").expect("a picture");
    let ran = home.run(&["ask", "-i", picture.to_str().expect("UTF-8"), "What is this?"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("image input. If the model does not read pictures, 'hob model pull "),
        "{ran:?}"
    );
    let plain = home.run(&["ask", "What is this?"]).await;
    assert!(!plain.stderr.contains("hob model pull"), "{plain:?}");
}

#[tokio::test]
async fn a_file_that_is_no_picture_is_not_sent() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(END)).await;
    let home = home(&ollama);
    std::fs::write(home.directory().join("notes.png"), "just text").expect("a file");
    let notes = home.directory().join("notes.png").display().to_string();
    for (file, said) in [
        (notes.as_str(), "is not a PNG, JPEG, GIF, WebP or BMP picture."),
        ("/nowhere/x.png", "cannot read the picture /nowhere/x.png"),
        ("/dev/zero", "the picture /dev/zero is not a file."),
    ] {
        let ran = home.run(&["ask", "-i", file, "What is this?"]).await;
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert!(ollama.requests().iter().all(|request| request.path != "/api/chat"));
}

#[tokio::test]
async fn documents_and_instructions_are_sent_with_the_question() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson([piece("In March."), END.into()].concat())).await;
    let home = home(&ollama);
    let path = |name: &str| home.documents().join(name).to_str().expect("UTF-8").to_owned();
    std::fs::write(path("roses.txt"), "The roses are cut back in March.\n").expect("a file");
    std::fs::write(path("boiler.md"), "The boiler is serviced in October.\n").expect("a file");
    let ran = home
        .run(&[
            "ask",
            "-f",
            &path("roses.txt"),
            "--file",
            &path("boiler.md"),
            "--system",
            "Be brief.",
            "When?",
        ])
        .await;
    assert_eq!(ran, Ran { code: Some(0), stdout: "In March.\n".into(), stderr: String::new() });
    let messages = asked(&ollama)["messages"].clone();
    let documents = "File roses.txt:\n\nThe roses are cut back in March.\n\nEnd of file roses.txt.\n\
                     File boiler.md:\n\nThe boiler is serviced in October.\n\nEnd of file boiler.md.\nWhen?";
    let expected = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": documents },
    ]);
    assert_eq!(messages, expected);
}

#[tokio::test]
async fn a_document_that_cannot_be_read_is_an_error() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama);
    let path = |name: &str| home.documents().join(name).to_str().expect("UTF-8").to_owned();
    std::fs::write(path("a.bin"), b"\0\0\0\0").expect("a file");
    std::fs::write(path("empty.txt"), "\n").expect("a file");
    for (file, said) in [
        (path("a.bin"), "the file is binary, not text"),
        (path("empty.txt"), "empty.txt has no text.\n"),
        (path("missing.txt"), "missing.txt: No such file or directory"),
    ] {
        let ran = home.run(&["ask", "-f", &file, "What is this?"]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{file}");
        assert!(ran.stderr.contains(said), "{file}: {}", ran.stderr);
    }
    assert!(ollama.requests().iter().all(|request| request.path != "/api/chat"));
}

#[tokio::test]
async fn an_answer_with_a_schema_is_checked_json() {
    let answer = |content: &str| {
        let message = json!({ "role": "assistant", "content": content });
        let body = json!({ "model": "smollm2", "message": message, "done": true, "done_reason": "stop" });
        Reply::json(200, body.to_string())
    };
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" } },
        "required": ["name"],
    });
    for (content, code, stdout, said) in [
        ("{\"name\": \"Ada\"}", 0, "{\"name\": \"Ada\"}\n", ""),
        ("{}", 1, "", "the answer does not follow the schema: \"name\" is a required property"),
        ("Ada", 1, "", "the answer is not JSON"),
    ] {
        let reply = answer(content);
        let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
        let home = home(&ollama);
        let file = home.documents().join("person.json");
        std::fs::write(&file, schema.to_string()).expect("a file");
        let ran = home.run(&["ask", "--schema", file.to_str().expect("UTF-8"), "Who?"]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), stdout), "{}", ran.stderr);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert_eq!(asked(&ollama)["format"], schema);
    }
}

#[tokio::test]
async fn an_answer_with_a_schema_that_was_cut_off_names_the_limit() {
    let message = json!({ "role": "assistant", "content": "{\"na" });
    let body = json!({ "model": "smollm2", "message": message, "done": true, "done_reason": "length" });
    let reply = Reply::json(200, body.to_string());
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let home = home(&ollama);
    let file = home.documents().join("person.json");
    std::fs::write(&file, r#"{ "type": "object" }"#).expect("a file");
    let schema = file.to_str().expect("UTF-8");
    let ran = home.run(&["ask", "--schema", schema, "--max-tokens", "5", "Who?"]).await;
    let stderr = "error: the answer was cut off at 5 tokens, so it does not follow the schema. Raise the limit with \
                  --max-tokens.\n";
    assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr: stderr.to_owned() });
}

#[tokio::test]
async fn a_schema_that_is_none_is_an_error_before_anything_is_asked() {
    let home = Home::with_engines(&[]);
    let file = home.documents().join("schema.json");
    for (schema, said) in [("nonsense", "is not JSON"), ("[]", "is not a JSON schema: it must be an object.")]
    {
        std::fs::write(&file, schema).expect("a file");
        let ran = home.run(&["ask", "--schema", file.to_str().expect("UTF-8"), "Who?"]).await;
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn a_question_continues_the_last_conversation() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson([piece("Paris."), END.into()].concat())).await;
    let home = home(&ollama);
    let first = home.run(&["ask", "-c", "Capital?"]).await;
    let stderr = "There is no saved conversation to continue; starting a new one. 'hob chat' and 'hob ask -c' save, \
                  'hob ask' without -c does not.\n";
    assert_eq!(first, Ran { code: Some(0), stdout: "Paris.\n".into(), stderr: stderr.into() });
    let second = home.run(&["ask", "--continue", "Sure?"]).await;
    assert_eq!(second, Ran { code: Some(0), stdout: "Paris.\n".into(), stderr: String::new() });
    // Without -c, a question is not part of it.
    assert_eq!(home.run(&["ask", "Else?"]).await.code, Some(0));
    assert_eq!(home.run_with_stdin(&["chat", "-c"], b"Really?").await.code, Some(0));
    let user = |text: &str| json!({ "role": "user", "content": text });
    let assistant = json!({ "role": "assistant", "content": "Paris." });
    let expected = json!([user("Capital?"), assistant, user("Sure?"), assistant, user("Really?")]);
    assert_eq!(asked(&ollama)["messages"], expected);
}

#[tokio::test]
async fn an_empty_question_is_refused() {
    let home = Home::with_engines(&[]);
    for (arguments, stdin, expected) in [
        (&["ask", " "][..], &b""[..], "error: the question is empty.\n"),
        (&["ask"], b"\n", "error: the question is empty.\n"),
        (&["ask", "-"], b"\xff\xfe", "error: the piped input is not UTF-8 text.\n"),
    ] {
        let ran = home.run_with_stdin(arguments, stdin).await;
        assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr: expected.into() });
    }
}

#[tokio::test]
async fn an_endless_stdin_is_refused() {
    let home = Home::with_engines(&[]);
    let mut child = home.hob(&["ask", "-"]).stdin(Stdio::piped()).spawn().expect("hob starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let chunk = vec![b'x'; 1 << 20];
    let mut written = 0;
    while pipe.write_all(&chunk).await.is_ok() {
        written += 1;
        assert!(written < 100, "hob swallows everything");
    }
    let ran = Ran::from(child.wait_with_output().await.expect("hob ends"));
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("larger than 10 MiB"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_stream_that_breaks_never_looks_complete() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("Par")).then_cut()).await;
    let ran = home(&ollama).run(&["ask", "q"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "Par\n"));
    assert!(ran.stderr.starts_with("error: ollama broke off its answer"), "{}", ran.stderr);
}

#[tokio::test]
async fn the_error_for_an_unknown_model_lists_the_available_ones() {
    let ollama = fakes::ollama().await;
    let ran = home(&ollama).run(&["ask", "-m", "nope", "q"]).await;
    let stderr = "error: ollama has no model 'nope'; it has smollm2:latest, smollm2-tools:latest. \
                  See 'hob model list', or 'hob model list --available' for models to download.\n";
    assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr: stderr.into() });
    let known = home(&ollama).run(&["ask", "-m", "qwen3:8b", "q"]).await;
    assert!(
        known.stderr.contains(". Download it with 'hob model pull qwen3:8b', or see"),
        "{}",
        known.stderr
    );
}

#[tokio::test]
async fn reasoning_is_shown_on_stderr_and_only_on_request() {
    let thought = "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Hmm.\"},\"done\":false}\n";
    let body = [thought, &piece("Yes."), END].concat();
    let ollama = fakes::ollama_chatting(move |_| Reply::ndjson(body.clone())).await;
    let home = home(&ollama);
    let quiet = home.run(&["ask", "q"]).await;
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("Yes.\n", ""));
    let verbose = home.run(&["ask", "-v", "q"]).await;
    assert_eq!((verbose.stdout.as_str(), verbose.stderr.as_str()), ("Yes.\n", "Hmm.\n"));
}

#[tokio::test]
async fn a_log_line_does_not_split_a_line_of_the_answer() {
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("Par")).then_held(&hold, piece("is.") + END);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    // An MCP server that logs something when the test asks for it.
    let home = Home::empty();
    let pipe = home.directory().join("noise");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let noisy = format!(
        "[mcp.servers.noisy]\ncommand = \"sh\"\nargs = [\"-c\", \"cat {} >&2; cat > /dev/null\"]\n",
        pipe.display()
    );
    std::fs::write(home.config_file(), engines_config(&[("ollama", &ollama.url())]) + &noisy)
        .expect("a file");
    let mut command = home.hob(&["ask", "q"]);
    command.env("HOB_LOG", "hob=debug");
    let mut terminal = Terminal::of(command);
    terminal.sees("Par").await;
    let said = tokio::task::spawn_blocking(move || std::fs::write(pipe, "noise\n"));
    said.await.expect("no panic").expect("it is read");
    terminal.sees("noise").await;
    hold.release();
    terminal.sees("is.").await;
    assert_eq!(terminal.end().await, Some(0));
    let text = terminal.text();
    let (before, after) = text.split_once("noise").expect("it was seen");
    let begun = before.rsplit('\n').next().expect("a line");
    assert!(begun.trim_start().starts_with("DEBUG"), "the log has a line of its own: {text}");
    assert!(before.contains("Par\n") && after.ends_with("\nis.\n"), "and so has the answer: {text}");
}

#[tokio::test]
async fn ctrl_c_ends_the_engines_work() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("Once")).then_silence()).await;
    let home = home(&ollama);
    let mut child = home.hob(&["ask", "q"]).spawn().expect("hob starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0; 4]).await.expect("a piece");
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)).expect("hob runs");
    kill_process(pid, Signal::INT).expect("hob runs");
    ollama.hung_up(1).await;
    assert_eq!(child.wait().await.expect("hob ends").code(), Some(130));
}

#[tokio::test]
async fn a_reader_that_closes_the_pipe_is_not_a_failure() {
    let hold = Hold::new();
    let rest = piece("more\\n").repeat(100) + END;
    let reply = Reply::ndjson(piece("first\\n")).then_held(&hold, rest);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let home = home(&ollama);
    let mut child = home.hob(&["ask", "q"]).spawn().expect("hob starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0; 6]).await.expect("a line");
    drop(stdout);
    hold.release();
    let ran = Ran::from(child.wait_with_output().await.expect("hob ends"));
    assert_eq!(ran, Ran { code: Some(0), stdout: String::new(), stderr: String::new() });
}

#[tokio::test]
async fn an_engine_other_than_the_default_is_reported() {
    let vllm = fakes::vllm().await;
    let ran = Home::with_engines(&[("ollama", NOWHERE), ("vllm", &vllm.url())]).run(&["ask", "q"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected = format!("ollama does not answer; using vllm at {}\n", vllm.url());
    assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
}

#[tokio::test]
async fn an_engine_that_refuses_its_key_is_not_said_to_be_down() {
    let refusal = r#"{"error": {"message": "Incorrect API key provided"}}"#;
    let locked = FakeServer::replying(Reply::json(401, refusal)).await;
    let home = Home::with_engines(&[("vllm", &locked.url())]);
    let stderr = "error: vllm answered 401: Incorrect API key provided. Check [engine.vllm] api_key.\n";
    // Named, and as the default.
    for arguments in [&["ask", "-e", "vllm", "q"][..], &["ask", "q"]] {
        let ran = home.run(arguments).await;
        assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr: stderr.into() });
    }
}

#[tokio::test]
async fn a_named_engine_has_no_fallback() {
    let ollama = fakes::ollama().await;
    let ran = home(&ollama).run(&["ask", "-e", "vllm", "q"]).await;
    let stderr = "error: no engine answered on http://127.0.0.1:9 (vllm). \
                  Start it with 'vllm serve MODEL --port 9', or run 'hob doctor'.\n";
    assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr: stderr.into() });
}

#[tokio::test]
async fn an_engine_without_models_says_how_to_get_one() {
    let empty = FakeServer::replying(Reply::json(200, "{\"models\": []}")).await;
    let ran = home(&empty).run(&["ask", "q"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("has no model yet. Download one, e.g. with 'hob model pull"),
        "{}",
        ran.stderr
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_directory_that_cannot_be_written_is_one_sentence() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama);
    let path = home.directory().display().to_string();
    let sandbox = ["--dev-bind", "/", "/", "--ro-bind", &path, &path, "--"];
    let ran = finish(home.hob_under("bwrap", &sandbox, &["ask", "Capital?"])).await;
    assert_eq!((ran.code, ran.stdout), (Some(0), format!("{STREAMED}\n")));
    let sentence = "warning: this call is not recorded, because Hob cannot write to its database. 'hob doctor' shows why.\n";
    assert_eq!(ran.stderr.matches(sentence).count(), 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("WARN"), "{}", ran.stderr);
}
