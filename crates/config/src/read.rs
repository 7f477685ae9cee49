//! Reads the text of a configuration file into a [`Config`]. Touches no disk.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::Config;
use crate::did_you_mean::nearest;
use crate::error::{BadValue, ConfigError};
use crate::listing::{join, list};
use crate::settings_schema::{Exposure, Keys, Kind, Section, Typed};
use crate::unknown_settings::ConfigWarning;

/// The number of unknown keys that are named; a file with more is not a configuration of Hob.
const MOST_UNKNOWN: usize = 20;

/// The part of a bad value that an error repeats.
const MOST_SHOWN: usize = 60;

/// A file's text, and what is needed to read it and to report errors.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The path as a person would write it.
    pub file: &'a str,
    pub text: &'a str,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

impl Source<'_> {
    fn line(&self, offset: usize) -> usize {
        line_of(self.text.as_bytes(), offset)
    }
}

/// The line, counted from 1, on which the byte at `offset` stands.
pub(crate) fn line_of(text: &[u8], offset: usize) -> usize {
    1 + text.iter().take(offset).filter(|byte| **byte == b'\n').count()
}

/// Reads a file: what it says, over the defaults.
pub(crate) fn read(source: Source<'_>) -> Result<(Config, Vec<ConfigWarning>), ConfigError> {
    let document = DeTable::parse(source.text).map_err(|error| syntax(source, &error))?;
    let mut config = Config::default();
    let mut reader = Reader::new(source, String::new(), document.get_ref());
    config.keys(&mut reader);
    let Findings { mut bad, unknown } = reader.finish();
    if bad.is_empty() {
        Ok((config, warnings(source, unknown)))
    } else {
        bad.sort_by_key(|value| value.line);
        Err(ConfigError::BadValues(bad))
    }
}

fn syntax(source: Source<'_>, error: &toml::de::Error) -> ConfigError {
    let offset = error.span().map_or(0, |span| span.start).min(source.text.len());
    let before = &source.text.as_bytes()[..offset];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    ConfigError::Syntax {
        file: source.file.to_owned(),
        line: source.line(offset),
        column: 1 + String::from_utf8_lossy(&before[line_start..]).chars().count(),
        reason: error.message().replace('\n', " "),
    }
}

fn warnings(source: Source<'_>, mut unknown: Vec<Unknown>) -> Vec<ConfigWarning> {
    unknown.sort_by_key(|unknown| unknown.offset);
    let total = unknown.len();
    let mut place = 0;
    unknown.retain(|unknown| {
        place += 1;
        // Those of the server decide whether it may start, so none is omitted.
        place <= MOST_UNKNOWN || unknown.name.starts_with("server")
    });
    let count = total - unknown.len();
    let sections = list(&Config::default());
    let section_names: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
    let key_names: Vec<String> = sections.iter().flat_map(|section| section.full_names()).collect();
    let key_names: Vec<&str> = key_names.iter().map(String::as_str).collect();
    let told = unknown.into_iter().map(|unknown| {
        let (file, line) = (source.file.to_owned(), source.line(unknown.offset));
        let name = shorten(&unknown.name.escape_debug().to_string());
        let suggest = |known: &[&str]| nearest(&unknown.name, known).map(str::to_owned);
        match unknown.what {
            What::Key => ConfigWarning::UnknownKey { file, line, key: name, nearest: suggest(&key_names) },
            What::Section => {
                ConfigWarning::UnknownSection { file, line, section: name, nearest: suggest(&section_names) }
            }
            What::Removed => ConfigWarning::NoEffect { file, line, key: name },
        }
    });
    let more = (count > 0).then(|| ConfigWarning::MoreUnknown { file: source.file.to_owned(), count });
    told.chain(more).collect()
}

/// Errors and warnings of the file.
#[derive(Default)]
struct Findings {
    bad: Vec<BadValue>,
    unknown: Vec<Unknown>,
}

struct Unknown {
    name: String,
    what: What,
    offset: usize,
}

enum What {
    Key,
    Section,
    /// A key of earlier versions.
    Removed,
}

/// Reads one section, and through [`Keys::section`] those inside it.
struct Reader<'a> {
    source: Source<'a>,
    /// Full name of the section.
    section: String,
    /// What the file has of it.
    table: &'a DeTable<'a>,
    /// The names asked for so far; whatever else is in the table is unknown.
    known: Vec<&'static str>,
    findings: Findings,
}

impl<'a> Reader<'a> {
    fn new(source: Source<'a>, section: String, table: &'a DeTable<'a>) -> Self {
        Reader { source, section, table, known: Vec::new(), findings: Findings::default() }
    }

    fn take(&mut self, name: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.push(name);
        self.table.get(name)
    }

