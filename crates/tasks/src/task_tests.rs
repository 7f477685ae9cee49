use serde_json::json;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn owner() -> Permit {
    Permit::up_to(Reach::Act)
}

fn planned(kind: ScheduleType, value: &str) -> Result<Task, String> {
    let task = NewTask::new("say hello", kind, value, owner());
    task.plan(TaskId::parse("t1").unwrap(), at("2026-11-15T12:00:00Z")).map_err(|error| error.to_string())
}

#[test]
fn an_impossible_schedule_is_an_error_when_the_task_is_created() {
    use ScheduleType::{Cron, Interval, Once};
    for (kind, value, reason) in [
        (Cron, "61 * * * *", "'61 * * * *' is not a cron expression"),
        (Cron, "* * * *", "it has 4 fields"),
        (Cron, "0 0 30 2 *", "'0 0 30 2 *' never occurs"),
        (Cron, "mon 9 * * *", "its minute cannot be 'mon'"),
        (Cron, "@reboot", "'@reboot' is not a cron expression"),
        (Cron, "", "it has 0 fields"),
        (Interval, "-5", "it must be more than 0"),
        (Interval, "0", "it must be more than 0"),
        (Interval, "-1h", "it must be more than 0"),
        (Interval, "nan", "it must be more than 0"),
        (Interval, "0.2", "the shortest is 1 second"),
        (Interval, "1e30", "the longest is ten years"),
        (Interval, "often", "'often' is not an interval"),
        (Once, "2026-11-15T11:59:59Z", "is in the past"),
        (Once, "2026-11-15T12:00:00Z", "is in the past"),
        (Once, "tomorrow", "'tomorrow' is not a date"),
    ] {
        let error = planned(kind, value).unwrap_err();
        assert!(error.contains(reason), "{kind:?} '{value}': {error}");
    }
}

#[test]
fn the_first_run_of_an_interval_is_one_interval_from_now() {
    for value in ["3600", "3600.0", "1h", "60m"] {
        let task = planned(ScheduleType::Interval, value).unwrap();
        assert_eq!(task.next_run, Some(at("2026-11-15T13:00:00Z")), "{value}");
    }
}

