//! Every format that llama.cpp's chat layer knows: calls, several calls, reasoning and words before a call, cut off anywhere, and
//! streamed in every split. `tests/formats` has a small template and answers for each.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    AnswerFormat, AnswerParser, AnswerPart, Calling, ChatTemplate, Conversation, Enforcement, ToolSupport,
};
use crate::grammar::{Grammar, Spelling, Vocabulary};
use crate::sampler::TokenCandidate;

/// An example file: its sections by name.
struct Example {
    name: String,
    template: ChatTemplate,
    answers: Vec<(String, String)>,
}

fn examples() -> Vec<Example> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats");
    let mut paths: Vec<_> =
        fs::read_dir(directory).expect("examples").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    paths.iter().map(|path| Example::read(path)).collect()
}

impl Example {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("an example");
        let mut sections = text.strip_prefix("=== ").expect("a section").split("\n=== ").map(|section| {
            let (name, body) = section.split_once('\n').expect("a name");
            (name.to_owned(), body.to_owned())
        });
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let (_, source) = sections.next().expect("a template");
        let template = ChatTemplate::new(&source, "", "").unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut answers: Vec<(String, String)> = sections.collect();
        // The last line of the file ends it.
        let (_, last) = answers.last_mut().expect("an answer");
        *last = last.strip_suffix('\n').unwrap_or(last).to_owned();
        Example { name, template, answers }
    }

    fn format(&self, calling: Calling) -> AnswerFormat {
        let conversation = Conversation {
            messages: &[json!({"role": "user", "content": "What is the weather?"})],
            tools: &tools(),
            signatures: &Map::new(),
            variables: &Map::new(),
            calling,
        };
        self.template.render(&conversation).unwrap_or_else(|error| panic!("{}: {error}", self.name)).format
    }
}

fn tools() -> [Value; 2] {
    let weather = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"]});
    let time = json!({"type": "object", "properties": {"zone": {"type": "string"}}});
    [("get_weather", weather), ("get_time", time)].map(|(name, parameters)| {
        json!({"type": "function", "function": {"name": name, "description": "", "parameters": parameters}})
    })
}

/// An answer, put together from its parts.
#[derive(Debug, Default, Clone, PartialEq)]
struct Whole {
    reasoning: String,
    words: String,
    calls: Vec<(String, String)>,
}

impl Whole {
    fn add(&mut self, parts: Vec<AnswerPart>) {
        for part in parts {
            match part {
                AnswerPart::Reasoning(text) => self.reasoning.push_str(&text),
                AnswerPart::Text(text) => self.words.push_str(&text),
                AnswerPart::Call { index, name, .. } => {
                    assert_eq!(index as usize, self.calls.len(), "calls come in order");
                    self.calls.push((name, String::new()));
                }
                AnswerPart::Arguments { index, text } => self.calls[index as usize].1.push_str(&text),
            }
        }
    }
}

fn parsed<'a>(format: &AnswerFormat, pieces: impl IntoIterator<Item = &'a str>, complete: bool) -> Whole {
    let mut parser = AnswerParser::new(format);
    let mut whole = Whole::default();
    for piece in pieces {
        whole.add(parser.push(piece));
    }
    whole.add(parser.finish(complete));
    whole
}

fn places(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().map(|(at, _)| at)
}

#[test]
fn a_long_answer_is_parsed_in_few_passes() {
    let qwen = examples().into_iter().find(|example| example.name == "qwen3").expect("an example");
    let format = qwen.format(Calling::Possible { several: true });
    let thought = "This is a long thought. ".repeat(400);
    let text = "word ".repeat(2000);
    let answer = format!(
        "<think>\n{thought}\n</think>\n\n<tool_call>\n{{\"name\": \"get_time\", \"arguments\": {{\"zone\": \"{text}\"}}}}\n</tool_call>"
    );
    let pieces: Vec<&str> = answer.split_inclusive(' ').collect();
    let mut parser = AnswerParser::new(&format);
    let mut whole = Whole::default();
    for piece in &pieces {
        whole.add(parser.push(piece));
    }
    whole.add(parser.finish(true));
    let arguments = json!({ "zone": text }).to_string();
    assert_eq!(whole.reasoning, thought.trim_end());
    assert_eq!(whole.calls.len(), 1);
    assert_eq!(serde_json::from_str::<Value>(&whole.calls[0].1).expect("JSON").to_string(), arguments);
    assert!(parser.parses < pieces.len() / 10, "{} passes for {} pieces", parser.parses, pieces.len());
}

