//! Tasks together with the agents that answer them and the channels that deliver their results.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use hob_agents::ToolSet;
use hob_channels::{
    ChannelOptions, ChannelService, ChannelStore, GatewayOptions, SenderKey, SqliteChannelStore,
    TelegramOptions,
};
use hob_core::{Ask, Engine, EventBus, Permit, Reach, RequestSource, Tool, ToolError, ToolSpec};
use hob_db::Database;
use hob_tasks::{
    DeliverTo, FirstCall, NewTask, RunOutcome, ScheduleType, Scheduler, SchedulerOptions, SchedulerParts,
    TaskService,
};
use hob_telemetry::{Inference, InferenceLog};
use hob_testkit::{Gateway, GatewayScript, Recorded, Reply, ScriptedEngine, TELEGRAM_TOKEN, TelegramServer};
use serde_json::{Value, json};

use crate::ask::{AskService, AskServiceParts};
use crate::databases::HOB_MIGRATIONS;
use crate::startup::tasks::{task_options, task_service};

#[derive(Default)]
struct Remembered(Mutex<Vec<Inference>>);

impl InferenceLog for Remembered {
    fn record(&self, inference: Inference) {
        self.0.lock().unwrap().push(inference);
    }
}

/// A gateway with two channels that accepts or refuses messages.
async fn gateway(refuses: bool) -> Gateway {
    let http = move |request: &Recorded| match request.path.as_str() {
        "/send" if refuses => Reply::json(400, r#"{"detail":"no wings"}"#),
        "/send" => Reply::json(200, r#"{"status":"sent"}"#),
        _ => Reply::json(200, r#"["loft","roof"]"#),
    };
    Gateway::start(GatewayScript { http: Arc::new(http), ..GatewayScript::default() }).await
}

fn channels(gateway: &Gateway) -> Option<Arc<ChannelService>> {
    let gateway = Some(GatewayOptions::new(gateway.url()));
    let options = ChannelOptions { gateway, ..ChannelOptions::default() };
    Some(Arc::new(ChannelService::new(options).unwrap()))
}

struct NamedTool(ToolSpec);

impl NamedTool {
    fn called(name: &str, reach: Reach) -> Arc<dyn Tool> {
        Arc::new(NamedTool(ToolSpec {
            name: name.into(),
            description: "a tool".into(),
            parameters: json!({ "type": "object" }),
            reach,
            effect: hob_core::Effect::None,
            untrusted_output: false,
            timeout: None,
        }))
    }
}

#[async_trait]
impl Tool for NamedTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: Value) -> Result<String, ToolError> {
        Ok("fine".into())
    }
}

struct World {
    tasks: TaskService,
    scheduler: Scheduler,
    record: Arc<Remembered>,
}

impl World {
    fn with(engine: Arc<ScriptedEngine>, channels: Option<Arc<ChannelService>>) -> Self {
        let database = Database::in_memory(HOB_MIGRATIONS).unwrap();
        let tasks = task_service(database, task_options(channels));
        let record = Arc::new(Remembered::default());
        let tools = [("compute", Reach::Pure), ("look", Reach::Read), ("act", Reach::Act)];
        let system = Arc::new(AskService::new(AskServiceParts {
            engine: engine as Arc<dyn Engine>,
            default_model: None,
            agent: None,
            tools: ToolSet::new(tools.map(|(name, reach)| NamedTool::called(name, reach))).unwrap(),
            max_turns: 10,
            bus: EventBus::new(),
            log: Arc::clone(&record) as Arc<dyn InferenceLog>,
        }));
        let parts = SchedulerParts {
            tasks: tasks.clone(),
            bus: system.bus().clone(),
            ask: system as Arc<dyn Ask>,
            options: SchedulerOptions::default(),
        };
        World { tasks, scheduler: Scheduler::new(parts), record }
    }
}

fn every(seconds: u32) -> NewTask {
    NewTask::new("say hello", ScheduleType::Interval, seconds.to_string(), Permit::up_to(Reach::Act))
}

fn greeter() -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::saying(&["hel", "lo"]))
}

#[tokio::test(start_paused = true)]
async fn a_run_is_recorded_with_its_source_and_agent() {
    let world = World::with(greeter(), None);
    let task = world.tasks.create(every(90)).await.unwrap();
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!((run.outcome, run.result.as_deref()), (Some(RunOutcome::Succeeded), Some("hello")));
    let record = world.record.0.lock().unwrap();
    assert_eq!(
        (record.len(), record[0].source, record[0].agent.as_deref()),
        (1, RequestSource::Scheduler, Some("simple"))
    );
}

