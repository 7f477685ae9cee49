//! The secret of a key, which is shown once, and its hash, which is stored.
//!
//! A secret has 256 random bits, so a plain SHA-256 is enough: guessing it is not possible, and a slow hash against guesses, as passwords
//! need, would cost every request. The id in a secret finds its key; only the hash proves it.

use std::fmt;

use hob_core::fill_random;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How the secret of a named key begins.
pub const SECRET_PREFIX: &str = "hob_";
const ID_LETTERS: usize = 12;
/// Of 62 letters, so that they carry 256 bits.
const SECRET_LETTERS: usize = 43;

/// A secret, such as `hob_4kD9…_8Ux…`.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret")
    }
}

/// The hash of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    pub fn of(secret: &str) -> Self {
        SecretHash(Sha256::digest(secret.as_bytes()).into())
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        SecretHash(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// In the same time, whatever the difference.
    pub fn is(&self, other: &SecretHash) -> bool {
        self.words().ct_eq(&other.words()).into()
    }

    /// By words, the comparison has an eighth of the steps, each of which is a call that the compiler may not remove.
    fn words(&self) -> [u64; 4] {
        let (words, _) = self.0.as_chunks::<8>();
        std::array::from_fn(|index| u64::from_ne_bytes(words[index]))
    }
}

impl KeySecret {
    /// A new secret of the key with this id.
    pub(crate) fn new(id: &str) -> Self {
        KeySecret(format!("{SECRET_PREFIX}{id}_{}", letters(SECRET_LETTERS)))
    }

    /// The text that clients send. Show it once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }
}

/// A new id of a key.
pub(crate) fn new_id() -> String {
    letters(ID_LETTERS)
}

/// The id in the text that a client sent; `None` if it is no secret of a named key.
pub(crate) fn id_of(sent: &str) -> Option<&str> {
    let (id, secret) = sent.strip_prefix(SECRET_PREFIX)?.split_once('_')?;
    (id.len() == ID_LETTERS && secret.len() == SECRET_LETTERS).then_some(id)
}

fn letters(count: usize) -> String {
    let mut letters = vec![0; count];
    fill_random(&mut letters);
    letters.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_names_its_key_and_only_its_hash_fits() {
        let id = new_id();
        let (one, two) = (KeySecret::new(&id), KeySecret::new(&id));
        assert_eq!(id_of(one.expose()), Some(id.as_str()));
        assert!(one.hash().is(&SecretHash::of(one.expose())) && !one.hash().is(&two.hash()));
        assert_eq!(format!("{one:?}"), "KeySecret");
    }

    #[test]
    fn a_hash_that_differs_in_one_byte_is_another() {
        let hash = SecretHash::of("hob_a");
        assert!(hash.is(&SecretHash::from_bytes(*hash.as_bytes())));
        for place in 0..hash.as_bytes().len() {
            let mut bytes = *hash.as_bytes();
            bytes[place] ^= 1;
            assert!(!hash.is(&SecretHash::from_bytes(bytes)), "{place}");
        }
    }

    #[test]
    fn other_texts_are_no_secrets() {
        for text in ["", "hob_", "hob_a_b", "sk-proj-abc", "hob_123456789012", "hob_123456789012_"] {
            assert_eq!(id_of(text), None, "{text}");
        }
    }
}
