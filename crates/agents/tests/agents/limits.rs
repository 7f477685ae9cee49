//! Where a run ends before the model does.

use hob_core::{AnswerWarning, EngineError};

use crate::support::{
    Interpreter, TestRun, asking, call, calls, cut_short, failed, outcome, refuses, says, script, tool,
    worked,
};

fn count(n: u32) -> Vec<Result<hob_core::Delta, EngineError>> {
    calls(&format!("Now {n}."), &[call("c", "echo", &format!(r#"{{"text":"{n}"}}"#))])
}

#[tokio::test]
async fn at_the_turn_limit_the_last_content_is_returned_and_its_calls_are_not_run() {
    let test = TestRun::new(script([count(1), count(2), count(3)]), &[tool("echo")]).max_turns(3);
    let done = test.run("orchestrator", &asking("count")).await.unwrap();
    let results = vec![worked("echo", "echo: 1"), worked("echo", "echo: 2")];
    assert_eq!(done, cut_short(outcome("Now 3.", 3, results), &[]));
}

#[tokio::test]
async fn a_last_turn_without_text_returns_the_text_before_it() {
    let silent = calls("\n\n", &[call("c", "echo", r#"{"text":"x"}"#)]);
    let test = TestRun::new(script([count(1), silent]), &[tool("echo")]).max_turns(2);
    let done = test.run("orchestrator", &asking("count")).await.unwrap();
    assert_eq!(done, cut_short(outcome("Now 1.", 2, vec![worked("echo", "echo: 1")]), &[]));
}

#[tokio::test]
async fn a_limit_of_no_turns_still_asks_once() {
    let test = TestRun::new(script([says(&["Hi."])]), &[]).max_turns(0);
    assert_eq!(test.run("orchestrator", &asking("hi")).await.unwrap(), outcome("Hi.", 1, vec![]));
}

#[tokio::test]
async fn react_ends_with_its_last_thought() {
    let turn = says(&["Thought: I wonder.\nAction: echo\nAction Input: hm"]);
    let test = TestRun::new(script([turn]), &[tool("echo")]).max_turns(1).listening();
    let done = test.run("react", &asking("hm?")).await.unwrap();
    assert_eq!(done, cut_short(outcome("I wonder.", 1, vec![]), &[]));
    assert_eq!(test.received.pieces().concat(), "I wonder.");
}

#[tokio::test]
async fn codeact_ends_with_the_code_it_could_not_run() {
    let text = "Let me see.\n```python\nx\n```";
    let test = TestRun::new(script([says(&[text])]), &[Interpreter::tool()]).max_turns(1).listening();
    let done = test.run("codeact", &asking("x?")).await.unwrap();
    assert_eq!(done, cut_short(outcome(text, 1, vec![]), &[]));
    assert_eq!(test.received.pieces().concat(), text);
}

#[tokio::test]
async fn calls_over_the_limit_are_not_run_and_every_call_is_answered() {
    let flood: Vec<_> =
        (0..40).map(|n| call(&format!("c{n}"), "echo", &format!(r#"{{"text":"{n}"}}"#))).collect();
    let test = TestRun::new(script([calls("", &flood), says(&["Done."])]), &[tool("echo")]);
    let done = test.run("orchestrator", &asking("go")).await.unwrap();
    let refusal = "not run: the limit is 32 calls in one turn; make fewer calls at a time";
    let results = (0..40).map(|n| match n {
        0..32 => worked("echo", &format!("echo: {n}")),
        _ => failed("echo", refusal),
    });
    assert_eq!(done, outcome("Done.", 2, results.collect()));
    let shown = test.engine.requests().pop().unwrap().messages;
    assert_eq!(shown.iter().filter(|message| message.tool_call_id.is_some()).count(), 40);
}

#[tokio::test]
async fn a_model_that_repeats_a_call_is_warned_and_then_stopped() {
    let same = || calls("Again.", &[call("c", "echo", r#"{"text":"x"}"#)]);
    let test = TestRun::new(script([same(), same(), same(), same()]), &[tool("echo")]);
    let done = test.run("orchestrator", &asking("go")).await.unwrap();
    let told = "you called echo three times with the same arguments, and the result will not change; use what you have, or \
                try something else";
    let results = vec![
        worked("echo", "echo: x"),
        worked("echo", "echo: x"),
        failed("echo", told),
        failed("echo", "stopped: the same call was repeated"),
    ];
    assert_eq!(done, cut_short(outcome("Again.", 4, results), &[AnswerWarning::LoopStopped]));
    assert_eq!(test.messages(3).last().unwrap(), &format!("tool: {told}"));
}

#[tokio::test]
async fn an_engine_that_fails_in_a_later_turn_fails_the_run() {
    let test = TestRun::new(script([count(1), refuses(503, "out of breath")]), &[tool("echo")]);
    let error = test.run("orchestrator", &asking("count")).await.unwrap_err();
    assert_eq!(error.to_string(), "scripted answered 503: out of breath");
    assert_eq!(
        test.events().last().unwrap(),
        r#"AGENT_TURN_END {"agent":"orchestrator","turn":2,"tool_calls":0}"#
    );
}
