use hob_core::{Delta, FinishReason};

use crate::support::{Interpreter, TestRun, asking, outcome, says, script, tool, worked};

#[tokio::test]
async fn it_runs_its_code_and_reads_the_output() {
    let code = "Let me compute.\n```python\nprint(1)\n```\nand\n```bash\nls\n```";
    let test = TestRun::new(script([says(&[code]), says(&["It is 1."])]), &[Interpreter::tool()]);
    let done = test.run("openhands", &asking("one?")).await.unwrap();
    let results = vec![worked("code_interpreter", "python PRINT(1)"), worked("code_interpreter", "sh LS")];
    assert_eq!(done, outcome("It is 1.", 2, results));

    let second = test.messages(1);
    assert!(second[0].starts_with("system: You solve tasks by running code."), "{}", second[0]);
    let output = "user: Output:\n[block 1]\npython PRINT(1)\n[block 2]\nsh LS";
    assert_eq!(second[1..], ["user: one?".to_owned(), format!("assistant: {code}"), output.to_owned()]);
}

#[tokio::test]
async fn one_block_needs_no_number() {
    let turns = [says(&["```sh\nls\n```"]), says(&["Nothing."])];
    let test = TestRun::new(script(turns), &[Interpreter::tool()]);
    test.run("codeact", &asking("files?")).await.unwrap();
    assert_eq!(test.messages(1).last().unwrap(), "user: Output:\nsh LS");
}

#[tokio::test]
async fn code_that_was_cut_off_does_not_run() {
    let cut_off = vec![
        Ok(Delta::text("```sh\nrm -r build")),
        Ok(Delta::Finish { choice: 0, reason: FinishReason::Length }),
        Ok(Delta::Done { usage: None }),
    ];
    let test = TestRun::new(script([cut_off]), &[Interpreter::tool()]);
    let done = test.run("codeact", &asking("clean up")).await.unwrap();
    assert_eq!((done.tool_results, done.generation.answer.finish_reason), (vec![], FinishReason::Length));
}

#[tokio::test]
async fn without_the_sandbox_it_says_what_is_missing() {
    let test = TestRun::new(script([]), &[tool("echo")]);
    let error = test.run("codeact", &asking("go")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "codeact is not set up: it needs the tool 'code_interpreter', which is not available to this caller. It \
          needs the sandbox ([sandbox] enabled = true) and a caller who may run code"
    );
}
