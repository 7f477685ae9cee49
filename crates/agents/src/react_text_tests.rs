use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

fn act(thought: &str, action: &str, input: &str) -> ReactStep {
    ReactStep::Act { thought: thought.into(), action: action.into(), input: input.into() }
}

fn answer(thought: &str, answer: &str) -> ReactStep {
    ReactStep::Answer { thought: thought.into(), answer: answer.into() }
}

#[test]
fn an_action_is_parsed_with_any_formatting() {
    let plain = act("I must add.", "calculator", "{\"expression\": \"2+2\"}");
    for text in [
        "Thought: I must add.\nAction: calculator\nAction Input: {\"expression\": \"2+2\"}",
        "thought: I must add.\nACTION: calculator\naction input: {\"expression\": \"2+2\"}\nObservation: 4\nFinal Answer: 4",
        "**Thought:** I must add.\n**Action:** `calculator`\n**Action Input:** {\"expression\": \"2+2\"}\n",
        "**Thought**: I must add.\n\n**Action**: calculator\n\n**Action Input**: {\"expression\": \"2+2\"}",
        "### Thought: I must add.\n### Action: \"calculator\"\n### Action Input:\n```json\n{\"expression\": \"2+2\"}\n```",
        "I must add.\r\nAction: calculator\r\nAction Input: {\"expression\": \"2+2\"}\r\nThought: wait",
        "Thought: I must add.\nAction:\ncalculator\nAction Input:\n{\"expression\": \"2+2\"}",
        "Thought : I must add.\nAction : [calculator]\nAction Input : `{\"expression\": \"2+2\"}`",
        "Thought: I must add.\nAction: calculator\n```\n{\"expression\": \"2+2\"}\n```",
    ] {
        assert_eq!(parse(text), plain, "{text}");
    }
}

#[test]
fn an_action_needs_no_input() {
    assert_eq!(parse("Action: current_time"), act("", "current_time", ""));
    assert_eq!(parse("Action: current_time\nObservation: noon"), act("", "current_time", ""));
}

#[test]
fn input_may_have_several_lines() {
    let text = "Action: run\nAction Input: {\n  \"code\": \"print(1)\\nprint(2)\"\n}\n\nObservation: 1";
    assert_eq!(parse(text), act("", "run", "{\n  \"code\": \"print(1)\\nprint(2)\"\n}"));
}

#[test]
fn a_final_answer_is_parsed_with_any_formatting() {
    for text in [
        "Thought: I know.\nFinal Answer: 42",
        "thought: I know.\nfinal answer:\n\n42\n",
        "**Thought:** I know.\n**Final Answer:** 42",
        "Thought: I know.\n**Final Answer**: 42",
        "Thought: I know.\n**Final Answer: 42**",
        "Thought: I know. Final Answer: 42",
        "Thought: I know.\nAction: None\nFinal Answer: 42",
    ] {
        let ReactStep::Answer { answer, .. } = parse(text) else { panic!("{text} is an answer") };
        assert_eq!(answer, "42", "{text}");
    }
}

#[test]
fn emphasis_inside_the_answer_stays() {
    assert_eq!(parse("Final Answer: **42** or **43**"), answer("", "**42** or **43**"));
    assert_eq!(parse("**Final Answer:** **42**"), answer("", "**42**"));
}

#[test]
fn the_first_marker_decides() {
    let recipe = "Final Answer: Do this.\nAction: stir\nThought: slowly";
    assert_eq!(parse(recipe), answer("", "Do this.\nAction: stir\nThought: slowly"));
    let invented = "Action: look\nAction Input: x\nObservation: a cat\nFinal Answer: a cat";
    assert_eq!(parse(invented), act("", "look", "x"));
}

#[test]
fn a_text_in_neither_form_is_the_final_answer() {
    for text in [
        "Paris.",
        "",
        "Thought: hm",
        "The action: run away",
        "Actions: 3",
        "My final answer is 4",
        "Action Input: 4",
        "Action: none",
    ] {
        assert_eq!(parse(text), answer("", text), "{text}");
    }
}

fn pass(pieces: &[&str]) -> Vec<String> {
    let mut text_filter = FinalAnswerFilter::default();
    pieces.iter().map(|piece| text_filter.pass(piece)).collect()
}

#[test]
fn the_answer_is_forwarded_even_if_the_marker_is_split() {
    let pieces = ["Thought: I k", "now.\nFin", "al Ans", "wer", ":", " It", " is", " ", "42", ".\n"];
    assert_eq!(pass(&pieces), ["", "", "", "", "", "It", " is", "", " 42", "."]);
    assert_eq!(pass(&["**Final Answer:", "*", "* 4", "2"]), ["", "", "4", "2"]);
}

#[test]
fn thoughts_and_actions_are_not_forwarded() {
    let pieces = ["Thought: hm\nAction:", " look\nAction Input: x\n", "Observation: cat\nFinal Answer: cat"];
    assert_eq!(pass(&pieces), ["", "", ""]);
    assert_eq!(pass(&["Paris", " it is."]), ["", ""]);
}

/// Text in which markers, their parts and what may stand around them are likely.
fn loose_text() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        Just("Thought:".to_owned()),
        Just("Action:".to_owned()),
        Just("Action Input:".to_owned()),
        Just("Observation:".to_owned()),
        Just("Final Answer:".to_owned()),
        Just("final answer".to_owned()),
        Just("none".to_owned()),
        Just("```".to_owned()),
        Just("**".to_owned()),
        Just("_".to_owned()),
        Just("\n".to_owned()),
        Just(" ".to_owned()),
        Just(":".to_owned()),
        "\\PC{0,4}",
    ];
    proptest::collection::vec(scrap, 0..14).prop_map(|scraps| scraps.concat())
}

/// Trimmed text without a marker: every marker has a colon.
fn words() -> impl Strategy<Value = String> {
    "[^:`]{0,40}".prop_map(|text| text.trim().to_owned())
}

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9_.-]{0,12}[a-z0-9]".prop_filter("a name of no tool", |name| name != "none")
}

proptest! {
    #[test]
    fn any_text_can_be_read(text in prop_oneof![any::<String>(), loose_text()]) {
        parse(&text);
    }

    #[test]
    fn a_text_without_markers_is_the_final_answer(text in "[^:]{0,80}") {
        prop_assert_eq!(parse(&text), answer("", text.trim()));
    }

    #[test]
    fn what_is_written_is_read_again(
        (thought, action, input, last) in (words(), name(), words(), any::<String>()),
    ) {
        let step = act(&thought, &action, &input);
        prop_assert_eq!(parse(&render(&step)), step);
        let step = answer(&thought, last.trim());
        prop_assert_eq!(parse(&render(&step)), step);
    }

    #[test]
    fn forwarded_text_is_a_prefix_of_the_answer(text in loose_text(), cuts in proptest::collection::vec(any::<Index>(), 0..6)) {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        ends.sort_unstable();
        ends.push(text.len());
        let mut text_filter = FinalAnswerFilter::default();
        let mut forwarded = String::new();
        let mut start = 0;
        for end in ends {
            forwarded += &text_filter.pass(&text[start..end]);
            start = end;
        }
        match parse(&text) {
            ReactStep::Act { .. } => prop_assert_eq!(forwarded, ""),
            ReactStep::Answer { answer, .. } => prop_assert!(answer.starts_with(&forwarded), "{forwarded:?} of {answer:?}"),
        }
    }
}
