//! Identities from outside: the settings of `[server.identity]`, as the keys need them.

use std::sync::Arc;

use hob_config::{EngineName, IdentityConfig};
use hob_keys::{
    IdentityError, IdentityOptions, IdentityRule, IdentityRules, IdentityService, KeyPlaces, KeyService,
    token_algorithms,
};

/// What accepts tokens; `None` if `[server.identity]` is not set. Reads nothing from the provider until it is started.
pub fn open_identity(
    config: &IdentityConfig,
    keys: &Arc<KeyService>,
) -> Result<Option<Arc<IdentityService>>, IdentityError> {
    let Some(options) = identity_options(config)? else { return Ok(None) };
    Ok(Some(Arc::new(IdentityService::open(options, Arc::clone(keys))?)))
}

/// Checks the settings of identities, which are then known to be complete.
pub fn identity_options(config: &IdentityConfig) -> Result<Option<IdentityOptions>, IdentityError> {
    let places = KeyPlaces {
        jwks_url: config.jwks_url.clone(),
        jwks_file: config.jwks_file.clone(),
        secret_file: config.secret_file.clone(),
    };
    let Some(issuer) = config.issuer.clone() else {
        // `name_claim` and `max_lifetime` always have a value.
        let is_begun = places != KeyPlaces::default()
            || config.header.is_some()
            || [&config.audience, &config.algorithms, &config.blocked].iter().any(|list| !list.is_empty())
            || !config.rules.is_empty();
        return match is_begun {
            // A server that its owner believes to be protected must not start open.
            true => Err(IdentityError::Missing {
                setting: "issuer",
                advice: "Name the issuer (iss) of the tokens, or remove the section",
            }),
            false => Ok(None),
        };
    };
    Ok(Some(IdentityOptions {
        issuer,
        audience: config.audience.clone(),
        origin: places.only_one()?,
        algorithms: token_algorithms(&config.algorithms)?,
        header: config.header.clone(),
        name_claim: config.name_claim.clone(),
        max_lifetime: config.max_lifetime,
        rules: identity_rules(config)?,
    }))
}

/// The rules, which a running server can replace.
pub fn identity_rules(config: &IdentityConfig) -> Result<IdentityRules, IdentityError> {
    let known = EngineName::ALL.map(EngineName::as_str);
    let read = |fields| IdentityRule::read(fields)?.with_known_engines(&known);
    let rules = config.rules.iter().map(read).collect::<Result<_, _>>()?;
    IdentityRules::new(rules, config.blocked.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(fields: serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
        fields.as_object().expect("an object").clone()
    }

    fn complete() -> IdentityConfig {
        IdentityConfig {
            issuer: Some("https://sso.example.org".into()),
            audience: vec!["hob".into()],
            jwks_url: Some("https://sso.example.org/keys".into()),
            rules: vec![rule(json!({ "claim": "groups", "value": "ml", "budgets": ["5 USD/month"] }))],
            ..IdentityConfig::default()
        }
    }

    fn error(config: &IdentityConfig) -> String {
        identity_options(config).expect_err("incomplete").to_string()
    }

    #[test]
    fn settings_that_are_only_begun_do_not_leave_the_server_open() {
        assert!(identity_options(&IdentityConfig::default()).expect("off").is_none());
        assert!(identity_options(&complete()).expect("complete").is_some());
        let without_issuer = IdentityConfig { issuer: None, ..complete() };
        assert!(error(&without_issuer).starts_with("[server.identity] issuer is missing."));
        for begun in [
            IdentityConfig { header: Some("x-token".into()), ..IdentityConfig::default() },
            IdentityConfig { blocked: vec!["eve".into()], ..IdentityConfig::default() },
            IdentityConfig { algorithms: vec!["RS256".into()], ..IdentityConfig::default() },
        ] {
            assert!(error(&begun).starts_with("[server.identity] issuer is missing."), "{begun:?}");
        }
        let without_rules = IdentityConfig { rules: Vec::new(), ..complete() };
        assert!(error(&without_rules).contains("[[server.identity.rules]]"));
        let two_places = IdentityConfig { jwks_file: Some("/keys.json".into()), ..complete() };
        assert!(error(&two_places).contains("exactly one of"));
        let unknown = IdentityConfig { algorithms: vec!["none".into()], ..complete() };
        assert!(error(&unknown).contains("'none' is not one of RS256"));
    }

    #[test]
    fn a_wrong_rule_is_named() {
        for (fields, words) in [
            (
                json!({ "claim": "groups", "value": "x", "modles": ["qwen*"] }),
                "groups=x: 'modles' is not a field",
            ),
            (json!({ "claim": "groups", "value": "x", "budgets": ["much"] }), "'much' is not a budget"),
            (
                json!({ "claim": "groups", "value": "x", "memory": ["a/b"] }),
                "'a/b' is not a name for a collection",
            ),
            (
                json!({ "claim": "groups", "value": "x", "engines": ["nosuch"] }),
                "unknown engine 'nosuch'; known engines: ollama, vllm",
            ),
            (json!({ "claim": "groups" }), "'claim' and 'value' belong together"),
            (json!({ "role": "owner" }), "cannot give the role 'owner'"),
            (json!({ "claim": "a", "value": "b", "expires": "1d" }), "'expires' is for named keys"),
        ] {
            let config = IdentityConfig { rules: vec![rule(fields)], ..complete() };
            assert!(error(&config).contains(words), "{}", error(&config));
        }
    }
}
