//! The names of the engines.

use std::str::FromStr;

use thiserror::Error;

use crate::kind::{quote, quote_all};
use crate::settings_schema::{Exposure, Kind};

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EngineName {
    Ollama,
    Vllm,
    Sglang,
    Llamacpp,
    Litellm,
    Cloud,
    /// llama.cpp inside this process.
    Embedded,
}

hob_core::named_variants! {
    EngineName {
        Ollama => "ollama",
        Vllm => "vllm",
        Sglang => "sglang",
        Llamacpp => "llamacpp",
        Litellm => "litellm",
        Cloud => "cloud",
        Embedded => "embedded",
    }
}

/// A name that no engine has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown engine '{0}'; known engines: ollama, vllm, sglang, llamacpp, litellm, cloud, embedded")]
pub struct UnknownEngine(String);

impl FromStr for EngineName {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        EngineName::parse(name).ok_or_else(|| UnknownEngine(name.escape_debug().to_string()))
    }
}

/// Their names, for error messages.
const NAMES: [&str; 7] = ["ollama", "vllm", "sglang", "llamacpp", "litellm", "cloud", "embedded"];

/// An engine, or `""` for "not chosen".
pub(crate) const ENGINE: Kind<Option<EngineName>> = Kind {
    expected: "one of ollama, vllm, sglang, llamacpp, litellm, cloud, embedded",
    read: |typed| match typed.text()?.trim() {
        "" => Some(None),
        name => name.parse().ok().map(Some),
    },
    write: |key| quote(key.map_or("", EngineName::as_str)),
    exposure: Exposure::OneOf(&NAMES),
};

/// An ordered list of engines. Only the first occurrence of each counts.
pub(crate) const ENGINES: Kind<Vec<EngineName>> = Kind {
    expected: "a list of the engines ollama, vllm, sglang, llamacpp, litellm, cloud, embedded",
    read: |typed| {
        let mut keys: Vec<EngineName> = Vec::new();
        for name in typed.texts()? {
            let key = name.trim().parse().ok()?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Some(keys)
    },
    write: |keys| quote_all(&keys.iter().map(|key| key.as_str()).collect::<Vec<_>>()),
    exposure: Exposure::OneOf(&NAMES),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn every_engine_is_read_by_its_name_and_named_in_the_messages() {
        assert_eq!(NAMES, EngineName::ALL.map(EngineName::as_str));
        let refusal = UnknownEngine(String::new()).to_string();
        for key in EngineName::ALL {
            assert_eq!(key.as_str().parse(), Ok(key));
            assert_eq!(read_as(&ENGINE, &quote(key.as_str())), Some(Some(key)));
            assert!(refusal.contains(key.as_str()), "{key} is missing in: {refusal}");
            for expected in [ENGINE.expected, ENGINES.expected] {
                assert!(expected.contains(key.as_str()), "{key} is missing in: {expected}");
            }
        }
        assert_eq!("olama".parse::<EngineName>(), Err(UnknownEngine("olama".to_owned())));
    }

    #[test]
    fn a_list_of_engines_keeps_its_order_and_names_each_once() {
        let read = read_as(&ENGINES, "['vllm', 'ollama', 'vllm']");
        assert_eq!(read, Some(vec![EngineName::Vllm, EngineName::Ollama]));
        assert_eq!(read_as(&ENGINES, "[]"), Some(Vec::new()));
        assert_eq!(read_as(&ENGINES, "['vllm', 'gpt']"), None);
        assert_eq!(read_as(&ENGINES, "'vllm'"), None);
    }

    #[test]
    fn an_empty_engine_means_that_none_was_chosen() {
        assert_eq!(read_as(&ENGINE, "''"), Some(None));
        assert_eq!(read_as(&ENGINE, "'gpt'"), None);
    }
}
