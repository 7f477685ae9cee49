use hob_core::GenerateRequest;
use serde_json::json;

use crate::support::{TestRun, asking, outcome, says, script, tool};

#[tokio::test]
async fn one_question_one_answer_no_tools() {
    let test = TestRun::new(script([says(&["Good ", "day."])]), &[tool("echo")]);
    let extra = json!({ "top_k": 3 }).as_object().cloned().unwrap_or_default();
    let request = GenerateRequest { extra, ..asking("hello") };
    assert_eq!(test.run("simple", &request).await.unwrap(), outcome("Good day.", 1, Vec::new()));
    assert_eq!(test.engine.requests(), [request]);
    assert_eq!(
        test.events(),
        [
            r#"AGENT_TURN_START {"agent":"simple","turn":1}"#,
            r#"AGENT_TURN_END {"agent":"simple","turn":1,"tool_calls":0}"#,
        ]
    );
}
