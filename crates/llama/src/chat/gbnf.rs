//! Reads the rules of a grammar in llama.cpp's syntax. Pure.

use std::collections::BTreeMap;

use thiserror::Error;

/// Deeper groups are refused. The chat layer writes a few levels.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Error, PartialEq, Eq)]
#[error("a rule of the chat format cannot be read at '{0}'")]
pub(super) struct RuleError(String);

/// An expression of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Literal(String),
    /// One character of these ranges, or none of them.
    Class {
        ranges: Vec<(char, char)>,
        negated: bool,
    },
    AnyCharacter,
    Sequence(Vec<Expression>),
    Choice(Vec<Expression>),
    Repeat {
        inner: Box<Expression>,
        min: u32,
        max: Option<u32>,
    },
    Rule(String),
}

impl Expression {
    pub(super) fn empty() -> Self {
        Expression::Sequence(Vec::new())
    }
}

/// Reads all rules.
pub(super) fn read_rules<'a>(
    rules: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<BTreeMap<String, Expression>, RuleError> {
    rules.into_iter().map(|(name, body)| Ok((name.clone(), read(body)?))).collect()
}

/// Reads the body of a rule.
pub(super) fn read(body: &str) -> Result<Expression, RuleError> {
    let mut reader = RuleReader { rest: body, depth: 0 };
    let read = reader.choice()?;
    if reader.rest.is_empty() { Ok(read) } else { Err(reader.error()) }
}

struct RuleReader<'a> {
    rest: &'a str,
    depth: usize,
}

impl RuleReader<'_> {
    fn error(&self) -> RuleError {
        RuleError(self.rest.chars().take(40).collect())
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, text: char) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn next(&mut self) -> Result<char, RuleError> {
        let mut chars = self.rest.chars();
        let next = chars.next().ok_or_else(|| self.error())?;
        self.rest = chars.as_str();
        Ok(next)
    }

    fn choice(&mut self) -> Result<Expression, RuleError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error());
        }
        let mut options = vec![self.sequence()?];
        while self.takes('|') {
            options.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(match options.len() {
            1 => options.remove(0),
            _ => Expression::Choice(options),
        })
    }

    fn sequence(&mut self) -> Result<Expression, RuleError> {
        let mut parts = Vec::new();
        loop {
            self.skip_blanks();
            if self.rest.is_empty() || self.rest.starts_with(['|', ')']) {
                break;
            }
            let one = self.atom()?;
            parts.push(self.repeated(one)?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Expression::Sequence(parts),
        })
    }

    fn atom(&mut self) -> Result<Expression, RuleError> {
        if self.takes('"') {
            let mut text = String::new();
            while !self.takes('"') {
                text.push(self.character()?);
            }
            return Ok(Expression::Literal(text));
        }
        if self.takes('[') {
            let negated = self.takes('^');
            let mut ranges = Vec::new();
            while !self.takes(']') {
                let first = self.character()?;
                let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
                let last = if is_range {
                    self.next()?;
                    self.character()?
                } else {
                    first
                };
                ranges.push((first, last));
            }
            return Ok(Expression::Class { ranges, negated });
        }
        if self.takes('(') {
            let inner = self.choice()?;
            return if self.takes(')') { Ok(inner) } else { Err(self.error()) };
        }
        if self.takes('.') {
            return Ok(Expression::AnyCharacter);
        }
        let end = self.rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '-');
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if name.is_empty() {
            return Err(self.error());
        }
        self.rest = rest;
        Ok(Expression::Rule(name.to_owned()))
    }

    fn repeated(&mut self, inner: Expression) -> Result<Expression, RuleError> {
        let (min, max) = match self.rest.chars().next() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => {
                let (range, rest) = self.rest[1..].split_once('}').ok_or_else(|| self.error())?;
                let number = |text: &str| text.trim().parse().map_err(|_| self.error());
                let bounds = match range.split_once(',') {
                    None => (number(range)?, Some(number(range)?)),
                    Some((min, "")) => (number(min)?, None),
                    Some((min, max)) => (number(min)?, Some(number(max)?)),
                };
                self.rest = rest;
                let (min, max) = bounds;
                return Ok(Expression::Repeat { inner: Box::new(inner), min, max });
            }
            _ => return Ok(inner),
        };
        self.next()?;
        Ok(Expression::Repeat { inner: Box::new(inner), min, max })
    }

    /// A character of a literal or a class.
    fn character(&mut self) -> Result<char, RuleError> {
        let first = self.next()?;
        if first != '\\' {
            return Ok(first);
        }
        let digits = match self.next()? {
            'n' => return Ok('\n'),
            't' => return Ok('\t'),
            'r' => return Ok('\r'),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => return Ok(other),
        };
        let (code, rest) = self.rest.split_at_checked(digits).ok_or_else(|| self.error())?;
        let code = u32::from_str_radix(code, 16).map_err(|_| self.error())?;
        self.rest = rest;
        char::from_u32(code).ok_or_else(|| self.error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Expression {
        Expression::Literal(text.into())
    }

    #[test]
    fn rules_are_read() {
        let space = Expression::Rule("space".into());
        assert_eq!(
            read(r#""a\"\n" space (b-1 | [^<\]-]{2,})?"#).expect("a rule"),
            Expression::Sequence(vec![
                literal("a\"\n"),
                space,
                Expression::Repeat {
                    inner: Box::new(Expression::Choice(vec![
                        Expression::Rule("b-1".into()),
                        Expression::Repeat {
                            inner: Box::new(Expression::Class {
                                ranges: vec![('<', '<'), (']', ']'), ('-', '-')],
                                negated: true
                            }),
                            min: 2,
                            max: None
                        },
                    ])),
                    min: 0,
                    max: Some(1)
                },
            ])
        );
        assert_eq!(read("| . ").expect("a rule"), {
            Expression::Choice(vec![Expression::empty(), Expression::AnyCharacter])
        });
        let range = Expression::Class { ranges: vec![('a', 'z'), ('é', 'é')], negated: false };
        assert_eq!(read("[a-z\\xE9]").expect("a rule"), range);
    }

    #[test]
    fn broken_rules_are_refused() {
        for body in ["(a", "a)", "\"open", "[open", "a{x}", "\\", &"(".repeat(100_000)] {
            assert!(read(body).is_err(), "{body:.20}");
        }
    }
}
