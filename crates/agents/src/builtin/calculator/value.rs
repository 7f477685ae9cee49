//! A number of the calculator: exact if possible, otherwise the nearest f64.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;

use super::error::CalculationError;
use super::exact::{Exact, Inexact};

/// The most digits after the decimal point that are shown.
const MAX_FRACTION_DIGITS: usize = 30;

/// Numbers with a larger exponent are too large for both kinds of value.
const MAX_EXPONENT: u32 = 5_000;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Exact(Exact),
    /// Always finite.
    Approximate(f64),
}

impl Value {
    pub fn integer(value: impl Into<BigInt>) -> Self {
        Value::Exact(Exact::integer(value))
    }

    /// Checks a result of floating-point arithmetic.
    pub fn approximate(value: f64) -> Result<Self, CalculationError> {
        if value.is_nan() {
            Err(CalculationError::Undefined("the result is not a real number"))
        } else if value.is_infinite() {
            Err(CalculationError::TooLarge)
        } else {
            Ok(Value::Approximate(value))
        }
    }

    /// Parses a decimal such as `12`, `1_000`, `.5` or `6.02e23` exactly.
    pub fn parse(text: &str) -> Result<Self, CalculationError> {
        let no_number = || CalculationError::Number(text.to_owned());
        let plain = text.replace('_', "");
        let (mantissa, exponent) = match plain.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent),
            None => (plain.as_str(), "0"),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(&digits) || !is_number(unsigned) {
            return Err(no_number());
        }
        let numerator: BigInt = digits.parse().map_err(|_| no_number())?;
        let exponent = match unsigned.parse::<u32>() {
            Ok(size) if size <= MAX_EXPONENT => {
                i64::from(size) * if exponent.starts_with('-') { -1 } else { 1 }
            }
            _ if numerator.bits() == 0 => 0,
            _ if exponent.starts_with('-') => return Ok(Value::integer(0)),
            _ => return Err(CalculationError::TooLarge),
        };
        let scale = exponent - i64::try_from(fraction.len()).map_err(|_| no_number())?;
        let power = BigInt::from(10).pow(u32::try_from(scale.unsigned_abs()).map_err(|_| no_number())?);
        let exact = match scale {
            0.. => Exact::fraction(numerator * power, BigInt::from(1)),
            _ => Exact::fraction(numerator, power),
        };
        or_approximate(exact, || plain.parse().unwrap_or(f64::NAN))
    }

    pub fn to_f64(&self) -> f64 {
        match self {
            Value::Exact(exact) => exact.to_f64(),
            Value::Approximate(value) => *value,
        }
    }

    /// The number as a fraction; an approximate one as its shortest decimal.
    pub fn to_exact(&self) -> Result<Exact, CalculationError> {
        match self {
            Value::Exact(exact) => Ok(exact.clone()),
            Value::Approximate(value) => match Value::parse(&format!("{:e}", value.abs()))? {
                Value::Exact(exact) if value.is_sign_negative() => Ok(exact.negated()),
                Value::Exact(exact) => Ok(exact),
                // Too small for a fraction, so practically zero.
                Value::Approximate(_) => Ok(Exact::integer(0)),
            },
        }
    }

    /// The number if it is an integer.
    pub fn as_integer(&self) -> Option<&BigInt> {
        match self {
            Value::Exact(exact) => exact.as_integer(),
            Value::Approximate(_) => None,
        }
    }

    pub fn is_zero(&self) -> bool {
        match self {
            Value::Exact(exact) => exact.is_zero(),
            Value::Approximate(value) => *value == 0.0,
        }
    }

    pub fn is_negative(&self) -> bool {
        match self {
            Value::Exact(exact) => exact.is_negative(),
            Value::Approximate(value) => *value < 0.0,
        }
    }

    pub fn negated(&self) -> Self {
        match self {
            Value::Exact(exact) => Value::Exact(exact.negated()),
            Value::Approximate(value) => Value::Approximate(-value),
        }
    }

    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Exact(left), Value::Exact(right)) => left.compare(right),
            _ => self.to_f64().total_cmp(&other.to_f64()),
        }
    }

    pub fn add(&self, other: &Self) -> Result<Self, CalculationError> {
        self.combine(other, Exact::add, |left, right| left + right)
    }

    pub fn multiply(&self, other: &Self) -> Result<Self, CalculationError> {
        self.combine(other, Exact::multiply, |left, right| left * right)
    }

    pub fn divide(&self, other: &Self) -> Result<Self, CalculationError> {
        if other.is_zero() {
            return Err(CalculationError::DivisionByZero);
        }
        self.combine(other, Exact::divide, |left, right| left / right)
    }

    /// The quotient, rounded down.
    pub fn floor_divide(&self, other: &Self) -> Result<Self, CalculationError> {
        Ok(Value::integer(self.divide(other)?.to_exact()?.floor()))
    }

    /// The remainder of [`Self::floor_divide`], with the sign of `other`.
    pub fn remainder(&self, other: &Self) -> Result<Self, CalculationError> {
        let whole = self.floor_divide(other)?.multiply(other)?;
        self.add(&whole.negated())
    }

    pub fn power(&self, exponent: &Self) -> Result<Self, CalculationError> {
        let in_floats = || Value::approximate(self.to_f64().powf(exponent.to_f64()));
        if exponent.is_negative() && self.is_zero() {
            return Err(CalculationError::DivisionByZero);
        }
        let (Value::Exact(base), Some(whole)) = (self, exponent.as_integer()) else {
            return in_floats();
        };
        if exponent.is_negative() {
            let inverse = Value::integer(1).divide(self)?;
            return inverse.power(&exponent.negated());
        }
        match base.power(whole) {
            Ok(result) => Ok(Value::Exact(result)),
            Err(Inexact::TooLarge) if base.as_integer().is_some() => Err(CalculationError::TooLarge),
            Err(_) => in_floats(),
        }
    }

    fn combine(
        &self,
        other: &Self,
        exactly: impl Fn(&Exact, &Exact) -> Result<Exact, Inexact>,
        in_floats: impl Fn(f64, f64) -> f64,
    ) -> Result<Self, CalculationError> {
        let approximation = || in_floats(self.to_f64(), other.to_f64());
        match (self, other) {
            (Value::Exact(left), Value::Exact(right)) => or_approximate(exactly(left, right), approximation),
            _ => Value::approximate(approximation()),
        }
    }
}

