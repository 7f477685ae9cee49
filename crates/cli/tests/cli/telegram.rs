//! Telegram: `hob serve` as a bot, `hob channel add`, and the approval of senders.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hob_testkit::{FakeServer, Hold, Reply, TELEGRAM_TOKEN, TelegramServer};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use crate::fakes::{self, END, STREAMED, piece};
use crate::home::{Home, engines_config};
use crate::http;
use crate::running::Running;

const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// Everyone is answered.
const OPEN: &str = "pairing = false\n";

fn home(telegram: &TelegramServer, ollama: &FakeServer, more: &str) -> Home {
    Home::with_config(&(engines_config(&[("ollama", &ollama.url())]) + &telegram.config() + more))
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    timeout(WAIT_LIMIT, work).await.expect("in time")
}

/// The texts of requests for an answer.
fn questions(engine: &FakeServer) -> Vec<String> {
    let chats = ["/api/chat", "/v1/chat/completions"];
    let requests = engine.requests().into_iter().filter(|request| chats.contains(&request.path.as_str()));
    requests.map(|request| request.text()).collect()
}

fn code_in(reply: &str) -> &str {
    reply.rsplit(' ').next().expect("a word")
}

#[tokio::test]
async fn a_new_sender_is_answered_after_the_owner_has_approved_the_code() {
    let (telegram, ollama) = (TelegramServer::start().await, fakes::ollama().await);
    let home = home(&telegram, &ollama, "");
    let server = Running::start(&home, &[]).await;
    telegram.push(7, &json!({ "text": "/start" }));
    in_time(telegram.until(|telegram| !telegram.shown(7).is_empty())).await;
    let reply = telegram.shown(7).remove(0);
    assert!(reply.starts_with("I only answer people whom my owner has approved."), "{reply}");
    let code = code_in(&reply);

    let wrong = home.run(&["channel", "approve", "AAAA-AAAA"]).await;
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(1), ""));
    assert!(wrong.stderr.contains("the code 'AAAA-AAAA' is not valid"), "{}", wrong.stderr);
    let waiting = home.run(&["channel", "senders"]).await.stdout;
    assert!(waiting.contains("telegram:7") && waiting.contains(code), "{waiting}");
    let approved = home.run(&["channel", "approve", &code.to_lowercase()]).await;
    assert_eq!((approved.code, approved.stdout.as_str()), (Some(0), "Ann (telegram:7) is approved.\n"));

    telegram.push(7, &json!({ "text": "What is the capital of France?" }));
    in_time(telegram.until_shown(7, &[&reply, STREAMED])).await;
    assert_eq!(questions(&ollama).len(), 1);
    let listed: Value =
        serde_json::from_str(&home.run(&["channel", "senders", "--json"]).await.stdout).expect("JSON");
    assert_eq!(
        (&listed["approved"][0]["sender"], &listed["waiting"]),
        (&json!("telegram:7"), &json!([])),
        "{listed}"
    );

    let removed = home.run(&["channel", "remove-sender", "telegram:7"]).await;
    assert_eq!(removed.stdout, "telegram:7 is not answered anymore.\n");
    let again = home.run(&["channel", "remove-sender", "telegram:7"]).await;
    assert_eq!(again.code, Some(1));
    telegram.push(7, &json!({ "text": "And of Spain?" }));
    in_time(telegram.until(|telegram| telegram.shown(7).len() == 3)).await;
    assert_ne!(code_in(&telegram.shown(7)[2]), code, "another code");
    let ended = server.terminate().await;
    assert!(ended.code == Some(0) && !ended.stderr.contains(TELEGRAM_TOKEN), "{}", ended.stderr);
}

