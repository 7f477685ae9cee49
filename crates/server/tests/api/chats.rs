//! Saved chats, turns and assistants, as the chat page uses them.

use std::sync::Arc;

use hob_app::AskService;
use hob_conversations::{
    ChatId, ChatLimits, ChatTurn, ConversationStore, ResponseOwner, SqliteConversationStore, TurnEnding,
};
use hob_db::Database;
use hob_server::ServerParts;
use hob_testkit::ScriptedEngine;
use reqwest::Method;
use serde_json::{Value, json};

use crate::admin::openapi::{assert_fits, document_of};
use crate::fixtures::loopback_config;
use crate::key_fixtures::{create_key, key_parts, key_service, message, send};
use crate::support::{TestServer, plain_parts};

/// A server with chats, which the terminal uses too.
struct ChatServer {
    http: TestServer,
    terminal: SqliteConversationStore,
}

impl ChatServer {
    async fn start() -> Self {
        Self::with(|store| store).await
    }

    async fn with(change: impl FnOnce(SqliteConversationStore) -> SqliteConversationStore) -> Self {
        let database = Database::in_memory(&[hob_conversations::MIGRATIONS]).unwrap();
        let terminal = change(SqliteConversationStore::new(database));
        let system = AskService::new(plain_parts(Arc::new(ScriptedEngine::saying(&["hi"]))));
        let chats = Arc::new(terminal.clone());
        let parts = ServerParts { chats: Some(chats), ..ServerParts::from(Arc::new(system)) };
        ChatServer { http: TestServer::start_parts(parts, loopback_config()).await, terminal }
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let response = send(&self.http, method, path, "", body).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, None).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call(Method::POST, path, Some(body)).await
    }

    async fn create(&self, body: Value) -> Value {
        let (status, chat) = self.post("/v1/chats", body).await;
        assert_eq!(status, 201, "{chat}");
        chat
    }

    async fn ask(&self, chat: &Value, parent: Value, text: &str) -> Value {
        let body = json!({ "parent": parent, "question": { "text": text } });
        let (status, turn) = self.post(&format!("{}/turns", path(chat)), body).await;
        assert_eq!(status, 201, "{turn}");
        turn
    }
}

fn path(chat: &Value) -> String {
    format!("/v1/chats/{}", chat["id"].as_str().unwrap())
}

