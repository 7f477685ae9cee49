//! The built-in tools as the tool runner calls them.

#![allow(clippy::disallowed_methods, reason = "tests start programs with the environment they were given")]

use std::sync::Arc;

use futures::FutureExt;
use futures::future::ready;
use hob_agents::builtin::{BuiltInOptions, FileRead, Llm, LlmOptions, Think, built_in_tools};
use hob_core::{AllowedRoots, AnswerDefaults, Delta, Engine, FinishReason, Reach, Role, Tool};
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

fn llm_of(engine: &Arc<ScriptedEngine>) -> LlmOptions {
    LlmOptions {
        engine: hob_agents::builtin::same_engine(Arc::clone(engine) as Arc<dyn Engine>),
        model: Arc::new(|| ready(Some("m".to_owned())).boxed()),
        defaults: AnswerDefaults::default(),
    }
}

#[test]
fn every_built_in_tool_has_its_documented_reach_and_a_closed_schema() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let mut tools = built_in_tools(BuiltInOptions::default());
    tools.push(Arc::new(Llm::new(llm_of(&engine))));
    let reaches: Vec<(&str, Reach)> =
        tools.iter().map(|tool| (tool.spec().name.as_str(), tool.spec().reach)).collect();
    let expected = [
        ("calculator", Reach::Pure),
        ("think", Reach::Pure),
        ("current_time", Reach::Pure),
        ("file_read", Reach::Read),
        ("web_fetch", Reach::Act),
        ("llm", Reach::Pure),
    ];
    assert_eq!(reaches, expected);
    for tool in tools {
        let schema = &tool.spec().parameters;
        assert_eq!(schema["type"], "object", "{}", tool.spec().name);
        assert_eq!(schema["additionalProperties"], Value::Bool(false), "{}", tool.spec().name);
        assert!(jsonschema::validator_for(schema).is_ok(), "{}", tool.spec().name);
    }
}

#[tokio::test]
async fn the_calculator_answers_and_explains_its_errors() {
    let calculator = hob_agents::builtin::Calculator;
    let call = async |expression: &str| calculator.call(json!({ "expression": expression })).await;
    assert_eq!(call("2 ** 100").await.as_deref(), Ok("1267650600228229401496703205376"));
    assert_eq!(call("9**9**9").await.unwrap_err().0, "the result is too large");
    assert!(calculator.call(json!({})).await.is_err());
}

#[tokio::test]
async fn a_thought_is_acknowledged() {
    assert!(Think.call(json!({ "thought": "first this, then that" })).await.is_ok());
    assert!(Think.call(json!({ "thought": " " })).await.is_err());
}

#[tokio::test]
async fn a_sub_question_reaches_the_engine_without_tools_and_without_history() {
    let engine = Arc::new(ScriptedEngine::saying(&["Four", "."]));
    let llm = Llm::new(llm_of(&engine));
    let answer = llm.call(json!({ "prompt": "2 + 2?", "system": "Be short." })).await;
    assert_eq!(answer.as_deref(), Ok("Four."));
    let requests = engine.requests();
    let request = &requests[0];
    let said: Vec<(Role, String)> =
        request.messages.iter().map(|message| (message.role, message.content.text().into_owned())).collect();
    assert_eq!(said, [(Role::System, "Be short.".to_owned()), (Role::User, "2 + 2?".to_owned())]);
    assert_eq!((request.model.as_str(), request.tools.len()), ("m", 0));
}

#[tokio::test]
async fn an_error_of_a_sub_question_is_returned_to_the_model() {
    let cut = Arc::new(ScriptedEngine::new(|_| {
        vec![
            Ok(Delta::text("and so")),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Length }),
            Ok(Delta::Done { usage: None }),
        ]
    }));
    let told = Llm::new(llm_of(&cut)).call(json!({ "prompt": "tell me" })).await;
    assert_eq!(told.as_deref(), Ok("and so\n[the answer was cut off here]"));
    let broken = Arc::new(ScriptedEngine::new(|_| vec![Ok(Delta::text("half"))]));
    assert!(Llm::new(llm_of(&broken)).call(json!({ "prompt": "tell me" })).await.is_err());
    let without_model = LlmOptions { model: Arc::new(|| ready(None).boxed()), ..llm_of(&cut) };
    assert!(Llm::new(without_model).call(json!({ "prompt": "tell me" })).await.is_err());
    assert!(Llm::new(llm_of(&cut)).call(json!({ "prompt": "" })).await.is_err());
}

