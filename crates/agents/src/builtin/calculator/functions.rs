//! The functions and constants of the calculator.

use std::f64::consts;

use num_bigint::BigInt;

use super::error::CalculationError;
use super::value::Value;

/// The largest number whose factorial is computed. It has 2,568 digits.
const MAX_FACTORIAL: u32 = 1_000;

const MAX_ROUNDING: u32 = 15;

type Call = fn(&[Value]) -> Result<Value, CalculationError>;

struct Function {
    name: &'static str,
    /// The number of arguments, and its description.
    arguments: std::ops::RangeInclusive<usize>,
    expected: &'static str,
    call: Call,
}

impl Function {
    const fn of_one(name: &'static str, call: Call) -> Self {
        Function { name, arguments: 1..=1, expected: "one argument", call }
    }

    const fn of_one_or_two(name: &'static str, call: Call) -> Self {
        Function { name, arguments: 1..=2, expected: "one or two arguments", call }
    }

    const fn of_many(name: &'static str, call: Call) -> Self {
        Function { name, arguments: 1..=usize::MAX, expected: "at least one argument", call }
    }
}

const FUNCTIONS: &[Function] = &[
    Function::of_one("sqrt", |of| square_root(&of[0])),
    Function::of_one("abs", |of| Ok(absolute(&of[0]))),
    Function::of_one_or_two("round", |of| round(&of[0], of.get(1))),
    Function::of_one("floor", |of| Ok(Value::integer(of[0].to_exact()?.floor()))),
    Function::of_one("ceil", |of| Ok(Value::integer(-of[0].to_exact()?.negated().floor()))),
    Function::of_many("min", |of| extreme(of.iter().min_by(|left, right| left.compare(right)))),
    Function::of_many("max", |of| extreme(of.iter().max_by(|left, right| left.compare(right)))),
    Function::of_one_or_two("log", |of| match of.get(1) {
        None => natural_log(&of[0]),
        Some(base) => natural_log(&of[0])?.divide(&natural_log(base)?),
    }),
    Function::of_one("ln", |of| natural_log(&of[0])),
    Function::of_one("log10", |of| natural_log(&of[0])?.divide(&Value::Approximate(consts::LN_10))),
    Function::of_one("exp", |of| Value::approximate(of[0].to_f64().exp())),
    Function::of_one("sin", |of| Value::approximate(without_rounding_error(of[0].to_f64().sin()))),
    Function::of_one("cos", |of| Value::approximate(without_rounding_error(of[0].to_f64().cos()))),
    Function::of_one("tan", |of| Value::approximate(without_rounding_error(of[0].to_f64().tan()))),
    Function::of_one("factorial", |of| factorial(&of[0])),
];

pub fn constant(name: &str) -> Result<Value, CalculationError> {
    match name {
        "pi" => Ok(Value::Approximate(consts::PI)),
        "e" => Ok(Value::Approximate(consts::E)),
        _ if find(name).is_some() => Err(CalculationError::FunctionWithoutArguments(name.to_owned())),
        _ => Err(CalculationError::Name(name.to_owned())),
    }
}

pub fn call(name: &str, arguments: &[Value]) -> Result<Value, CalculationError> {
    let function = find(name).ok_or_else(|| CalculationError::Name(name.to_owned()))?;
    if !function.arguments.contains(&arguments.len()) {
        return Err(CalculationError::ArgumentCount {
            function: function.name,
            expected: function.expected,
            given: arguments.len(),
        });
    }
    (function.call)(arguments)
}

fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

fn extreme(found: Option<&Value>) -> Result<Value, CalculationError> {
    found.cloned().ok_or(CalculationError::Empty)
}

fn absolute(value: &Value) -> Value {
    if value.is_negative() { value.negated() } else { value.clone() }
}

fn square_root(value: &Value) -> Result<Value, CalculationError> {
    if value.is_negative() {
        return Err(CalculationError::Undefined("the square root of a negative number is not a real number"));
    }
    if let Value::Exact(exact) = value {
        let (numerator, denominator) = exact.parts();
        let roots = (numerator.sqrt(), denominator.sqrt());
        if (&roots.0 * &roots.0, &roots.1 * &roots.1) == (numerator.clone(), denominator.clone()) {
            return Value::integer(roots.0).divide(&Value::integer(roots.1));
        }
    }
    Value::approximate(value.to_f64().sqrt())
}

/// Half rounds away from zero, as taught in school.
fn round(value: &Value, digits: Option<&Value>) -> Result<Value, CalculationError> {
    let digits = match digits {
        None => 0,
        Some(digits) => digits
            .as_integer()
            .and_then(|digits| u32::try_from(digits).ok())
            .filter(|digits| *digits <= MAX_ROUNDING)
            .ok_or(CalculationError::Undefined("round takes a number of digits from 0 to 15"))?,
    };
    let scale = Value::integer(BigInt::from(10).pow(digits));
    let half = Value::integer(1).divide(&Value::integer(2))?;
    let scaled = Value::Exact(absolute(value).to_exact()?).multiply(&scale)?.add(&half)?;
    let rounded = Value::integer(scaled.to_exact()?.floor()).divide(&scale)?;
    Ok(if value.is_negative() { rounded.negated() } else { rounded })
}

fn natural_log(value: &Value) -> Result<Value, CalculationError> {
    if value.is_negative() || value.is_zero() {
        return Err(CalculationError::Undefined("a logarithm needs a positive number"));
    }
    let logarithm = value.to_f64().ln();
    match value {
        // Beyond the range of f64, the number is halved until it fits.
        Value::Exact(exact) if logarithm.is_infinite() => {
            let (numerator, denominator) = exact.parts();
            let halvings = numerator.bits().saturating_sub(64);
            let leading = Value::integer(numerator >> halvings).to_f64().ln();
            let denominator = Value::integer(denominator.clone()).to_f64().ln();
            #[expect(clippy::cast_precision_loss, reason = "at most 10,000 bits")]
            Value::approximate(leading + halvings as f64 * consts::LN_2 - denominator)
        }
        _ => Value::approximate(logarithm),
    }
}

/// Rounds results such as the sine of pi to zero.
fn without_rounding_error(value: f64) -> f64 {
    if value.abs() < 1e-15 { 0.0 } else { value }
}

fn factorial(value: &Value) -> Result<Value, CalculationError> {
    let whole = value.as_integer().filter(|_| !value.is_negative());
    let whole =
        whole.ok_or(CalculationError::Undefined("factorial takes an integer that is not negative"))?;
    match u32::try_from(whole) {
        Ok(number) if number <= MAX_FACTORIAL => Ok(Value::integer((1..=number).product::<BigInt>())),
        _ => Err(CalculationError::TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::FUNCTION_NAMES;
    use super::*;

    #[test]
    fn errors_and_the_description_name_every_function() {
        assert_eq!(
            FUNCTIONS.iter().map(|function| function.name).collect::<Vec<_>>().join(", "),
            FUNCTION_NAMES
        );
    }
}
