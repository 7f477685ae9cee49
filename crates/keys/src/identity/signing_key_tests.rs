//! Signatures. The tokens in `vectors` were signed once by another implementation (OpenSSL), with keys that were then thrown away.

use super::*;

const KEYS: &str = include_str!("vectors/keys.json");
const TOKENS: &str = include_str!("vectors/tokens.txt");

/// The algorithm, the name of the key, what is signed, and the signature.
fn tokens() -> Vec<(TokenAlgorithm, String, &'static str, Vec<u8>)> {
    let parts = TOKENS.lines().map(|token| {
        let (signed, signature) = token.rsplit_once('.').expect("a signature");
        let header = bytes(signed.split('.').next().expect("a header")).expect("base64");
        let header: Value = serde_json::from_slice(&header).expect("a header");
        let algorithm = TokenAlgorithm::parse(header["alg"].as_str().expect("alg")).expect("known");
        (
            algorithm,
            header["kid"].as_str().expect("kid").to_owned(),
            signed,
            bytes(signature).expect("base64"),
        )
    });
    parts.collect()
}

#[test]
fn signatures_of_every_algorithm_are_checked_as_others_make_them() {
    let keys = KeySet::read(KEYS.as_bytes()).expect("keys");
    let tokens = tokens();
    let asymmetric = TokenAlgorithm::ALL.iter().filter(|algorithm| !algorithm.is_symmetric());
    assert!(tokens.iter().map(|token| &token.0).eq(asymmetric), "one token for each algorithm");
    for (algorithm, id, signed, signature) in &tokens {
        let key = keys.find(Some(id), *algorithm).expect("the key");
        assert!(key.has_signed(*algorithm, signed.as_bytes(), signature), "{algorithm:?}");
        let mut changed = signature.clone();
        changed[3] ^= 1;
        assert!(!key.has_signed(*algorithm, signed.as_bytes(), &changed), "{algorithm:?}");
        assert!(!key.has_signed(
            *algorithm,
            signed.trim_end_matches(char::is_alphanumeric).as_bytes(),
            signature
        ));
        assert!(!key.has_signed(*algorithm, signed.as_bytes(), b""), "{algorithm:?}");
        for (other, ..) in tokens.iter().filter(|(other, ..)| other != algorithm) {
            assert!(!key.has_signed(*other, signed.as_bytes(), signature), "{algorithm:?} as {other:?}");
        }
    }
}

#[test]
fn a_published_key_is_never_a_secret() {
    let keys = KeySet::read(KEYS.as_bytes()).expect("keys");
    assert!(keys.find(Some("rsa"), TokenAlgorithm::Hs256).is_none());
    assert!(keys.find(None, TokenAlgorithm::Hs256).is_none());
    let secret = r#"{"keys": [{"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA", "alg": "HS256"}]}"#;
    assert!(matches!(KeySet::read(secret.as_bytes()), Err(KeySetError::NoUsableKey)));
}

#[test]
fn a_token_names_its_key_or_means_the_only_one() {
    let keys = KeySet::read(KEYS.as_bytes()).expect("keys");
    assert!(keys.find(None, TokenAlgorithm::Rs256).is_some());
    assert!(keys.find(Some("unknown"), TokenAlgorithm::Rs256).is_none());
    assert!(keys.find(Some("rsa"), TokenAlgorithm::Es256).is_none());
    let twice: Value = serde_json::from_str(KEYS).expect("json");
    let twice = serde_json::json!({ "keys": [twice["keys"][0], twice["keys"][0]] });
    let twice = KeySet::read(twice.to_string().as_bytes()).expect("keys");
    assert!(twice.find(None, TokenAlgorithm::Rs256).is_none(), "which one is not clear");
    let secret = KeySet::secret(&[7; 32]);
    assert!(secret.find(Some("any"), TokenAlgorithm::Hs256).is_some());
}

#[test]
fn keys_that_cannot_be_used_are_skipped_and_a_set_without_others_is_an_error() {
    let one = |key: &str| KeySet::read(format!(r#"{{"keys": [{key}]}}"#).as_bytes());
    for key in [
        "{}",
        "7",
        r#"{"kty": "RSA", "n": "AQAB", "e": "AQAB"}"#,
        r#"{"kty": "RSA", "n": "", "e": "AQAB"}"#,
        r#"{"kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB"}"#,
        r#"{"kty": "EC", "crv": "secp256k1", "x": "AQAB", "y": "AQAB"}"#,
        r#"{"kty": "OKP", "crv": "Ed25519", "x": "***"}"#,
        r#"{"kty": "OKP", "crv": "Ed25519", "use": "enc", "x": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#,
        r#"{"kty": "OKP", "crv": "Ed25519", "alg": "RS256", "x": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#,
    ] {
        assert!(matches!(one(key), Err(KeySetError::NoUsableKey)), "{key}");
    }
    assert!(matches!(KeySet::read(b"<html>"), Err(KeySetError::NoKeySet(_))));
    assert!(matches!(KeySet::read(b"{}"), Err(KeySetError::NoKeySet(_))));
    let many = vec!["{}"; MOST_KEYS + 1].join(",");
    assert!(matches!(one(&many), Err(KeySetError::TooMany { count: 65 })));
}