/// A directory `open` with files in it, beside one that is not open.
struct Files {
    _home: tempfile::TempDir,
    root: std::path::PathBuf,
    tool: FileRead,
}

fn files() -> Files {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("open/sub")).unwrap();
    std::fs::create_dir(root.join("closed")).unwrap();
    std::fs::write(root.join("open/poem.txt"), "one\ntwo\nthree\nfour\n").unwrap();
    std::fs::write(root.join("open/sub/inner.txt"), "inner").unwrap();
    std::fs::write(root.join("closed/diary.txt"), "dear diary").unwrap();
    let tool = FileRead::new(AllowedRoots {
        roots: vec![root.join("open")],
        private: vec![root.join("open/house")],
    });
    Files { _home: home, root, tool }
}

impl Files {
    async fn read(&self, path: impl AsRef<std::path::Path>) -> Result<String, String> {
        self.read_lines(path, Value::Null, Value::Null).await
    }

    async fn read_lines(
        &self,
        path: impl AsRef<std::path::Path>,
        offset: Value,
        limit: Value,
    ) -> Result<String, String> {
        let arguments = json!({ "path": path.as_ref(), "offset": offset, "limit": limit });
        self.tool.call(arguments).await.map_err(|error| error.0)
    }
}

#[tokio::test]
async fn files_below_an_allowed_directory_can_be_read() {
    let files = files();
    let whole = Ok("one\ntwo\nthree\nfour\n".to_owned());
    assert_eq!(files.read("poem.txt").await, whole);
    assert_eq!(files.read(files.root.join("open/poem.txt")).await, whole);
    assert_eq!(files.read("sub/../poem.txt").await, whole);
    assert_eq!(files.read("sub/inner.txt").await, Ok("inner".to_owned()));
    let middle = files.read_lines("poem.txt", json!(2), json!(2)).await;
    assert_eq!(middle.as_deref(), Ok("two\nthree\n[more follows: continue with offset 4]"));
    let end = files.read_lines("poem.txt", json!(4), json!(10)).await;
    assert_eq!(end.as_deref(), Ok("four\n"));
    assert!(files.read_lines("poem.txt", json!(9), Value::Null).await.unwrap_err().contains("no line 9"));
}

#[tokio::test]
async fn nothing_else_can_be_read() {
    let files = files();
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(files.root.join(target), files.root.join("open").join(name)).unwrap();
    };
    link("closed", "way-out");
    link("closed/diary.txt", "diary.txt");
    link("open/poem.txt", "within.txt");
    assert!(files.read("within.txt").await.is_ok(), "a link that stays inside is fine");
    for path in [
        files.root.join("closed/diary.txt"),
        files.root.join("closed/missing.txt"),
        files.root.join("open/../closed/diary.txt"),
        "../closed/diary.txt".into(),
        "sub/../../closed/diary.txt".into(),
        "way-out/diary.txt".into(),
        "diary.txt".into(),
        "/etc/passwd".into(),
    ] {
        let refused = files.read(&path).await.unwrap_err();
        assert!(refused.contains("not below a directory"), "{}: {refused}", path.display());
    }
}

