use super::*;

fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().expect("a moment")
}

#[test]
fn names_are_plain_words() {
    for name in ["ana", "ci-runner", "team.eu_1", "7"] {
        assert_eq!(KeyName::parse(name).expect(name).as_str(), name);
    }
    for name in ["", "-x", "a b", "ä", "a/b", "self", "owner", &"x".repeat(65)] {
        assert!(KeyName::parse(name).is_err(), "{name}");
    }
}

#[test]
fn an_expiry_is_a_date_a_moment_or_a_time_from_now() {
    for (text, expected) in [
        ("30d", "2026-12-16T12:00:00Z"),
        ("12h", "2026-11-17T00:00:00Z"),
        ("2w", "2026-11-30T12:00:00Z"),
        ("2027-01-31", "2027-01-31T00:00:00Z"),
        ("2027-01-31T10:00:00+01:00", "2027-01-31T09:00:00Z"),
    ] {
        assert_eq!(parse_expiry(text, now()).expect(text).to_string(), expected);
    }
    for (text, words) in
        [("soon", "'30d'"), ("2026-11-16", "in the past"), ("0d", "in the past"), ("", "'30d'")]
    {
        let refusal = parse_expiry(text, now()).expect_err(text).to_string();
        assert!(refusal.contains(words), "{text}: {refusal}");
    }
}

#[test]
fn a_change_replaces_what_it_names_and_null_removes_a_limit() {
    let mut rules =
        KeyRules { parallel: Some(4), tokens_per_minute: Some(9), ..KeyRules::of(KeyRole::Member) };
    let mut expires_at = None;
    let patch = r#"{"parallel": null, "models": ["qwen*"], "memory": ["team"], "budgets": ["5 USD/month"], "reach": "read", "expires": "1d"}"#;
    let patch: KeyPatch = serde_json::from_str(patch).expect("a change");
    patch.apply(&mut rules, &mut expires_at, now()).expect("changed");
    let expected = KeyRules {
        models: Some(vec!["qwen*".into()]),
        memory: Some(vec!["team".into()]),
        reach: Reach::Read,
        tokens_per_minute: Some(9),
        budgets: vec![Budget::parse("5 USD/month").expect("a budget")],
        ..KeyRules::of(KeyRole::Member)
    };
    assert_eq!(rules, expected);
    assert_eq!(expires_at.map(|at| at.to_string()).as_deref(), Some("2026-11-17T12:00:00Z"));
}

#[test]
fn rules_from_before_there_were_collections_name_none() {
    let mut stored = serde_json::to_value(KeyRules::of(KeyRole::Member)).expect("JSON");
    stored.as_object_mut().expect("an object").remove("memory");
    let read: KeyRules = serde_json::from_value(stored).expect("rules");
    assert_eq!(read, KeyRules::of(KeyRole::Member));
}

#[test]
fn rules_that_make_no_sense_change_nothing() {
    for patch in [
        r#"{"models": []}"#,
        r#"{"tools": [" "]}"#,
        r#"{"memory": []}"#,
        r#"{"memory": ["team", "a/b"]}"#,
        r#"{"parallel": 0}"#,
        r#"{"requests_per_minute": 0}"#,
        r#"{"budgets": ["5 USD/day", "6 USD/day"]}"#,
        r#"{"expires": "yesterday"}"#,
    ] {
        let mut rules = KeyRules::of(KeyRole::Owner);
        let mut expires_at = None;
        let patch: KeyPatch = serde_json::from_str(patch).expect("a change");
        let changed = patch.clone().apply(&mut rules, &mut expires_at, now());
        assert!(changed.is_err(), "{patch:?}");
        assert_eq!((rules, expires_at), (KeyRules::of(KeyRole::Owner), None));
    }
}
