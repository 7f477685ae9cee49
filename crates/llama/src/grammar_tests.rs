//! Every text that a grammar lets through follows the schema it was made of, by the word of an independent validator.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::Validator;

/// A model that writes single bytes.
fn bytes() -> Arc<Vocabulary> {
    static BYTES: std::sync::LazyLock<Arc<Vocabulary>> = std::sync::LazyLock::new(|| {
        let all: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
        let tokens = all.iter().map(|byte| Spelling::Text(byte)).chain([Spelling::Control(b"<end>")]);
        Arc::new(Vocabulary::new(tokens, vec![256]).expect("a vocabulary"))
    });
    Arc::clone(&BYTES)
}

fn grammar(schema: &Value) -> Result<Grammar, SchemaError> {
    Ok(bytes().start(GrammarText::of_schema(Enforceable::read(schema)?))?)
}

/// Writes what a grammar allows, at random and for the sake of short texts with a liking for the end. `None` when it does not end.
fn walk(mut grammar: Grammar, random: &mut fastrand::Rng) -> Option<String> {
    let mut text = Vec::new();
    for step in 0..3000 {
        let mut candidates: Vec<TokenCandidate> =
            (0..257).map(|token| TokenCandidate { token, score: 0.0 }).collect();
        grammar.forbid(&mut candidates).expect("a grammar that continues");
        let allowed: Vec<i32> = candidates.iter().filter(|c| c.score == 0.0).map(|c| c.token).collect();
        assert!(!allowed.is_empty(), "a dead end after {:?}", String::from_utf8_lossy(&text));
        let closing = |token: &i32| [256, i32::from(b'"'), i32::from(b'}'), i32::from(b']')].contains(token);
        let hurry = step > 40 || random.u8(..4) == 0;
        let token = match allowed.iter().copied().find(closing) {
            Some(token) if hurry => token,
            // Mostly what people write, and now and then anything.
            _ => {
                match allowed.iter().copied().filter(|token| (32..127).contains(token)).collect::<Vec<_>>() {
                    plain if !plain.is_empty() && random.u8(..8) > 0 => plain[random.usize(..plain.len())],
                    _ => allowed[random.usize(..allowed.len())],
                }
            }
        };
        let Ok(byte) = u8::try_from(token) else { break };
        assert_eq!(grammar.allows(token), Ok(true));
        grammar.accept(token).expect("allowed");
        text.push(byte);
        if grammar.is_complete() {
            break;
        }
    }
    (grammar.is_complete() || grammar.allows(256) == Ok(true))
        .then(|| String::from_utf8(text).expect("a grammar of texts"))
}

fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::options().should_validate_formats(true).build(schema).expect("a valid schema")
}

/// Walks a few times and checks what comes out.
fn holds(schema: &Value, seed: u64, times: usize) {
    let start = grammar(schema).unwrap_or_else(|error| panic!("{error} for {schema}"));
    let validator = validator(schema);
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..times {
        let Some(text) = walk(start.clone(), &mut random) else { continue };
        // A number without bounds may be larger than this reader can take.
        if text.contains(['e', 'E'])
            && serde_json::from_str::<Value>(&text)
                .is_err_and(|error| error.to_string().contains("out of range"))
        {
            continue;
        }
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?} for {schema}"));
        if let Err(error) = validator.validate(&value) {
            panic!("{text} is let through for {schema}: {error}");
        }
    }
}

/// Whether a text is let through as a whole.
fn takes(schema: &Value, text: &str) -> bool {
    follows(grammar(schema).unwrap_or_else(|error| panic!("{error} for {schema}")), text)
}

fn follows(mut grammar: Grammar, text: &str) -> bool {
    let all = text.bytes().all(|byte| {
        let token = i32::from(byte);
        grammar.allows(token) == Ok(true) && grammar.accept(token).is_ok()
    });
    all && (grammar.is_complete() || grammar.allows(256) == Ok(true))
}

