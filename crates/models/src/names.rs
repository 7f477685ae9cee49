//! Names of model files: which are safe, and which files belong to one model.

use std::ffi::OsStr;
use std::path::Path;

pub(crate) const EXTENSION: &str = "gguf";

/// File systems allow 255 bytes, and the name of a part is a little longer.
const MAX_NAME_BYTES: usize = 200;

/// `llama-00002-of-00003` → part 2 of the 3 of `llama`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shard {
    /// The name without the numbers.
    pub stem: String,
    /// From 1.
    pub number: u32,
    pub count: u32,
}

impl Shard {
    /// Parses the stem of a file; `None` if it is not a shard.
    pub fn parse(stem: &str) -> Option<Self> {
        let (rest, count) = stem.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let read = |digits: &str| -> Option<u32> {
            let proper = digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
            proper.then(|| digits.parse().ok())?
        };
        let (number, count) = (read(number)?, read(count)?);
        (!stem.is_empty() && (1..=count).contains(&number)).then(|| Shard {
            stem: stem.to_owned(),
            number,
            count,
        })
    }

    /// The file name of part `number` of `count`.
    pub fn file_name(stem: &str, number: u32, count: u32) -> String {
        match count {
            1 => format!("{stem}.{EXTENSION}"),
            _ => format!("{stem}-{number:05}-of-{count:05}.{EXTENSION}"),
        }
    }
}

/// Whether a path looks like a model. Names with a leading dot belong to other programs.
pub(crate) fn is_model_file(path: &Path) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(is_model_extension)
}

fn is_model_extension(extension: &OsStr) -> bool {
    extension.eq_ignore_ascii_case(EXTENSION)
}

/// `name` without a trailing `.gguf`.
pub(crate) fn without_extension(name: &str) -> &str {
    match name.len().checked_sub(EXTENSION.len() + 1) {
        Some(at) if name.is_char_boundary(at) && name[at..].eq_ignore_ascii_case(".gguf") => &name[..at],
        _ => name,
    }
}

/// Whether an untrusted name is a safe file name.
pub(crate) fn is_safe(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with('.')
        && !name.contains(|c: char| c.is_control() || matches!(c, '/' | '\\' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_distinguished_from_similar_names() {
        let shard = Shard::parse("llama-3-00002-of-00003").unwrap();
        assert_eq!(shard, Shard { stem: "llama-3".into(), number: 2, count: 3 });
        assert_eq!(Shard::file_name("llama-3", 2, 3), "llama-3-00002-of-00003.gguf");
        assert_eq!(Shard::file_name("llama-3", 1, 1), "llama-3.gguf");
        for other in [
            "llama",
            "best-of-breed",
            "a-1-of-2",
            "a-00003-of-00002",
            "a-00000-of-00002",
            "-00001-of-00002",
            "a-0000x-of-00002",
            "a-+0001-of-00002",
        ] {
            assert_eq!(Shard::parse(other), None, "{other}");
        }
    }

    #[test]
    fn names_that_would_leave_the_directory_are_refused() {
        for bad in ["", ".", "..", ".hidden", "../x", "a/b", "a\\b", "a\0b", "a\nb", "c:x"] {
            assert!(!is_safe(bad), "{bad:?}");
        }
        assert!(!is_safe(&"x".repeat(201)));
        assert!(is_safe("Llama-3.2-1B-Instruct-Q4_K_M"));
    }

    #[test]
    fn an_extension_is_removed_ignoring_case() {
        assert_eq!(without_extension("a.gguf"), "a");
        assert_eq!(without_extension("a.GGUF"), "a");
        assert_eq!(without_extension("a.gguf.part"), "a.gguf.part");
        assert_eq!(without_extension("é"), "é");
        assert_eq!(without_extension("日本"), "日本");
    }
}
