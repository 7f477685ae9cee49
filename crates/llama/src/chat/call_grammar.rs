//! The grammar of tool calls in the format of a template, for Hob's grammar engine.
//!
//! The chat layer writes rules for a format, with the schemas of arguments by reference. Rules without recursion and schemas become
//! terminals, as large as possible: a terminal is matched as a whole, so text that ends at a mark is found exactly. Schemas are
//! enforced by the grammar engine itself.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::gbnf::{self, Expression};
use crate::grammar::{GrammarText, literal};
use crate::schema::Enforceable;

/// Blanks between the parts of a call, as in llama.cpp's grammars.
const SPACE: &str = r"/ |\n\n?[ \t]{0,20}/";

/// The rules of calls.
#[derive(Debug)]
pub(crate) struct CallGrammar {
    rules: BTreeMap<String, Expression>,
    schemas: HashMap<String, SchemaPlace>,
    /// Rules of text up to a mark: the marks, and whether the mark belongs to the text.
    delimited: HashMap<String, Delimited>,
}

#[derive(Debug, Deserialize)]
struct WrittenRules {
    rules: BTreeMap<String, String>,
    schemas: HashMap<String, SchemaPlace>,
}

/// A schema in a document.
#[derive(Debug, Deserialize)]
struct SchemaPlace {
    document: Value,
    pointer: String,
}

#[derive(Debug)]
struct Delimited {
    marks: Vec<String>,
    /// Whether the text ends with the mark.
    including: bool,
}

/// How much of the schemas is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enforcement {
    /// All of them that can be.
    Schemas,
    /// Only the format.
    Format,
}

impl CallGrammar {
    /// Reads the rules. `parser` is the chat layer's parser for the same format.
    pub(super) fn read(rules: &str, parser: &Value) -> Result<Self, serde_json::Error> {
        use serde::de::Error as _;
        let written: WrittenRules = serde_json::from_str(rules)?;
        let mut delimited = HashMap::new();
        let nodes = parser["parsers"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (id, node) in nodes.iter().enumerate() {
            let (name, including) = match node["type"].as_str() {
                Some("until") => (format!("until-{id}"), false),
                Some("ac") => (format!("ac-{id}"), true),
                _ => continue,
            };
            let marks = node["delimiters"].as_array().into_iter().flatten();
            let marks = marks.filter_map(|mark| Some(mark.as_str()?.to_owned())).collect();
            delimited.insert(name, Delimited { marks, including });
        }
        let rules = gbnf::read_rules(&written.rules).map_err(serde_json::Error::custom)?;
        Ok(CallGrammar { rules, schemas: written.schemas, delimited })
    }

    /// Whether there are calls at all: a format without them has an empty rule.
    pub(super) fn has_calls(&self) -> bool {
        self.rules.get("root").is_some_and(|root| *root != Expression::empty())
    }

    /// Whether a grammar enforces all of these arguments, or leaves a part of them to their format.
    pub(crate) fn has_schema_of(&self, parameters: &Value) -> bool {
        self.schemas.values().any(|place| place.pointer.is_empty() && place.document == *parameters)
    }

    /// The grammar of one or several calls.
    pub(crate) fn text(&self, several: bool, enforcement: Enforcement) -> GrammarText {
        let mut writer = LarkWriter { several, ..LarkWriter::new(self) };
        let start = writer.rule_reference("root");
        let mut lark = format!("start: {start}\nSPACE: {SPACE}\n{}", writer.lines);
        for name in &writer.schemas {
            let schema = match enforcement {
                Enforcement::Schemas => self.schemas[name].enforceable(),
                Enforcement::Format => self.schemas[name].open(),
            };
            let _ = writeln!(lark, "{}: %json {}", schema_rule(name), GrammarText::document_of(schema));
        }
        GrammarText::of_lark(lark)
    }
}

impl SchemaPlace {
    /// The schema; anything if no grammar can enforce it.
    fn enforceable(&self) -> Enforceable {
        let mut schema = match self.document.pointer(&self.pointer) {
            Some(Value::Object(fields)) => fields.clone(),
            _ => return self.open(),
        };
        if !self.pointer.is_empty() {
            for key in ["$defs", "definitions"] {
                if let Some(definitions) = self.document.get(key) {
                    schema.entry(key).or_insert_with(|| definitions.clone());
                }
            }
        }
        Enforceable::read(&Value::Object(schema)).unwrap_or_else(|_| self.open())
    }

    /// Any value, or any object for a whole set of arguments.
    fn open(&self) -> Enforceable {
        if self.pointer.is_empty() {
            return Enforceable::any_object();
        }
        Enforceable::unchecked(Value::Object(Map::new()))
    }
}

fn schema_rule(name: &str) -> String {
    name.replace('-', "_")
}

struct LarkWriter<'a> {
    grammar: &'a CallGrammar,
    several: bool,
    /// Written rules and terminals.
    lines: String,
    /// The names of rules that are written or being written.
    names: HashMap<String, String>,
    /// Rules that are terminals or not.
    regular: HashMap<String, bool>,
    schemas: Vec<String>,
    terminals: usize,
}

