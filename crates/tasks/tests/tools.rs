//! The tools of tasks, as the tool runner calls them, over a database in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

use std::sync::Arc;

use hob_agents::ToolSet;
use hob_core::{Permit, Reach, RunEvents, ToolCall, ToolResult, ToolRunner, Zone};
use hob_db::Database;
use hob_tasks::store::SqliteTaskStore;
use hob_tasks::{MIGRATIONS, TaskOptions, TaskService, task_tools};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A service at a fixed time, whose tasks last as long as the test.
fn service() -> TaskService {
    let noon: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let options = TaskOptions {
        clock: Arc::new(move || noon),
        zone: Zone::UTC,
        agents: ["simple", "orchestrator"].map(str::to_owned).to_vec(),
        ..TaskOptions::default()
    };
    let database = Database::in_memory(&[MIGRATIONS]).unwrap();
    TaskService::new(Arc::new(SqliteTaskStore::new(database)), options)
}

/// Calls a tool as a run with this permit does.
async fn call(tasks: &TaskService, permit: &Permit, name: &str, arguments: Value) -> ToolResult {
    let tools = ToolSet::new(task_tools(tasks)).unwrap();
    let run = tools.for_run(permit.clone(), RunEvents::without_subscribers()).unwrap();
    run.execute(&ToolCall { id: "1".into(), name: name.into(), arguments: arguments.to_string() }).await
}

fn owner() -> Permit {
    Permit::up_to(Reach::Act)
}

fn weekdays() -> Value {
    json!({ "prompt": "Summarise my notes.", "schedule_type": "cron", "schedule_value": "0 9 * * MON-FRI" })
}

async fn answer(tasks: &TaskService, name: &str, arguments: Value) -> Value {
    let result = call(tasks, &owner(), name, arguments).await;
    assert!(result.success, "{}", result.content);
    serde_json::from_str(&result.content).unwrap()
}

#[tokio::test]
async fn a_model_creates_lists_and_changes_tasks() {
    let tasks = service();
    let made = answer(&tasks, "schedule_task", weekdays()).await;
    let id = made["task_id"].as_str().unwrap().to_owned();
    assert_eq!(made, json!({ "task_id": id, "next_run": "2026-11-16T09:00:00Z", "status": "active" }));
    let full = json!({
        "prompt": "p", "schedule_type": "once", "schedule_value": "2026-12-01T09:00", "timezone": "Europe/Berlin",
        "agent": "orchestrator", "tools": ["calculator"],
    });
    let other = answer(&tasks, "schedule_task", full).await;
    assert_eq!(other["next_run"], "2026-12-01T08:00:00Z");

    let plain = json!({ "prompt": "p", "schedule_type": "every", "schedule_value": "every day at 7am" });
    let plain = answer(&tasks, "schedule_task", plain).await;
    assert_eq!(plain["next_run"], "2026-11-16T07:00:00Z");
    answer(&tasks, "cancel_scheduled_task", json!({ "task_id": plain["task_id"] })).await;

    let listed = answer(&tasks, "list_scheduled_tasks", json!({ "status": "active" })).await;
    assert_eq!(listed["total"], 2);
    assert_eq!(listed["tasks"][0]["schedule_value"], "0 9 * * MON-FRI");
    for (tool, status) in [
        ("pause_scheduled_task", "paused"),
        ("resume_scheduled_task", "active"),
        ("cancel_scheduled_task", "cancelled"),
    ] {
        assert_eq!(answer(&tasks, tool, json!({ "task_id": id })).await["status"], status);
    }
    let active = answer(&tasks, "list_scheduled_tasks", json!({ "status": "active" })).await;
    assert_eq!((&active["total"], &active["tasks"][0]["task_id"]), (&json!(1), &other["task_id"]));
}

#[tokio::test]
async fn errors_help_the_model() {
    let tasks = service();
    let told = async |name: &str, arguments: Value| {
        let result = call(&tasks, &owner(), name, arguments).await;
        assert!(!result.success, "{}", result.content);
        result.content
    };
    let mut bad = weekdays();
    bad["schedule_value"] = json!("at nine");
    let complaint = told("schedule_task", bad).await;
    assert!(complaint.starts_with("schedule_value: 'at nine' is not a cron expression"), "{complaint}");
    let words = json!({ "prompt": "p", "schedule_type": "every", "schedule_value": "weekdys 9:00" });
    let complaint = told("schedule_task", words).await;
    assert!(complaint.contains("Did you mean 'weekdays 9:00'?"), "{complaint}");
    let complaint = told("cancel_scheduled_task", json!({ "task_id": "nobody" })).await;
    assert_eq!(complaint, "there is no task 'nobody'; list_scheduled_tasks lists all tasks");
    let id = answer(&tasks, "schedule_task", weekdays()).await["task_id"].take();
    answer(&tasks, "cancel_scheduled_task", json!({ "task_id": id })).await;
    let complaint = told("resume_scheduled_task", json!({ "task_id": id })).await;
    assert_eq!(complaint, "a cancelled task cannot be changed");
}

#[tokio::test]
async fn strangers_schedule_nothing_and_a_task_has_at_most_the_permit_of_its_creator() {
    let tasks = service();
    let cases = [
        ("schedule_task", Reach::Read),
        ("pause_scheduled_task", Reach::Read),
        ("list_scheduled_tasks", Reach::Pure),
    ];
    for (name, reach) in cases {
        let refused = call(&tasks, &Permit::up_to(reach), name, json!({})).await;
        assert!(refused.content.contains("not available to this caller"), "{}", refused.content);
    }
    let listed = call(&tasks, &Permit::up_to(Reach::Read), "list_scheduled_tasks", json!({})).await;
    assert!(listed.success, "reading the list needs no permission to act: {}", listed.content);
    // A caller without other acting tools.
    let trusted = Permit { also: vec!["schedule_task".into()], ..Permit::up_to(Reach::Pure) };
    let mut grasping = weekdays();
    grasping["tools"] = json!(["web_fetch", "code_interpreter"]);
    assert!(call(&tasks, &trusted, "schedule_task", grasping).await.success);
    let task = tasks.list(None).await.unwrap().remove(0);
    assert_eq!(task.permit, trusted);
    assert_eq!(task.run_permit().most, Reach::Pure);
}
