//! The pieces of a streamed answer. Every answer is generated once.

use hob_core::{Delta, EngineError, FinishReason};

use crate::support::{Interpreter, TestRun, asking, call, calls, outcome, says, script, tool, worked};

#[tokio::test]
async fn simple_is_forwarded_piece_by_piece() {
    let test = TestRun::new(script([says(&["\n", "Good ", "day.", "\n"])]), &[]).listening();
    let done = test.run("simple", &asking("hi")).await.unwrap();
    assert_eq!(done, outcome("\nGood day.\n", 1, vec![]));
    assert_eq!(test.received.pieces(), ["\nGood ", "day.", "\n"]);
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