fn titles(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|chat| chat["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_question_is_saved_before_its_answer_and_another_try_is_a_branch() {
    let server = ChatServer::start().await;
    let document = document_of(&server.http).await;
    let settings = json!({ "model": "qwen3:8b", "documents": true });
    let chat = server.create(json!({ "settings": settings })).await;
    assert_fits(&document, "Chat", &chat);
    assert_eq!((&chat["title"], &chat["pinned"], &chat["turns"]), (&json!(""), &json!(false), &json!(0)));
    assert_eq!(
        chat["settings"],
        json!({
            "model": "qwen3:8b", "agent": null, "system": null, "temperature": null, "max_tokens": null,
            "documents": true, "assistant": null,
        })
    );

    let first = server.ask(&chat, Value::Null, "What is a hob?").await;
    assert_fits(&document, "ChatTurn", &first);
    assert_eq!((&first["parent"], &first["answer"]), (&Value::Null, &Value::Null));
    let answer = json!({
        "text": "A spirit.", "reasoning": "Think.", "model": "qwen3:8b",
        "sources": [{ "document": "/n/hobs.md", "passage": "A hob is a spirit.", "score": 1.5 }],
        "steps": [{ "tool": "think", "arguments": "{}", "result": "ok", "success": true }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 2, "seconds": 0.5 },
        "ending": "complete", "error": null,
    });
    assert_fits(&document, "ChatAnswer", &answer);
    let place = |turn: &Value| format!("{}/turns/{}/answer", path(&chat), turn["id"].as_str().unwrap());
    let (status, answered) = server.call(Method::PUT, &place(&first), Some(answer.clone())).await;
    assert_eq!((status, &answered["answer"], &answered["id"]), (200, &answer, &first["id"]));

    let second = server.ask(&chat, first["id"].clone(), "Where?").await;
    let other = server.ask(&chat, first["id"].clone(), "Where?").await;
    let failed = json!({ "text": "", "model": "m", "ending": "failed", "error": "no engine answered" });
    let (status, failed) = server.call(Method::PUT, &place(&other), Some(failed)).await;
    assert_eq!(
        (status, &failed["answer"]["ending"], &failed["answer"]["sources"]),
        (200, &json!("failed"), &json!([]))
    );

    let (status, open) = server.get(&path(&chat)).await;
    assert_eq!(status, 200);
    assert_fits(&document, "OpenChat", &open);
    assert_eq!(open["title"], "What is a hob?");
    assert_eq!((&open["turns"], &open["current"]), (&json!(3), &other["id"]));
    assert_eq!(open["data"], json!([answered, second, failed]));

    let change =
        json!({ "current": second["id"], "title": "Hobs", "pinned": true, "settings": { "model": null } });
    let (status, changed) = server.call(Method::PATCH, &path(&chat), Some(change)).await;
    assert_eq!((status, &changed["title"], &changed["pinned"]), (200, &json!("Hobs"), &json!(true)));
    assert_eq!(
        (&changed["settings"]["model"], &changed["settings"]["documents"]),
        (&Value::Null, &json!(true))
    );
    let (_, open) = server.get(&path(&chat)).await;
    assert_eq!((&open["current"], &open["updated_at"]), (&second["id"], &changed["updated_at"]));

    let (status, deleted) = server.call(Method::DELETE, &path(&chat), None).await;
    assert_eq!((status, deleted), (200, json!({ "id": chat["id"], "deleted": true })));
    assert_eq!(server.get(&path(&chat)).await.0, 404);
}

#[tokio::test]
async fn chats_are_listed_in_pages_and_found_by_their_words() {
    let server = ChatServer::start().await;
    let document = document_of(&server.http).await;
    for title in ["one", "two", "three", "four"] {
        let chat = server.create(json!({ "title": title })).await;
        server.ask(&chat, Value::Null, &format!("the {title} boilers")).await;
    }
    let (_, all) = server.get("/v1/chats").await;
    assert_fits(&document, "ChatList", &all);
    assert_eq!((titles(&all), &all["next"]), (vec!["four", "three", "two", "one"], &Value::Null));
    server.call(Method::PATCH, &path(&all["data"][3]), Some(json!({ "pinned": true }))).await;

    let (_, first) = server.get("/v1/chats?limit=3").await;
    assert_eq!(titles(&first), ["one", "four", "three"]);
    let next = format!("/v1/chats?limit=3&query=&after={}", first["next"].as_str().unwrap());
    let (_, rest) = server.get(&next).await;
    assert_eq!((titles(&rest), &rest["next"]), (vec!["two"], &Value::Null));

    let (_, found) = server.get("/v1/chats?query=boil%20two").await;
    assert_eq!(titles(&found), ["two"]);
    let (_, found) = server.get("/v1/chats?query=nothing").await;
    assert_eq!(found, json!({ "data": [], "next": null }));
    for (query, param) in [("limit=0", "limit"), ("limit=201", "limit"), ("after=x", "after")] {
        let (status, refused) = server.get(&format!("/v1/chats?{query}")).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &json!(param)), "{query}");
    }
}

#[tokio::test]
async fn the_page_and_the_terminal_have_the_same_chats() {
    let server = ChatServer::start().await;
    let owner = ResponseOwner::owner();
    let turn = ChatTurn {
        question: "Why is the sky blue?".into(),
        attachments: Vec::new(),
        answer: "Air scatters blue light.".into(),
        ending: TurnEnding::Complete,
        model: "m".into(),
    };
    let chat = server.terminal.add(&owner, None, &turn, std::time::SystemTime::now()).unwrap().chat;
    let (_, list) = server.get("/v1/chats").await;
    assert_eq!(titles(&list), ["Why is the sky blue?"]);
    let open = &list["data"][0];
    assert_eq!(open["id"], chat.to_string());
    let (_, shown) = server.get(&path(open)).await;
    assert_eq!(shown["data"][0]["answer"]["text"], "Air scatters blue light.");
    server.ask(open, shown["current"].clone(), "And the sea?").await;
    assert_eq!(server.terminal.list(&owner, 10).unwrap()[0].turns, 2);
    server.call(Method::DELETE, &path(open), None).await;
    assert_eq!(server.terminal.get(&owner, ChatId::parse(&chat.to_string()).unwrap()).unwrap(), None);
}

