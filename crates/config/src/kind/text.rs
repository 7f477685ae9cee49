//! Texts and secrets.

use secrecy::{ExposeSecret, SecretString};

use crate::settings_schema::{Exposure, Kind};

pub(crate) const TEXT: Kind<String> = Kind {
    expected: "a non-empty string",
    read: |typed| typed.text().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned),
    write: |text| quote(text),
    exposure: Exposure::Open,
};

/// A text that may be empty, which is the same as leaving the key out.
pub(crate) const OPTIONAL_TEXT: Kind<Option<String>> = Kind {
    expected: "a string, or \"\" for none",
    read: |typed| {
        typed.text().map(|text| Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned))
    },
    write: |text| quote(text.as_deref().unwrap_or_default()),
    exposure: Exposure::Open,
};

pub(crate) const TEXTS: Kind<Vec<String>> = Kind {
    expected: "a list of strings",
    read: |typed| Some(typed.texts()?.into_iter().map(str::to_owned).collect()),
    write: |texts| quote_all(texts),
    exposure: Exposure::Open,
};

/// A key or password; empty is none.
pub(crate) const SECRET: Kind<Option<SecretString>> = Kind {
    expected: "a string in quotes",
    read: |typed| {
        typed.text().map(|text| Some(text.trim()).filter(|text| !text.is_empty()).map(SecretString::from))
    },
    write: |secret| quote(secret.as_ref().map(ExposeSecret::expose_secret).unwrap_or_default()),
    exposure: Exposure::Secret,
};

/// A text as TOML.
pub(crate) fn quote(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// The left side of a `name = …` as TOML, on one line: there, [`quote`] might write a text over several.
pub(crate) fn quote_name(name: &str) -> String {
    let escaped = |character: char| match character {
        '"' | '\\' => format!("\\{character}"),
        _ if character.is_control() => format!("\\u{:04x}", u32::from(character)),
        _ => character.to_string(),
    };
    format!("\"{}\"", name.chars().map(escaped).collect::<String>())
}

/// A list of texts as TOML.
pub(crate) fn quote_all(texts: &[impl AsRef<str>]) -> String {
    toml::Value::Array(texts.iter().map(|text| toml::Value::from(text.as_ref())).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn an_empty_text_is_none_where_none_is_possible() {
        assert_eq!(read_as(&OPTIONAL_TEXT, "\"\""), Some(None));
        assert_eq!(read_as(&OPTIONAL_TEXT, "\"  \""), Some(None));
        assert_eq!(read_as(&OPTIONAL_TEXT, "\"qwen3:8b\""), Some(Some("qwen3:8b".to_owned())));
        assert_eq!(read_as(&OPTIONAL_TEXT, "8"), None);
        assert_eq!(read_as(&TEXT, "\" \""), None);
    }

    #[test]
    fn a_list_takes_texts_only() {
        assert_eq!(read_as(&TEXTS, "['-c', \"8192\"]"), Some(vec!["-c".to_owned(), "8192".to_owned()]));
        assert_eq!(read_as(&TEXTS, "['-c', 8192]"), None);
        assert_eq!(read_as(&TEXTS, "'-c'"), None);
    }

    #[test]
    fn a_secret_is_read_whole_and_never_shown() {
        let secret = read_as(&SECRET, "'sk-1234'").flatten().expect("a key");
        assert_eq!(secret.expose_secret(), "sk-1234");
        assert!(!format!("{secret:?}").contains("1234"));
        assert!(read_as(&SECRET, "''").expect("allowed").is_none());
    }
}
