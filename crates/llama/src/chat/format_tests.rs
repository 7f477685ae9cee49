//! Every format that llama.cpp's chat layer knows: words, a call, several calls, reasoning or words before a call, all of them cut off
//! anywhere, and streamed in every split; and the grammar of its calls. `tests/formats` has a file for each format: a small template,
//! what it stands for in llama.cpp, and the answer of each case, or under `no CASE` why the format cannot express it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    AnswerFormat, AnswerParser, AnswerPart, Calling, ChatTemplate, Conversation, Enforcement, ToolSupport,
};
use crate::grammar::{Grammar, Spelling, Vocabulary};
use crate::sampler::TokenCandidate;

/// The answers of a format. Each is also cut off and split at every place.
const CASES: [&str; 6] =
    ["words", "reasoning and words", "call", "calls", "reasoning and call", "words and call"];

/// Template files and special cases of llama.cpp that have no example, and why.
const WITHOUT_EXAMPLE: [(&str, &str); 7] = [
    ("Bailing V3", "The models have the marks of Ling 3, whose parser comes first."),
    ("CohereForAI-c4ai-command-r7b-12-2024-default.jinja", "Its variant for tools has an example."),
    ("CohereForAI-c4ai-command-r7b-12-2024-rag.jinja", "Its variant for tools has an example."),
    ("Granite 3.3", "Its template lists tools and writes no calls, so Hob asks for its own format."),
    ("Solar Open", "llama.cpp takes the id of a call for a part of its mark, and reads no calls."),
    ("google-gemma-2-2b-it.jinja", "It has no tools, so Hob asks for its own format."),
    ("microsoft-Phi-3.5-mini-instruct.jinja", "It has no tools, so Hob asks for its own format."),
];

/// An example file.
struct Example {
    name: String,
    /// The source of the template.
    template: String,
    /// Template files of llama.cpp with this format, and special cases in its sources for them.
    stands_for: Vec<String>,
    answers: Vec<(String, String)>,
    /// Cases that the format cannot express, and why. `reasoning` is both cases that begin so.
    reasons: Vec<(String, String)>,
}

fn examples() -> Vec<Example> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats");
    let entries = fs::read_dir(directory).expect("the examples");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    paths.iter().map(|path| Example::read(path)).collect()
}

/// The example with this name.
fn example(name: &str) -> Example {
    Example::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{name}.txt")))
}

impl Example {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("an example");
        let text = text.strip_prefix("=== ").and_then(|text| text.strip_suffix('\n')).expect("sections");
        let mut sections = text.split("\n=== ").map(|section| {
            let (heading, body) = section.split_once('\n').expect("a heading");
            (heading.to_owned(), body.to_owned())
        });
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut next = |expected: &str| {
            let (heading, body) = sections.next().expect("a section");
            assert_eq!(heading, expected, "{name}");
            body
        };
        let template = next("template");
        let stands_for = next("stands for").lines().map(str::to_owned).collect();
        let (mut answers, mut reasons) = (Vec::new(), Vec::new());
        for (heading, body) in sections {
            match heading.strip_prefix("no ") {
                Some(cases) => reasons.push((cases.to_owned(), body)),
                None => answers.push((heading, body)),
            }
        }
        Example { name, template, stands_for, answers, reasons }
    }

    fn answer(&self, wanted: &str) -> Option<&str> {
        self.answers.iter().find(|(case, _)| case == wanted).map(|(_, answer)| answer.as_str())
    }

    fn thinks(&self) -> bool {
        self.answer("reasoning and call").is_some()
    }

    /// The template, whose analysis takes longer than the rest.
    fn template(&self) -> ChatTemplate {
        ChatTemplate::new(&self.template, "", "").unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn format(&self, calling: Calling) -> AnswerFormat {
        self.format_of(&self.template(), calling)
    }

    fn format_of(&self, template: &ChatTemplate, calling: Calling) -> AnswerFormat {
        let conversation = Conversation {
            messages: &[json!({"role": "user", "content": "What is the weather?"})],
            tools: &tools(),
            signatures: &Map::new(),
            variables: &Map::new(),
            calling,
        };
        template.render(&conversation).unwrap_or_else(|error| panic!("{}: {error}", self.name)).format
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
fn every_format_has_each_case_or_a_reason() {
    for example in examples() {
        let Example { name, answers, reasons, .. } = &example;
        for case in CASES {
            let found = answers.iter().filter(|(found, _)| found == case).count();
            let excused = reasons.iter().filter(|(cases, _)| case.starts_with(cases)).count();
            assert_eq!(found + excused, 1, "{name}, {case}");
        }
        assert!(answers.iter().all(|(case, _)| CASES.contains(&case.as_str())), "{name}");
        assert!(example.answer("words").is_some() && example.answer("call").is_some(), "{name}");
        assert!(reasons.iter().all(|(_, reason)| reason.ends_with('.')), "{name} has no reason");
    }
}

/// The texts of a source that follow `before`, up to `after`.
fn between<'a>(source: &'a str, before: &'a str, after: &'a str) -> impl Iterator<Item = &'a str> {
    source.split(before).skip(1).filter_map(move |rest| Some(rest.split_once(after)?.0))
}

