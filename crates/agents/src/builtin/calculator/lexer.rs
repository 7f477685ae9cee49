//! Splits text into tokens.

use super::error::CalculationError;
use super::value::Value;

#[derive(Debug, Clone, PartialEq)]
pub enum Token<'a> {
    Number(Value),
    Name(&'a str),
    Operator(Operator),
    Open,
    Close,
    Comma,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

impl Token<'_> {
    /// The token for error messages.
    pub fn describe(&self) -> String {
        match self {
            Token::Number(value) => format!("the number {value}"),
            Token::Name(name) => format!("'{name}'"),
            Token::Operator(operator) => format!("'{}'", operator.symbol()),
            Token::Open => "'('".to_owned(),
            Token::Close => "')'".to_owned(),
            Token::Comma => "','".to_owned(),
            Token::End => "the end".to_owned(),
        }
    }
}

impl Operator {
    fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::FloorDivide => "//",
            Operator::Remainder => "%",
            Operator::Power => "**",
        }
    }
}

pub struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Lexer { rest: text }
    }

    pub fn next_token(&mut self) -> Result<Token<'a>, CalculationError> {
        self.rest = self.rest.trim_start();
        let Some(first) = self.rest.chars().next() else {
            return Ok(Token::End);
        };
        // Models also write typographic signs.
        let (token, length) = match first {
            '+' => (Token::Operator(Operator::Add), 1),
            '-' | '−' => (Token::Operator(Operator::Subtract), first.len_utf8()),
            '*' if self.rest.starts_with("**") => (Token::Operator(Operator::Power), 2),
            '^' => (Token::Operator(Operator::Power), 1),
            '*' | '×' | '·' => (Token::Operator(Operator::Multiply), first.len_utf8()),
            '/' if self.rest.starts_with("//") => (Token::Operator(Operator::FloorDivide), 2),
            '/' | '÷' => (Token::Operator(Operator::Divide), first.len_utf8()),
            '%' => (Token::Operator(Operator::Remainder), 1),
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            ',' => (Token::Comma, 1),
            'π' => (Token::Name("pi"), first.len_utf8()),
            digit if digit.is_ascii_digit() || digit == '.' => return self.number(),
            letter if letter.is_ascii_alphabetic() => {
                let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
                let length = self.rest.find(|character| !is_part(character)).unwrap_or(self.rest.len());
                (Token::Name(&self.rest[..length]), length)
            }
            other => return Err(CalculationError::Character(other)),
        };
        self.rest = &self.rest[length..];
        Ok(token)
    }

    /// Includes all characters that follow a number, so that errors show `1.2.3` and `2x` as written.
    fn number(&mut self) -> Result<Token<'a>, CalculationError> {
        let mut previous = ' ';
        let mut is_part = |character: char| {
            let is_sign_of_exponent = matches!(character, '+' | '-') && matches!(previous, 'e' | 'E');
            previous = character;
            is_sign_of_exponent || character.is_ascii_alphanumeric() || matches!(character, '.' | '_')
        };
        let length = self.rest.find(|character| !is_part(character)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Value::parse(text).map(Token::Number)
    }
}
