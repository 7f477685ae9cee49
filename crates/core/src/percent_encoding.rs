//! Percent-encoding of URIs, such as the references of a JSON Schema.

/// Decodes percent-encoding; `None` if it is invalid.
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_encoding_is_decoded() {
        for (text, expected) in [
            ("/$defs/a", Some("/$defs/a")),
            ("/%24defs/%C3%a4%25", Some("/$defs/ä%")),
            ("", Some("")),
            ("%", None),
            ("%2", None),
            ("%+1", None),
            ("%zz", None),
            ("%ff", None),
        ] {
            assert_eq!(percent_decoded(text).as_deref(), expected, "{text}");
        }
    }
}