#[tokio::test]
async fn errors_do_not_reveal_which_files_exist_outside() {
    let files = files();
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(files.root.join(target), files.root.join("open").join(name)).unwrap();
    };
    link("closed", "way-out");
    std::fs::create_dir_all(files.root.join("open/house")).unwrap();
    std::fs::write(files.root.join("open/house/diary.txt"), "private").unwrap();
    for directory in ["../closed", "sub/../../closed", "way-out", "house", "../nowhere/../closed"] {
        let refusal = async |path: String| {
            let refused = files.read(&path).await.unwrap_err();
            refused.replace(&path, "PATH")
        };
        for absolute in [false, true] {
            let place = |name: &str| {
                let path = format!("{directory}/{name}");
                if absolute { files.root.join("open").join(path).display().to_string() } else { path }
            };
            let existing = refusal(place("diary.txt")).await;
            assert!(!existing.contains("there is no file"), "{directory}: {existing}");
            assert_eq!(refusal(place("missing.txt")).await, existing, "{directory}");
            assert_eq!(refusal(place("missing/deep.txt")).await, existing, "{directory}");
            assert_eq!(refusal(place("diary.txt/deep.txt")).await, existing, "{directory}");
        }
    }
    link("closed/diary.txt", "existing.txt");
    link("closed/missing.txt", "missing.txt");
    assert!(files.read("existing.txt").await.unwrap_err().contains("not below a directory"));
    assert!(files.read("missing.txt").await.unwrap_err().contains("not below a directory"));
    for missing in ["absent.txt", "sub/absent/deep.txt"] {
        assert!(files.read(missing).await.unwrap_err().contains("there is no file"), "{missing}");
    }
}

#[tokio::test]
async fn secrets_pipes_directories_and_binaries_are_refused() {
    let files = files();
    let open = files.root.join("open");
    for secret in [
        ".env",
        "server.pem",
        "id_rsa",
        ".netrc",
        ".git-credentials",
        "vault.kdbx",
        ".hob/config.toml",
        ".aws/credentials",
        ".ssh/config",
        ".docker/config.json",
        // The home directory of Hob under another name.
        "house/hob.toml",
    ] {
        std::fs::create_dir_all(open.join(secret).parent().unwrap()).unwrap();
        std::fs::write(open.join(secret), "s3cret").unwrap();
        assert!(files.read(secret).await.unwrap_err().contains("keys or passwords"), "{secret}");
    }
    assert!(files.read("/proc/self/environ").await.unwrap_err().contains("keys or passwords"));
    std::os::unix::fs::symlink(open.join(".env"), open.join("innocent.txt")).unwrap();
    assert!(files.read("innocent.txt").await.unwrap_err().contains("keys or passwords"));
    std::os::unix::fs::symlink(open.join("house"), open.join("innocent")).unwrap();
    assert!(files.read("innocent/hob.toml").await.unwrap_err().contains("keys or passwords"));
    let made = std::process::Command::new("mkfifo").arg(open.join("pipe")).status().unwrap();
    assert!(made.success());
    assert!(files.read("pipe").await.unwrap_err().contains("not a regular file"));
    assert!(files.read("sub").await.unwrap_err().contains("not a regular file"));
    std::fs::write(open.join("picture"), b"\x89PNG\0\0").unwrap();
    assert!(files.read("picture").await.unwrap_err().contains("binary"));
    std::fs::write(open.join("latin.txt"), b"caf\xe9").unwrap();
    assert!(files.read("latin.txt").await.unwrap_err().contains("UTF-8"));
    assert!(files.read("missing.txt").await.unwrap_err().contains("there is no file"));
}

#[tokio::test]
async fn a_large_file_is_read_in_parts_that_fit_together() {
    let files = files();
    let text: String = (1..=100_000).map(|number| format!("line {number} é\n")).collect();
    std::fs::write(files.root.join("open/large.txt"), &text).unwrap();
    let (mut whole, mut offset) = (String::new(), 1);
    loop {
        let part = files.read_lines("large.txt", json!(offset), Value::Null).await.unwrap();
        assert!(part.len() <= (256 << 10) + 100);
        let Some((lines, next)) = part.rsplit_once("[more follows: continue with offset ") else {
            whole.push_str(&part);
            break;
        };
        whole.push_str(lines);
        offset = next.trim_end_matches(']').parse().unwrap();
    }
    assert!(whole == text, "{} bytes instead of {}", whole.len(), text.len());
    std::fs::write(files.root.join("open/one-line.txt"), "é".repeat(1 << 20)).unwrap();
    let cut = files.read("one-line.txt").await.unwrap();
    assert!(cut.ends_with("\n[line 1 is too long and cut here; continue with offset 2]"));
}

#[tokio::test]
async fn without_a_directory_the_tool_says_what_to_set() {
    let tool = FileRead::new(AllowedRoots::default());
    let refused = tool.call(json!({ "path": "/etc/passwd" })).await;
    assert!(refused.is_err_and(|error| error.0.contains("[tools] file_roots")));
}
