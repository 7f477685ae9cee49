//! Conversations that outgrow the model.

use hob_core::{AgentOutcome, AnswerWarning};

use crate::support::{TestRun, Turn, asking, call, calls, outcome, refuses, says, script, tool, worked};

const TOO_LONG: &str =
    "request (12031 tokens) exceeds the available context size (2048 tokens), try increasing it";
const NOTE: &str = "[result of long removed: 5000 characters]";

fn look(n: u32) -> Turn {
    calls("", &[call(&format!("c{n}"), "long", &format!(r#"{{"text":"{n}"}}"#))])
}

fn compacted(mut outcome: AgentOutcome) -> AgentOutcome {
    outcome.generation.warnings = vec![AnswerWarning::ContextCompacted];
    outcome
}

#[tokio::test]
async fn the_oldest_results_are_removed_and_the_outcome_says_so() {
    let turns = [look(1), look(2), look(3), refuses(400, TOO_LONG), says(&["Done."])];
    let test = TestRun::new(script(turns), &[tool("long")]);
    let done = test.run("orchestrator", &asking("look")).await.unwrap();
    let whole = "x".repeat(5_000);
    assert_eq!(done, compacted(outcome("Done.", 4, vec![worked("long", &whole); 3])));

    let whole = format!("tool: {whole}");
    let note = format!("tool: {NOTE}");
    let results =
        |turn| test.messages(turn).into_iter().filter(|text| text.starts_with("tool")).collect::<Vec<_>>();
    assert_eq!(results(3), [whole.clone(), whole.clone(), whole.clone()]);
    assert_eq!(results(4), [note.clone(), note, whole]);
}

#[tokio::test]
async fn a_request_that_still_does_not_fit_is_the_engines_error() {
    let too_long = || refuses(400, TOO_LONG);
    let test = TestRun::new(script([look(1), look(2), too_long(), too_long(), too_long()]), &[tool("long")]);
    let question = "a long question ".repeat(1_000);
    let error = test.run("orchestrator", &asking(&question)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("scripted answered 400: {TOO_LONG}"));
    let last = test.messages(4);
    assert_eq!(last[0], format!("user: {question}"));
    assert_eq!(last.iter().filter(|text| text.ends_with(NOTE)).count(), 2);
}

#[tokio::test]
async fn a_question_that_is_too_long_by_itself_is_asked_once() {
    let test = TestRun::new(script([refuses(400, TOO_LONG)]), &[tool("long")]);
    let error = test.run("orchestrator", &asking("hi")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("scripted answered 400: {TOO_LONG}"));
}

#[tokio::test]
async fn react_keeps_the_form_of_its_observations() {
    let turns = [
        says(&["Action: long\nAction Input: all"]),
        refuses(400, TOO_LONG),
        says(&["Final Answer: ", "too much"]),
    ];
    let test = TestRun::new(script(turns), &[tool("long")]).listening();
    let done = test.run("react", &asking("look")).await.unwrap();
    assert_eq!(done, compacted(outcome("too much", 2, vec![worked("long", &"x".repeat(5_000))])));
    assert_eq!(test.messages(2).last().unwrap(), &format!("user: Observation: {NOTE}"));
    assert_eq!(test.received.pieces(), ["too much"]);
}