impl<'a> LarkWriter<'a> {
    fn new(grammar: &'a CallGrammar) -> Self {
        LarkWriter {
            grammar,
            several: true,
            lines: String::new(),
            names: HashMap::new(),
            regular: HashMap::new(),
            schemas: Vec::new(),
            terminals: 0,
        }
    }

    /// The expression of a rule. A rule that does not exist is empty.
    fn body(&self, name: &str) -> Expression {
        let body = self.grammar.rules.get(name).cloned().unwrap_or_else(Expression::empty);
        match body {
            Expression::Choice(options) if name == "root" => Expression::Choice(self.wanted(options)),
            body => body,
        }
    }

    /// The rules that begin a call. One may contain another: repeated, where one call may be wanted, or between the marks of a list
    /// of calls, which must not be left out.
    fn wanted(&self, options: Vec<Expression>) -> Vec<Expression> {
        let rules: Vec<&Expression> = options
            .iter()
            .filter_map(|option| match option {
                Expression::Rule(name) => self.grammar.rules.get(name),
                _ => None,
            })
            .collect();
        let is_listed = |option: &Expression| {
            rules.iter().any(|rule| matches!(rule, Expression::Sequence(parts) if parts.contains(option)))
        };
        let repeats = |option: &Expression| {
            let body = match option {
                Expression::Rule(name) => self.grammar.rules.get(name),
                _ => None,
            };
            matches!(body, Some(Expression::Repeat { max: None, .. }))
        };
        let is_wanted = |option: &Expression| !is_listed(option) && (self.several || !repeats(option));
        let wanted: Vec<Expression> = options.iter().filter(|option| is_wanted(option)).cloned().collect();
        if wanted.is_empty() { options } else { wanted }
    }

    /// Whether an expression has neither recursion nor schemas.
    fn is_regular(&mut self, expression: &Expression) -> bool {
        match expression {
            Expression::Literal(_) | Expression::Class { .. } | Expression::AnyCharacter => true,
            Expression::Sequence(parts) | Expression::Choice(parts) => {
                parts.iter().all(|part| self.is_regular(part))
            }
            Expression::Repeat { inner, .. } => self.is_regular(inner),
            Expression::Rule(name) => self.is_regular_rule(name),
        }
    }

    fn is_regular_rule(&mut self, name: &str) -> bool {
        if name == "space" || self.grammar.delimited.contains_key(name) {
            return true;
        }
        if self.grammar.schemas.contains_key(name) {
            return false;
        }
        if let Some(&known) = self.regular.get(name) {
            return known;
        }
        // A rule that meets itself is recursive.
        self.regular.insert(name.to_owned(), false);
        let is_regular = self.is_regular(&self.body(name));
        self.regular.insert(name.to_owned(), is_regular);
        is_regular
    }

    /// Whether a regular expression matches nothing too.
    fn is_nullable(&self, expression: &Expression) -> bool {
        match expression {
            Expression::Literal(text) => text.is_empty(),
            Expression::Class { .. } | Expression::AnyCharacter => false,
            Expression::Sequence(parts) => parts.iter().all(|part| self.is_nullable(part)),
            Expression::Choice(options) => options.iter().any(|option| self.is_nullable(option)),
            Expression::Repeat { inner, min, .. } => *min == 0 || self.is_nullable(inner),
            Expression::Rule(name) if name == "space" => true,
            Expression::Rule(name) => match self.grammar.delimited.get(name) {
                Some(delimited) => !delimited.including,
                None => self.is_nullable(&self.body(name)),
            },
        }
    }

    /// A reference to a rule, which is written if it is new.
    fn rule_reference(&mut self, name: &str) -> String {
        if self.grammar.schemas.contains_key(name) {
            if !self.schemas.iter().any(|known| known == name) {
                self.schemas.push(name.to_owned());
            }
            return schema_rule(name);
        }
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let body = self.body(name);
        if self.is_regular_rule(name) {
            return self.terminal_reference(&Expression::Rule(name.to_owned()));
        }
        let rule = format!("r{}", self.names.len());
        self.names.insert(name.to_owned(), rule.clone());
        let body = self.written(&body);
        let _ = writeln!(self.lines, "{rule}: {body}");
        rule
    }

