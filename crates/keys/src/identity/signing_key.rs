//! The keys that an identity provider signs tokens with, as a JSON Web Key Set (RFC 7517) has them, and the check of a signature
//! (RFC 7518, RFC 8037).
//!
//! The algorithm decides which kind of key is used, and a key never works with an algorithm of another kind. So a token cannot make a
//! public key into a shared secret.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{hmac, signature};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// Providers have two to ten keys.
pub(crate) const MOST_KEYS: usize = 64;

/// A shared secret with less can be guessed from one token.
pub(crate) const SHORTEST_SECRET: usize = 32;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
    /// With a shared secret.
    Hs256,
}

hob_core::named_variants! {
    TokenAlgorithm {
        Rs256 => "RS256",
        Rs384 => "RS384",
        Rs512 => "RS512",
        Ps256 => "PS256",
        Ps384 => "PS384",
        Ps512 => "PS512",
        Es256 => "ES256",
        Es384 => "ES384",
        EdDsa => "EdDSA",
        Hs256 => "HS256",
    }
}

impl TokenAlgorithm {
    /// What providers use. All of them have a key that signs and another one that checks.
    pub const USUAL: [TokenAlgorithm; 3] =
        [TokenAlgorithm::Rs256, TokenAlgorithm::Es256, TokenAlgorithm::EdDsa];

    /// Whether who can check a token can also make one.
    pub fn is_symmetric(self) -> bool {
        self == TokenAlgorithm::Hs256
    }
}

/// Why a set of keys cannot be used.
#[derive(Debug, Error)]
pub enum KeySetError {
    #[error("it is not a JSON Web Key Set such as {{\"keys\": […]}}: {0}")]
    NoKeySet(#[source] serde_json::Error),
    #[error("it has {count} keys, and at most {MOST_KEYS} are read")]
    TooMany { count: usize },
    #[error("it has no RSA key of 2048 bits or more, no P-256 or P-384 key and no Ed25519 key")]
    NoUsableKey,
}

#[derive(Clone)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    Secret(hmac::Key),
}

/// One key of a provider.
#[derive(Clone)]
pub(crate) struct SigningKey {
    id: Option<String>,
    /// The only algorithm that the key is for.
    algorithm: Option<TokenAlgorithm>,
    material: Material,
}

impl SigningKey {
    /// Whether tokens of this algorithm may be signed with the key.
    fn is_for(&self, algorithm: TokenAlgorithm) -> bool {
        use TokenAlgorithm as A;
        let is_kind = match &self.material {
            Material::Rsa { .. } => {
                matches!(algorithm, A::Rs256 | A::Rs384 | A::Rs512 | A::Ps256 | A::Ps384 | A::Ps512)
            }
            Material::P256(_) => algorithm == A::Es256,
            Material::P384(_) => algorithm == A::Es384,
            Material::Ed25519(_) => algorithm == A::EdDsa,
            Material::Secret(_) => algorithm == A::Hs256,
        };
        is_kind && self.algorithm.is_none_or(|only| only == algorithm)
    }

    /// Whether the key has signed the message.
    pub(crate) fn has_signed(&self, algorithm: TokenAlgorithm, message: &[u8], signed: &[u8]) -> bool {
        use TokenAlgorithm as A;
        if !self.is_for(algorithm) {
            return false;
        }
        let parsed = |kind: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            signature::UnparsedPublicKey::new(kind, key).verify(message, signed).is_ok()
        };
        match &self.material {
            Material::Rsa { n, e } => {
                let kind = match algorithm {
                    A::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    A::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    A::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    A::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    A::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
                    A::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
                    A::Es256 | A::Es384 | A::EdDsa | A::Hs256 => return false,
                };
                signature::RsaPublicKeyComponents { n, e }.verify(kind, message, signed).is_ok()
            }
            Material::P256(point) => parsed(&signature::ECDSA_P256_SHA256_FIXED, point),
            Material::P384(point) => parsed(&signature::ECDSA_P384_SHA384_FIXED, point),
            Material::Ed25519(point) => parsed(&signature::ED25519, point),
            // Compares in constant time.
            Material::Secret(secret) => hmac::verify(secret, message, signed).is_ok(),
        }
    }
}

/// The keys of a provider.
#[derive(Clone, Default)]
pub(crate) struct KeySet {
    keys: Vec<SigningKey>,
}

/// A set of keys as it is written.
#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

/// A key as it is written.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Jwk {
    /// `None` for a key that is not for signatures, or of a kind that Hob does not know.
    fn read(self) -> Option<SigningKey> {
        if self.purpose.is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let algorithm = match self.alg {
            Some(name) => Some(TokenAlgorithm::parse(&name)?),
            None => None,
        };
        let material = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (number(&self.n?)?, number(&self.e?)?);
                let bits = n.len() * 8 - n.first()?.leading_zeros() as usize;
                (2048..=8192).contains(&bits).then_some(Material::Rsa { n, e })?
            }
            ("EC", Some("P-256")) => Material::P256(point(&self.x?, &self.y?, 32)?),
            ("EC", Some("P-384")) => Material::P384(point(&self.x?, &self.y?, 48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(&self.x?).filter(|x| x.len() == 32)?),
            // A set that everyone can read has no secrets.
            _ => return None,
        };
        let key = SigningKey { id: self.kid, algorithm, material };
        // A key whose algorithm does not fit its kind is a mistake.
        algorithm.is_none_or(|algorithm| key.is_for(algorithm)).then_some(key)
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

/// Some providers write leading zeros, which ring refuses.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = bytes(text)?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    Some(bytes[zeros..].to_vec())
}

/// The uncompressed point of a curve.
fn point(x: &str, y: &str, size: usize) -> Option<Vec<u8>> {
    let (x, y) = (bytes(x)?, bytes(y)?);
    (x.len() == size && y.len() == size).then(|| [&[4], x.as_slice(), y.as_slice()].concat())
}

impl KeySet {
    /// Reads a JSON Web Key Set. Keys that Hob cannot use are skipped.
    pub(crate) fn read(text: &[u8]) -> Result<Self, KeySetError> {
        let JwkSet { keys } = serde_json::from_slice(text).map_err(KeySetError::NoKeySet)?;
        if keys.len() > MOST_KEYS {
            return Err(KeySetError::TooMany { count: keys.len() });
        }
        let read = |key: Value| serde_json::from_value::<Jwk>(key).ok()?.read();
        let keys: Vec<SigningKey> = keys.into_iter().filter_map(read).collect();
        match keys.is_empty() {
            true => Err(KeySetError::NoUsableKey),
            false => Ok(KeySet { keys }),
        }
    }

    /// The secret that Hob shares with a proxy.
    pub(crate) fn secret(secret: &[u8]) -> Self {
        let material = Material::Secret(hmac::Key::new(hmac::HMAC_SHA256, secret));
        KeySet { keys: vec![SigningKey { id: None, algorithm: None, material }] }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key that a token names. A token without a name means the only key of its algorithm. A shared secret has no name.
    pub(crate) fn find(&self, id: Option<&str>, algorithm: TokenAlgorithm) -> Option<&SigningKey> {
        let mut fitting = self.keys.iter().filter(|key| key.is_for(algorithm));
        match id {
            Some(id) if !algorithm.is_symmetric() => fitting.find(|key| key.id.as_deref() == Some(id)),
            _ => {
                let only = fitting.next();
                only.filter(|_| fitting.next().is_none())
            }
        }
    }
}

#[cfg(test)]
#[path = "signing_key_tests.rs"]
mod tests;
