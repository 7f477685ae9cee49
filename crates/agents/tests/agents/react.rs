use hob_core::{Delta, FinishReason, GenerateRequest, Message, Role};

use crate::support::{TestRun, asking, failed, finished, outcome, says, script, tool, worked};

#[tokio::test]
async fn it_thinks_acts_observes_and_answers() {
    let turns = [
        says(&[
            "Thought: I must ask.\nAction: echo\nAction Input: {\"text\": \"hi\"}\nObservation: invented",
        ]),
        says(&["Thought: I know.\nFinal Answer: It said hi."]),
    ];
    let test = TestRun::new(script(turns), &[tool("echo")]);
    let request = GenerateRequest {
        messages: vec![Message::new(Role::System, "be kind"), Message::new(Role::User, "ask echo")],
        ..asking("")
    };
    let done = test.run("react", &request).await.unwrap();
    assert_eq!(done, outcome("It said hi.", 2, vec![worked("echo", "echo: hi")]));

    let second = test.messages(1);
    assert!(second[0].starts_with("system: be kind\n\nYou can use tools."), "{}", second[0]);
    assert!(second[0].contains("\n- echo(text: string): Does echo."), "{}", second[0]);
    assert_eq!(
        second[1..],
        [
            "user: ask echo",
            "assistant: Thought: I must ask.\nAction: echo\nAction Input: {\"text\": \"hi\"}",
            "user: Observation: echo: hi",
        ]
    );
    for asked in test.engine.requests() {
        assert_eq!((asked.sampling.stop, asked.tools), (vec!["\nObservation:".to_owned()], vec![]));
    }
}

#[tokio::test]
async fn plain_text_is_the_input_of_a_tool_with_one_parameter() {
    let turns = [says(&["Action: Echo\nAction Input: hi there"]), says(&["Final Answer: ok"])];
    let test = TestRun::new(script(turns), &[tool("echo")]);
    let done = test.run("react", &asking("go")).await.unwrap();
    assert_eq!(done.tool_results, [worked("echo", "echo: hi there")]);
}

#[tokio::test]
async fn an_answer_in_neither_form_is_the_final_answer() {
    let test = TestRun::new(script([says(&["\nParis.\n"])]), &[tool("echo")]);
    assert_eq!(test.run("react", &asking("capital?")).await.unwrap(), outcome("Paris.", 1, vec![]));
}

#[tokio::test]
async fn a_missing_tool_is_an_observation() {
    let turns = [says(&["Action: telescope\nAction Input: {}"]), says(&["Final Answer: no"])];
    let test = TestRun::new(script(turns), &[tool("echo")]);
    let done = test.run("react", &asking("look")).await.unwrap();
    let told = "there is no tool 'telescope'; the tools are echo";
    assert_eq!(done, outcome("no", 2, vec![failed("telescope", told)]));
    assert_eq!(test.messages(1).last().unwrap(), &format!("user: Observation: {told}"));
}

#[tokio::test]
async fn without_tools_the_request_is_unchanged() {
    let test = TestRun::new(script([says(&["Hi."])]), &[]);
    test.run("react", &asking("hi")).await.unwrap();
    assert_eq!(test.engine.requests(), [asking("hi")]);
}

#[tokio::test]
async fn a_broken_object_is_explained_to_the_model_and_is_no_text() {
    let turns = [
        says(&["Action: echo\nAction Input: {\"text\": \"first line\nsecond line\"}"]),
        says(&["Final Answer: ok"]),
    ];
    let test = TestRun::new(script(turns), &[tool("echo")]);
    let done = test.run("react", &asking("go")).await.unwrap();
    let told = "the arguments are not JSON (control character";
    assert!(
        !done.tool_results[0].success && done.tool_results[0].content.starts_with(told),
        "{:?}",
        done.tool_results
    );
}

#[tokio::test]
async fn an_action_that_was_cut_off_does_not_run() {
    for cut in ["https://example.org/pa", "{\"text\": \"https://example.org/pa", ""] {
        let text = format!("Thought: I look.\nAction: echo\nAction Input: {cut}");
        let turn = finished(vec![Ok(Delta::text(text))], FinishReason::Length);
        let test = TestRun::new(script([turn]), &[tool("echo")]);
        let done = test.run("react", &asking("go")).await.unwrap();
        assert_eq!(done.tool_results, [], "{cut}");
        let answer = done.generation.answer;
        assert_eq!((answer.content.as_str(), answer.finish_reason), ("I look.", FinishReason::Length));
    }
    let whole = "Action: echo\nAction Input: {\"text\": \"x\"}";
    let turn = finished(vec![Ok(Delta::text(whole))], FinishReason::Length);
    let test = TestRun::new(script([turn, says(&["Final Answer: ok"])]), &[tool("echo")]);
    let done = test.run("react", &asking("go")).await.unwrap();
    assert_eq!(done, outcome("ok", 2, vec![worked("echo", "echo: x")]));
}