/// llama.cpp's template files that are known here, and the special cases of its chat layer.
fn formats_of_llama_cpp() -> BTreeSet<String> {
    let sources = Path::new(env!("HOB_LLAMA_CPP_SOURCES"));
    let read = |path: &str| fs::read_to_string(sources.join(path)).expect("a source of llama.cpp");
    let parsers = read("common/chat.cpp");
    let analysis = read("common/chat-diff-analyzer.cpp");
    // The crate has the list of the templates, without the files.
    let list = read("models/templates/README.md");
    let files = fs::read_dir(sources.join("models/templates")).expect("templates").map(|entry| {
        let name = entry.expect("a file").file_name();
        name.to_string_lossy().into_owned()
    });
    let special_cases =
        between(&parsers, "Using specialized template: ", "\\n").chain(between(&analysis, "[Patch: ", "]"));
    let listed = between(&list, "models/templates/", "\n").map(str::to_owned);
    let templates = listed.chain(files).filter(|name| name.ends_with(".jinja"));
    special_cases.map(str::to_owned).chain(templates).collect()
}

#[test]
fn every_format_of_llama_cpp_has_an_example() {
    let all = formats_of_llama_cpp();
    assert!(all.len() > 40, "{all:?}");
    let examples = examples();
    let mut covered: BTreeSet<&str> = WITHOUT_EXAMPLE.iter().map(|(name, _)| *name).collect();
    for example in &examples {
        assert!(!example.stands_for.is_empty(), "{}", example.name);
        covered.extend(example.stands_for.iter().map(String::as_str));
    }
    let missing: Vec<_> = all.iter().filter(|name| !covered.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "formats without an example: {missing:?}");
    // Templates may be newer than the list in the crate.
    let unknown: Vec<_> =
        covered.iter().filter(|name| !name.ends_with(".jinja") && !all.contains(**name)).collect();
    assert!(unknown.is_empty(), "llama.cpp no longer has {unknown:?}");
}

#[test]
fn a_template_that_writes_no_calls_has_no_format_of_them() {
    let messages = "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content }}{% endfor %}\
        {% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";
    // As that of Granite 3.3.
    let listing = format!(
        "{{% if tools %}}{{{{ tools | tojson }}}}{{% endif %}}{messages}\
        {{#- Write your thoughts between <think></think> and write your response between <response></response> #}}"
    );
    for (source, tools) in [(messages, ToolSupport::None), (&listing, ToolSupport::ListOnly)] {
        assert_eq!(ChatTemplate::new(source, "", "").expect("a template").tools, tools, "{source}");
    }
}

/// Fails when llama.cpp reads them: then `WITHOUT_EXAMPLE` is wrong.
#[test]
fn calls_with_an_id_before_the_name_are_not_read() {
    // As that of Solar Open.
    let template = "{% if tools %}{{ tools | tojson }}{% endif %}{% for message in messages %}{{ '<|begin|>' + message.role }}\
        {% for call in message.tool_calls %}{{ '<|tool_call:begin|>' + call.id + '<|tool_call:name|>' + call.function.name }}\
        {{ '<|tool_call:args|>' + (call.function.arguments | tojson) + '<|tool_call:end|>' }}{% else %}\
        {{ '<|content|>' + message.content + '<|end|>' }}{% endfor %}{% endfor %}\
        {% if add_generation_prompt %}{{ '<|begin|>assistant' }}{% endif %}";
    let call = "<|tool_call:begin|>abc12345<|tool_call:name|>get_time<|tool_call:args|>{}<|tool_call:end|>";
    let solar = Example { template: template.to_owned(), ..example("hermes") };
    let format = solar.format(Calling::Possible { several: true });
    assert!(parsed(&format, [call], true).calls.is_empty());
}

