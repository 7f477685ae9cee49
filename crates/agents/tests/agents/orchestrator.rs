use hob_core::{
    AnswerWarning, Content, Delta, GenerateRequest, JsonSchema, MaxTokens, Message, ReasoningSeal,
    ResponseFormat, Role, Temperature, ToolChoice,
};
use serde_json::json;

use crate::support::{TestRun, asking, call, calls, definition, failed, outcome, says, script, tool, worked};

#[tokio::test]
async fn an_answer_without_calls_is_the_end() {
    let test = TestRun::new(script([says(&["Paris."])]), &[tool("echo")]);
    assert_eq!(test.run("orchestrator", &asking("capital?")).await.unwrap(), outcome("Paris.", 1, vec![]));
    assert_eq!(test.engine.requests()[0].tools, [definition("echo")]);
}

#[tokio::test]
async fn a_result_has_the_id_of_its_call() {
    let wanted = call("c1", "echo", r#"{"text":"hi"}"#);
    let test = TestRun::new(
        script([calls("Let me see.", std::slice::from_ref(&wanted)), says(&["It said hi."])]),
        &[tool("echo")],
    );
    let request = asking("what does echo say?");
    let done = test.run("orchestrator", &request).await.unwrap();
    assert_eq!(done, outcome("It said hi.", 2, vec![worked("echo", "echo: hi")]));

    let mut second = GenerateRequest { tools: vec![definition("echo")], ..request };
    second
        .messages
        .push(Message { tool_calls: vec![wanted], ..Message::new(Role::Assistant, "Let me see.") });
    second.messages.push(Message::tool_result("c1", "echo: hi"));
    assert_eq!(test.engine.requests()[1], second);
}

#[tokio::test]
async fn broken_arguments_are_mended_in_the_next_request_or_left_out() {
    for (broken, replayed) in [
        (r#"{"text":"hal"#, "{}"),
        ("[1]", "{}"),
        ("{\"text\":\"line\nbreak\"}", r#"{"text":"line\u000abreak"}"#),
        (r#"{"text":"half \ud83d"}"#, r#"{"text":"half \ufffd"}"#),
        (r#"{"text":1e400}"#, r#"{"text":"1e400"}"#),
    ] {
        let turns = [calls("", &[call("c1", "echo", broken)]), says(&["Sorry."])];
        let test = TestRun::new(script(turns), &[tool("echo")]);
        let done = test.run("orchestrator", &asking("go")).await.unwrap();
        assert!(!done.tool_results[0].success, "{broken}");
        // Engines refuse a history with arguments that are no JSON object.
        let asked = test.engine.requests().pop().unwrap().messages;
        assert_eq!(asked[1].tool_calls, [call("c1", "echo", replayed)]);
        assert_eq!(asked[2].content.text(), done.tool_results[0].content);
    }
}

#[tokio::test]
async fn the_reasoning_of_a_turn_is_part_of_the_next_request() {
    let wanted = [call("c1", "echo", r#"{"text":"hi"}"#)];
    let mut thinking = calls("", &wanted);
    let seal = ReasoningSeal::Signature("s1".into());
    thinking.splice(
        ..0,
        [
            Ok(Delta::Reasoning { choice: 0, text: "I must ask.".into() }),
            Ok(Delta::ReasoningSeal { choice: 0, seal }),
        ],
    );
    let test = TestRun::new(script([thinking, says(&["It said hi."])]), &[tool("echo")]);
    test.run("orchestrator", &asking("go")).await.unwrap();
    let fields = json!({
        "reasoning_content": "I must ask.",
        "thinking_blocks": [{ "type": "thinking", "thinking": "I must ask.", "signature": "s1" }],
    });
    let said = Message {
        tool_calls: wanted.to_vec(),
        extra: fields.as_object().cloned().unwrap(),
        ..Message::new(Role::Assistant, Content::Empty)
    };
    assert_eq!(test.engine.requests()[1].messages[1], said);
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_turn_run_concurrently_and_return_in_order() {
    let wanted = [
        call("c1", "wait", r#"{"text":"9"}"#),
        call("c2", "nothing_like_it", "{}"),
        call("c3", "fail", r#"{"text":""}"#),
        call("c4", "panic", r#"{"text":""}"#),
        call("c5", "wait", r#"{"text":"5"}"#),
        call("c6", "wait", r#"{"text":"3600"}"#),
        call("c7", "echo", "{not json"),
    ];
    let tools = ["wait", "fail", "panic", "echo"].map(tool);
    let test = TestRun::new(script([calls("", &wanted), says(&["Done."])]), &tools);
    let started = tokio::time::Instant::now();
    let done = test.run("orchestrator", &asking("go")).await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 30);

    let results = vec![
        worked("wait", "waited 9 s"),
        failed(
            "nothing_like_it",
            "there is no tool 'nothing_like_it'; the tools are wait, fail, panic, echo",
        ),
        failed("fail", "the well is dry"),
        failed("panic", "the tool 'panic' crashed; this is an error of the tool, not of the arguments"),
        worked("wait", "waited 5 s"),
        failed("wait", "wait did not finish within 30 s"),
        failed(
            "echo",
            "the arguments are not JSON (key must be a string at line 1 column 2); send one JSON object that follows the \
             schema of the tool",
        ),
    ];
    let shown: Vec<(Option<String>, Content)> = test.engine.requests()[1].messages[2..]
        .iter()
        .map(|message| (message.tool_call_id.clone(), message.content.clone()))
        .collect();
    let expected: Vec<(Option<String>, Content)> = wanted
        .iter()
        .zip(&results)
        .map(|(call, result)| (Some(call.id.clone()), result.content.as_str().into()))
        .collect();
    assert_eq!(shown, expected);
    assert_eq!(done, outcome("Done.", 2, results));
}

#[tokio::test]
async fn the_callers_options_apply_in_every_turn() {
    let earlier = call("old", "theirs", "{}");
    let schema = JsonSchema { name: "s".into(), description: None, schema: json!({}), strict: Some(true) };
    let mut request = GenerateRequest {
        model: "m".into(),
        messages: vec![
            Message::new(Role::System, "be kind"),
            Message { tool_calls: vec![earlier], ..Message::new(Role::Assistant, Content::Empty) },
            Message::tool_result("old", "42"),
            Message::new(Role::User, "go on"),
        ],
        temperature: Temperature::new(0.1).ok(),
        max_tokens: MaxTokens::new(77).ok(),
        response_format: ResponseFormat::JsonSchema(schema),
        extra: json!({ "top_k": 3 }).as_object().cloned().unwrap(),
        ..GenerateRequest::default()
    };
    request.sampling.seed = Some(7);
    request.sampling.stop = vec!["END".into()];

    let turn = |n: &str| calls("", &[call(n, "echo", &format!(r#"{{"text":"{n}"}}"#))]);
    let test = TestRun::new(script([turn("1"), turn("2"), says(&["{}"])]), &[tool("echo")]);
    test.run("orchestrator", &request).await.unwrap();

    let requests = test.engine.requests();
    assert_eq!(requests.len(), 3);
    for asked in requests {
        let messages = asked.messages[..4].to_vec();
        assert_eq!(GenerateRequest { messages, tools: Vec::new(), ..asked }, request);
    }
}

#[tokio::test]
async fn an_engine_that_cannot_take_tools_says_so_in_the_outcome() {
    let engine = script([says(&["I have no tools."])]).with_warnings(&[AnswerWarning::ToolsDropped]);
    let test = TestRun::new(engine, &[tool("echo")]);
    let done = test.run("orchestrator", &asking("go")).await.unwrap();
    assert_eq!(done.generation.warnings, [AnswerWarning::ToolsDropped]);
}

#[tokio::test]
async fn a_forced_call_is_forced_once() {
    let turns = [calls("", &[call("1", "echo", r#"{"text":"a"}"#)]), says(&["a"])];
    let test = TestRun::new(script(turns), &[tool("echo")]);
    let request = GenerateRequest { tool_choice: Some(ToolChoice::Required), ..asking("go") };
    test.run("orchestrator", &request).await.unwrap();
    let choices: Vec<_> = test.engine.requests().into_iter().map(|request| request.tool_choice).collect();
    assert_eq!(choices, [Some(ToolChoice::Required), None]);
}

#[tokio::test]
async fn a_call_that_cannot_be_forced_is_refused() {
    let forced = |choice| GenerateRequest { tool_choice: Some(choice), ..asking("go") };
    let test = TestRun::new(script([]), &[tool("echo")]);
    let error = test.run("orchestrator", &forced(ToolChoice::Function("ecko".into()))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "orchestrator does not support 'tool_choice': the tools of this caller are echo"
    );
    let bare = TestRun::new(script([]), &[]);
    let error = bare.run("orchestrator", &forced(ToolChoice::Required)).await.unwrap_err();
    assert_eq!(error.to_string(), "orchestrator does not support 'tool_choice': this caller has no tools");
    for agent in ["simple", "react"] {
        let error = test.run(agent, &forced(ToolChoice::Required)).await.unwrap_err();
        assert!(
            error.to_string().ends_with("only the orchestrator supports a required tool call"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_caller_who_wants_no_tools_gets_none() {
    let test = TestRun::new(script([says(&["Hi."])]), &[tool("echo")]);
    let request = GenerateRequest { tool_choice: Some(ToolChoice::None), ..asking("hi") };
    test.run("orchestrator", &request).await.unwrap();
    assert_eq!(test.engine.requests(), [request]);
}

#[tokio::test]
async fn unsupported_options_are_refused_by_name() {
    let test = TestRun::new(script([]), &[tool("echo")]);
    let mut several = asking("hi");
    several.sampling.n = std::num::NonZeroU32::new(2);
    let own_tools = GenerateRequest { tools: vec![definition("theirs")], ..asking("hi") };
    for (request, words) in [
        (several, "orchestrator does not support 'n': an agent returns one answer"),
        (own_tools, "orchestrator does not support 'tools': an agent uses its own"),
    ] {
        let error = test.run("orchestrator", &request).await.unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_step_is_published_in_order() {
    let wanted = [call("c1", "wait", r#"{"text":"2"}"#), call("c2", "echo", r#"{"text":"a"}"#)];
    let test = TestRun::new(script([calls("", &wanted), says(&["Done."])]), &[tool("wait"), tool("echo")]);
    test.run("orchestrator", &asking("go")).await.unwrap();
    assert_eq!(
        test.events(),
        [
            r#"AGENT_TURN_START {"agent":"orchestrator","turn":1}"#,
            r#"TOOL_CALL_START {"tool":"wait","arguments":"{\"text\":\"2\"}"}"#,
            r#"TOOL_CALL_START {"tool":"echo","arguments":"{\"text\":\"a\"}"}"#,
            r#"TOOL_CALL_END {"tool":"echo","success":true,"latency":0.0}"#,
            r#"TOOL_CALL_END {"tool":"wait","success":true,"latency":2.0}"#,
            r#"AGENT_TURN_END {"agent":"orchestrator","turn":1,"tool_calls":2}"#,
            r#"AGENT_TURN_START {"agent":"orchestrator","turn":2}"#,
            r#"AGENT_TURN_END {"agent":"orchestrator","turn":2,"tool_calls":0}"#,
        ]
    );
}
