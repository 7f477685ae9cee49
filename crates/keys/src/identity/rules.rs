//! Which rights the claims of a token give: the first rule that fits counts. A rule has the fields of a named key, read by the same code.

use std::collections::HashSet;
use std::sync::Arc;

use hob_core::matches_pattern;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::identity::error::IdentityError;
use crate::identity::token::Claims;
use crate::key::{KeyError, KeyPatch, KeyRole, KeyRules, check_engines};

/// Each is compared with the claims of a new token.
const MOST_RULES: usize = 256;

/// The claim that a provider must have verified.
pub(crate) const EMAIL: &str = "email";

/// Rights, and who gets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityRule {
    /// Such as `groups=ml-team`. Tasks keep it.
    pub(crate) id: Arc<str>,
    /// A claim and a pattern of its value; `None` is everyone with a valid token.
    condition: Option<(String, String)>,
    pub(crate) role: KeyRole,
    pub(crate) rules: KeyRules,
}

/// Who gets the rights of a rule, and the role.
#[derive(Deserialize)]
struct RuleHead {
    claim: Option<String>,
    value: Option<String>,
    role: Option<String>,
}

/// The fields of a rule that a named key does not have, or has elsewhere.
const HEAD_FIELDS: [&str; 3] = ["claim", "value", "role"];

impl IdentityRule {
    /// Reads a rule as the configuration has it: `claim`, `value`, `role`, and the fields of a named key.
    pub fn read(fields: &Map<String, Value>) -> Result<Self, IdentityError> {
        let wrong = |reason: String| IdentityError::Rule { rule: rule_name(fields), reason };
        let (head, rights): (Map<_, _>, Map<_, _>) = fields
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .partition(|(name, _)| HEAD_FIELDS.contains(&name.as_str()));
        let head = RuleHead::deserialize(Value::Object(head)).map_err(|error| wrong(error.to_string()))?;
        let mut unknown = Vec::new();
        let patch: KeyPatch =
            serde_ignored::deserialize(Value::Object(rights), |path| unknown.push(path.to_string()))
                .map_err(|error| wrong(error.to_string()))?;
        if let Some(name) = unknown.first() {
            return Err(wrong(format!("'{name}' is not a field of a rule")));
        }
        if patch.expires.is_some() {
            return Err(wrong("'expires' is for named keys; a token has its own end".to_owned()));
        }
        let condition = match (head.claim, head.value) {
            (Some(claim), Some(value)) if !claim.is_empty() && !value.is_empty() => Some((claim, value)),
            (None, None) => None,
            _ => return Err(wrong("'claim' and 'value' belong together".to_owned())),
        };
        let role = head.role.as_deref().map_or(Ok(KeyRole::Member), KeyRole::parse);
        let role = role.map_err(|error| wrong(error.to_string()))?;
        // A rule without a condition that gives the owner's rights makes everyone at the provider an owner.
        if role == KeyRole::Owner
            && condition.as_ref().is_none_or(|(_, value)| value.bytes().all(|byte| byte == b'*'))
        {
            return Err(wrong("a rule for everyone cannot give the role 'owner'".to_owned()));
        }
        let mut rules = KeyRules::of(role);
        patch
            .apply(&mut rules, &mut None, Timestamp::UNIX_EPOCH)
            .map_err(|error| wrong(error.to_string()))?;
        Ok(IdentityRule { id: rule_name(fields).into(), condition, role, rules })
    }

    /// The rule, if it names only known engines.
    pub fn with_known_engines(self, known: &[&str]) -> Result<Self, IdentityError> {
        let wrong =
            |error: KeyError| IdentityError::Rule { rule: self.id.to_string(), reason: error.to_string() };
        check_engines(self.rules.engines.as_ref(), known).map_err(wrong)?;
        Ok(self)
    }

    fn fits(&self, claims: &Claims) -> bool {
        let Some((name, pattern)) = &self.condition else { return true };
        // Without a check, anyone can enter the address of another.
        if name == EMAIL && is_unverified(claims) {
            return false;
        }
        let is_value = |value: &Value| match value {
            Value::String(text) => matches_pattern(pattern, text),
            Value::Bool(_) | Value::Number(_) => matches_pattern(pattern, &value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        };
        match claim(claims, name) {
            Some(Value::Array(several)) => several.iter().any(is_value),
            Some(one) => is_value(one),
            None => false,
        }
    }
}

/// How messages and tasks name a rule.
fn rule_name(fields: &Map<String, Value>) -> String {
    match (fields.get("claim").and_then(Value::as_str), fields.get("value").and_then(Value::as_str)) {
        (Some(claim), Some(value)) => format!("{claim}={value}"),
        _ => "everyone".to_owned(),
    }
}

/// A claim. `realm_access.roles` is a claim of that name, or `roles` inside `realm_access`.
pub(crate) fn claim<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        claim(claims.get(outer)?.as_object()?, inner)
    })
}

/// Whether the provider says that it has not checked the address. Some write `"false"`.
pub(crate) fn is_unverified(claims: &Claims) -> bool {
    match claims.get("email_verified") {
        Some(Value::Bool(is_verified)) => !is_verified,
        Some(Value::String(said)) => said == "false",
        _ => false,
    }
}

/// The rules of a server, and the names that it does not accept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdentityRules {
    rules: Vec<IdentityRule>,
    /// In lower case, so that a name is blocked however it is written.
    blocked: HashSet<String>,
}

impl IdentityRules {
    pub fn new(rules: Vec<IdentityRule>, blocked: Vec<String>) -> Result<Self, IdentityError> {
        if rules.is_empty() || rules.len() > MOST_RULES {
            return Err(IdentityError::NumberOfRules { most: MOST_RULES });
        }
        let mut seen = HashSet::new();
        if let Some(twice) = rules.iter().find(|rule| !seen.insert(Arc::clone(&rule.id))) {
            let reason = "there is another rule with the same claim and value".to_owned();
            return Err(IdentityError::Rule { rule: twice.id.to_string(), reason });
        }
        Ok(IdentityRules { rules, blocked: blocked.iter().map(|name| name.to_lowercase()).collect() })
    }

    /// The first rule that fits.
    pub(crate) fn of(&self, claims: &Claims) -> Option<&IdentityRule> {
        self.rules.iter().find(|rule| rule.fits(claims))
    }

    pub(crate) fn get(&self, id: &str) -> Option<&IdentityRule> {
        self.rules.iter().find(|rule| &*rule.id == id)
    }

    pub(crate) fn is_blocked(&self, name: &str) -> bool {
        !self.blocked.is_empty() && self.blocked.contains(&name.to_lowercase())
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
