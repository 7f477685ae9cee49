//! Tasks that show the results of the calls before their prompt, with a model that answers, fails, is slow or writes nothing.

use hob_core::{Delta, FinishReason, TextSink, ToolResult};

use super::*;
use crate::first_call::FirstCall;

const LISTED: &str =
    "## News\n- Heron seen at the pond\n  https://example.org/heron\n\n## Mail\nNot available: it is away";

const UNREAD: &str = "calls before the prompt failed: mail: it is away";

/// What was heard of an answer while it was written.
#[derive(Default)]
struct Heard(Mutex<String>);

#[async_trait]
impl TextSink for Heard {
    async fn text(&self, piece: &str) {
        self.0.lock().unwrap().push_str(piece);
    }
}

fn result(tool: &str, content: &str, success: bool) -> ToolResult {
    ToolResult { tool_name: tool.to_owned(), content: content.to_owned(), success }
}

fn feed(titles: &str) -> ToolResult {
    result("feeds", &format!("[news]\n{titles}"), true)
}

fn briefing() -> NewTask {
    let first_calls = ["feeds", "mail"].map(|tool| FirstCall::parse(tool).unwrap()).to_vec();
    NewTask { first_calls, ..every(86_400).showing_results() }
}

fn world(engine: Arc<dyn Engine>, news: ToolResult) -> World {
    let ask = EngineAsk::new(engine).with_first_results(vec![news, result("mail", "it is away", false)]);
    World::asking(ask, SchedulerOptions::default(), Arc::new(NoDelivery))
}

fn heron() -> ToolResult {
    feed("- 2026-11-15 06:00 Heron seen at the pond\n  https://example.org/heron\n  It stood there.")
}

/// Writes these words until the limit of tokens.
fn cut_off(words: &'static str) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::new(move |_| {
        let finish = Delta::Finish { choice: 0, reason: FinishReason::Length };
        vec![Ok(Delta::text(words)), Ok(finish), Ok(Delta::Done { usage: None })]
    }))
}

#[tokio::test(start_paused = true)]
async fn the_results_are_listed_and_the_model_adds_a_short_text() {
    let engine = greeter();
    let world = world(Arc::clone(&engine) as Arc<dyn Engine>, heron());
    let task = world.create(briefing()).await;
    let heard = Arc::new(Heard::default());
    let listener = Some(Arc::clone(&heard) as Arc<dyn TextSink>);
    let options = TaskRunOptions { listener, ..TaskRunOptions::default() };
    let run = world.scheduler.run_with(&task.id, options).await.unwrap();
    let expected = format!("{LISTED}\n\n## Summary\nhello");
    assert_eq!((run.outcome, run.result), (Some(RunOutcome::Succeeded), Some(expected)));
    assert_eq!(run.error.as_deref(), Some(UNREAD));
    assert_eq!(*heard.0.lock().unwrap(), LISTED, "this model does not write piece by piece");

    let requests = engine.requests();
    assert_eq!(requests[0].max_tokens(), Some(300));
    let first = world.ask.callers()[0].first_calls.clone().unwrap();
    let given = vec![result("feeds", "- Heron seen at the pond\n", true)];
    assert_eq!(first.results, Some(given), "only what has entries, without links");
    assert_eq!((first.calls.len(), first.calls[0].name.as_str()), (1, "feeds"));
}