    fn refuse(&mut self, name: &str, value: &Spanned<DeValue<'_>>, expected: &str, exposure: Exposure) {
        self.findings.bad.push(BadValue {
            file: self.source.file.to_owned(),
            line: self.source.line(value.span().start),
            key: join(&self.section, name),
            expected: expected.to_owned(),
            got: describe(value.get_ref(), exposure),
            nearest: misspelt(value.get_ref(), exposure),
        });
    }

    fn finish(mut self) -> Findings {
        for (name, value) in self.table {
            if !self.known.contains(&name.get_ref().as_ref()) {
                self.findings.unknown.push(Unknown {
                    name: join(&self.section, name.get_ref()),
                    what: if value.get_ref().is_table() { What::Section } else { What::Key },
                    offset: name.span().start,
                });
            }
        }
        self.findings
    }
}

impl Keys for Reader<'_> {
    fn section<S: Section>(&mut self, name: &'static str, section: &mut S, _about: &'static str) {
        let Some(value) = self.take(name) else { return };
        let full_name = join(&self.section, name);
        let Some(table) = value.get_ref().as_table() else {
            return self.refuse(name, value, &format!("a section [{full_name}]"), Exposure::Open);
        };
        let mut inner = Reader::new(self.source, full_name, table);
        section.keys(&mut inner);
        let Findings { bad, unknown } = inner.finish();
        self.findings.bad.extend(bad);
        self.findings.unknown.extend(unknown);
    }

    fn key<T>(&mut self, name: &'static str, field: &mut T, kind: Kind<T>, _about: &'static str) {
        let Some(value) = self.take(name) else { return };
        match (kind.read)(&Typed { value: value.get_ref(), home: self.source.home }) {
            Some(read) => *field = read,
            None => self.refuse(name, value, kind.expected, kind.exposure),
        }
    }

    fn table<T>(
        &mut self,
        name: &'static str,
        field: &mut BTreeMap<String, T>,
        kind: Kind<T>,
        _about: &'static str,
    ) {
        let Some(value) = self.take(name) else { return };
        let Some(table) = value.get_ref().as_table() else {
            let expected = format!("a section [{}]", join(&self.section, name));
            return self.refuse(name, value, &expected, Exposure::Open);
        };
        for (entry, value) in table {
            match (kind.read)(&Typed { value: value.get_ref(), home: self.source.home }) {
                Some(read) => {
                    field.insert(entry.get_ref().clone().into_owned(), read);
                }
                None => {
                    let entry = shorten(&entry.get_ref().escape_debug().to_string());
                    self.refuse(&join(name, &entry), value, kind.expected, kind.exposure);
                }
            }
        }
    }

    fn legacy<T>(&mut self, name: &'static str, field: &mut T, kind: Kind<T>) {
        self.key(name, field, kind, "");
    }

    fn removed(&mut self, name: &'static str) {
        let Some(value) = self.take(name) else { return };
        self.findings.unknown.push(Unknown {
            name: join(&self.section, name),
            what: What::Removed,
            offset: value.span().start,
        });
    }
}

/// The name that was probably meant, where there are names to choose from.
fn misspelt(value: &DeValue<'_>, exposure: Exposure) -> Option<String> {
    let Exposure::OneOf(names) = exposure else { return None };
    nearest(unknown_name(value, names)?, names).map(str::to_owned)
}

/// The text that is none of the names: the value itself, or the first such element of a list.
fn unknown_name<'v>(value: &'v DeValue<'_>, names: &[&str]) -> Option<&'v str> {
    let texts = match value {
        DeValue::Array(elements) => {
            elements.iter().filter_map(|element| element.get_ref().as_str()).collect()
        }
        value => Vec::from_iter(value.as_str()),
    };
    texts.into_iter().map(str::trim).find(|text| !names.contains(text))
}

/// A bad value in a few words.
fn describe(value: &DeValue<'_>, exposure: Exposure) -> String {
    match (value, exposure) {
        (DeValue::Array(_), Exposure::OneOf(names)) => match unknown_name(value, names) {
            Some(unknown) => format!("a list with \"{}\"", shorten(&unknown.escape_debug().to_string())),
            None => "a list".to_owned(),
        },
        (DeValue::Array(_), _) => "a list".to_owned(),
        (DeValue::Table(_), _) => "a section".to_owned(),
        (DeValue::Datetime(_), _) => "a date".to_owned(),
        (_, Exposure::Secret) => "something else".to_owned(),
        (DeValue::String(text), _) => format!("\"{}\"", shorten(&text.escape_debug().to_string())),
        (DeValue::Integer(integer), _) => shorten(&integer.to_string()),
        (DeValue::Float(float), _) => shorten(&float.to_string()),
        (DeValue::Boolean(flag), _) => flag.to_string(),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