#[test]
fn calls_are_found_in_every_format() {
    let rome = ("get_weather", json!({"city": "Rome", "days": 2}));
    let oslo = ("get_weather", json!({"city": "Oslo", "days": 3}));
    let all = examples();
    assert!(all.len() >= 30, "{} formats", all.len());
    for example in all {
        assert_eq!(example.template.tools, ToolSupport::Full, "{}", example.name);
        let format = example.format(Calling::Possible { several: true });
        for (case, answer) in &example.answers {
            let whole = parsed(&format, [answer.as_str()], true);
            let (reasoning, words, calls) = match case.as_str() {
                "call" => ("", "", vec![&rome]),
                "calls" => ("", "", vec![&rome, &oslo]),
                "reasoning and call" => ("Rome is a city.", "", vec![&rome]),
                "words and call" => ("", "Let me look.", vec![&rome]),
                other => panic!("{}: no case '{other}'", example.name),
            };
            let found: Vec<(&str, Value)> = whole
                .calls
                .iter()
                .map(|(name, arguments)| (name.as_str(), serde_json::from_str(arguments).expect("JSON")))
                .collect();
            let expected: Vec<(&str, Value)> = calls.into_iter().cloned().collect();
            assert_eq!(
                (whole.reasoning.as_str(), whole.words.trim(), found),
                (reasoning, words, expected),
                "{}, {case}",
                example.name
            );
        }
    }
}

/// Runs a check for each example, on two threads.
fn for_each(check: impl Fn(&Example) + Sync) {
    let examples = examples();
    let (first, second) = examples.split_at(examples.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| first.iter().for_each(&check));
        second.iter().for_each(&check);
    });
}

#[test]
fn the_split_of_an_answer_makes_no_difference() {
    for_each(|example| {
        let format = example.format(Calling::Possible { several: true });
        for (case, answer) in &example.answers {
            let whole = parsed(&format, [answer.as_str()], true);
            let characters: Vec<String> = answer.chars().map(String::from).collect();
            let streamed = parsed(&format, characters.iter().map(String::as_str), true);
            assert_eq!(streamed, whole, "{}, {case}, by characters", example.name);
            for at in places(answer) {
                let (first, second) = answer.split_at(at);
                assert_eq!(parsed(&format, [first, second], true), whole, "{}, {case} at {at}", example.name);
            }
        }
    });
}

#[test]
fn an_answer_that_is_cut_off_begins_like_the_whole() {
    for_each(|example| {
        let format = example.format(Calling::Possible { several: true });
        for (case, answer) in &example.answers {
            let whole = parsed(&format, [answer.as_str()], true);
            for at in places(answer) {
                let cut = parsed(&format, [&answer[..at]], false);
                let place = format!("{}, {case} at {at}: {cut:?}", example.name);
                assert!(cut.calls.len() <= whole.calls.len(), "{place}");
                for ((name, arguments), (whole_name, whole_arguments)) in cut.calls.iter().zip(&whole.calls) {
                    assert_eq!(name, whole_name, "{place}");
                    assert!(whole_arguments.starts_with(arguments.as_str()), "{place}");
                }
                // The beginning of a mark may be words.
                let words = [cut.reasoning.as_str(), cut.words.as_str()];
                assert!(words.iter().all(|text| answer.contains(*text)), "{place}");
            }
        }
    });
}

/// A model that writes single bytes.
fn bytes() -> Arc<Vocabulary> {
    let all: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let tokens = all.iter().map(|byte| Spelling::Text(byte)).chain([Spelling::Control(b"<end>")]);
    Arc::new(Vocabulary::new(tokens, vec![256]).expect("a vocabulary"))
}

