//! Grammars: restrict the tokens of a model.
//!
//! The grammar engine is `llguidance`, which limits its work: a grammar that would take too long is an error and never blocks.
//! Knows nothing of requests.

use std::fmt;
use std::sync::Arc;

use llguidance::api::{GrammarWithLexer, ParserLimits, StopReason, TopLevelGrammar};
use llguidance::toktrie::{ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie};
use llguidance::{JsonCompileOptions, Matcher, ParserFactory};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::sampler::TokenCandidate;
use crate::schema::{Enforceable, SchemaError, TextSpelling, reference};

/// Blanks in JSON: one, or a new line with its indentation. Models would otherwise write endless blanks.
const BLANKS: &str = r"\x20|\x0A[\x20\x09]{0,20}";

/// The characters that may follow a backslash in texts with one spelling.
const WITHOUT_U: &str = "nrbtf\\\"";

/// The limits of llguidance. They keep a step of a hostile grammar within some tens of milliseconds, and its memory within some
/// tens of megabytes.
fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2_000,
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        max_lexer_states: 20_000,
        max_grammar_size: 200_000,
        // This would take longer than many answers.
        precompute_large_lexemes: false,
        verbose_errors: false,
    }
}

/// A grammar that cannot continue.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub(crate) struct GrammarError(String);

impl GrammarError {
    fn new(error: impl fmt::Display) -> Self {
        let text = error.to_string();
        // The other lines are internals of the engine.
        GrammarError(text.lines().next().unwrap_or("no reason given").chars().take(300).collect())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling<'a> {
    /// Text.
    Text(&'a [u8]),
    /// A control token.
    Control(&'a [u8]),
}

/// The tokens of a model, for grammars.
pub(crate) struct Vocabulary {
    factory: ParserFactory,
    ends: Vec<u32>,
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary").field("ends", &self.ends).finish_non_exhaustive()
    }
}

impl Vocabulary {
    /// `spellings` are in the order of the tokens; `ends` end a text.
    pub(crate) fn new<'a>(
        tokens: impl Iterator<Item = Spelling<'a>>,
        mut ends: Vec<u32>,
    ) -> Result<Self, GrammarError> {
        const MARKER: u8 = TokTrie::SPECIAL_TOKEN_MARKER;
        let mut words: Vec<Vec<u8>> = tokens
            .map(|token| match token {
                // A byte that would be taken for the marker of control tokens.
                Spelling::Text([MARKER, ..]) => Vec::new(),
                Spelling::Text(bytes) => bytes.to_vec(),
                Spelling::Control(name) => [&[MARKER], name].concat(),
            })
            .collect();
        if ends.is_empty() {
            // A grammar needs an end token, even if the model has none.
            ends.push(u32::try_from(words.len()).map_err(GrammarError::new)?);
            words.push(b"\xFF<end>".to_vec());
        }
        let size = u32::try_from(words.len()).map_err(GrammarError::new)?;
        let trie = TokTrie::from(&TokRxInfo::new(size, ends[0]), &words).with_eos_tokens(&ends);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment).map_err(GrammarError::new)?;
        *factory.limits_mut() = limits();
        factory.quiet();
        Ok(Vocabulary { factory, ends })
    }

    /// Builds a grammar and its first tokens, so that a grammar that is too large fails before the model works. Recursive; needs
    /// a large stack.
    pub(crate) fn start(self: &Arc<Self>, text: GrammarText) -> Result<Grammar, GrammarError> {
        let parser = self.factory.create_parser(TopLevelGrammar::from_grammar(text.0));
        let mut matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            return Err(GrammarError::new(error));
        }
        let first = matcher.compute_mask_or_eos().map_err(GrammarError::new)?;
        if first.is_zero() {
            return Err(GrammarError("no text follows it".to_owned()));
        }
        Ok(Grammar { matchers: vec![matcher], vocabulary: Arc::clone(self) })
    }
}

/// The source of a grammar.
pub(crate) struct GrammarText(GrammarWithLexer);

impl GrammarText {
    /// JSON that follows a schema.
    pub(crate) fn of_schema(schema: Enforceable) -> Self {
        GrammarText(GrammarWithLexer::from_json_schema(Self::document_of(schema)))
    }

    /// A grammar in the syntax of llguidance.
    pub(crate) fn of_lark(lark: String) -> Self {
        GrammarText(GrammarWithLexer::from_lark(lark))
    }

    /// A schema as a document for a `%json` rule of such a grammar.
    pub(crate) fn document_of(schema: Enforceable) -> Value {
        let spelling = schema.spelling;
        document(json!({ "$ref": reference("", 0) }), schema.definitions_named(""), spelling)
    }
}