#[test]
fn a_long_answer_is_parsed_in_few_passes() {
    let format = example("qwen3").format(Calling::Possible { several: true });
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
fn words_reasoning_and_calls_are_found_in_every_format() {
    let rome = ("get_weather", json!({"city": "Rome", "days": 2}));
    let oslo = ("get_weather", json!({"city": "Oslo", "days": 3}));
    for example in examples() {
        let template = example.template();
        let expected = (ToolSupport::Full, example.thinks());
        assert_eq!((template.tools, template.thinks), expected, "{}", example.name);
        let format = example.format_of(&template, Calling::Possible { several: true });
        for (case, answer) in &example.answers {
            let whole = parsed(&format, [answer.as_str()], true);
            let (reasoning, words, calls) = match case.as_str() {
                "words" => ("", "Let me look.", vec![]),
                "reasoning and words" => ("Rome is a city.", "Let me look.", vec![]),
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

/// Writes what a grammar allows, at random. A text of almost any characters would hardly ever end by itself, so it is continued like
/// `example` from anywhere. `None` if there is no end.
fn written(mut grammar: Grammar, example: &[u8], random: &mut fastrand::Rng) -> Option<String> {
    let mut text = Vec::new();
    // What is written next, as far as it is allowed.
    let mut planned: &[u8] = &[];
    for step in 0..600 {
        let token = match planned.split_first() {
            Some((byte, rest)) if random.u8(..64) > 0 && grammar.allows(i32::from(*byte)) == Ok(true) => {
                planned = rest;
                i32::from(*byte)
            }
            _ => {
                let mut candidates: Vec<TokenCandidate> =
                    (0..257).map(|token| TokenCandidate { token, score: 0.0 }).collect();
                grammar.forbid(&mut candidates).expect("a grammar that continues");
                let allowed: Vec<i32> =
                    candidates.iter().filter(|c| c.score == 0.0).map(|c| c.token).collect();
                assert!(!allowed.is_empty(), "a dead end after {:?}", String::from_utf8_lossy(&text));
                let is_planned = allowed.len() > 128 && (step > 200 || random.u8(..4) == 0);
                planned = if is_planned { &example[random.usize(..example.len())..] } else { &[] };
                let is_mark = |token: &i32| [256, 34, 60, 91, 93, 124, 125].contains(token);
                let is_plain = |token: &i32| (32..127).contains(token) || *token == 256;
                let marks: Vec<i32> = allowed.iter().copied().filter(is_mark).collect();
                // Marks end what would go on forever.
                let choices =
                    if !marks.is_empty() && (step > 200 || random.bool()) { &marks } else { &allowed };
                let plain: Vec<i32> = choices.iter().copied().filter(is_plain).collect();
                let choices = if plain.is_empty() || random.u8(..8) == 0 { choices } else { &plain };
                choices[random.usize(..choices.len())]
            }
        };
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
        // A format that cannot express several calls has a grammar of one call also if several are wanted.
        let several = example.answer("calls").is_none();
        let format = example.format(Calling::Forced { several });
        let rules = format.grammar().unwrap_or_else(|| panic!("{name} has no grammar"));
        let start = vocabulary.start(rules.text(several, Enforcement::Schemas)).expect("a grammar");
        let after_thought = example.answer("reasoning and call").and_then(|answer| {
            // The prompt begins the thought, so the answer has only the mark that ends it.
            let rest = answer.strip_prefix("Rome is a city.")?.trim_start();
            format.marks().filter(|mark| rest.starts_with(mark)).max_by_key(|mark| mark.len())
        });
        assert_eq!(after_thought.is_some(), format.is_in_thought(), "{name}");
        let call = example.answer("call").expect("a call").as_bytes();
        let mut random = fastrand::Rng::with_seed(7);
        let calls = std::iter::repeat_with(|| written(start.clone(), call, &mut random)).take(20).flatten();
        // Some formats write strings as they are, also with characters that JSON does not have.
        let is_plain = |call: &String| !call.contains(|char: char| char.is_control() && char != '\n');
        let calls: Vec<String> = calls.filter(is_plain).collect();
        assert!(calls.len() >= 5, "{name}: {calls:?}");
        for call in calls {
            let answer = format!("{}{call}", after_thought.unwrap_or_default());
            let whole = parsed(&format, [answer.as_str()], true);
            assert!(!whole.calls.is_empty(), "{name}: {answer:?} is {whole:?}");
            // Its grammar allows any number of calls, and any text as a value; Hob checks the finished calls.
            if name == "kimi-k3" {
                continue;
            }
            assert_eq!(whole.calls.len(), 1, "{name}: {answer:?} is {whole:?}");
            let read = serde_json::from_str::<Value>(&whole.calls[0].1);
            // A number without bounds can be larger than what this reader takes.
            let is_read = read.map_or_else(|error| error.to_string().contains("out of range"), |_| true);
            assert!(is_read, "{name}: {answer:?} is {whole:?}");
        }
    }
}

#[test]
fn blanks_before_the_end_of_a_call_make_no_difference() {
    for example in ["glm-4.5", "hermes"].map(example) {
        let format = example.format(Calling::Forced { several: false });
        let answer = example.answer("call").expect("a call");
        let whole = parsed(&format, [answer], true);
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
        drop(example.template().render(&conversation));
    });
}