#[tokio::test]
async fn a_result_is_sent_to_its_channel_and_a_failure_is_logged() {
    for (refuses, expected) in [(false, RunOutcome::Succeeded), (true, RunOutcome::Failed)] {
        let gateway = gateway(refuses).await;
        let world = World::with(greeter(), channels(&gateway));
        let deliver_to = Some(DeliverTo { channel: "loft".into(), conversation: Some("7".into()) });
        let task = world.tasks.create(NewTask { deliver_to, ..every(1000) }).await.unwrap();
        let run = world.scheduler.run_to_end(&task.id).await.unwrap();
        assert_eq!((run.outcome, run.result.as_deref()), (Some(expected), Some("hello")));
        let requests = gateway.requests();
        let sent = requests.iter().filter(|request| request.path == "/send");
        let sent: Vec<Value> = sent.map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
        let expected =
            json!({ "channel": "loft", "content": "hello", "conversation_id": "7", "metadata": {} });
        assert_eq!(sent, [expected]);
        let error = run.error.unwrap_or_default();
        assert_eq!(error.contains("no wings"), refuses, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_has_the_selected_tools_or_the_tools_without_side_effects() {
    let offered = async |tools: Option<Vec<String>>, permit: Permit| -> Vec<String> {
        let engine = greeter();
        let world = World::with(Arc::clone(&engine), None);
        let task = NewTask { agent: "orchestrator".into(), tools, permit, ..every(60) };
        let task = world.tasks.create(task).await.unwrap();
        let run = world.scheduler.run_to_end(&task.id).await.unwrap();
        assert_eq!(run.outcome, Some(RunOutcome::Succeeded), "{run:?}");
        let requests = engine.requests();
        requests[0].tools.iter().map(|tool| tool.name.clone()).collect()
    };
    let owner = || Permit::up_to(Reach::Act);
    assert_eq!(offered(None, owner()).await, ["compute", "look"]);
    assert_eq!(offered(Some(vec!["act".into(), "look".into()]), owner()).await, ["look", "act"]);
    assert_eq!(offered(Some(vec![]), owner()).await, Vec::<String>::new());
    let reader = Permit::up_to(Reach::Read);
    assert_eq!(
        offered(Some(vec!["act".into(), "look".into()]), reader).await,
        ["look"],
        "no further than its maker"
    );
}

#[tokio::test(start_paused = true)]
async fn first_calls_are_made_with_the_permit_of_the_creator_and_their_results_are_in_the_prompt() {
    let engine = greeter();
    let world = World::with(Arc::clone(&engine), None);
    let calls = |names: &[&str]| names.iter().map(|name| FirstCall::parse(name).unwrap()).collect();
    let task = NewTask {
        tools: Some(Vec::new()),
        first_calls: calls(&["look", "act", "gone"]),
        permit: Permit::up_to(Reach::Read),
        ..every(60)
    };
    let task = world.tasks.create(task).await.unwrap();
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!(run.outcome, Some(RunOutcome::Succeeded), "{run:?}");
    let missing = run.error.unwrap();
    assert!(missing.starts_with("calls before the prompt failed: act: "), "{missing}");
    assert!(missing.contains("; gone: there is no tool 'gone'"), "{missing}");
    let requests = engine.requests();
    let prompt = requests[0].messages.last().unwrap().content.text().into_owned();
    assert!(prompt.starts_with("<results>\n") && prompt.ends_with("</results>\n\nsay hello"), "{prompt}");
    assert!(prompt.contains("\n[1] look\nfine\n"), "{prompt}");
    assert!(
        prompt.contains("\n[2] act\nThis call failed: the tool 'act' is not available to this caller"),
        "{prompt}"
    );
    assert!(requests[0].tools.is_empty(), "the model has no tools");
}

#[tokio::test(start_paused = true)]
async fn results_are_shown_with_a_summary_and_also_without_an_engine() {
    let engine = greeter();
    let world = World::with(Arc::clone(&engine), None);
    let task = NewTask {
        tools: Some(Vec::new()),
        first_calls: ["look", "gone"].map(|name| FirstCall::parse(name).unwrap()).to_vec(),
        permit: Permit::up_to(Reach::Read),
        ..every(60).showing_results()
    };
    let task = world.tasks.create(task).await.unwrap();
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    let shown = "## look\n- fine\n\n## gone\nNot available: there is no tool 'gone'.";
    assert_eq!(run.result, Some(format!("{shown}\n\n## Summary\nhello")));
    let requests = engine.requests();
    let prompt = requests[0].messages.last().unwrap().content.text().into_owned();
    assert!(prompt.starts_with("<results>\n") && prompt.ends_with("</results>\n\nsay hello"), "{prompt}");
    assert!(prompt.contains("\n[1] look\n- fine\n") && !prompt.contains("gone"), "{prompt}");

    engine.set_gone(true);
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!((run.outcome, run.result.as_deref()), (Some(RunOutcome::Succeeded), Some(shown)));
    let error = run.error.unwrap_or_default();
    assert!(error.contains("; the model added no summary: "), "{error}");
}

#[tokio::test]
async fn a_task_for_an_unknown_channel_is_refused_with_the_known_ones() {
    let deliver_to = |channel: &str| NewTask {
        deliver_to: Some(DeliverTo { channel: channel.to_owned(), conversation: None }),
        ..every(1000)
    };
    let none = World::with(greeter(), None);
    let error = none.tasks.create(deliver_to("telegram")).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no channel 'telegram': no channel is configured. Run 'hob channel add telegram', or set \
         'enabled = true' under [channel] or [channel.whatsapp] in config.toml"
    );
    let gateway = gateway(false).await;
    let some = World::with(greeter(), channels(&gateway));
    let error = some.tasks.create(deliver_to("telegram")).await.unwrap_err().to_string();
    assert_eq!(error, "there is no channel 'telegram'; there are loft, roof");
    for channel in ["loft", "roof:left"] {
        some.tasks.create(deliver_to(channel)).await.unwrap();
    }
}

#[tokio::test]
async fn telegram_without_a_recipient_means_its_only_approved_sender() {
    let telegram = TelegramServer::start().await;
    let database = Database::in_memory(HOB_MIGRATIONS).unwrap();
    let store: Arc<dyn ChannelStore> = Arc::new(SqliteChannelStore::new(database));
    let bot =
        TelegramOptions { api_url: telegram.url(), ..TelegramOptions::new(TELEGRAM_TOKEN.to_owned().into()) };
    let options =
        ChannelOptions { telegram: Some(bot), store: Some(Arc::clone(&store)), ..ChannelOptions::default() };
    let channels = Arc::new(ChannelService::new(options).unwrap());
    let approve = |channel: &str, sender: &str| {
        store.approve_sender(SenderKey { channel, sender }, "Ann", SystemTime::now()).unwrap();
    };
    let to = |channel: &str, conversation: Option<&str>| DeliverTo {
        channel: channel.to_owned(),
        conversation: conversation.map(str::to_owned),
    };
    let delivery = task_options(Some(Arc::clone(&channels))).deliver;
    let resolved = async |target: DeliverTo| delivery.check(target).await;
    let refusal = async |target: DeliverTo| resolved(target).await.unwrap_err().to_string();
    let how = "so the message needs a recipient. Write telegram:NUMBER; 'hob channel senders' shows the numbers of people";
    approve("email", "ann@example.org");
    assert_eq!(refusal(to("telegram", None)).await, format!("telegram has no approved sender, {how}"));
    approve("telegram", "7");
    assert_eq!(resolved(to("telegram", None)).await, Ok(to("telegram:7", None)));

    // A task keeps its recipient when another sender is approved.
    let world = World::with(greeter(), Some(Arc::clone(&channels)));
    let deliver_to = |target: DeliverTo| NewTask { deliver_to: Some(target), ..every(1000) };
    let task = world.tasks.create(deliver_to(to("telegram", None))).await.unwrap();
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!(run.outcome, Some(RunOutcome::Succeeded), "{run:?}");
    assert_eq!(telegram.shown(7), ["hello"]);

    approve("telegram", "8");
    assert_eq!(refusal(to("telegram", None)).await, format!("telegram has 2 approved senders, {how}"));
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!(run.outcome, Some(RunOutcome::Succeeded), "{run:?}");
    assert_eq!(telegram.shown(7), ["hello", "hello"]);
    let sent = channels.send("telegram", "hello", None).await.unwrap_err().to_string();
    assert!(sent.contains(how), "{sent}");
    for target in [to("telegram:bob", None), to("telegram", Some("bob"))] {
        let refused = refusal(target).await;
        assert!(refused.starts_with("'bob' is not a chat of Telegram. Write telegram:NUMBER"), "{refused}");
    }
    let refused = world.tasks.create(deliver_to(to("telegram:bob", None))).await.unwrap_err().to_string();
    assert!(refused.starts_with("'bob' is not a chat of Telegram. Write telegram:NUMBER"), "{refused}");
    for target in [to("telegram:8", None), to("telegram", Some("-100:7"))] {
        assert_eq!(resolved(target.clone()).await, Ok(target));
    }
    assert_eq!(telegram.shown(8), [] as [&str; 0]);
}
