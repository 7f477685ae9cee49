//! The kinds of values there are in the file. Each is one constant: what is expected, how it is read, how it is written.

mod address;
mod answer;
mod number;
mod path;
mod reach;
mod sender;
mod text;

pub(crate) use address::{BIND_ADDRESS, DISCOVERY, HOST_NAMES, HTTP_URL, HTTP_URLS, ORIGINS, WEBSOCKET_URL};
pub(crate) use answer::{MAX_TOKENS, TEMPERATURE};
pub(crate) use number::{COUNT, COUNT_OR_NONE, FLAG, LAYERS, PORT, SECONDS, SECONDS_OR_NONE, SHARE};
pub(crate) use path::{ABSOLUTE_PATHS, OPTIONAL_ABSOLUTE_PATH, OPTIONAL_PATH, expand};
pub(crate) use reach::REACH;
pub(crate) use sender::{SENDERS, SENDERS_TRUST};
pub(crate) use text::{OPTIONAL_TEXT, SECRET, TEXT, TEXTS, quote, quote_all, quote_name};

/// Reads `toml`, the right side of a `key = …`, as the given kind.
#[cfg(test)]
pub(crate) fn read_as<T>(kind: &crate::settings_schema::Kind<T>, toml: &str) -> Option<T> {
    let value = toml::de::DeValue::parse(toml).expect("the test gives proper TOML");
    let home = std::path::Path::new("/home/ann");
    (kind.read)(&crate::settings_schema::Typed { value: value.get_ref(), home: Some(home) })
}
