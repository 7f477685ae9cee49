//! Which claims fit which rule.

use hob_core::Reach;
use serde_json::json;

use super::*;
use crate::limits::Budget;

fn rule(fields: Value) -> IdentityRule {
    IdentityRule::read(fields.as_object().expect("an object")).expect("a rule")
}

fn claims(value: Value) -> Claims {
    value.as_object().expect("an object").clone()
}

#[test]
fn a_rule_has_the_fields_of_a_named_key() {
    let read = rule(json!({
        "claim": "groups", "value": "ml-team", "models": ["qwen*"], "engines": ["ollama"], "reach": "read",
        "tools": ["calculator"], "memory": ["team"], "requests_per_minute": 60, "tokens_per_minute": 1000, "parallel": 4,
        "budgets": ["5 USD/month", "200k tokens/day"],
    }));
    let expected = IdentityRule {
        id: "groups=ml-team".into(),
        condition: Some(("groups".into(), "ml-team".into())),
        role: KeyRole::Member,
        rules: KeyRules {
            models: Some(vec!["qwen*".into()]),
            engines: Some(vec!["ollama".into()]),
            reach: Reach::Read,
            tools: Some(vec!["calculator".into()]),
            memory: Some(vec!["team".into()]),
            requests_per_minute: Some(60),
            tokens_per_minute: Some(1000),
            parallel: Some(4),
            budgets: ["5 USD/month", "200k tokens/day"]
                .map(|text| Budget::parse(text).expect("a budget"))
                .into(),
            ..KeyRules::of(KeyRole::Member)
        },
    };
    assert_eq!(read, expected);
    assert_eq!(rule(json!({})).rules, KeyRules::of(KeyRole::Member), "a member's usual rights");
}

#[test]
fn the_first_rule_that_fits_counts() {
    let rules = IdentityRules::new(
        vec![
            rule(json!({ "claim": "groups", "value": "admins", "role": "owner" })),
            rule(json!({ "claim": "email", "value": "*@example.org", "parallel": 2 })),
            rule(json!({ "claim": "realm_access.roles", "value": "guest" })),
            rule(json!({ "claim": "https://example.org/level", "value": "7" })),
            rule(json!({ "claim": "staff", "value": "true" })),
        ],
        vec!["Mallory@example.org".into()],
    )
    .expect("rules");
    for (token, expected) in [
        (json!({ "groups": ["staff", "admins"], "email": "a@example.org" }), Some("groups=admins")),
        (json!({ "groups": "admins" }), Some("groups=admins")),
        (json!({ "groups": ["admins-of-nothing"], "email": "a@example.org" }), Some("email=*@example.org")),
        (json!({ "email": "a@example.org.evil.net" }), None),
        (json!({ "email": "a@example.org", "email_verified": true }), Some("email=*@example.org")),
        (json!({ "email": "a@example.org", "email_verified": false }), None),
        (json!({ "realm_access": { "roles": ["guest"] } }), Some("realm_access.roles=guest")),
        (json!({ "realm_access.roles": ["guest"] }), Some("realm_access.roles=guest")),
        (json!({ "https://example.org/level": 7 }), Some("https://example.org/level=7")),
        (json!({ "staff": true }), Some("staff=true")),
        (json!({ "groups": { "admins": true }, "staff": null }), None),
        (json!({}), None),
    ] {
        let found = rules.of(&claims(token.clone())).map(|rule| &*rule.id);
        assert_eq!(found, expected, "{token}");
    }
    assert!(rules.is_blocked("mallory@example.org") && !rules.is_blocked("ana@example.org"));
}

#[test]
fn the_same_condition_twice_is_a_mistake() {
    let twice = vec![
        rule(json!({ "claim": "a", "value": "b" })),
        rule(json!({ "claim": "a", "value": "b", "parallel": 1 })),
    ];
    let refusal = IdentityRules::new(twice, Vec::new()).expect_err("twice").to_string();
    assert!(refusal.contains("a=b: there is another rule"), "{refusal}");
}