#[tokio::test(start_paused = true)]
async fn the_results_are_delivered_without_a_text_of_the_model_and_the_log_says_why() {
    let broken = ScriptedEngine::new(|_| {
        vec![Err(EngineError::Malformed { engine: "scripted".into(), reason: "no JSON".into() })]
    });
    let cases: [(Arc<dyn Engine>, &str); 4] = [
        (Arc::new(broken), "scripted gave an answer that cannot be read: no JSON"),
        (Arc::new(SlowEngine::taking(3600)), "it did not finish within 120 s"),
        (Arc::new(ScriptedEngine::saying(&[" \n"])), "its answer was empty"),
        (cut_off("The heron the heron"), "it wrote no whole sentence within 300 tokens"),
    ];
    for (engine, reason) in cases {
        let world = world(engine, heron());
        let task = world.create(briefing()).await;
        let run = world.scheduler.run_to_end(&task.id).await.unwrap();
        assert_eq!((run.outcome, run.result.as_deref()), (Some(RunOutcome::Succeeded), Some(LISTED)));
        assert_eq!(run.error, Some(format!("{UNREAD}; the model added no summary: {reason}")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_model_does_not_use_up_the_time_of_the_run() {
    let world = world(Arc::new(SlowEngine::taking(3600)), heron());
    let limits = TaskLimits { timeout: Duration::from_secs(30), ..TaskLimits::default() };
    let task = world.create(NewTask { limits, ..briefing() }).await;
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!((run.outcome, run.result.as_deref()), (Some(RunOutcome::Succeeded), Some(LISTED)));
    assert!(run.error.unwrap().ends_with("it did not finish within 15 s"));
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_cut_off_ends_with_a_whole_sentence() {
    let world = world(cut_off("A heron came. It sto"), heron());
    let task = world.create(briefing()).await;
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!(run.result, Some(format!("{LISTED}\n\n## Summary\nA heron came.")));
    assert_eq!(run.error.as_deref(), Some(UNREAD));
}

#[tokio::test(start_paused = true)]
async fn the_model_gets_a_bounded_text_and_is_not_asked_about_nothing() {
    let engine = greeter();
    let titles: String = (0..500).map(|number| format!("- A title that is not short {number}\n")).collect();
    let asked = world(Arc::clone(&engine) as Arc<dyn Engine>, feed(&titles));
    let task = asked.create(briefing()).await;
    asked.scheduler.run_to_end(&task.id).await.unwrap();
    let results = asked.ask.callers()[0].first_calls.clone().unwrap().results.unwrap();
    assert!((4_000..5_000).contains(&results[0].content.len()), "{}", results[0].content.len());
    assert!(results[0].content.ends_with(" more are left out.)\n"), "{}", results[0].content);

    let quiet = world(Arc::clone(&engine) as Arc<dyn Engine>, feed("No new entries."));
    let task = quiet.create(briefing()).await;
    let run = quiet.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!(run.result.as_deref(), Some("## News\nNone.\n\n## Mail\nNot available: it is away"));
    assert_eq!(run.error.as_deref(), Some(UNREAD));
    assert_eq!(engine.requests().len(), 1, "the first run only");
}

#[tokio::test(start_paused = true)]
async fn a_result_of_unchanged_pages_only_is_stored_and_not_delivered() {
    let club = "[club] No change since 2026-11-15 08:00.";
    let pages = |content: &str| result("page_changes", content, true);
    let cases = [
        (vec![pages(club)], Some("not delivered: no watched page has changed"), 0),
        (vec![pages(&format!("{club}\n[times] Changed since 2026-11-15 08:00:\n+ Bus 3"))], None, 1),
        (vec![pages(&format!("{club}\n[times] Now watched. The next check shows what is new."))], None, 1),
        (
            vec![pages(&format!("Not read: times: it is away\n{club}"))],
            Some("sources were not read: page_changes: times: it is away"),
            1,
        ),
        (vec![pages(club), result("mail", "it is away", false)], Some(UNREAD), 1),
        (vec![pages(club), feed("No new entries.")], None, 1),
    ];
    for (results, note, deliveries) in cases {
        let pigeons = Arc::new(Pigeons { sent: Mutex::default(), refuses: false });
        let ask = EngineAsk::new(greeter()).with_first_results(results);
        let deliver = Arc::clone(&pigeons) as Arc<dyn Deliver>;
        let world = World::asking(ask, SchedulerOptions::default(), deliver);
        let deliver_to = Some(DeliverTo { channel: "loft".into(), conversation: None });
        let task = world.create(NewTask { deliver_to, ..briefing() }).await;
        let run = world.scheduler.run_to_end(&task.id).await.unwrap();
        assert_eq!((run.outcome, run.error.as_deref()), (Some(RunOutcome::Succeeded), note));
        let stored = run.result.unwrap();
        assert!(stored.contains("club: No change since 2026-11-15 08:00."), "{stored}");
        assert_eq!(pigeons.sent.lock().unwrap().len(), deliveries, "{stored}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_show_results_is_asked_as_before() {
    let engine = greeter();
    let world = world(Arc::clone(&engine) as Arc<dyn Engine>, heron());
    let plain = NewTask { first_calls: briefing().first_calls, ..every(86_400) };
    for task in [plain, every(86_400).showing_results()] {
        let task = world.create(task).await;
        let run = world.scheduler.run_to_end(&task.id).await.unwrap();
        assert_eq!((run.result.as_deref(), run.error), (Some("hello"), None));
    }
    let requests = engine.requests();
    assert!(requests.iter().all(|request| request.max_tokens.is_none() && request.hints.is_empty()));
    let first = world.ask.callers()[0].first_calls.clone().unwrap();
    assert_eq!((first.calls.len(), first.results), (2, None));
}
