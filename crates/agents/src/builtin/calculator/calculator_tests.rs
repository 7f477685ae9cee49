use proptest::prelude::*;

use super::*;

fn value(expression: &str) -> String {
    evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

#[test]
fn results_are_exact_and_readable() {
    for (expression, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("0.1 + 0.2", "0.3"),
        ("0.1 + 0.2 - 0.3", "0"),
        ("1 / 3 * 3", "1"),
        ("1 / 3", "0.333333333333333"),
        ("2 / 3", "0.666666666666667"),
        ("10 / 4", "2.5"),
        ("19.99 * 3", "59.97"),
        ("12345678901234567.89 + 0.01", "12345678901234567.9"),
        ("2 ** 64", "18446744073709551616"),
        ("2 ^ 10", "1024"),
        ("2 ** 3 ** 2", "512"),
        ("-2 ** 2", "-4"),
        ("(-2) ** 2", "4"),
        ("2 ** -1", "0.5"),
        ("2 ** 0.5", "1.4142135623731"),
        ("--3", "3"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("7 % 3", "1"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("7.5 % 2", "1.5"),
        ("1e3", "1000"),
        ("6.02e23", "602000000000000000000000"),
        ("1_000_000 * 2", "2000000"),
        ("sqrt(16)", "4"),
        ("sqrt(0.25)", "0.5"),
        ("sqrt(2)", "1.4142135623731"),
        ("abs(-3.5)", "3.5"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.675, 2)", "2.68"),
        ("floor(-1.5)", "-2"),
        ("ceil(-1.5)", "-1"),
        ("ceil(pi)", "4"),
        ("min(3, 1, 2)", "1"),
        ("max(1/3, 0.3)", "0.333333333333333"),
        ("log(e)", "1"),
        ("ln(1)", "0"),
        ("log(8, 2)", "3"),
        ("log10(1000)", "3"),
        ("log10(10 ** 400)", "400"),
        ("exp(0)", "1"),
        ("sin(pi)", "0"),
        ("cos(0)", "1"),
        ("tan(pi / 4)", "1"),
        ("factorial(0)", "1"),
        ("factorial(25)", "15511210043330985984000000"),
        ("pi", "3.14159265358979"),
        ("2 × 3 − 4 ÷ 2", "4"),
        ("1 ** (10 ** 100)", "1"),
        ("(-1) ** (10 ** 100 + 1)", "-1"),
        ("0 ** 0", "1"),
        ("10 ** 30 / 10 ** 29", "10"),
        ("1 / 10 ** 20", "0.00000000000000000001"),
        ("1 / 3 / 10 ** 20", "3.33333333333333e-21"),
        ("(1 / 3) ** 100000", "0"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn an_expression_without_a_value_is_an_error_with_a_reason() {
    use CalculationError as E;
    let unexpected = |expected, found: &str| E::Unexpected { expected, found: found.to_owned() };
    for (expression, expected) in [
        ("", E::Empty),
        ("  ", E::Empty),
        ("1 / 0", E::DivisionByZero),
        ("1 // 0.0", E::DivisionByZero),
        ("5 % 0", E::DivisionByZero),
        ("0 ** -1", E::DivisionByZero),
        ("9**9**9", E::TooLarge),
        ("9**9**9**9", E::TooLarge),
        ("factorial(10**9)", E::TooLarge),
        ("factorial(1001)", E::TooLarge),
        ("exp(1000)", E::TooLarge),
        ("1e999999999999", E::TooLarge),
        ("2 +", unexpected("a number", "the end")),
        ("(1", unexpected("')'", "the end")),
        ("1)", unexpected("an operator or the end", "')'")),
        ("1 2", unexpected("an operator or the end", "the number 2")),
        ("max(1 2)", unexpected("',' or ')'", "the number 2")),
        ("2x", E::Number("2x".into())),
        ("1.2.3", E::Number("1.2.3".into())),
        (".", E::Number(".".into())),
        ("foo(1)", E::Name("foo".into())),
        ("x", E::Name("x".into())),
        ("sqrt", E::FunctionWithoutArguments("sqrt".into())),
        ("sqrt(1, 2)", E::ArgumentCount { function: "sqrt", expected: "one argument", given: 2 }),
        ("max()", E::ArgumentCount { function: "max", expected: "at least one argument", given: 0 }),
        ("1 = 1", E::Character('=')),
        ("__import__('os')", E::Character('_')),
        ("sqrt(-1)", E::Undefined("the square root of a negative number is not a real number")),
        ("(-8) ** (1/3)", E::Undefined("the result is not a real number")),
    ] {
        assert_eq!(evaluate(expression), Err(expected), "{expression}");
    }
}

#[test]
fn hostile_expressions_end_at_once() {
    let deep = format!("{}1{}", "(".repeat(499), ")".repeat(499));
    assert_eq!(evaluate(&deep), Err(CalculationError::TooDeep));
    assert_eq!(evaluate(&"-".repeat(999)), Err(CalculationError::TooDeep));
    assert_eq!(evaluate(&format!("2{}", "**2".repeat(300))), Err(CalculationError::TooDeep));
    assert_eq!(evaluate(&"9".repeat(2_000_000)), Err(CalculationError::TooLong));
    let began = std::time::Instant::now();
    assert_eq!(evaluate(&["factorial(1000)"; 55].join("*0+")), evaluate("factorial(1000)"));
    let fractions: Vec<String> = (1_000..1_140).map(|number| format!("1/{number}")).collect();
    assert!(evaluate(&fractions.join("+")).is_ok());
    assert!(evaluate(&["1/(3**1200)"; 80].join("+")).is_ok());
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

/// An expression with the value that plain Rust gives it.
fn integer_expressions() -> impl Strategy<Value = (String, i128)> {
    let leaf = (-1000i128..1000).prop_map(|number| (format!("({number})"), number));
    leaf.prop_recursive(4, 24, 2, |inner| {
        (inner.clone(), inner, 0..5u8).prop_map(|((left, a), (right, b), operator)| match operator {
            0 => (format!("({left} + {right})"), a + b),
            1 => (format!("({left} - {right})"), a - b),
            2 if b != 0 => {
                (format!("({left} // {right})"), a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0))
            }
            3 if b != 0 => {
                let floor = a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0);
                (format!("({left} % {right})"), a - floor * b)
            }
            _ => (format!("({left} * {right})"), a.saturating_mul(b)),
        })
    })
    .prop_filter("beyond i128", |(_, value)| value.abs() < i128::MAX / 2)
}

proptest! {
    #[test]
    fn whole_numbers_agree_with_rust((expression, expected) in integer_expressions()) {
        prop_assume!(expression.len() <= MAX_CHARACTERS);
        prop_assert_eq!(evaluate(&expression), Ok(expected.to_string()));
    }

    #[test]
    fn decimals_agree_with_rust(a in -1e6f64..1e6, b in -1e6f64..1e6, operator in "[-+*/]") {
        prop_assume!(b != 0.0);
        let expected = match operator.as_str() {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            _ => a / b,
        };
        let computed: f64 = value(&format!("({a}) {operator} ({b})")).parse().unwrap();
        let tolerance = 1e-13 * (a.abs().max(b.abs()).max(expected.abs()));
        prop_assert!((computed - expected).abs() <= tolerance, "{} instead of {}", computed, expected);
    }

    #[test]
    fn any_text_gets_an_answer(text in "\\PC{0,60}") {
        let _ = evaluate(&text);
    }

    #[test]
    fn any_sequence_of_tokens_gets_an_answer(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "1", "0", "9", "1e300", "0.1", "1e-4999", "+", "-", "*", "/", "//", "%", "**", "(", ")", ",", "pi", "sqrt(",
                "factorial(", "log(", "round(", "min(", "tan(", "exp(",
            ]),
            0..40,
        )
    ) {
        let _ = evaluate(&tokens.concat());
    }
}
