//! The tools of the scheduler, as the tool runner calls them, over tasks in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hob_agents::ToolSet;
use hob_agents::capability_tools::schedule_tools;
use hob_core::schedule::Change;
use hob_core::{
    NewTask, Permit, Reach, RunEvents, Schedule, ScheduleError, Task, TaskId, TaskRun, TaskStatus, ToolCall,
    ToolResult, ToolRunner,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Keeps tasks for as long as the test lasts.
#[derive(Default)]
struct Slate(Mutex<Vec<Task>>);

#[async_trait]
impl Schedule for Slate {
    async fn create(&self, task: NewTask) -> Result<Task, ScheduleError> {
        let mut tasks = self.0.lock().unwrap();
        let id = TaskId::parse(&format!("t{}", tasks.len() + 1))?;
        let task = task.plan(id, "2026-11-15T12:00:00Z".parse::<Timestamp>().unwrap())?;
        tasks.push(task.clone());
        Ok(task)
    }

    async fn list(&self, status: Option<TaskStatus>) -> Result<Vec<Task>, ScheduleError> {
        let tasks = self.0.lock().unwrap();
        Ok(tasks.iter().filter(|task| status.is_none_or(|status| task.status == status)).cloned().collect())
    }

    async fn get(&self, id: &TaskId) -> Result<Task, ScheduleError> {
        let tasks = self.0.lock().unwrap();
        let found = tasks.iter().find(|task| task.id == *id).cloned();
        found.ok_or_else(|| ScheduleError::NotFound { id: id.to_string() })
    }

    async fn change(&self, id: &TaskId, change: Change) -> Result<Task, ScheduleError> {
        let status = self.get(id).await?.status.after(change)?;
        let mut tasks = self.0.lock().unwrap();
        let task = tasks.iter_mut().find(|task| task.id == *id).unwrap();
        task.status = status;
        Ok(task.clone())
    }

    async fn runs(&self, _: &TaskId, _: usize) -> Result<Vec<TaskRun>, ScheduleError> {
        Ok(Vec::new())
    }
}

/// Calls a tool as a run with this permit does.
async fn call(slate: &Arc<Slate>, permit: &Permit, name: &str, arguments: Value) -> ToolResult {
    let schedule = Arc::clone(slate) as Arc<dyn Schedule>;
    let tools = ToolSet::new(schedule_tools(&schedule)).unwrap();
    let run = tools.for_run(permit.clone(), RunEvents::unheard()).unwrap();
    run.execute(&ToolCall { id: "1".into(), name: name.into(), arguments: arguments.to_string() }).await
}

fn owner() -> Permit {
    Permit::up_to(Reach::Act)
}

fn weekdays() -> Value {
    json!({ "prompt": "Summarise my notes.", "schedule_type": "cron", "schedule_value": "0 9 * * MON-FRI" })
}

async fn answer(slate: &Arc<Slate>, name: &str, arguments: Value) -> Value {
    let result = call(slate, &owner(), name, arguments).await;
    assert!(result.success, "{}", result.content);
    serde_json::from_str(&result.content).unwrap()
}

#[tokio::test]
async fn a_model_makes_lists_and_changes_tasks() {
    let slate = Arc::default();
    let made = answer(&slate, "schedule_task", weekdays()).await;
    assert_eq!(made, json!({ "task_id": "t1", "next_run": "2026-11-16T09:00:00Z", "status": "active" }));
    let full = json!({
        "prompt": "p", "schedule_type": "once", "schedule_value": "2026-12-01T09:00", "timezone": "Europe/Berlin",
        "agent": "orchestrator", "tools": ["calculator"],
    });
    assert_eq!(answer(&slate, "schedule_task", full).await["next_run"], "2026-12-01T08:00:00Z");

    let listed = answer(&slate, "list_scheduled_tasks", json!({})).await;
    assert_eq!(listed["total"], 2);
    assert_eq!(listed["tasks"][0]["schedule_value"], "0 9 * * MON-FRI");
    for (tool, status) in [
        ("pause_scheduled_task", "paused"),
        ("resume_scheduled_task", "active"),
        ("cancel_scheduled_task", "cancelled"),
    ] {
        assert_eq!(answer(&slate, tool, json!({ "task_id": "t1" })).await["status"], status);
    }
    let active = answer(&slate, "list_scheduled_tasks", json!({ "status": "active" })).await;
    assert_eq!((&active["total"], &active["tasks"][0]["task_id"]), (&json!(1), &json!("t2")));
}

#[tokio::test]
async fn what_is_wrong_is_told_so_that_the_model_can_do_better() {
    let slate = Arc::default();
    let told = async |name: &str, arguments: Value| {
        let result = call(&slate, &owner(), name, arguments).await;
        assert!(!result.success, "{}", result.content);
        result.content
    };
    let mut bad = weekdays();
    bad["schedule_value"] = json!("at nine");
    let complaint = told("schedule_task", bad).await;
    assert!(complaint.starts_with("schedule_value: 'at nine' is no cron expression"), "{complaint}");
    let complaint = told("cancel_scheduled_task", json!({ "task_id": "nobody" })).await;
    assert_eq!(complaint, "there is no task 'nobody'; list_scheduled_tasks shows those there are");
    answer(&slate, "schedule_task", weekdays()).await;
    answer(&slate, "cancel_scheduled_task", json!({ "task_id": "t1" })).await;
    let complaint = told("resume_scheduled_task", json!({ "task_id": "t1" })).await;
    assert_eq!(complaint, "a cancelled task stays cancelled");
}

#[tokio::test]
async fn strangers_schedule_nothing_and_a_task_reaches_no_further_than_its_maker() {
    let slate: Arc<Slate> = Arc::default();
    for name in ["schedule_task", "list_scheduled_tasks", "pause_scheduled_task"] {
        let refused = call(&slate, &Permit::up_to(Reach::Read), name, json!({})).await;
        assert!(refused.content.contains("not available to this caller"), "{}", refused.content);
    }
    // One who may do nothing else that acts.
    let trusted = Permit { also: vec!["schedule_task".into()], ..Permit::up_to(Reach::Pure) };
    let mut grasping = weekdays();
    grasping["tools"] = json!(["web_fetch", "code_interpreter"]);
    assert!(call(&slate, &trusted, "schedule_task", grasping).await.success);
    let task = slate.get(&TaskId::parse("t1").unwrap()).await.unwrap();
    assert_eq!(task.permit, trusted);
    assert_eq!(task.run_permit().most, Reach::Pure);
}