/// How much of a text a grammar takes, and whether it may end there.
fn taken(mut grammar: Grammar, text: &str) -> (usize, bool) {
    let fits = |byte: &u8| {
        let token = i32::from(*byte);
        grammar.allows(token) == Ok(true) && grammar.accept(token).is_ok()
    };
    let count = text.as_bytes().iter().copied().take_while(fits).count();
    (count, grammar.is_complete() || grammar.allows(256) == Ok(true))
}

#[test]
fn the_grammar_of_calls_takes_calls_and_nothing_else() {
    let vocabulary = bytes();
    for example in examples() {
        let name = &example.name;
        let format = example.format(Calling::Forced { several: true });
        let rules = format.grammar().unwrap_or_else(|| panic!("{name} has no grammar"));
        let start = vocabulary
            .start(rules.text(true, Enforcement::Schemas))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for (case, answer) in example.answers.iter().filter(|(case, _)| case.starts_with("call")) {
            // What may come before a call is not a part of its grammar.
            let longest = places(answer)
                .map(|at| (at, taken(start.clone(), &answer[at..])))
                .max_by_key(|(at, (count, _))| (*count, std::cmp::Reverse(*at)))
                .expect("an answer");
            let (at, (count, ends)) = longest;
            assert!(
                ends && at + count == answer.len(),
                "{name}, {case}: {count} bytes from {at} of {answer}"
            );
            assert!(
                at == 0 || answer[..at].ends_with(['>', '\n', ' ']),
                "{name}, {case}: from {at} of {answer}"
            );
        }
        assert_eq!(taken(start.clone(), "Hello").0.min(1), 0, "{name}");
    }
}

/// Writes what a grammar allows, at random. `None` if it does not end.
fn written(mut grammar: Grammar, random: &mut fastrand::Rng) -> Option<String> {
    let mut text = Vec::new();
    for step in 0..1500 {
        let mut candidates: Vec<TokenCandidate> =
            (0..257).map(|token| TokenCandidate { token, score: 0.0 }).collect();
        grammar.forbid(&mut candidates).expect("a grammar that continues");
        let allowed: Vec<i32> = candidates.iter().filter(|c| c.score == 0.0).map(|c| c.token).collect();
        assert!(!allowed.is_empty(), "a dead end after {:?}", String::from_utf8_lossy(&text));
        let marks: Vec<i32> =
            allowed.iter().copied().filter(|token| [256, 34, 60, 91, 93, 124, 125].contains(token)).collect();
        // Marks end what would go on forever.
        let choices = if !marks.is_empty() && (step > 200 || random.bool()) { &marks } else { &allowed };
        let plain: Vec<i32> =
            choices.iter().copied().filter(|token| (32..127).contains(token) || *token == 256).collect();
        let choices = if plain.is_empty() || random.u8(..8) == 0 { choices } else { &plain };
        let token = choices[random.usize(..choices.len())];
        let Ok(byte) = u8::try_from(token) else { return String::from_utf8(text).ok() };
        grammar.accept(token).expect("allowed");
        text.push(byte);
        if grammar.is_complete() {
            return String::from_utf8(text).ok();
        }
    }
    None
}

