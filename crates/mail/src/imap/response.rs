//! What an IMAP server says. Pure: takes the lines and literals of one response.
//!
//! Written here and not with a general parser, because a list inside a list costs stack: the depth has a limit, which the parsers of the
//! field do not have.

use crate::error::{MailError, shown_reply};

/// Lists in lists that are read. Hob asks for no more than two.
const MAX_DEPTH: usize = 8;

/// The values of one response.
const MAX_VALUES: usize = 1_000_000;

/// The most bytes of a code. A list of capabilities is the longest.
const MAX_CODE: usize = 8 << 10;

/// One response: a line, and after each literal the rest of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fragment {
    Line(Vec<u8>),
    Literal(Vec<u8>),
}

/// A value inside a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResponseValue {
    /// A word or a number, as it is written.
    Atom(Vec<u8>),
    Text(Vec<u8>),
    List(Vec<ResponseValue>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImapStatus {
    Ok,
    No,
    Bad,
    Bye,
    PreAuth,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImapResponse {
    /// The server waits for the rest of a command.
    Continue,
    /// The end of a command.
    Done {
        tag: String,
        status: ImapStatus,
        text: String,
    },
    /// Something about the connection or the folder, with its code such as `UIDVALIDITY 12`.
    Status {
        status: ImapStatus,
        code: Option<String>,
        text: String,
    },
    Capabilities(Vec<String>),
    /// The number of messages in the folder.
    Exists(u32),
    Search(Vec<u32>),
    Fetch(Vec<(String, ResponseValue)>),
    /// Anything else, which Hob does not need.
    Other,
}

/// Whether a line begins a status response. Its text is free, so `{5}` at its end is no literal.
pub(crate) fn is_free_text(line: &[u8]) -> bool {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    first == b"+" || status_of(second).is_some()
}

/// The length of the literal that a line announces at its end.
pub(crate) fn literal_length(line: &[u8]) -> Option<usize> {
    let inner = line.strip_suffix(b"}")?;
    let start = inner.iter().rposition(|byte| *byte == b'{')?;
    let digits = inner[start + 1..].strip_suffix(b"+").unwrap_or(&inner[start + 1..]);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

pub(crate) fn read_response(fragments: &[Fragment]) -> Result<ImapResponse, MailError> {
    let Some(Fragment::Line(line)) = fragments.first() else {
        return Err(malformed("an empty response"));
    };
    if line.first() == Some(&b'+') {
        return Ok(ImapResponse::Continue);
    }
    let (first, rest) = split_word(line);
    let (second, rest) = split_word(rest);
    if let Some(status) = status_of(second) {
        let (code, text) = split_code(rest);
        return Ok(match first {
            b"*" => ImapResponse::Status { status, code, text },
            tag => ImapResponse::Done { tag: String::from_utf8_lossy(tag).into_owned(), status, text },
        });
    }
    if first != b"*" {
        return Err(malformed("a response without a tag"));
    }
    if second.eq_ignore_ascii_case(b"CAPABILITY") {
        let words = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let words = words.map(|word| String::from_utf8_lossy(word).to_ascii_uppercase());
        return Ok(ImapResponse::Capabilities(words.collect()));
    }
    if second.eq_ignore_ascii_case(b"SEARCH") {
        let words = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let numbers: Option<Vec<u32>> = words.map(number).collect();
        return numbers.map(ImapResponse::Search).ok_or_else(|| malformed("a search with other words"));
    }
    let Some(count) = number(second) else { return Ok(ImapResponse::Other) };
    let (keyword, rest) = split_word(rest);
    if keyword.eq_ignore_ascii_case(b"EXISTS") {
        return Ok(ImapResponse::Exists(count));
    }
    if keyword.eq_ignore_ascii_case(b"FETCH") {
        let mut reader = ValueReader::new(rest, &fragments[1..]);
        let ResponseValue::List(values) = reader.value(0)? else {
            return Err(malformed("a message without its parts"));
        };
        return Ok(ImapResponse::Fetch(pairs(values)?));
    }
    Ok(ImapResponse::Other)
}

/// `NAME value NAME value …`.
fn pairs(values: Vec<ResponseValue>) -> Result<Vec<(String, ResponseValue)>, MailError> {
    let mut found = Vec::new();
    let mut values = values.into_iter();
    while let Some(name) = values.next() {
        let (ResponseValue::Atom(name), Some(value)) = (name, values.next()) else {
            return Err(malformed("a part of a message without its name or its value"));
        };
        found.push((String::from_utf8_lossy(&name).to_ascii_uppercase(), value));
    }
    Ok(found)
}

/// Reads values from the rest of a line, the literal after it, the next line, and so on.
struct ValueReader<'a> {
    line: &'a [u8],
    later: &'a [Fragment],
    values: usize,
}

impl<'a> ValueReader<'a> {
    fn new(line: &'a [u8], later: &'a [Fragment]) -> Self {
        ValueReader { line, later, values: 0 }
    }

    fn value(&mut self, depth: usize) -> Result<ResponseValue, MailError> {
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return Err(malformed("too many lists"));
        }
        self.skip_spaces();
        match self.line.first() {
            None => Err(malformed("a response that ends early")),
            Some(b'(') => {
                self.line = &self.line[1..];
                let mut values = Vec::new();
                loop {
                    self.skip_spaces();
                    if self.line.first() == Some(&b')') {
                        self.line = &self.line[1..];
                        return Ok(ResponseValue::List(values));
                    }
                    values.push(self.value(depth + 1)?);
                }
            }
            Some(b')') => Err(malformed("a list that ends twice")),
            Some(b'"') => self.quoted(),
            Some(b'{') => self.literal(),
            Some(_) => self.atom(),
        }
    }

    fn skip_spaces(&mut self) {
        self.line = self.line.trim_ascii_start();
    }

    fn quoted(&mut self) -> Result<ResponseValue, MailError> {
        let mut text = Vec::new();
        let mut bytes = self.line.iter().enumerate().skip(1);
        while let Some((place, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.line = &self.line[place + 1..];
                    return Ok(ResponseValue::Text(text));
                }
                b'\\' => match bytes.next() {
                    Some((_, escaped)) => text.push(*escaped),
                    None => break,
                },
                byte => text.push(*byte),
            }
        }
        Err(malformed("a text without its end"))
    }

    /// The length was used when the literal was read; here it only has to be the end of the line.
    fn literal(&mut self) -> Result<ResponseValue, MailError> {
        if literal_length(self.line).is_none() || self.line.iter().filter(|byte| **byte == b'{').count() != 1
        {
            return Err(malformed("a literal that is not at the end of a line"));
        }
        let [Fragment::Literal(literal), Fragment::Line(line), later @ ..] = self.later else {
            return Err(malformed("a literal without its text"));
        };
        self.line = line.as_slice();
        self.later = later;
        Ok(ResponseValue::Text(literal.clone()))
    }

    /// Up to a space or a bracket. The name of a part may have spaces and round brackets inside square ones.
    fn atom(&mut self) -> Result<ResponseValue, MailError> {
        let mut is_inside = false;
        let end = self.line.iter().position(|byte| match byte {
            b'[' => {
                is_inside = true;
                false
            }
            b']' => {
                is_inside = false;
                false
            }
            b' ' | b'(' | b')' | b'"' | b'{' => !is_inside,
            _ => false,
        });
        let (atom, rest) = self.line.split_at(end.unwrap_or(self.line.len()));
        if atom.is_empty() {
            return Err(malformed("a value that is neither a word nor a text"));
        }
        self.line = rest;
        Ok(ResponseValue::Atom(atom.to_vec()))
    }
}

fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(end) => (&line[..end], line[end + 1..].trim_ascii_start()),
        None => (line, b""),
    }
}

/// `[CODE] text`.
fn split_code(text: &[u8]) -> (Option<String>, String) {
    let coded = text.strip_prefix(b"[").and_then(|inner| {
        let end = inner.iter().position(|byte| *byte == b']')?;
        let code = String::from_utf8_lossy(&inner[..end.min(MAX_CODE)]).into_owned();
        Some((code, &inner[end + 1..]))
    });
    match coded {
        Some((code, text)) => (Some(code), shown_reply(text)),
        None => (None, shown_reply(text)),
    }
}

fn status_of(word: &[u8]) -> Option<ImapStatus> {
    let all: [(&[u8], ImapStatus); 5] = [
        (b"OK", ImapStatus::Ok),
        (b"NO", ImapStatus::No),
        (b"BAD", ImapStatus::Bad),
        (b"BYE", ImapStatus::Bye),
        (b"PREAUTH", ImapStatus::PreAuth),
    ];
    all.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, status)| status)
}

pub(crate) fn number(word: &[u8]) -> Option<u32> {
    let is_number = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(word).ok().filter(|_| is_number)?.parse().ok()
}

pub(crate) fn malformed(reason: &'static str) -> MailError {
    MailError::Malformed { protocol: "IMAP", reason }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