#[test]
fn every_other_field_is_checked_too() {
    let good = NewTask::new("p", ScheduleType::Interval, "60", owner());
    let broken = [
        (NewTask { prompt: " \n".into(), ..good.clone() }, TaskField::Prompt),
        (NewTask { prompt: "x".repeat(300 * 1024), ..good.clone() }, TaskField::Prompt),
        (NewTask { agent: String::new(), ..good.clone() }, TaskField::Agent),
        (NewTask { tools: Some(vec![String::new()]), ..good.clone() }, TaskField::Tools),
        (NewTask { tools: Some(vec!["x".into(); 65]), ..good.clone() }, TaskField::Tools),
        (
            NewTask {
                deliver_to: Some(DeliverTo { channel: String::new(), conversation: None }),
                ..good.clone()
            },
            TaskField::Channel,
        ),
        (
            NewTask {
                first_calls: vec![FirstCall { tool: String::new(), arguments: Map::new() }],
                ..good.clone()
            },
            TaskField::FirstCalls,
        ),
        (
            NewTask { limits: TaskLimits { retries: 11, ..TaskLimits::default() }, ..good.clone() },
            TaskField::Retries,
        ),
        (
            NewTask {
                limits: TaskLimits { timeout: Duration::ZERO, ..TaskLimits::default() },
                ..good.clone()
            },
            TaskField::Timeout,
        ),
        (
            NewTask {
                metadata: [("k".to_owned(), Value::from("x".repeat(20_000)))].into_iter().collect(),
                ..good
            },
            TaskField::Metadata,
        ),
    ];
    for (task, expected) in broken {
        match task.plan(TaskId::parse("t").unwrap(), Timestamp::UNIX_EPOCH) {
            Err(TaskError::Invalid { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected:?}: {other:?}"),
        }
    }
}

#[test]
fn a_run_has_at_most_the_permit_of_its_creator() {
    let with = |permit: Permit, tools: Option<&[&str]>| {
        let tools = tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
        let task = NewTask { tools, ..NewTask::new("p", ScheduleType::Interval, "60", permit) };
        task.plan(TaskId::parse("t").unwrap(), Timestamp::UNIX_EPOCH).unwrap().run_permit()
    };
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(with(owner(), None), Permit::up_to(Reach::Read), "unwatched, so it changes nothing");
    assert_eq!(with(Permit::up_to(Reach::Pure), None), Permit::up_to(Reach::Pure));
    assert_eq!(
        with(owner(), Some(&["web_fetch"])),
        Permit { only: names(&["web_fetch"]), ..Permit::up_to(Reach::Act) }
    );
    let stranger = Permit { also: vec!["schedule_task".into()], ..Permit::up_to(Reach::Pure) };
    let run = with(stranger, Some(&["web_fetch", "schedule_task"]));
    assert_eq!((run.most, run.also), (Reach::Pure, vec!["schedule_task".to_owned()]));
    let choosy = Permit { only: names(&["think", "calculator"]), ..owner() };
    assert_eq!(with(choosy, Some(&["web_fetch", "think"])).only, names(&["think"]));
}

#[test]
fn first_calls_may_use_what_the_creator_may_use_whatever_tools_the_agent_has() {
    let first = FirstCall::parse(r#"calendar {"from":"today"}"#).unwrap();
    let task = NewTask {
        tools: Some(Vec::new()),
        first_calls: vec![first],
        ..NewTask::new("p", ScheduleType::Interval, "60", Permit::up_to(Reach::Read))
    };
    let task = task.plan(TaskId::parse("t").unwrap(), Timestamp::UNIX_EPOCH).unwrap();
    let calls = task.first_calls_of_run().unwrap();
    assert_eq!((calls.calls.len(), calls.calls[0].name.as_str()), (1, "calendar"));
    assert_eq!(calls.permit, Permit::up_to(Reach::Read));
    assert_eq!(task.run_permit().only, Some(Vec::new()));
    assert_eq!(planned(ScheduleType::Interval, "60").unwrap().first_calls_of_run(), None);
}

#[test]
fn a_task_with_tools_gets_the_agent_that_calls_them() {
    let tools = ["calendar".to_owned()];
    assert_eq!(NewTask::agent_for(None, None), "simple");
    assert_eq!(NewTask::agent_for(None, Some(&[])), "simple");
    assert_eq!(NewTask::agent_for(None, Some(&tools)), "orchestrator");
    assert_eq!(NewTask::agent_for(Some("react".into()), Some(&tools)), "react");
}

#[test]
fn a_task_and_a_run_have_the_documented_fields() {
    let task = planned(ScheduleType::Cron, "0 9 * * MON-FRI").unwrap();
    let expected = json!({
        "id": "t1", "prompt": "say hello", "schedule_type": "cron", "schedule_value": "0 9 * * MON-FRI",
        "schedule": "weekdays at 09:00",
        "timezone": "UTC", "agent": "simple", "model": null, "tools": null, "first_calls": [], "channel": null, "conversation_id": null,
        "retries": 0, "timeout": 600.0, "missed": "once", "key": null, "status": "active",
        "next_run": "2026-11-16T09:00:00Z", "last_run": null, "created_at": "2026-11-15T12:00:00Z",
        "metadata": {},
    });
    assert_eq!(serde_json::to_value(&task).unwrap(), expected);
    let run = TaskRun {
        id: 7,
        task_id: task.id,
        slot: at("2026-11-16T09:00:00Z"),
        attempt: 1,
        started_at: at("2026-11-16T09:00:00.25Z"),
        finished_at: None,
        outcome: None,
        result: None,
        error: None,
    };
    let expected = json!({
        "id": 7, "task_id": "t1", "slot": "2026-11-16T09:00:00Z", "attempt": 1,
        "started_at": "2026-11-16T09:00:00.25Z", "finished_at": null, "success": null, "outcome": "running",
        "result": null, "error": null,
    });
    assert_eq!(serde_json::to_value(&run).unwrap(), expected);
}