#[tokio::test]
async fn what_is_over_a_limit_or_unknown_is_refused_by_name() {
    let limits = ChatLimits { chats: 1, bytes: 1 << 20, turns: 1, chat_bytes: 1 << 20, assistants: 1 };
    let server = ChatServer::with(|store| store.with_limits(limits)).await;
    let chat = server.create(json!({})).await;
    let turns = format!("{}/turns", path(&chat));
    let question = |text: String| json!({ "question": { "text": text } });
    let missing = json!({ "parent": "7", "question": { "text": "hi" } });
    for (where_to, body, expected) in [
        ("/v1/chats", json!({}), (400, Value::Null, json!("too_many_chats"))),
        ("/v1/chats", json!({ "title": "x".repeat(201) }), (400, json!("title"), Value::Null)),
        (
            "/v1/chats",
            json!({ "settings": { "temperature": 3 } }),
            (400, json!("settings.temperature"), Value::Null),
        ),
        (
            "/v1/chats",
            json!({ "settings": { "system": "x".repeat((64 << 10) + 1) } }),
            (400, json!("settings.system"), Value::Null),
        ),
        (&turns, json!({}), (400, json!("question"), Value::Null)),
        (&turns, question(" ".into()), (400, json!("question.text"), Value::Null)),
        (&turns, question("x".repeat((1 << 20) + 1)), (413, json!("question.text"), json!("too_large"))),
        (&turns, missing, (404, json!("parent"), json!("turn_not_found"))),
        ("/v1/chats/99/turns", question("hi".into()), (404, json!("id"), json!("chat_not_found"))),
        ("/v1/chats/x/turns", question("hi".into()), (404, json!("id"), json!("chat_not_found"))),
    ] {
        let (status, refused) = server.post(where_to, body).await;
        let error = &refused["error"];
        assert_eq!((status, error["param"].clone(), error["code"].clone()), expected, "{refused}");
    }
    server.ask(&chat, Value::Null, "hi").await;
    let (status, refused) = server.post(&turns, question("more".into())).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("chat_full")), "{refused}");
    let (status, refused) = server.call(Method::PATCH, &path(&chat), Some(json!({ "current": "9" }))).await;
    assert_eq!((status, message(&refused)), (404, "the chat has no turn '9'"));
    let unknown = json!({ "text": "a", "model": "m", "ending": "complete" });
    let (status, _) = server.call(Method::PUT, &format!("{turns}/9/answer"), Some(unknown)).await;
    assert_eq!(status, 404);
    let wrong = json!({ "text": "a", "model": "m", "ending": "over" });
    let (status, refused) = server.call(Method::PUT, &format!("{turns}/1/answer"), Some(wrong)).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("ending")), "{refused}");
}

#[tokio::test]
async fn assistants_are_saved_with_their_settings() {
    let server = ChatServer::start().await;
    let document = document_of(&server.http).await;
    let body = json!({ "name": "Brief", "settings": { "system": "Be brief.", "agent": "orchestrator" } });
    let (status, brief) = server.post("/v1/saved-assistants", body).await;
    assert_eq!(status, 201, "{brief}");
    assert_fits(&document, "SavedAssistant", &brief);
    let one = format!("/v1/saved-assistants/{}", brief["id"].as_str().unwrap());
    assert_eq!(server.get(&one).await, (200, brief.clone()));
    let change = json!({ "name": "Briefer", "settings": { "agent": null } });
    let (status, changed) = server.call(Method::PATCH, &one, Some(change)).await;
    let settings = &changed["settings"];
    assert_eq!(
        (status, &changed["name"], &settings["system"], &settings["agent"]),
        (200, &json!("Briefer"), &json!("Be brief."), &Value::Null)
    );
    let (_, list) = server.get("/v1/saved-assistants").await;
    assert_fits(&document, "SavedAssistantList", &list);
    assert_eq!(list, json!({ "data": [changed] }));
    let (status, refused) = server.post("/v1/saved-assistants", json!({ "settings": {} })).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("name")));
    let (status, deleted) = server.call(Method::DELETE, &one, None).await;
    assert_eq!((status, deleted), (200, json!({ "id": brief["id"], "deleted": true })));
    assert_eq!(server.get(&one).await.0, 404);
}

#[tokio::test]
async fn members_have_chats_of_their_own_and_pages_learn_of_changes() {
    let home = tempfile::tempdir().unwrap();
    let keys = key_service();
    let parts = key_parts(&home, &keys, plain_parts(Arc::new(ScriptedEngine::saying(&["hi"]))));
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let ana = create_key(&keys, "ana", hob_keys::KeyRole::Member, json!({})).await;
    let ben = create_key(&keys, "ben", hob_keys::KeyRole::Member, json!({})).await;
    let mut live = send(&server, Method::GET, "/pages/live", &ana, None).await;
    let create = |key: String, title: &'static str| {
        let server = &server;
        async move { send(server, Method::POST, "/v1/chats", &key, Some(json!({ "title": title }))).await }
    };
    for (key, title) in [("", "owner's"), (&ana, "ana's"), (&ben, "ben's")] {
        assert_eq!(create(key.to_owned(), title).await.status(), 201);
    }
    for (key, title) in [("", "owner's"), (&ana, "ana's"), (&ben, "ben's")] {
        let list: Value = send(&server, Method::GET, "/v1/chats", key, None).await.json().await.unwrap();
        assert_eq!(titles(&list), [title]);
    }
    let mut heard = String::new();
    while !heard.contains("chats") {
        let piece = tokio::time::timeout(crate::support::WAIT_LIMIT, live.chunk()).await;
        heard.push_str(std::str::from_utf8(&piece.unwrap().unwrap().unwrap()).unwrap());
    }
    assert!(heard.contains(r#"{"topics":["chats"]}"#), "{heard}");
}
