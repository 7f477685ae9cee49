//! An identity provider: a new key, its public half as a JSON Web Key, and tokens signed with it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// A provider with one P-256 key.
pub struct TokenIssuer {
    id: String,
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl TokenIssuer {
    /// With a new key of this name.
    pub fn new(id: &str) -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a new key");
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).expect("the same key");
        TokenIssuer { id: id.to_owned(), pair, random }
    }

    /// The public half.
    pub fn key(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
        json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": x, "y": y })
    }

    /// A key set with this key alone.
    pub fn key_set(&self) -> String {
        json!({ "keys": [self.key()] }).to_string()
    }

    pub fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({ "alg": "ES256", "typ": "JWT", "kid": self.id }), claims)
    }

    /// A token whose header says something else.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", token_part(header), token_part(claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).expect("a signature");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// A token that is signed with a shared secret.
pub fn shared_secret_token(secret: &[u8], claims: &Value) -> String {
    let signed = format!("{}.{}", token_part(&json!({ "alg": "HS256" })), token_part(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
}

/// A header or claims, as a token has them.
pub fn token_part(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}
