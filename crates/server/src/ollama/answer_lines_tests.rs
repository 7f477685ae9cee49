use hob_core::AgentStep;

use super::*;

fn lines(kind: FormKind) -> AnswerLines {
    AnswerLines::new(AnswerForm {
        kind,
        thoughts: Thoughts::Shown,
        started: Instant::now(),
        requested: "qwen3".to_owned(),
        meant: "qwen3:8b".to_owned(),
    })
}

/// The lines that this writes, without their times.
fn written(lines: &mut AnswerLines, write: impl FnOnce(&mut AnswerLines, &mut Vec<u8>)) -> Vec<Value> {
    let mut out = Vec::new();
    write(lines, &mut out);
    let read = |line: &str| {
        let mut line: Map<String, Value> = serde_json::from_str(line).unwrap();
        assert!(line.remove("created_at").is_some());
        Value::Object(line)
    };
    std::str::from_utf8(&out).unwrap().lines().map(read).collect()
}

fn empty() -> Value {
    json!({ "role": "assistant", "content": "" })
}

#[test]
fn a_silent_engine_is_a_line_without_words() {
    let line = written(&mut lines(FormKind::Chat), |lines, out| lines.keep_alive(out));
    assert_eq!(line, [json!({ "model": "qwen3", "message": empty(), "done": false })]);
}

#[test]
fn a_step_of_an_agent_is_a_line_without_words() {
    let step = AgentStep { name: "THINK", data: json!({ "turn": 1 }), tool: None };
    let line =
        written(&mut lines(FormKind::Chat), |lines, out| lines.push(&Delta::Step(Box::new(step)), out));
    let expected = json!({
        "model": "qwen3", "message": empty(), "done": false, "hob_step": { "name": "THINK", "data": { "turn": 1 } },
    });
    assert_eq!(line, [expected]);
}

#[test]
fn a_line_names_the_model_that_answers() {
    let mut lines = lines(FormKind::Generate);
    let mut of = |model: &str| {
        let line = written(&mut lines, |lines, out| {
            lines.answered_by(model);
            lines.push(&Delta::text("a"), out);
        });
        line[0]["model"].clone()
    };
    assert_eq!(of("llama3:8b"), "llama3:8b");
    assert_eq!(of("qwen3:8b"), "qwen3", "the name that the caller gave it");
}

#[test]
fn probabilities_of_tokens_are_a_list() {
    let tokens = json!([{ "token": "a", "logprob": -0.5 }]);
    let piece =
        TextDelta { choice: 0, text: "a".to_owned(), logprobs: Some(Box::new(json!({ "content": tokens }))) };
    let line = written(&mut lines(FormKind::Generate), |lines, out| lines.push(&Delta::Text(piece), out));
    assert_eq!(line, [json!({ "model": "qwen3", "response": "a", "logprobs": tokens, "done": false })]);
}
