//! Features of a question. A topic needs several signs.

use std::collections::BTreeSet;

use hob_core::{GenerateRequest, MaxTokens, Role};

use crate::{QuestionClass, QuestionLanguage, QuestionLength, QuestionProfile, QuestionTopic};

/// The part of a message that is analysed.
const ANALYSED_BYTES: usize = 16 * 1024;

/// The limits of a short and a medium conversation in tokens: about 70 and 700 words.
const SHORT: u64 = 100;
const MEDIUM: u64 = 1000;

/// A topic needs signs with this total weight.
const SETTLED: f64 = 0.5;

/// The number of earlier questions that a follow-up may refer to.
const LOOK_BACK: usize = 4;

/// Text has about four bytes per token.
const BYTES_PER_TOKEN: u64 = 4;

/// The profile of a request whose messages have `prompt_tokens`.
pub fn question_profile(request: &GenerateRequest, prompt_tokens: u64) -> QuestionProfile {
    let asked = last_question(request);
    let language = language(asked.as_deref().unwrap_or_default());
    let class = QuestionClass { topic: topic(request), length: length(request), language };
    let tokens = prompt_tokens
        + tool_tokens(request)
        + u64::from(request.max_tokens().unwrap_or(MaxTokens::default().get()));
    let pictures = request.messages.iter().any(|message| message.content.images().next().is_some());
    QuestionProfile { class, tokens, pictures }
}

fn last_question(request: &GenerateRequest) -> Option<String> {
    questions(request).next()
}

/// The messages of the user, newest first.
fn questions(request: &GenerateRequest) -> impl Iterator<Item = String> {
    let users = request.messages.iter().rev().filter(|message| message.role == Role::User);
    users.map(|message| {
        let text = message.content.text();
        text[..text.floor_char_boundary(ANALYSED_BYTES)].to_owned()
    })
}

/// Without system messages, which are the same for all questions of a client.
fn length(request: &GenerateRequest) -> QuestionLength {
    let said = request.messages.iter().filter(|message| message.role != Role::System);
    let tokens = said.map(|message| message.content.text_bytes()).sum::<u64>() / BYTES_PER_TOKEN;
    if tokens <= SHORT {
        QuestionLength::Short
    } else if tokens <= MEDIUM {
        QuestionLength::Medium
    } else {
        QuestionLength::Long
    }
}

/// The tokens of the tool definitions.
fn tool_tokens(request: &GenerateRequest) -> u64 {
    let bytes = request.tools.iter().map(|tool| {
        let described = tool.description.as_ref().map_or(0, String::len);
        let schema = tool.parameters.as_ref().map_or(0, |schema| schema.to_string().len());
        (tool.name.len() + described + schema) as u64
    });
    bytes.sum::<u64>().div_ceil(BYTES_PER_TOKEN)
}

/// A follow-up without a topic ("and in Rust?") has the topic of the earlier question.
fn topic(request: &GenerateRequest) -> QuestionTopic {
    let used_tools = request.messages.iter().any(|message| message.role == Role::Tool);
    if used_tools || !request.tools.is_empty() {
        return QuestionTopic::Tools;
    }
    let mut topics = questions(request).take(LOOK_BACK).map(|asked| topic_of(&asked));
    topics.find(|topic| *topic != QuestionTopic::Plain).unwrap_or(QuestionTopic::Plain)
}

fn topic_of(asked: &str) -> QuestionTopic {
    let lower = asked.to_lowercase();
    let scores = [
        (QuestionTopic::Code, code(asked, &lower)),
        (QuestionTopic::Maths, maths(asked, &lower)),
        (QuestionTopic::Steps, steps(asked, &lower)),
    ];
    let settled = scores.into_iter().filter(|(_, score)| *score >= SETTLED);
    settled
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map_or(QuestionTopic::Plain, |(topic, _)| topic)
}

/// Code fences, source text, file names, and words of programmers.
fn code(asked: &str, lower: &str) -> f64 {
    const WORDS: &str = "function code bug compile compiler refactor regex script python rust javascript \
        typescript java golang kotlin sql bash html css api exception traceback segfault \
        unittest async struct git program";
    const ENDINGS: &str = ".rs .py .js .ts .go .java .c .cpp .h .sql .sh .toml .yaml .json .html .css";
    let ends_like_a_file = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '.').trim_end_matches('.');
        ENDINGS.split(' ').any(|ending| word.len() > ending.len() && word.ends_with(ending))
    };
    let looks = share(asked, |c| "{}()[];=<>_|&#\\".contains(c));
    sum(&[
        (0.6, asked.contains("```")),
        (0.2, asked.matches('`').count() >= 2),
        (0.5, looks > 0.08 && asked.len() > 20),
        (0.3, asked.lines().filter(|line| line.starts_with("    ") || line.starts_with('\t')).count() >= 2),
        (0.3, lower.split_whitespace().any(ends_like_a_file)),
    ]) + 0.25 * hits(lower, WORDS)
}

