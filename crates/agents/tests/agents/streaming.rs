//! The pieces of a streamed answer. Every answer is generated once.

use std::num::NonZeroU32;

use hob_core::{Delta, EngineError, FinishReason, ReasoningSeal, TextDelta};
use serde_json::json;

use crate::support::{
    Interpreter, TestRun, Turn, USAGE, asking, call, calls, finished, outcome, says, script, streamed, tool,
    worked,
};

#[tokio::test]
async fn simple_is_forwarded_piece_by_piece() {
    let test = TestRun::new(script([says(&["\n", "Good ", "day.", "\n"])]), &[]).listening();
    let done = test.run("simple", &asking("hi")).await.unwrap();
    assert_eq!(done, outcome("\nGood day.\n", 1, vec![]));
    assert_eq!(test.received.pieces(), ["\n", "Good ", "day.", "\n"]);
}

#[tokio::test]
async fn orchestrator_is_forwarded_in_every_turn_with_a_blank_line_between() {
    let ask = |text, n: &str| calls(text, &[call("c", "echo", &format!(r#"{{"text":"{n}"}}"#))]);
    let turns = [ask("Let me see.", "1"), ask("\n\n", "2"), says(&["It ", "is."])];
    let test = TestRun::new(script(turns), &[tool("echo")]).listening();
    let done = test.run("orchestrator", &asking("go")).await.unwrap();
    let results = vec![worked("echo", "echo: 1"), worked("echo", "echo: 2")];
    assert_eq!(done, outcome("It is.", 3, results));
    assert_eq!(test.received.pieces(), ["Let me see.", "\n\n", "It ", "is."]);
    assert_eq!(test.engine.requests().len(), 3);
}

#[tokio::test]
async fn react_is_forwarded_from_its_final_answer_on() {
    let turns = [
        says(&["Thought: hm\nAct", "ion: echo\nAction Input: ", "x\n"]),
        says(&["Thought: yes\nFinal", " Answer", ": It", " is", " x", ".", "\n"]),
    ];
    let test = TestRun::new(script(turns), &[tool("echo")]).listening();
    let done = test.run("react", &asking("go")).await.unwrap();
    assert_eq!(done, outcome("It is x.", 2, vec![worked("echo", "echo: x")]));
    assert_eq!(test.received.pieces(), ["It", " is", " x", "."]);
    assert_eq!(test.engine.requests().len(), 2);
}

#[tokio::test]
async fn react_without_its_form_is_forwarded_at_the_end() {
    let test = TestRun::new(script([says(&["Par", "is."])]), &[tool("echo")]).listening();
    test.run("react", &asking("capital?")).await.unwrap();
    assert_eq!(test.received.pieces(), ["Paris."]);
}

#[tokio::test]
async fn codeact_is_forwarded_once_it_writes_no_code() {
    let turns = [says(&["Wait.\n```sh\n", "ls\n```"]), says(&["Two", " files."])];
    let test = TestRun::new(script(turns), &[Interpreter::tool()]).listening();
    let done = test.run("codeact", &asking("files?")).await.unwrap();
    assert_eq!(done, outcome("Two files.", 2, vec![worked("code_interpreter", "sh LS")]));
    assert_eq!(test.received.pieces(), ["Two files."]);
}

#[tokio::test]
async fn a_stream_that_breaks_is_an_error_and_not_an_answer() {
    let half = vec![Ok(Delta::text("Half a"))];
    let unfinished =
        vec![Ok(Delta::text("Half a")), Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop })];
    for turn in [half, unfinished] {
        let test = TestRun::new(script([turn]), &[]).listening();
        let error = test.run("simple", &asking("hi")).await.unwrap_err();
        assert!(matches!(error, EngineError::Interrupted { .. }), "{error}");
        assert_eq!(test.received.pieces(), ["Half a"]);
    }
}

fn thought(choice: u32, text: &str) -> Result<Delta, EngineError> {
    Ok(Delta::Reasoning { choice, text: text.into() })
}

fn sealed() -> Result<Delta, EngineError> {
    Ok(Delta::ReasoningSeal { choice: 0, seal: ReasoningSeal::Signature("s1".into()) })
}

/// A piece with its probability.
fn token(choice: u32, text: &str) -> Result<Delta, EngineError> {
    let logprobs = Some(Box::new(json!({ "content": [{ "token": text, "logprob": -0.5 }] })));
    Ok(Delta::Text(TextDelta { choice, text: text.into(), logprobs }))
}

#[tokio::test]
async fn a_stream_of_simple_has_all_that_the_whole_answer_has() {
    let turn = || -> Turn {
        vec![
            thought(0, "hm"),
            sealed(),
            token(0, "\n"),
            thought(1, "well"),
            token(1, "No."),
            token(0, "Yes."),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }),
            Ok(Delta::Finish { choice: 1, reason: FinishReason::Length }),
            Ok(Delta::Done { usage: Some(USAGE) }),
        ]
    };
    let mut request = asking("yes or no?");
    request.sampling.n = NonZeroU32::new(2);
    request.sampling.logprobs = true;
    let whole = TestRun::new(script([turn()]), &[]).run("simple", &request).await.unwrap().generation;
    assert_eq!(whole.alternatives.len(), 1);
    assert_eq!(streamed("simple", TestRun::new(script([turn()]), &[]), request).await, Some(whole));
}

#[tokio::test]
async fn a_streamed_run_has_the_reasoning_and_the_probabilities_of_its_last_turn() {
    let thinking = |words: &str, mut turn: Turn| {
        turn.splice(..0, [thought(0, words), sealed()]);
        turn
    };
    let answers = |pieces: &[&str]| {
        let pieces = pieces.iter().map(|piece| token(0, piece)).collect();
        thinking("So it is.", finished(pieces, FinishReason::Stop))
    };
    let wanted = [call("c", "echo", r#"{"text":"x"}"#)];
    let orchestrator = || [thinking("I must ask.", calls("", &wanted)), answers(&["\n", "It ", "is x."])];
    let codeact = || [thinking("I must look.", says(&["```sh\nls\n```"])), answers(&["It ", "is x."])];
    let react = || {
        let said = |text| thinking("hm", says(&[text]));
        [said("Action: echo\nAction Input: x"), said("Thought: yes\nFinal Answer: It is x.")]
    };
    type Turns<'a> = &'a dyn Fn() -> [Turn; 2];
    let cases: [(&'static str, Turns<'_>, bool); 3] =
        [("orchestrator", &orchestrator, true), ("codeact", &codeact, true), ("react", &react, false)];
    for (name, turns, logprobs) in cases {
        let mut request = asking("go");
        request.sampling.logprobs = logprobs;
        let test = || TestRun::new(script(turns()), &[tool("echo"), Interpreter::tool()]);
        let whole = test().run(name, &request).await.unwrap().generation;
        assert!(whole.answer.reasoning.is_some() && whole.answer.logprobs.is_some() == logprobs, "{whole:?}");
        assert_eq!(streamed(name, test(), request).await, Some(whole), "{name}");
    }
}
