//! `[server.identity]`: tokens of an identity provider instead of keys. Reads the form of the settings; what the rights of a rule mean is
//! read where keys are.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Number, Value};
use toml::de::DeValue;

use crate::kind::{OPTIONAL_PATH, OPTIONAL_TEXT, SECONDS, TEXT, TEXTS};
use crate::settings_schema::{Exposure, Kind, Typed, keys_of};

/// Settings of identities from outside.
#[derive(Debug, Clone)]
pub struct IdentityConfig {
    /// Who makes the tokens (`iss`); `None` accepts no tokens.
    pub issuer: Option<String>,
    /// For whom the tokens are (`aud`).
    pub audience: Vec<String>,
    /// The address of the provider's keys.
    pub jwks_url: Option<String>,
    /// A file with them.
    pub jwks_file: Option<PathBuf>,
    /// A file with a secret that a proxy shares.
    pub secret_file: Option<PathBuf>,
    /// Empty for the usual ones.
    pub algorithms: Vec<String>,
    /// The header in which a proxy sends the token; `None` for the one of keys.
    pub header: Option<String>,
    /// The claim that names an account.
    pub name_claim: String,
    /// The longest time from now until a token expires.
    pub max_lifetime: Duration,
    /// Names that are refused, whatever their token says.
    pub blocked: Vec<String>,
    /// Claims and the rights that they give, as they are written.
    pub rules: Vec<Map<String, Value>>,
}

impl IdentityConfig {
    /// Whether tokens are accepted.
    pub fn is_on(&self) -> bool {
        self.issuer.is_some()
    }
}

impl Default for IdentityConfig {
    fn default() -> Self {
        IdentityConfig {
            issuer: None,
            audience: Vec::new(),
            jwks_url: None,
            jwks_file: None,
            secret_file: None,
            algorithms: Vec::new(),
            header: None,
            name_claim: "sub".to_owned(),
            max_lifetime: Duration::from_secs(86_400),
            blocked: Vec::new(),
            rules: Vec::new(),
        }
    }
}

const HEADER: Kind<Option<String>> = Kind {
    expected: "the name of a header such as \"x-forwarded-access-token\", or \"\" for none",
    read: |typed| {
        let name = typed.text()?.trim().to_ascii_lowercase();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        // The one of keys needs no setting.
        let name = Some(name).filter(|name| !name.is_empty() && name != "authorization");
        is_name.then_some(name)
    },
    ..OPTIONAL_TEXT
};

const RULES: Kind<Vec<Map<String, Value>>> = Kind {
    expected: "a list of rules such as [{ claim = \"groups\", value = \"ml-team\", models = [\"qwen*\"] }]",
    read: |typed: &Typed<'_>| {
        let tables = typed.value.as_array()?.iter();
        tables
            .map(|rule| match json(rule.get_ref())? {
                Value::Object(fields) => Some(fields),
                _ => None,
            })
            .collect()
    },
    write: |rules| toml::Value::try_from(rules).map_or_else(|_| "[]".to_owned(), |rules| rules.to_string()),
    exposure: Exposure::Open,
};

/// A value of the file as JSON; `None` for what JSON has not.
fn json(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(_) => Value::from(Typed { value, home: None }.integer()?),
        DeValue::Float(_) => Value::Number(Number::from_f64(Typed { value, home: None }.number()?)?),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(_) => return None,
        DeValue::Array(elements) => {
            Value::Array(elements.iter().map(|element| json(element.get_ref())).collect::<Option<_>>()?)
        }
        DeValue::Table(fields) => {
            let field = |(name, value): (&toml::Spanned<_>, &toml::Spanned<_>)| {
                let name: &std::borrow::Cow<'_, str> = name.get_ref();
                Some((name.clone().into_owned(), json(value.get_ref())?))
            };
            Value::Object(fields.iter().map(field).collect::<Option<_>>()?)
        }
    })
}

keys_of! {
    IdentityConfig {
        issuer: OPTIONAL_TEXT, "Issuer (iss) of the tokens that this server accepts, such as \"https://sso.example.org/realms/main\"; \"\" accepts none.";
        audience: TEXTS, "Audiences (aud) that mean this server; a token must have one of them.";
        jwks_url: OPTIONAL_TEXT, "Address of the provider's keys (jwks_uri in its /.well-known/openid-configuration). Set this, jwks_file or secret_file.";
        jwks_file: OPTIONAL_PATH, "File with the provider's keys (a JSON Web Key Set), for a server that cannot reach the provider.";
        secret_file: OPTIONAL_PATH, "File with a secret of at least 32 bytes, for tokens that your own proxy signs with HS256.";
        algorithms: TEXTS, "Algorithms of signatures; [] accepts RS256, ES256 and EdDSA, or HS256 with secret_file.";
        header: HEADER, "Header in which a proxy sends the token, such as \"cf-access-jwt-assertion\"; \"\" reads the header of keys. With it, requests from this machine need a key or a token too.";
        name_claim: TEXT, "Claim that names an account, for limits, records and logs: sub, email or another one that never changes its owner.";
        max_lifetime: SECONDS, "Seconds from now until a token expires, at most: a token cannot be taken back.";
        blocked: TEXTS, "Names that are refused although their token is valid, such as [\"ana@example.org\"].";
        rules: RULES, "Who gets which rights. The first rule that fits counts: claim and value (with * for any text), role, and the fields of a named key. docs/single-sign-on.md has examples.";
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_rule_is_read_as_it_is_written_and_written_as_it_is_read() {
        let typed = "[{ claim = 'groups', value = 'ml', cloud = true, models = ['qwen*'], memory = ['team'], parallel = 4 }, { role = 'member' }]";
        let rules = read_as(&RULES, typed).expect("rules");
        let expected = json!([
            { "claim": "groups", "value": "ml", "cloud": true, "models": ["qwen*"], "memory": ["team"], "parallel": 4 },
            { "role": "member" },
        ]);
        assert_eq!(json!(rules), expected);
        assert_eq!(read_as(&RULES, &(RULES.write)(&rules)), Some(rules));
        for wrong in ["'x'", "[1]", "[{ at = 2026-01-01 }]"] {
            assert_eq!(read_as(&RULES, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_header_is_a_name_in_lower_case() {
        for (typed, expected) in [
            ("'Cf-Access-Jwt-Assertion'", Some(Some("cf-access-jwt-assertion".to_owned()))),
            ("''", Some(None)),
            ("'Authorization'", Some(None)),
            ("'x y'", None),
            ("'x:'", None),
        ] {
            assert_eq!(read_as(&HEADER, typed), expected, "{typed}");
        }
    }
}