#[tokio::test]
async fn a_task_for_telegram_is_for_the_only_approved_sender() {
    let (telegram, ollama) = (TelegramServer::start().await, fakes::ollama().await);
    let home = home(&telegram, &ollama, "");
    let create = async |target: &[&str]| {
        let words = ["scheduler", "create", "Capital?", "--every", "daily 7:00", "--json"];
        home.run(&[&words[..], target].concat()).await
    };
    let refused = create(&["--channel", "telegram"]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        refused.stderr,
        "error: telegram has no approved sender, so the message needs a recipient. Write telegram:NUMBER; 'hob channel senders' \
         shows the numbers of people\n"
    );

    let server = Running::start(&home, &[]).await;
    telegram.push(7, &json!({ "text": "/start" }));
    in_time(telegram.until(|telegram| !telegram.shown(7).is_empty())).await;
    let code_message = telegram.shown(7).remove(0);
    let approved = home.run(&["channel", "approve", code_in(&code_message)]).await;
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    assert_eq!(server.terminate().await.code, Some(0));

    let created = create(&["--channel", "telegram"]).await;
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    let task: Value = serde_json::from_str(&created.stdout).expect("JSON");
    assert_eq!(task["channel"], "telegram:7");
    let ran = home.run(&["scheduler", "run", task["id"].as_str().expect("an id")]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(telegram.shown(7), [code_message.as_str(), STREAMED]);
    let sent = home.run(&["channel", "send", "telegram", "Dinner is ready."]).await;
    assert_eq!(sent.stdout, "sent to telegram:7\n", "{}", sent.stderr);
    assert_eq!(telegram.shown(7), [code_message.as_str(), STREAMED, "Dinner is ready."]);

    let recipe = home.run(&["recipes", "add", "briefing", "--yes", "--json", "--channel", "telegram"]).await;
    assert_eq!(recipe.code, Some(0), "{}", recipe.stderr);
    let task: Value = serde_json::from_str(&recipe.stdout).expect("JSON");
    assert_eq!(task["channel"], "telegram:7");
    for target in [&["--channel", "telegram:bob"][..], &["--channel", "telegram", "--conversation", "bob"]] {
        let refused = create(target).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{target:?}");
        assert!(
            refused.stderr.contains("'bob' is not a chat of Telegram. Write telegram:NUMBER"),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_long_answer_comes_in_several_messages() {
    let telegram = TelegramServer::start().await;
    let long = "word ".repeat(2_000);
    let answer = piece(long.trim()) + END;
    let ollama = fakes::ollama_chatting(move |_| Reply::ndjson(answer.clone())).await;
    let server = Running::start(&home(&telegram, &ollama, OPEN), &[]).await;
    telegram.push(7, &json!({ "text": "Tell me more." }));
    in_time(telegram.until(|telegram| telegram.shown(7).join(" ") == long.trim())).await;
    let shown = telegram.shown(7);
    assert!(shown.len() == 3 && shown.iter().all(|text| text.len() <= 4_096), "{}", shown.len());
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn an_answer_is_shown_while_it_is_written() {
    let telegram = TelegramServer::start().await;
    let hold = Hold::new();
    let (held, first) = (hold.clone(), "Paris is the capital of France, and it has been so for long");
    let ollama = fakes::ollama_chatting(move |_| {
        Reply::ndjson(piece(first)).then_held(&held, piece(", with breaks.") + END)
    })
    .await;
    let server = Running::start(&home(&telegram, &ollama, OPEN), &[]).await;
    telegram.push(7, &json!({ "text": "What is the capital of France?" }));
    in_time(telegram.until_shown(7, &[&format!("{first} …")])).await;
    assert!(!telegram.calls("sendChatAction").is_empty());
    hold.release();
    in_time(telegram.until_shown(7, &[&format!("{first}, with breaks.")])).await;
    assert_eq!(telegram.calls("sendMessage").len(), 1, "the rest are edits");
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn pictures_and_documents_are_part_of_the_question() {
    let (telegram, ollama) = (TelegramServer::start().await, fakes::ollama().await);
    let server = Running::start(&home(&telegram, &ollama, OPEN), &[]).await;
    telegram.add_file("note", b"The boiler is in the attic.");
    let document = json!({ "file_id": "note", "file_name": "house.txt", "mime_type": "text/plain" });
    telegram.push(7, &json!({ "caption": "Where is it?", "document": document }));
    in_time(telegram.until_shown(7, &[STREAMED])).await;
    let asked = questions(&ollama).pop().expect("a question");
    assert!(asked.contains("Where is it?") && asked.contains("The boiler is in the attic."), "{asked}");

    telegram.add_file("picture", b"\x89PNG\r\n\x1a\nabc");
    let photo = json!([{ "file_id": "picture", "width": 9, "height": 9, "file_size": 11 }]);
    telegram.push(8, &json!({ "caption": "What is this?", "photo": photo }));
    in_time(telegram.until(|telegram| !telegram.shown(8).is_empty())).await;
    let asked = questions(&ollama).pop().expect("a question");
    assert!(asked.contains("iVBORw0KGgphYmM="), "{asked}");

    telegram.push(9, &json!({ "document": { "file_id": "gone", "file_name": "lost.txt" } }));
    in_time(telegram.until_shown(9, &["I cannot read lost.txt: it cannot be downloaded."])).await;
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_voice_message_is_transcribed_and_answered() {
    let telegram = TelegramServer::start().await;
    let vllm = FakeServer::start(|request| match request.path.as_str() {
        "/v1/models" => Reply::transcript("vllm/models"),
        "/v1/chat/completions" => Reply::transcript("vllm/chat_stream"),
        "/v1/audio/transcriptions" => Reply::json(200, r#"{"text":"Where is the boiler?"}"#),
        _ => Reply::json(404, "{}"),
    })
    .await;
    let speech = "[channel]\ntranscription_model = \"smollm2\"\n";
    let config = engines_config(&[("vllm", &vllm.url())]) + speech + &telegram.config() + OPEN;
    let server = Running::start(&Home::with_config(&config), &[]).await;
    telegram.add_file("voice", b"OggS voice");
    telegram.push(7, &json!({ "voice": { "file_id": "voice", "duration": 2, "mime_type": "audio/ogg" } }));
    in_time(telegram.until(|telegram| !telegram.shown(7).is_empty())).await;
    let asked = questions(&vllm).pop().expect("a question");
    assert!(asked.contains("Where is the boiler?"), "{asked}");
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn in_a_group_only_approved_people_who_mention_the_bot_are_answered() {
    let (telegram, ollama) = (TelegramServer::start().await, fakes::ollama().await);
    let config = engines_config(&[("ollama", &ollama.url())])
        + "[channel]\nallow_from = [\"telegram:7\"]\n"
        + &telegram.config();
    let server = Running::start(&Home::with_config(&config), &[]).await;
    let group = json!({ "id": -100, "type": "supergroup", "title": "Family" });
    telegram.push(8, &json!({ "chat": group, "text": "@HobBot are you there?" }));
    telegram.push(7, &json!({ "chat": group, "text": "nobody is asked" }));
    telegram.push(7, &json!({ "chat": group, "text": "@HobBot what is the capital of France?" }));
    in_time(telegram.until_shown(-100, &[STREAMED])).await;
    let sent = telegram.calls("sendMessage");
    assert_eq!((sent.len(), &sent[0]["reply_parameters"]["message_id"]), (1, &json!(3)));
    assert_eq!(questions(&ollama).len(), 1);
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn no_message_is_lost_and_none_is_answered_twice_when_the_server_is_killed() {
    let telegram = TelegramServer::start().await;
    let asked = AtomicUsize::new(0);
    let ollama = fakes::ollama_chatting(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        // The answer that the kill interrupts.
        0 => Reply::silence(),
        _ => Reply::transcript("ollama/chat_stream"),
    })
    .await;
    let home = home(&telegram, &ollama, OPEN);
    telegram.push(7, &json!({ "text": "written while Hob is not there" }));
    let server = Running::start(&home, &[]).await;
    in_time(async {
        while questions(&ollama).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    server.signal(Signal::KILL);
    server.end().await;
    assert_eq!(telegram.shown(7), [] as [&str; 0]);
    telegram.push(8, &json!({ "text": "the next one" }));
    let server = Running::start(&home, &[]).await;
    in_time(telegram.until_shown(7, &[STREAMED])).await;
    in_time(telegram.until_shown(8, &[STREAMED])).await;
    assert_eq!(server.terminate().await.code, Some(0));
    let server = Running::start(&home, &[]).await;
    telegram.push(9, &json!({ "text": "and after that" }));
    in_time(telegram.until_shown(9, &[STREAMED])).await;
    assert_eq!((telegram.shown(7).len(), telegram.shown(8).len()), (1, 1));
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn errors_of_telegram_are_reported_and_overcome() {
    let (telegram, ollama) = (TelegramServer::start().await, fakes::ollama().await);
    telegram.fail_next(
        "getUpdates",
        409,
        json!({ "description": "Conflict: terminated by other getUpdates request" }),
    );
    telegram.fail_next("sendMessage", 429, json!({ "parameters": { "retry_after": 1 } }));
    let home = home(&telegram, &ollama, OPEN);
    let mut server = Running::start(&home, &[]).await;
    in_time(server.says("another program receives the messages of this bot")).await;
    telegram.push(7, &json!({ "text": "What is the capital of France?" }));
    in_time(telegram.until_shown(7, &[STREAMED])).await;
    let status = http::get(server.address(), "/v1/channels/status").await.all().await;
    assert!(status.contains("\"status\":\"connected\""), "{status}");
    // A refusal is reported, and the next message is sent.
    telegram.fail_next("sendMessage", 413, json!({ "description": "Request Entity Too Large" }));
    let refused = home.run(&["channel", "send", "telegram:7", "Dinner is ready."]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("Request Entity Too Large"), "{}", refused.stderr);
    let sent = home.run(&["channel", "send", "telegram:7", "Dinner is ready."]).await;
    assert_eq!(sent.stdout, "sent to telegram:7\n", "{}", sent.stderr);
    assert_eq!(telegram.shown(7), [STREAMED, "Dinner is ready."]);
    let listed = http::get(server.address(), "/v1/channels/messages").await.all().await;
    assert!(listed.contains(r#""channel":"telegram:7""#), "{listed}");
    assert_eq!(
        listed.matches("Dinner is ready.").count(),
        1,
        "what was refused is not in the list: {listed}"
    );
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_wrong_token_is_reported_and_never_shown() {
    let telegram = TelegramServer::start().await;
    let wrong = "999999:WRONG-token_abcdefgh";
    let config = telegram.config().replace(TELEGRAM_TOKEN, wrong);
    let status = Home::with_config(&config).run(&["channel", "status"]).await;
    assert_eq!(status.code, Some(1));
    assert!(status.stderr.contains("Telegram does not accept the token"), "{}", status.stderr);
    drop(telegram);
    let unreachable = Home::with_config(&config).run(&["channel", "status", "--json"]).await;
    assert_eq!(unreachable.code, Some(1));
    assert!(unreachable.stdout.contains("Telegram cannot be reached"), "{}", unreachable.stdout);
    for said in [&status.stdout, &status.stderr, &unreachable.stdout, &unreachable.stderr] {
        assert!(!said.contains("WRONG"), "{said}");
    }
}

#[tokio::test]
async fn adding_a_bot_writes_the_configuration_and_approves_the_owner() {
    let telegram = TelegramServer::start().await;
    let home = Home::with_config(&format!("[channel.telegram]\napi_url = \"{}\"\n", telegram.url()));
    let bad = home.run_with_stdin(&["channel", "add", "telegram"], b"nonsense\n").await;
    assert_eq!(bad.code, Some(1));
    assert!(
        bad.stderr.contains("looks like 123456:ABC-DEF") && !bad.stderr.contains("nonsense"),
        "{}",
        bad.stderr
    );

    let mut adding =
        home.hob(&["channel", "add", "telegram"]).stdin(Stdio::piped()).spawn().expect("hob starts");
    let mut stdin = adding.stdin.take().expect("a pipe");
    stdin.write_all(format!("{TELEGRAM_TOKEN}\n").as_bytes()).await.expect("written");
    let mut lines = BufReader::new(adding.stdout.take().expect("a pipe")).lines();
    let mut next = async || in_time(lines.next_line()).await.expect("text").expect("a line");
    assert!(next().await.starts_with("The bot @HobBot is in "));
    let invitation = next().await;
    let (_, code) = invitation.split_once("?start=").expect("a link");
    let code = &code[..8];
    telegram.push(6, &json!({ "text": "hello?" }));
    telegram.push(7, &json!({ "text": format!("/start {code}") }));
    assert_eq!(next().await, "Ann (telegram:7) is approved.");
    assert!(in_time(adding.wait()).await.expect("hob ends").success());
    assert_eq!(telegram.unconfirmed(), 0);
    let config = std::fs::read_to_string(home.config_file()).expect("text");
    assert!(config.contains(TELEGRAM_TOKEN) && config.contains("enabled = true"), "{config}");
    let senders = home.run(&["channel", "senders"]).await.stdout;
    assert!(senders.contains("telegram:7") && !senders.contains("telegram:6"), "{senders}");
    let status = home.run(&["channel", "status"]).await;
    assert!(status.code == Some(0) && status.stdout.contains("as @HobBot"), "{}", status.stdout);
    assert_eq!(home.run(&["channel", "list"]).await.stdout, "telegram\n");
}