fn or_approximate(
    exact: Result<Exact, Inexact>,
    approximation: impl Fn() -> f64,
) -> Result<Value, CalculationError> {
    match exact {
        Ok(exact) => Ok(Value::Exact(exact)),
        Err(Inexact::TooLarge) => Err(CalculationError::TooLarge),
        Err(Inexact::TooFine) => Value::approximate(approximation()),
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exactly = match self {
            Value::Exact(exact) => decimal(exact),
            Value::Approximate(_) => None,
        };
        formatter.write_str(&exactly.unwrap_or_else(|| rounded(self.to_f64())))
    }
}

/// All digits of a fraction, if there are few enough.
fn decimal(exact: &Exact) -> Option<String> {
    let (numerator, denominator) = exact.parts();
    let (numerator, denominator) = (numerator.magnitude(), denominator.magnitude());
    let mut remainder = numerator % denominator;
    let mut fraction = String::new();
    while remainder.bits() > 0 {
        if fraction.len() == MAX_FRACTION_DIGITS {
            return None;
        }
        remainder *= 10u32;
        fraction.push_str(&(&remainder / denominator).to_string());
        remainder %= denominator;
    }
    let sign = if exact.is_negative() { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{}{point}{fraction}", numerator / denominator))
}

/// Fifteen significant digits, the precision of an f64.
fn rounded(value: f64) -> String {
    let scientific = format!("{value:.14e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    match exponent {
        0 if value == 0.0 => "0".to_owned(),
        -6..15 => trim(&format!("{value:.*}", usize::try_from(14 - exponent).unwrap_or(0))),
        _ => format!("{}e{exponent}", trim(mantissa)),
    }
}