#[test]
fn the_parser_reads_all_that_the_grammar_allows() {
    let vocabulary = bytes();
    for example in examples() {
        let name = &example.name;
        let format = example.format(Calling::Forced { several: false });
        let rules = format.grammar().unwrap_or_else(|| panic!("{name} has no grammar"));
        let start = vocabulary.start(rules.text(false, Enforcement::Schemas)).expect("a grammar");
        let mut random = fastrand::Rng::with_seed(7);
        let calls = std::iter::repeat_with(|| written(start.clone(), &mut random)).take(12).flatten();
        // Some formats write strings as they are, also with characters that JSON does not have.
        for call in calls.filter(|call| !call.contains(|char: char| char.is_control() && char != '\n')) {
            let answer = match name.as_str() {
                _ if format.is_in_thought() => format!("</think>{call}"),
                // This format always has a thought.
                "minicpm-5" => format!("<think>\n\n</think>\n\n{call}"),
                _ => call,
            };
            let whole = parsed(&format, [answer.as_str()], true);
            assert!(!whole.calls.is_empty(), "{name}: {answer:?} is {whole:?}");
            // Its grammar has any number of calls.
            assert!(whole.calls.len() == 1 || name == "functionary-3.2", "{name}: {answer:?} is {whole:?}");
            let are_read = whole.calls.iter().all(|(_, text)| serde_json::from_str::<Value>(text).is_ok());
            assert!(are_read, "{name}: {answer:?} is {whole:?}");
        }
    }
}

#[test]
fn blanks_before_the_end_of_a_call_make_no_difference() {
    for example in examples().iter().filter(|example| ["glm-4.5", "hermes"].contains(&example.name.as_str()))
    {
        let format = example.format(Calling::Forced { several: false });
        let (_, answer) = example.answers.iter().find(|(case, _)| case == "call").expect("a call");
        let whole = parsed(&format, [answer.as_str()], true);
        let blanks = answer.replace("</tool_call>", "\n \n</tool_call>\n");
        assert_eq!(parsed(&format, [blanks.as_str()], true), whole, "{}", example.name);
    }
}

#[test]
fn text_that_is_no_call_is_words() {
    let common = ChatTemplate::common().expect("a format");
    let conversation = |calling| Conversation {
        messages: &[],
        tools: if calling == Calling::Never { &[] } else { Box::leak(Box::new(tools())) },
        signatures: Box::leak(Box::new(Map::new())),
        variables: Box::leak(Box::new(Map::new())),
        calling,
    };
    let format = |calling| common.render(&conversation(calling)).expect("renders").format;
    let words = |text: &str| Whole { words: text.to_owned(), ..Whole::default() };
    for calling in [Calling::Never, Calling::Possible { several: true }] {
        let format = format(calling);
        for text in ["1 < 2", "Say <b>", "a <tool", "<thi", "Use {x} and [y].", "</think> <tool_cal"] {
            for complete in [true, false] {
                assert_eq!(parsed(&format, [text], complete), words(text), "{calling:?}, {text}");
                let letters: Vec<String> = text.chars().map(String::from).collect();
                assert_eq!(
                    parsed(&format, letters.iter().map(String::as_str), complete),
                    words(text),
                    "{text}"
                );
            }
        }
    }
    // A call of a tool that does not exist, and a call that goes wrong.
    let format = format(Calling::Possible { several: true });
    for text in [
        "<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>",
        &format!("Hm. <tool_call>{{\"name\" = {}", "long ".repeat(100)),
    ] {
        assert_eq!(parsed(&format, [text], true), words(text));
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(parsed(&format, letters.iter().map(String::as_str), true), words(text));
    }
    // Arguments that are nested deeper than the stack allows are not an end of the process.
    let deep =
        format!("<tool_call>{{\"name\": \"get_time\", \"arguments\": {{\"zone\": {}", "[".repeat(100_000));
    parsed(&format, [deep.as_str()], false);
}

#[test]
fn long_names_of_tools_and_fields_do_not_use_up_the_stack() {
    // Far more than a stack has room for, if something calls itself for each character.
    let name = "_".repeat(20_000);
    let parameters =
        json!({"type": "object", "properties": {(name.clone()): {"type": "string"}}, "required": [name]});
    let tool =
        json!({"type": "function", "function": {"name": name, "description": "", "parameters": parameters}});
    for_each(|example| {
        let conversation = Conversation {
            messages: &[json!({"role": "user", "content": "Hello"})],
            tools: std::slice::from_ref(&tool),
            signatures: &Map::new(),
            variables: &Map::new(),
            calling: Calling::Forced { several: true },
        };
        // A template may refuse them. They must not end the process.
        drop(example.template.render(&conversation));
    });
}