    /// An expression in a rule.
    fn written(&mut self, expression: &Expression) -> String {
        match expression {
            Expression::Sequence(parts) => {
                let mut text = Vec::new();
                let mut run = Vec::new();
                for part in parts {
                    if self.is_regular(part) {
                        run.push(part.clone());
                        continue;
                    }
                    text.extend(self.run_reference(&mut run));
                    text.push(self.written(part));
                }
                text.extend(self.run_reference(&mut run));
                format!("({})", text.join(" "))
            }
            regular if self.is_regular(regular) => self.terminal_reference(regular),
            Expression::Choice(options) => {
                let options: Vec<String> = options.iter().map(|option| self.written(option)).collect();
                format!("({})", options.join(" | "))
            }
            Expression::Repeat { inner, min, max } => {
                format!("({}){}", self.written(inner), repetition(*min, *max))
            }
            Expression::Rule(name) => self.rule_reference(name),
            other => self.terminal_reference(other),
        }
    }

    /// The terminal of neighbours that are regular. Blanks at its ends stay apart: a terminal takes as much as it can, and
    /// what follows the same blanks may be another one.
    fn run_reference(&mut self, run: &mut Vec<Expression>) -> Option<String> {
        let run = std::mem::take(run);
        let is_space = |part: &Expression| matches!(part, Expression::Rule(name) if name == "space");
        let Some(first) = run.iter().position(|part| !is_space(part)) else {
            return (!run.is_empty()).then(|| "SPACE?".to_owned());
        };
        let last = run.iter().rposition(|part| !is_space(part)).unwrap_or(first);
        let core = self.terminal_reference(&Expression::Sequence(run[first..=last].to_vec()));
        let before = if first > 0 { "SPACE? " } else { "" };
        let after = if last + 1 < run.len() { " SPACE?" } else { "" };
        Some(format!("{before}{core}{after}"))
    }

    /// A new terminal, which never matches nothing: that is written in the rule.
    fn terminal_reference(&mut self, expression: &Expression) -> String {
        let body = self.terminal(expression);
        if body == "\"\"" {
            return "\"\"".to_owned();
        }
        let name = format!("T{}", self.terminals);
        self.terminals += 1;
        if self.is_nullable(expression) {
            let _ = writeln!(self.lines, "{name}: /(?s:.+)/ & {body}");
            return format!("{name}?");
        }
        let _ = writeln!(self.lines, "{name}: {body}");
        name
    }

    /// A regular expression in a terminal.
    fn terminal(&self, expression: &Expression) -> String {
        match expression {
            Expression::Literal(text) => literal(text),
            Expression::Class { ranges, negated } => {
                let mut class = if *negated { "[^".to_owned() } else { "[".to_owned() };
                for (first, last) in ranges {
                    let _ = write!(class, "{}-{}", escaped(*first), escaped(*last));
                }
                if ranges.is_empty() { "/(?s:.)/".to_owned() } else { format!("/{class}]/") }
            }
            Expression::AnyCharacter => "/(?s:.)/".to_owned(),
            Expression::Sequence(parts) => {
                let parts: Vec<String> =
                    parts.iter().map(|part| self.terminal(part)).filter(|part| part != "\"\"").collect();
                match parts.len() {
                    0 => "\"\"".to_owned(),
                    1 => parts[0].clone(),
                    _ => format!("({})", parts.join(" ")),
                }
            }
            Expression::Choice(options) => {
                let filled: Vec<String> = options
                    .iter()
                    .map(|option| self.terminal(option))
                    .filter(|option| option != "\"\"")
                    .collect();
                match (filled.len(), options.len()) {
                    (0, _) => "\"\"".to_owned(),
                    (filled_count, all) if filled_count < all => format!("({})?", filled.join(" | ")),
                    _ => format!("({})", filled.join(" | ")),
                }
            }
            Expression::Repeat { inner, min, max } => match self.terminal(inner) {
                nothing if nothing == "\"\"" => nothing,
                inner => format!("({inner}){}", repetition(*min, *max)),
            },
            Expression::Rule(name) if name == "space" => "SPACE?".to_owned(),
            Expression::Rule(name) => match self.grammar.delimited.get(name) {
                Some(delimited) => delimited.terminal(),
                None => self.terminal(&self.body(name)),
            },
        }
    }
}

impl Delimited {
    fn terminal(&self) -> String {
        let marks: Vec<String> = self.marks.iter().map(|mark| mark.chars().map(escaped).collect()).collect();
        let marks = marks.join("|");
        match (marks.is_empty(), self.including) {
            (true, _) => "/(?s:.*)/".to_owned(),
            (_, false) => format!("(/(?s:.*)/ & ~/(?s:.*)({marks})(?s:.*)/)"),
            // No mark is followed by more text, so the first one is the last.
            (_, true) => format!("(/(?s:.*)({marks})/ & ~/(?s:.*)({marks})(?s:.+)/)"),
        }
    }
}

fn repetition(min: u32, max: Option<u32>) -> String {
    match (min, max) {
        (0, Some(1)) => "?".to_owned(),
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    }
}

/// A character in a regular expression.
fn escaped(char: char) -> String {
    if char.is_ascii_alphanumeric() { char.to_string() } else { format!("\\u{{{:X}}}", u32::from(char)) }
}