/// Arithmetic, formulas, many digits, and words of mathematics.
fn maths(asked: &str, lower: &str) -> f64 {
    const WORDS: &str = "prove proof theorem lemma integral integrate derivative equation equations solve \
        probability matrix calculate compute polynomial prime percent algebra geometry logarithm \
        sum average divided multiply";
    const FORMULAS: [&str; 5] = ["\\frac", "\\int", "\\sum", "\\sqrt", "\\cdot"];
    sum(&[
        (0.5, has_a_sum(asked)),
        (0.6, FORMULAS.iter().any(|formula| asked.contains(formula))),
        (0.4, asked.contains(['∑', '∫', '√', '≤', '≥', '≠', '∞', 'π'])),
        (0.25, share(asked, |c| c.is_ascii_digit()) > 0.12),
    ]) + 0.3 * hits(lower, WORDS)
}

/// An operator between two numbers. A slash or a hyphen needs blanks around it, because dates have none.
fn has_a_sum(asked: &str) -> bool {
    let operator = |c: char| "+*^=×÷/-".contains(c);
    asked.match_indices(operator).any(|(at, found)| {
        let (before, after) = (&asked[..at], &asked[at + found.len()..]);
        let apart = before.ends_with(' ') && after.starts_with(' ');
        let numbers = before.trim_end().ends_with(|c: char| c.is_ascii_digit() || c == ')')
            && after.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '(');
        numbers && (apart || !matches!(found, "/" | "-"))
    })
}

/// Lists, several questions, and words that connect steps.
fn steps(asked: &str, lower: &str) -> f64 {
    const PHRASES: [&str; 18] = [
        "step by step",
        "after that",
        "and then",
        "first,",
        "finally",
        "compare",
        "plan ",
        "analyse",
        "analyze",
        "design ",
        "explain why",
        "pros and cons",
        "trade-off",
        "in detail",
        "evaluate",
        "for each",
        "strategy",
        "reason through",
    ];
    let listed = |line: &&str| {
        let line = line.trim_start();
        let numbered = line.split_once(['.', ')']).is_some_and(|(number, _)| {
            !number.is_empty() && number.len() <= 2 && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        numbered || line.starts_with("- ") || line.starts_with("* ")
    };
    let sentences =
        asked.split(['.', '?', '!']).filter(|sentence| sentence.split_whitespace().count() > 2).count();
    let phrases = PHRASES.iter().filter(|phrase| lower.contains(**phrase)).count();
    sum(&[
        (0.4, asked.lines().filter(listed).count() >= 2),
        (0.25, asked.matches('?').count() >= 2),
        (0.25, sentences >= 4),
    ]) + 0.25 * phrases as f64
}

/// English, unless the script or common words are of another language.
fn language(asked: &str) -> QuestionLanguage {
    const ENGLISH: &str = "the is of to and what how for you my it this that with can do are on why please write i \
        does in a at";
    const OTHERS: &str = "der die das und ist nicht ein eine wie ich warum bitte mit le la les est et que des un \
        une pour comment pourquoi el los las es por para como qué di che per il sono os não com \
        uma een het niet och är nie jak czy";
    let letters = asked.chars().filter(|c| c.is_alphabetic());
    let (mut all, mut foreign) = (0_usize, 0_usize);
    for letter in letters {
        all += 1;
        foreign += usize::from(!letter.is_ascii());
    }
    let lower = asked.to_lowercase();
    let other = foreign * 10 > all * 3 || count(&lower, OTHERS) > count(&lower, ENGLISH);
    if other { QuestionLanguage::Other } else { QuestionLanguage::English }
}

/// The total weight of the present signs.
fn sum(signs: &[(f64, bool)]) -> f64 {
    signs.iter().filter(|(_, there)| *there).map(|(weight, _)| weight).sum()
}

/// The number of different words in the text.
fn hits(lower: &str, words: &str) -> f64 {
    let found: BTreeSet<&str> = those_among(lower, words).collect();
    found.len() as f64
}

fn count(lower: &str, words: &str) -> usize {
    those_among(lower, words).count()
}

/// The words of the text that are in a list separated by blanks.
fn those_among<'a>(lower: &'a str, words: &str) -> impl Iterator<Item = &'a str> {
    text_words(lower).filter(move |word| words.split(' ').any(|known| known == *word))
}

fn text_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The share of characters that match.
fn share(text: &str, such: impl Fn(char) -> bool) -> f64 {
    let (mut all, mut found) = (0_u32, 0_u32);
    for c in text.chars() {
        all += 1;
        found += u32::from(such(c));
    }
    if all == 0 { 0.0 } else { f64::from(found) / f64::from(all) }
}

#[cfg(test)]
#[path = "question_features_tests.rs"]
mod tests;
