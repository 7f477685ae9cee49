//! Names of folders in the form of the protocol. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The name of a folder as the protocol writes it (RFC 3501, section 5.1.3).
pub(crate) fn modified_utf7(name: &str) -> String {
    let mut encoded = String::new();
    let mut pending: Vec<u8> = Vec::new();
    let flush = |pending: &mut Vec<u8>, encoded: &mut String| {
        if !pending.is_empty() {
            let base64 = STANDARD.encode(&*pending).replace('/', ",");
            encoded.push('&');
            encoded.push_str(base64.trim_end_matches('='));
            encoded.push('-');
            pending.clear();
        }
    };
    for letter in name.chars() {
        if (' '..='~').contains(&letter) {
            flush(&mut pending, &mut encoded);
            encoded.push(letter);
            if letter == '&' {
                encoded.push('-');
            }
        } else {
            let mut units = [0; 2];
            pending.extend(letter.encode_utf16(&mut units).iter().flat_map(|unit| unit.to_be_bytes()));
        }
    }
    flush(&mut pending, &mut encoded);
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_folder_is_written_as_the_protocol_wants() {
        for (name, expected) in [
            ("INBOX", "INBOX"),
            ("Sent & more", "Sent &- more"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
        ] {
            assert_eq!(modified_utf7(name), expected);
        }
    }
}