/// Whether a finished answer is refused: by the grammar, or by the check of what the grammar lets through.
fn is_refused(schema: &Value, text: &str) -> bool {
    let checked = Enforceable::read(schema).expect("a schema").checked;
    let validator = Validator::of_checked(schema, &checked).expect("a schema");
    !takes(schema, text) || (!checked.is_empty() && validator.violation(text).is_some())
}

#[test]
fn a_name_that_is_repeated_or_spelled_otherwise_does_not_evade_the_schema() {
    let counted = json!({"type": "object", "minProperties": 2});
    let [typed, open] = [json!({"type": "string"}), json!(true)].map(|rest| {
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
               "additionalProperties": rest})
    });
    let merged = json!({"allOf": [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "null"}}},
    ]});
    let patterned = json!({"type": "object", "patternProperties": {"^n_": {"type": "null"}},
                           "additionalProperties": {"type": "string"}});
    for (schema, wrong, right) in [
        (counted, r#"{"a":1,"a":2}"#, r#"{"a":1,"b":2}"#),
        (typed, r#"{"a":1,"\u0061":"x"}"#, r#"{"a":1,"b":"x"}"#),
        (open, r#"{"a":1,"\u0061":"x"}"#, r#"{"a":1,"b":"x"}"#),
        (merged, r#"{"a":1,"\u0061":"x"}"#, r#"{"a":1,"b":null}"#),
        // Readers of JSON differ in which of the two they take.
        (patterned, r#"{"\u006e_1":"x","n_1":null}"#, r#"{"n_1":null,"m":"x"}"#),
    ] {
        assert!(is_refused(&schema, wrong), "{wrong} for {schema}");
        assert!(!is_refused(&schema, right), "{right} for {schema}");
    }
}

#[test]
fn named_properties_beside_others_need_no_check_of_the_answer() {
    let named = json!({"a": {"type": "integer"}, "tab\t": {"type": "null"}, "x\"\\y": {"const": "z"}});
    let [typed, open] = [json!({"type": "string"}), json!(true)].map(|rest| {
        json!({"type": "object", "properties": named, "required": ["a"], "additionalProperties": rest})
    });
    let merged = json!({"allOf": [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "null"}}},
    ]});
    for schema in [&typed, &open, &merged] {
        assert!(Enforceable::read(schema).expect("a schema").checked.is_empty(), "{schema}");
        for (other, is_right) in [
            (r#""b":null"#, schema != &typed),
            (r#""n":"grün \" \\ \n/""#, true),
            (r#""a b":"x","a b":"y""#, true),
            (r#""\u0061":"x""#, false),
            (r#""\u0062":"x""#, false),
            (r#""a":2"#, false),
        ] {
            let text = format!(r#"{{"a":1,{other}}}"#);
            assert_eq!(takes(schema, &text), is_right, "{text} for {schema}");
        }
        holds(schema, 11, 60);
    }
    for other in [r#""tab\u0009":"x""#, r#""tab\t":"x""#, r#""x\u0022\\y":"x""#, r#""x\"\\y":"x""#] {
        let text = format!(r#"{{"a":1,{other}}}"#);
        assert!(!takes(&typed, &text), "{text}");
    }
    assert!(takes(&typed, r#"{"a":1,"tab\t":null,"x\"\\y":"z","tab":"x","x":"y"}"#));
}

#[test]
fn a_text_may_follow_either_of_two_grammars() {
    let lark = |text: &str| {
        let text = GrammarText::of_lark(format!("start: {}", literal(text)));
        bytes().start(text).expect("a grammar")
    };
    let either = lark("ab").or(lark("abc")).or(grammar(&json!({"const": {"a": 1}})).expect("a grammar"));
    for (text, is_right) in [
        ("ab", true),
        ("abc", true),
        (r#"{"a":1}"#, true),
        ("a", false),
        ("abcd", false),
        (r#"{"a":2}"#, false),
    ] {
        assert_eq!(follows(either.clone(), text), is_right, "{text}");
    }
    let mut grammar = either;
    for (byte, next, is_complete) in
        [(b'a', vec![b'b'], false), (b'b', vec![b'c'], false), (b'c', vec![], true)]
    {
        grammar.accept(byte.into()).expect("allowed");
        let mut candidates: Vec<TokenCandidate> =
            (0..256).map(|token| TokenCandidate { token, score: 0.0 }).collect();
        grammar.forbid(&mut candidates).expect("a grammar that continues");
        let allowed: Vec<i32> = candidates.iter().filter(|c| c.score == 0.0).map(|c| c.token).collect();
        assert_eq!(allowed, next.into_iter().map(i32::from).collect::<Vec<_>>());
        assert_eq!(grammar.is_complete(), is_complete);
    }
}

#[test]
fn bounds_of_numbers_are_enforced() {
    let number = json!({"type": "number", "minimum": 0});
    assert!(
        takes(&number, "0") && takes(&number, "17.25") && !takes(&number, "-1") && !takes(&number, "-0.5")
    );
    let open = json!({"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 2});
    assert!(takes(&open, "1.5") && !takes(&open, "1") && !takes(&open, "1.0") && !takes(&open, "2"));
    let whole = json!({"type": "integer", "minimum": -12, "maximum": 107});
    let taken: Vec<i32> = (-150..150).filter(|n| takes(&whole, &n.to_string())).collect();
    assert_eq!(taken, (-12..=107).collect::<Vec<_>>());
    let steps = json!({"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 100});
    let taken: Vec<i32> = (-20..120).filter(|n| takes(&steps, &n.to_string())).collect();
    assert_eq!(taken, (0..=98).step_by(7).collect::<Vec<_>>());
    let cents = json!({"type": "number", "multipleOf": 0.25});
    assert!(takes(&cents, "1.25") && takes(&cents, "3") && !takes(&cents, "1.3"));
}

#[test]
fn patterns_are_enforced() {
    let pattern = |pattern: &str, text: &str| {
        takes(&json!({"type": "string", "pattern": pattern}), &format!("\"{text}\""))
    };
    assert!(
        pattern("^\\d{3}-\\w+$", "123-ab_9") && !pattern("^\\d{3}-\\w+$", "12-ab") && !pattern("^\\d+$", "٣")
    );
    assert!(pattern("b+", "abba") && !pattern("b+", "aca"), "a pattern is not anchored by itself");
    assert!(pattern("^(red|green)\\s[a-f]?$", "red a") && !pattern("^(red|green)\\s[a-f]?$", "blue a"));
    assert!(pattern("^(ab){2,3}$", "abab") && !pattern("^(ab){2,3}$", "ab"));
    assert!(pattern("[^x]", "y") && !pattern("^[^x]$", "x"));
}

#[test]
fn a_pattern_without_quotes_or_backslashes_is_not_evaded_by_escaping_them() {
    for (pattern, wrong, right) in [
        ("^[^\"]*$", r#""a\"b""#, r#""a\\b""#),
        ("^[^\\\\]*$", r#""a\\b""#, r#""a\"b""#),
        ("^[^\\s]*$", r#""a\tb""#, r#""a\"b""#),
        ("^.{3}$", r#""a\nb""#, r#""a\"b""#),
        ("^[^\\.-z]*$", r#""\\""#, r#""!""#),
        ("^[\\u0000-!]*$", r#""\"""#, r#"" !""#),
        ("^\\P{P}*$", r#""a\"b""#, r#""ab""#),
    ] {
        let schema = json!({"type": "string", "pattern": pattern});
        assert!(is_refused(&schema, wrong), "{wrong} for {schema}");
        assert!(!is_refused(&schema, right), "{right} for {schema}");
    }
}

#[test]
fn formats_are_enforced() {
    for (format, right, wrong) in [
        ("email", "ada@example.org", "ada"),
        ("ipv4", "192.168.0.1", "256.1.1.1"),
        ("ipv6", "2001:db8::1", "12345::"),
        ("hostname", "www.example.org", "-a"),
        ("date", "2024-02-29", "2023-02-29"),
        ("time", "12:30:45Z", "25:00:00Z"),
        ("date-time", "2024-02-29T12:30:45+01:00", "2024-02-30T12:30:45Z"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("duration", "P1Y2M3DT4H", "1Y"),
        ("uri", "https://example.org/a?b=c#d", "example"),
    ] {
        let schema = json!({"type": "string", "format": format});
        assert!(takes(&schema, &format!("\"{right}\"")), "{format}: {right}");
        assert!(!takes(&schema, &format!("\"{wrong}\"")), "{format}: {wrong}");
        holds(&schema, 7, 60);
    }
}

#[test]
fn a_format_applies_to_strings_only() {
    let schema = json!({"type": ["string", "null"], "format": "date"});
    assert!(takes(&schema, "null") && takes(&schema, "\"2024-01-31\"") && !takes(&schema, "\"x\""));
}

#[test]
fn schemas_that_refer_to_themselves_work() {
    let tree = json!({"type": "object", "properties": {"name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#"}}}, "required": ["name"], "additionalProperties": false});
    assert!(takes(
        &tree,
        "{\"name\":\"a\",\"children\":[{\"name\":\"b\"},{\"name\":\"c\",\"children\":[]}]}"
    ));
    assert!(!takes(&tree, "{\"name\":\"a\",\"children\":[{\"names\":\"b\"}]}"));
    let choice = json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]});
    assert!(takes(&choice, "null"));
}

#[test]
fn merged_schemas_are_enforced() {
    for schema in [
        json!({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                         {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]}]}),
        json!({"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 9}, {"multipleOf": 2}]}),
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"},
               "patternProperties": {"^n_": {"type": "null"}}}),
        json!({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"]},
                         {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]}]}),
        json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}, "minItems": 1, "maxItems": 4}),
        json!({"enum": [1, 2.5, "x", null, true, [1, "a"], {"k": [0]}]}),
        json!({"type": ["string", "integer"], "minLength": 2, "maxLength": 4, "minimum": 5}),
        json!({"type": ["string", "null"], "format": "date"}),
        json!({"format": "ipv4", "pattern": "^1"}),
        json!({"type": "object", "required": ["not named"], "minProperties": 2, "maxProperties": 3}),
        json!(true),
    ] {
        holds(&schema, 3, 40);
    }
}

#[test]
fn a_schema_without_values_is_refused() {
    for schema in [
        json!(false),
        json!({"type": "integer", "minimum": 5, "maximum": 4}),
        json!({"allOf": [{"type": "null"}, {"type": "string"}]}),
    ] {
        let error = grammar(&schema).expect_err("refused").to_string();
        assert!(error.contains("no value matches the schema"), "{error} for {schema}");
    }
}

#[test]
fn hostile_schemas_end_in_an_error_or_a_grammar() {
    let product: Vec<Value> = (0..40)
        .map(|n| json!({"anyOf": [{"properties": {(format!("a{n}")): {"const": 1}}}, {"properties": {(format!("b{n}")): {"const": 2}}}]}))
        .collect();
    let mut doubling = json!({"$defs": {"48": {"type": "null"}}, "$ref": "#/$defs/0"});
    for n in 0..48 {
        let next = format!("#/$defs/{}", n + 1);
        doubling["$defs"][n.to_string()] = json!({"anyOf": [{"$ref": next}, {"$ref": next}]});
    }
    let nested = (0..11).fold(
        json!({"type": "null"}),
        |inner, _| json!({"anyOf": [inner, {"type": "array", "items": inner}]}),
    );
    let optional: Map<String, Value> =
        (0..1000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    for schema in [
        json!({"allOf": product}),
        doubling,
        nested,
        json!({"type": "object", "properties": optional}),
        json!({"type": "string", "pattern": "((a{1000}){1000}){1000}"}),
        json!({"type": "string", "pattern": "(a|a)*(a|a)*(a|a)*b".repeat(50)}),
        json!({"type": "string", "pattern": "(".repeat(3000)}),
        json!({"type": "string", "minLength": 99_999, "maxLength": 2_000_000_000}),
        json!({"type": "array", "minItems": 99_999}),
        json!({"type": "array", "maxItems": 4_000_000_000_u64, "items": {"type": "array", "maxItems": 4_000_000_000_u64}}),
        json!({"enum": (0..20_000).map(|n| format!("value {n}")).collect::<Vec<_>>()}),
        json!({"type": "number", "minimum": -1e300, "maximum": 1e300, "multipleOf": 1e-300}),
        json!({"type": "integer", "minimum": i64::MIN, "maximum": u64::MAX}),
    ] {
        if let Ok(grammar) = grammar(&schema) {
            let mut random = fastrand::Rng::with_seed(1);
            let mut grammar = grammar;
            for _ in 0..50 {
                let mut candidates: Vec<TokenCandidate> =
                    (0..257).map(|token| TokenCandidate { token, score: 0.0 }).collect();
                if grammar.forbid(&mut candidates).is_err() {
                    break;
                }
                let allowed: Vec<i32> =
                    candidates.iter().filter(|c| c.score == 0.0 && c.token < 256).map(|c| c.token).collect();
                let Some(&token) = allowed.get(random.usize(..allowed.len().max(1))) else { break };
                if grammar.accept(token).is_err() {
                    break;
                }
            }
        }
    }
}

/// Schemas of all that a grammar holds.
fn schemas() -> impl Strategy<Value = Value> {
    let bound = -2000i32..2000;
    let leaf = prop_oneof![
        Just(json!({"type": "null"})),
        Just(json!({"type": "boolean"})),
        (bound.clone(), 0i32..500, prop::bool::ANY, prop::bool::ANY).prop_map(|(low, wide, open, whole)| {
            let (low, high) = (f64::from(low) / 8.0, f64::from(low + wide) / 8.0 + 1.0);
            let keys = if open { ["exclusiveMinimum", "exclusiveMaximum"] } else { ["minimum", "maximum"] };
            json!({"type": if whole { "integer" } else { "number" }, (keys[0]): low, (keys[1]): high + 1.0})
        }),
        (1u32..60, bound)
            .prop_map(|(step, low)| json!({"type": "integer", "multipleOf": step, "minimum": low})),
        (0usize..4, 0usize..5).prop_map(
            |(least, more)| json!({"type": "string", "minLength": least, "maxLength": least + more})
        ),
        prop::sample::select(vec![
            "^[a-c]+\\d?$",
            "x\\wy",
            "^\\s*\\S$",
            "[\\s\\d]x",
            "^(on|off)$",
            "[^a-z]{2}"
        ])
        .prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        prop::sample::select(vec!["date", "ipv4", "uuid", "email", "duration", "hostname"])
            .prop_map(|format| json!({"type": "string", "format": format})),
        prop::collection::vec("[a-zé\"\\\\ ]{0,4}", 1..4).prop_map(|values| json!({"enum": values})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (prop::collection::vec(("[a-d]{1,2}", inner.clone(), prop::bool::ANY), 0..4), prop::option::of(inner.clone())).prop_map(
                |(properties, rest)| {
                    let mut named = Map::new();
                    let mut required = Vec::new();
                    for (name, schema, needed) in properties {
                        if named.insert(name.clone(), schema).is_none() && needed {
                            required.push(name);
                        }
                    }
                    let rest = rest.unwrap_or(json!(false));
                    json!({"type": "object", "properties": named, "required": required, "additionalProperties": rest})
                }
            ),
            (inner.clone(), 0usize..3, 0usize..3)
                .prop_map(|(items, least, more)| json!({"type": "array", "items": items, "minItems": least, "maxItems": least + more})),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|first| json!({"type": "array", "prefixItems": first, "items": false})),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|any| json!({"anyOf": any})),
            inner.prop_map(|schema| json!({"$defs": {"x": schema}, "allOf": [{"$ref": "#/$defs/x"}]})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_allowed_text_matches_its_schema(schema in schemas(), seed in any::<u64>()) {
        // References in generated parts are not valid in the whole schema.
        let local = !schema.to_string().contains("$ref") || schema.get("$defs").is_some_and(|defs| !defs.to_string().contains("$ref"));
        prop_assume!(local);
        holds(&schema, seed, 4);
    }
}
