//! A certificate that signs itself, for this machine.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

/// A new certificate for `localhost` and `127.0.0.1`, and its key, as PEM.
pub struct TestCertificate {
    pub cert_pem: String,
    pub key_pem: String,
}

impl TestCertificate {
    pub fn generate() -> Self {
        Self::valid_until(b"40960101000000Z")
    }

    pub fn expired() -> Self {
        Self::valid_until(b"20000101000000Z")
    }

    fn valid_until(end: &[u8]) -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a new key");
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).expect("the same key");
        let content = content(pair.public_key().as_ref(), end);
        let signature = pair.sign(&random, &content).expect("a signature");
        let certificate = sequence(&[&content, &signature_algorithm(), &bits(signature.as_ref())]);
        TestCertificate {
            cert_pem: pem("CERTIFICATE", &certificate),
            key_pem: pem("PRIVATE KEY", key.as_ref()),
        }
    }

    pub fn write(&self, cert: &Path, key: &Path) {
        std::fs::write(cert, &self.cert_pem).expect("a file");
        std::fs::write(key, &self.key_pem).expect("a file");
    }
}

// Types of DER values (X.690).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

// Fields of a certificate that have numbers instead of types (RFC 5280).
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

/// `ecdsa-with-SHA256`.
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
/// `id-ecPublicKey`.
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// `prime256v1`.
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// The part of the certificate that is signed.
fn content(public_key: &[u8], end: &[u8]) -> Vec<u8> {
    let name =
        value(SET, &[&sequence(&[&value(OBJECT, &[COMMON_NAME]), &value(UTF8_STRING, &[b"Hob tests"])])]);
    let name = sequence(&[&name]);
    let validity = sequence(&[&value(UTC_TIME, &[b"750101000000Z"]), &value(GENERALIZED_TIME, &[end])]);
    let key_algorithm = sequence(&[&value(OBJECT, &[EC_PUBLIC_KEY]), &value(OBJECT, &[P256])]);
    let names = sequence(&[&value(DNS_NAME, &[b"localhost"]), &value(IP_ADDRESS, &[&[127, 0, 0, 1]])]);
    let extension = sequence(&[&value(OBJECT, &[SUBJECT_ALT_NAME]), &value(OCTET_STRING, &[&names])]);
    sequence(&[
        // The third version has the number 2.
        &value(VERSION, &[&value(INTEGER, &[&[2]])]),
        &value(INTEGER, &[&serial_number(public_key)]),
        &signature_algorithm(),
        &name,
        &validity,
        &name,
        &sequence(&[&key_algorithm, &bits(public_key)]),
        &value(EXTENSIONS, &[&sequence(&[&extension])]),
    ])
}

/// A positive number that no other key has.
fn serial_number(public_key: &[u8]) -> Vec<u8> {
    // The first byte of a point is the same for all keys.
    let mut number = public_key[1..17].to_vec();
    number.insert(0, 1);
    number
}

fn signature_algorithm() -> Vec<u8> {
    sequence(&[&value(OBJECT, &[ECDSA_WITH_SHA256])])
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    value(SEQUENCE, parts)
}

/// Whole bytes as a string of bits.
fn bits(bytes: &[u8]) -> Vec<u8> {
    value(BIT_STRING, &[&[0], bytes])
}

/// A value in DER: its type, its length, its parts.
fn value(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let [high, low] = u16::try_from(content.len()).expect("a short value").to_be_bytes();
    let mut bytes = vec![kind];
    match (high, low) {
        (0, 0..=0x7f) => bytes.push(low),
        (0, _) => bytes.extend([0x81, low]),
        _ => bytes.extend([0x82, high, low]),
    }
    bytes.extend(content);
    bytes
}

fn pem(label: &str, content: &[u8]) -> String {
    let encoded = BASE64_STANDARD.encode(content);
    let mut text = format!("-----BEGIN {label}-----\n");
    for start in (0..encoded.len()).step_by(64) {
        text.push_str(&encoded[start..encoded.len().min(start + 64)]);
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}
