//! Any text in a TEXT column. PostgreSQL refuses U+0000, so that character is escaped, and what is read equals what was written.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Debug;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Begins an escape. Ordinary text, JSON and the output of terminals do not contain it.
const ESCAPE: char = '\u{1a}';

/// Follows `ESCAPE` where the text has U+0000. A second `ESCAPE` follows where the text has `ESCAPE` itself.
const NUL: char = '0';

/// A text as a parameter or as a column. Texts without U+0000 and U+001A are stored as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlText<T>(pub T);

impl<T: AsRef<str> + Debug> ToSql for SqlText<T> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        escape(self.0.as_ref()).as_ref().to_sql(kind, out)
    }

    fn accepts(kind: &Type) -> bool {
        <&str as ToSql>::accepts(kind)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for SqlText<String> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(SqlText(unescape(<&str>::from_sql(kind, raw)?)))
    }

    fn accepts(kind: &Type) -> bool {
        <&str as FromSql>::accepts(kind)
    }
}

/// The name with U+FFFD in place of U+0000. For names of call records, such as those of models; all other text is a [`SqlText`].
pub fn clean_name(name: &str) -> Cow<'_, str> {
    if name.contains('\0') { Cow::Owned(name.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(name) }
}

pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\0' => out.extend([ESCAPE, NUL]),
            ESCAPE => out.extend([ESCAPE, ESCAPE]),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

pub(crate) fn unescape(text: &str) -> String {
    if !text.contains(ESCAPE) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => match characters.next() {
                Some(NUL) => out.push('\0'),
                // Another one, or a text that was written without the escape.
                Some(other) => out.push(other),
                None => out.push(ESCAPE),
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_read_as_it_was_written_and_none_has_the_refused_character() {
        for text in ["", "plain ü 🦀", "\0", "a\0b\0", "\u{1a}", "\u{1a}0", "\0\u{1a}\0", "\u{1a}\u{1a}0\0"]
        {
            let escaped = escape(text);
            assert!(!escaped.contains('\0'), "{text:?}");
            assert_eq!(unescape(&escaped), text);
        }
        assert!(matches!(escape("plain"), Cow::Borrowed(_)));
    }
}