/// A schema with its definitions and format options.
fn document(root: Value, definitions: Map<String, Value>, spelling: TextSpelling) -> Value {
    let options = JsonCompileOptions {
        whitespace_pattern: Some(BLANKS.to_owned()),
        // A grammar cannot enforce exactly one; where it matters, the finished answer is checked.
        coerce_one_of: true,
        json_allowed_escapes: match spelling {
            TextSpelling::Any => None,
            TextSpelling::Unique => Some(WITHOUT_U.to_owned()),
        },
        ..JsonCompileOptions::default()
    };
    let mut document = match root {
        Value::Object(fields) => Value::Object(fields),
        other => json!({ "allOf": [other] }),
    };
    document["$defs"] = Value::Object(definitions);
    options.apply_to(&mut document);
    document
}

/// A literal in the syntax of llguidance.
pub(crate) fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

/// The state of a grammar in an answer.
#[derive(Clone)]
pub(crate) struct Grammar {
    /// What the text so far follows: several, as long as it can become any of them.
    matchers: Vec<Matcher>,
    vocabulary: Arc<Vocabulary>,
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<_> = self.matchers.iter().map(Matcher::get_error).collect();
        f.debug_struct("Grammar").field("errors", &errors).finish_non_exhaustive()
    }
}

impl Grammar {
    /// Either this grammar or another one, of the same vocabulary. Both are read side by side: in one grammar, a terminal of one
    /// could swallow what the other needs.
    pub(crate) fn or(mut self, other: Grammar) -> Grammar {
        self.matchers.extend(other.matchers);
        self
    }

    /// Whether a token may come next.
    pub(crate) fn allows(&mut self, token: i32) -> Result<bool, GrammarError> {
        let Ok(token) = u32::try_from(token) else { return Ok(false) };
        let is_end = self.vocabulary.ends.contains(&token);
        let mut failed = Ok(false);
        for matcher in &mut self.matchers {
            let allows = match is_end {
                true => matcher.is_accepting(),
                false => matcher.validate_tokens(&[token]).map(|count| count == 1),
            };
            match allows {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                // Another alternative may allow it.
                Err(error) => failed = Err(GrammarError::new(error)),
            }
        }
        failed
    }

    /// Sets the score of every forbidden token to minus infinity.
    pub(crate) fn forbid(&mut self, candidates: &mut [TokenCandidate]) -> Result<(), GrammarError> {
        let mut allowed: Vec<SimpleVob> = Vec::with_capacity(self.matchers.len());
        self.keep(|matcher| {
            allowed.push(matcher.compute_mask_or_eos().map_err(GrammarError::new)?);
            Ok(true)
        })
        // The engine's error for an empty set of tokens.
        .or_else(|error| {
            if error.0 == StopReason::NoExtensionBias.to_string() { Ok(()) } else { Err(error) }
        })?;
        let allows = |at: usize| allowed.iter().any(|tokens| at < tokens.len() && tokens.get(at));
        for candidate in candidates {
            if !usize::try_from(candidate.token).is_ok_and(allows) {
                candidate.score = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }

    /// Advances by a token, which must be allowed and must not end the text.
    pub(crate) fn accept(&mut self, token: i32) -> Result<(), GrammarError> {
        let token = u32::try_from(token).map_err(GrammarError::new)?;
        let is_decided = self.matchers.len() == 1;
        self.keep(|matcher| {
            let fits = is_decided || matcher.validate_tokens(&[token]).map_err(GrammarError::new)? == 1;
            if fits {
                matcher.consume_token(token).map_err(GrammarError::new)?;
            }
            Ok(fits)
        })
    }

    /// Keeps the alternatives for which `fits` is true. Fails with the last error if none is left.
    fn keep(
        &mut self,
        mut fits: impl FnMut(&mut Matcher) -> Result<bool, GrammarError>,
    ) -> Result<(), GrammarError> {
        let mut last = GrammarError("no alternative allows what follows".to_owned());
        self.matchers.retain_mut(|matcher| {
            fits(matcher).unwrap_or_else(|error| {
                last = error;
                false
            })
        });
        if self.matchers.is_empty() { Err(last) } else { Ok(()) }
    }

    /// Whether nothing more may follow.
    pub(crate) fn is_complete(&self) -> bool {
        let is_complete = |matcher: &Matcher| !matcher.is_error() && matcher.is_stopped();
        !self.matchers.is_empty() && self.matchers.iter().all(is_complete)
    }
}

impl From<GrammarError> for SchemaError {
    fn from(error: GrammarError) -> Self {
        match error.0.split_once("Unsatisfiable schema: ") {
            Some((_, reason)) => SchemaError::Unsatisfiable(reason.to_owned()),
            None => SchemaError::Grammar(error.0),
        }
    }
}

#[cfg(test)]
#[path = "grammar_tests.rs"]
mod tests;
