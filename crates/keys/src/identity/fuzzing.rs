//! Entry for the fuzz target of tokens: takes any bytes and panics if a token without a valid signature is accepted, or one whose
//! claims are wrong.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::hmac;

use super::rules::is_unverified;
use super::signing_key::{KeySet, TokenAlgorithm};
use super::token::{CheckedToken, LEEWAY, TokenPolicy, check};

const SECRET: &[u8] = b"a secret that no input of a fuzzer contains";

/// The bytes as a set of keys, as a token, and as the claims of a token that is signed.
pub fn token(bytes: &[u8]) {
    let keys = KeySet::secret(SECRET);
    let policy = TokenPolicy {
        issuer: "https://login.example".to_owned(),
        audience: vec!["hob".to_owned()],
        algorithms: vec![TokenAlgorithm::Hs256],
        max_lifetime: Duration::from_secs(3600),
    };
    let now = Timestamp::UNIX_EPOCH;
    if let Ok(read) = KeySet::read(bytes) {
        assert!(!read.is_empty(), "a set without keys is accepted");
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(check(text, &keys, &policy, now).is_err(), "a token without a valid signature is accepted");
    }
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#),
        URL_SAFE_NO_PAD.encode(bytes)
    );
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), signed.as_bytes());
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
    if let Ok(CheckedToken { claims, expires_at }) = check(&token, &keys, &policy, now) {
        let _ = is_unverified(&claims);
        assert_eq!(claims.get("iss").and_then(|issuer| issuer.as_str()), Some(policy.issuer.as_str()));
        assert!(now.duration_since(expires_at) < LEEWAY, "a token that has expired is accepted");
    }
}
