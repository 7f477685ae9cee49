//! A Pratt parser that evaluates while it parses.

use super::error::CalculationError;
use super::functions;
use super::lexer::{Lexer, Operator, Token};
use super::value::Value;

/// The deepest nesting of parentheses, calls, signs and powers.
const MAX_DEPTH: usize = 64;

/// The precedence of a sign: weaker than a power, so `-2 ** 2` is `-4`.
const SIGN_STRENGTH: u8 = 5;

pub fn evaluate(text: &str) -> Result<Value, CalculationError> {
    let mut lexer = Lexer::new(text);
    let next = lexer.next_token()?;
    let mut parser = Parser { lexer, next, depth: 0 };
    let value = parser.expression(0)?;
    match parser.next {
        Token::End => Ok(value),
        other => {
            Err(CalculationError::Unexpected { expected: "an operator or the end", found: other.describe() })
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Token<'a>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn take(&mut self) -> Result<Token<'a>, CalculationError> {
        let following = self.lexer.next_token()?;
        Ok(std::mem::replace(&mut self.next, following))
    }

    /// An expression whose operators have at least the precedence `weakest`.
    fn expression(&mut self, weakest: u8) -> Result<Value, CalculationError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(CalculationError::TooDeep);
        }
        let mut left = self.operand()?;
        while let Token::Operator(operator) = self.next {
            let (on_the_left, on_the_right) = strength(operator);
            if on_the_left < weakest {
                break;
            }
            self.take()?;
            let right = self.expression(on_the_right)?;
            left = apply(operator, &left, &right)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Value, CalculationError> {
        match self.take()? {
            Token::Number(value) => Ok(value),
            Token::Operator(Operator::Subtract) => {
                self.expression(SIGN_STRENGTH).map(|value| value.negated())
            }
            Token::Operator(Operator::Add) => self.expression(SIGN_STRENGTH),
            Token::Open => {
                let value = self.expression(0)?;
                self.close("')'")?;
                Ok(value)
            }
            Token::Name(name) => self.name(name),
            other => Err(CalculationError::Unexpected { expected: "a number", found: other.describe() }),
        }
    }

    fn name(&mut self, name: &str) -> Result<Value, CalculationError> {
        if self.next != Token::Open {
            return functions::constant(name);
        }
        self.take()?;
        let mut arguments = Vec::new();
        if self.next != Token::Close {
            arguments.push(self.expression(0)?);
            while self.next == Token::Comma {
                self.take()?;
                arguments.push(self.expression(0)?);
            }
        }
        self.close("',' or ')'")?;
        functions::call(name, &arguments)
    }

    fn close(&mut self, expected: &'static str) -> Result<(), CalculationError> {
        match self.take()? {
            Token::Close => Ok(()),
            other => Err(CalculationError::Unexpected { expected, found: other.describe() }),
        }
    }
}

/// The precedence of an operator to its left and right. Powers group to the right, all others to the left.
fn strength(operator: Operator) -> (u8, u8) {
    match operator {
        Operator::Add | Operator::Subtract => (1, 2),
        Operator::Multiply | Operator::Divide | Operator::FloorDivide | Operator::Remainder => (3, 4),
        Operator::Power => (6, 5),
    }
}

fn apply(operator: Operator, left: &Value, right: &Value) -> Result<Value, CalculationError> {
    match operator {
        Operator::Add => left.add(right),
        Operator::Subtract => left.add(&right.negated()),
        Operator::Multiply => left.multiply(right),
        Operator::Divide => left.divide(right),
        Operator::FloorDivide => left.floor_divide(right),
        Operator::Remainder => left.remainder(right),
        Operator::Power => left.power(right),
    }
}
