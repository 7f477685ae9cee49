//! `/v1/tasks`, over a task store in a temporary directory.

use std::sync::Arc;

use hob_app::startup::tasks::{task_options, task_service};
use hob_app::{AskService, hob_database};
use hob_channels::{ChannelOptions, ChannelService, GatewayOptions};
use hob_config::ServerConfig;
use hob_core::{Ask, Engine, Zone};
use hob_server::ServerParts;
use hob_tasks::{Scheduler, SchedulerOptions, SchedulerParts, TaskOptions};
use hob_testkit::{Gateway, GatewayScript, Recorded, Reply, ScriptedEngine};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::admin::openapi::{assert_fits, document_of};
use crate::fixtures::{calculating, loopback_config, parts, reached_from_network};
use crate::support::{TestServer, WAIT_LIMIT};

pub struct TaskServer {
    _home: TempDir,
    _gateway: Gateway,
    engine: Arc<ScriptedEngine>,
    scheduler: Arc<Scheduler>,
    pub http: TestServer,
}

/// A gateway with one channel.
async fn telegram() -> Gateway {
    let http = |_: &Recorded| Reply::json(200, r#"["telegram"]"#);
    Gateway::start(GatewayScript { http: Arc::new(http), ..GatewayScript::default() }).await
}

impl AsRef<TestServer> for TaskServer {
    fn as_ref(&self) -> &TestServer {
        &self.http
    }
}

impl TaskServer {
    pub async fn open() -> Self {
        let home = tempfile::tempdir().unwrap();
        let gateway = telegram().await;
        let channels = ChannelService::new(ChannelOptions {
            gateway: Some(GatewayOptions::new(gateway.url())),
            ..ChannelOptions::default()
        })
        .unwrap();
        let engine = Arc::new(ScriptedEngine::saying(&["Hel", "lo"]).with_models(&["m", "qwen3:8b"]));
        let channels = Arc::new(channels);
        let system = AskService::new(parts(Arc::clone(&engine) as Arc<dyn Engine>));
        let system = Arc::new(system.with_channels(Some(Arc::clone(&channels))));
        let scheduler = Arc::new(Scheduler::new(SchedulerParts {
            tasks: task_service(
                hob_database(home.path()),
                TaskOptions { zone: Zone::UTC, ..task_options(Some(channels)) },
            ),
            ask: Arc::clone(&system) as Arc<dyn Ask>,
            bus: system.bus().clone(),
            options: SchedulerOptions::default(),
        }));
        let parts = ServerParts { scheduler: Some(Arc::clone(&scheduler)), ..ServerParts::from(system) };
        TaskServer {
            _home: home,
            _gateway: gateway,
            engine,
            scheduler,
            http: TestServer::start_parts(parts, loopback_config()).await,
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Response {
        let request = self.http.client.request(method, self.http.url(path));
        let request = match body {
            Some(body) => request.json(body),
            // Requests that change something need the JSON content type, even without a body.
            None => request.header("content-type", "application/json"),
        };
        request.send().await.unwrap()
    }

    async fn ask(&self, method: Method, path: &str, expected: StatusCode) -> Value {
        let response = self.send(method, path, None).await;
        let (status, body) = (response.status(), response.json().await.unwrap());
        assert_eq!(status, expected, "{path}: {body}");
        body
    }

    async fn create(&self, body: &Value) -> (StatusCode, Value) {
        let response = self.send(Method::POST, "/v1/tasks", Some(body)).await;
        (response.status(), response.json().await.unwrap())
    }
}

/// A shown task as it was when it was created.
fn without_upcoming(mut task: Value) -> Value {
    task.as_object_mut().unwrap().remove("upcoming");
    task
}

fn weekdays() -> Value {
    json!({ "prompt": "Say hello.", "schedule_type": "cron", "schedule_value": "0 9 * * MON-FRI" })
}

#[tokio::test]
async fn a_task_is_created_shown_changed_and_deleted() {
    let server = TaskServer::open().await;
    let document = document_of(&server.http).await;
    let (status, task) = server.create(&weekdays()).await;
    assert_eq!(status, StatusCode::CREATED, "{task}");
    assert_fits(&document, "Task", &task);
    assert_eq!(
        (&task["status"], &task["timezone"], &task["agent"]),
        (&json!("active"), &json!("UTC"), &json!("simple"))
    );
    assert!(task["next_run"].as_str().unwrap().ends_with("T09:00:00Z"), "{task}");

    let id = task["id"].as_str().unwrap();
    let path = format!("/v1/tasks/{id}");
    let shown = server.ask(Method::GET, &path, StatusCode::OK).await;
    assert_fits(&document, "ShownTask", &shown);
    assert_eq!((&shown["upcoming"][0], shown["upcoming"].as_array().unwrap().len()), (&task["next_run"], 5));
    assert_eq!(without_upcoming(shown), task);
    for (word, status) in [("pause", "paused"), ("resume", "active"), ("cancel", "cancelled")] {
        let changed = server.ask(Method::POST, &format!("{path}/{word}"), StatusCode::OK).await;
        assert_eq!(changed["status"], status);
        assert_fits(&document, "Task", &changed);
    }
    let refused = server.ask(Method::POST, &format!("{path}/resume"), StatusCode::CONFLICT).await;
    assert_eq!(refused["detail"], "a cancelled task cannot be changed");
    assert_eq!(refused["error"]["code"], "task_state");

    let list = server.ask(Method::GET, "/v1/tasks?status=cancelled", StatusCode::OK).await;
    assert_fits(&document, "TaskList", &list);
    assert_eq!(list["tasks"].as_array().unwrap().len(), 1);
    let list = server.ask(Method::GET, "/v1/tasks?status=active", StatusCode::OK).await;
    assert_fits(&document, "TaskList", &list);
    assert_eq!(list["tasks"], json!([]));
    server.ask(Method::DELETE, &path, StatusCode::OK).await;
    let gone = server.ask(Method::GET, &path, StatusCode::NOT_FOUND).await;
    assert_eq!(gone["error"]["code"], "task_not_found");
}

#[tokio::test]
async fn every_field_of_a_new_task_is_saved() {
    let server = TaskServer::open().await;
    let body = json!({
        "prompt": "p", "schedule_type": "interval", "schedule_value": 3600, "timezone": "Europe/Berlin",
        "agent": "orchestrator", "model": "qwen3:8b", "tools": ["calculator"],
        "first_calls": [{ "tool": "calculator", "arguments": { "expression": "6 * 7" } }], "channel": "telegram", "conversation_id": "7", "retries": 2,
        "timeout": 30, "missed": "skip", "metadata": { "by": "me" },
    });
    assert_fits(&document_of(&server.http).await, "NewTask", &body);
    let (status, task) = server.create(&body).await;
    assert_eq!(status, StatusCode::CREATED, "{task}");
    for (field, value) in body.as_object().unwrap() {
        let expected = match field.as_str() {
            "schedule_value" => &json!("3600"),
            "timeout" => &json!(30.0),
            _ => value,
        };
        assert_eq!(&task[field], expected, "{field}");
    }
}

#[tokio::test]
async fn an_invalid_task_names_the_field() {
    let server = TaskServer::open().await;
    for (field, value, words) in [
        ("prompt", json!(" "), "the prompt is empty"),
        ("schedule_type", json!("sometimes"), "'sometimes' is not every, cron, interval or once"),
        ("schedule_value", json!("at nine"), "'at nine' is not a cron expression"),
        ("timezone", json!("Mars/Olympus"), "unknown time zone"),
        ("agent", json!("jeeves"), "there is no agent 'jeeves'"),
        ("model", json!(" "), "the name of the model is not valid"),
        ("tools", json!(["calculater"]), "did you mean calculator?"),
        ("first_calls", json!([{ "tool": "calculater" }]), "did you mean calculator?"),
        ("first_calls", json!(vec![json!({ "tool": "calculator" }); 17]), "at most 16 calls"),
        ("retries", json!(11), "at most 10 retries"),
        ("timeout", json!(-1), "between 1 and 86400 seconds"),
        ("missed", json!("never"), "is not once or skip"),
        ("conversation_id", json!("7"), "needs a channel"),
        ("channel", json!("pigeons"), "there is no channel 'pigeons'; there are telegram"),
    ] {
        let mut body = weekdays();
        body[field] = value;
        let (status, answer) = server.create(&body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{field}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(words), "{field}: {answer}");
        let param = if field == "conversation_id" { "channel" } else { field };
        assert_eq!(answer["error"]["param"], param, "{answer}");
    }
    let (status, answer) = server.create(&json!({ "prompt": "p" })).await;
    assert_eq!(
        (status, &answer["error"]["param"]),
        (StatusCode::BAD_REQUEST, &json!("schedule_type")),
        "{answer}"
    );
    let (status, answer) = server.create(&json!([])).await;
    let expected = "the request body is wrong: expected an object, got an array";
    assert_eq!((status, &answer["detail"]), (StatusCode::BAD_REQUEST, &json!(expected)));
    server.ask(Method::GET, "/v1/tasks?status=lazy", StatusCode::BAD_REQUEST).await;
    server.ask(Method::GET, "/v1/tasks/%20", StatusCode::NOT_FOUND).await;
}

#[tokio::test]
async fn the_next_five_runs_of_a_schedule_are_shown_in_its_time_zone() {
    let server = TaskServer::open().await;
    let document = document_of(&server.http).await;
    let preview = async |body: Value| {
        let answer = server.send(Method::POST, "/v1/tasks/preview", Some(&body)).await;
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    // In January, so that the offset is that of winter.
    let yearly =
        json!({ "schedule_type": "cron", "schedule_value": "0 9 1 1 *", "timezone": "Europe/Berlin" });
    assert_fits(&document, "TaskSchedule", &yearly);
    let (status, answer) = preview(yearly).await;
    assert_eq!(status, 200, "{answer}");
    assert_fits(&document, "TaskPreview", &answer);
    assert_eq!(answer["timezone"], "Europe/Berlin");
    let runs: Vec<&str> =
        answer["runs"].as_array().unwrap().iter().map(|run| run.as_str().unwrap()).collect();
    assert_eq!(runs.len(), 5);
    assert!(runs.iter().all(|run| run.ends_with("-01-01T09:00:00+01:00")), "{runs:?}");
    assert!(runs.is_sorted());

    let words = json!({ "schedule_type": "every", "schedule_value": "monthly on the 1st 09:00" });
    assert_fits(&document, "TaskSchedule", &words);
    let (status, answer) = preview(words).await;
    assert_eq!((status, answer["runs"].as_array().map(Vec::len)), (200, Some(5)), "{answer}");

    let once = json!({ "schedule_type": "once", "schedule_value": "9999-01-31T09:00" });
    let (_, answer) = preview(once).await;
    assert_eq!(answer, json!({ "timezone": "UTC", "runs": ["9999-01-31T09:00:00+00:00"] }));
    for (wrong, param) in [
        (json!({ "schedule_type": "cron", "schedule_value": "at nine" }), "schedule_value"),
        (json!({ "schedule_type": "once", "schedule_value": "2020-01-31T09:00" }), "schedule_value"),
        (json!({ "schedule_type": "often", "schedule_value": "1" }), "schedule_type"),
        (json!({ "schedule_type": "every", "schedule_value": "weekdys 07:00" }), "schedule_value"),
        (json!({ "schedule_type": "cron", "schedule_value": "@daily", "timezone": "Mars" }), "timezone"),
        (json!({ "schedule_type": "cron" }), "schedule_value"),
    ] {
        let (status, answer) = preview(wrong).await;
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{answer}");
    }
    let tasks = server.ask(Method::GET, "/v1/tasks", StatusCode::OK).await;
    assert_eq!((&tasks["tasks"], &tasks["timezone"]), (&json!([]), &json!("UTC")), "nothing is created");
    assert!(tasks["agents"].as_array().unwrap().contains(&json!("simple")), "{tasks}");
}

#[tokio::test]
async fn the_model_of_a_task_answers_and_the_log_says_where_the_answer_went() {
    let server = TaskServer::open().await;
    let mut body = weekdays();
    body["model"] = json!("qwen3:8b");
    body["agent"] = json!("none");
    body["channel"] = json!("telegram");
    body["conversation_id"] = json!("7");
    let (status, task) = server.create(&body).await;
    assert_eq!(status, StatusCode::CREATED, "{task}");
    let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    server.ask(Method::POST, &format!("{path}/run"), StatusCode::ACCEPTED).await;
    server.scheduler.drain(WAIT_LIMIT).await;
    let asked: Vec<String> = server.engine.requests().iter().map(|request| request.model.clone()).collect();
    assert_eq!(asked, ["qwen3:8b"]);
    let logs = server.ask(Method::GET, &format!("{path}/logs"), StatusCode::OK).await;
    assert_fits(&document_of(&server.http).await, "TaskLogs", &logs);
    let run = &logs["logs"][0];
    assert_eq!((&run["success"], &run["delivered_to"]), (&json!(true), &json!("telegram 7")), "{run}");
}

#[tokio::test]
async fn a_manual_run_is_logged() {
    let server = TaskServer::open().await;
    let document = document_of(&server.http).await;
    let (_, task) = server.create(&weekdays()).await;
    let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(server.ask(Method::GET, &format!("{path}/logs"), StatusCode::OK).await, json!({ "logs": [] }));
    let run = server.ask(Method::POST, &format!("{path}/run"), StatusCode::ACCEPTED).await;
    assert_fits(&document, "TaskRun", &run);
    assert_eq!((&run["outcome"], &run["success"]), (&json!("running"), &Value::Null));
    // The scheduler finishes its runs before it closes.
    server.scheduler.drain(WAIT_LIMIT).await;
    let logs = server.ask(Method::GET, &format!("{path}/logs?limit=5"), StatusCode::OK).await;
    assert_fits(&document, "TaskLogs", &logs);
    assert_eq!((&logs["logs"][0]["success"], &logs["logs"][0]["result"]), (&json!(true), &json!("Hello")));
    server.ask(Method::GET, &format!("{path}/logs?limit=many"), StatusCode::BAD_REQUEST).await;
}

#[tokio::test]
async fn a_request_without_a_cors_preflight_changes_no_task() {
    let server = TaskServer::open().await;
    let (_, task) = server.create(&weekdays()).await;
    let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    for word in ["pause", "resume", "cancel", "run"] {
        let post = || server.http.client.post(server.http.url(&format!("{path}/{word}")));
        for request in [post(), post().header("content-type", "text/plain").body("{}")] {
            let refused = request.send().await.unwrap();
            assert_eq!(refused.status(), 415, "{word}");
            let message = refused.json::<Value>().await.unwrap()["detail"].take();
            assert!(message.as_str().unwrap().contains("application/json"), "{message}");
        }
    }
    assert_eq!(without_upcoming(server.ask(Method::GET, &path, StatusCode::OK).await), task);
    let logs = server.ask(Method::GET, &format!("{path}/logs"), StatusCode::OK).await;
    assert_eq!(logs, json!({ "logs": [] }));
}

#[tokio::test]
async fn tasks_need_the_owner_and_a_database() {
    let engine = calculating();
    let outside = reached_from_network(&engine, ServerConfig::default()).await;
    for (method, path) in
        [(Method::GET, "/v1/tasks"), (Method::POST, "/v1/tasks"), (Method::DELETE, "/v1/tasks/x")]
    {
        let refused = outside.client.request(method, outside.url(path)).send().await.unwrap();
        assert_eq!(refused.status(), 403, "{path}");
    }
    let server = TestServer::start_system(parts(engine), loopback_config()).await;
    let nothing = server.client.get(server.url("/v1/tasks")).send().await.unwrap();
    assert_eq!(nothing.status(), 503);
    assert_eq!(nothing.json::<Value>().await.unwrap()["error"]["code"], "no_tasks");
}
