//! Changes one value in the text of a configuration file, and leaves everything else in it as it is, comments included.

use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use crate::kind::{quote, quote_name};

/// The text with `key` of `[section]` set to a value that is written as TOML; `None` where it is written in a way that cannot be
/// changed in place.
///
/// Tries every way of writing it and uses the first that changes only this value, so the result never differs in other
/// settings.
pub(crate) fn set_text(text: &str, section: &str, key: &str, value: &str) -> Option<String> {
    let mut meant: Table = text.parse().ok()?;
    let mut one: Table = format!("value = {value}").parse().ok()?;
    inner_table(&mut meant, section)?.insert(key.to_owned(), one.remove("value")?);
    let line = format!("{} = {value}", written_key(key));
    let ways = [
        replaced(text, section, key, value),
        below_header(text, section, &line),
        Some(with_section(text, section, &line)),
        Some(format!("{section}.{line}\n{text}")),
    ];
    first_that_means(&meant, ways)
}

/// A key as TOML, in quotes if it needs them.
fn written_key(key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    match !key.is_empty() && key.bytes().all(is_plain) {
        true => key.to_owned(),
        false => quote_name(key),
    }
}

/// A value as TOML; `None` for null.
pub(crate) fn literal(value: &Json) -> Option<String> {
    Some(match value {
        Json::Null => return None,
        Json::String(text) => quote(text),
        Json::Bool(flag) => flag.to_string(),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => integer.to_string(),
            None => Value::Float(number.as_f64()?).to_string(),
        },
        Json::Array(values) => {
            let values: Option<Vec<String>> = values.iter().map(literal).collect();
            format!("[{}]", values?.join(", "))
        }
        Json::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| Some(format!("{} = {}", quote_name(name), literal(value)?)));
            let fields: Option<Vec<String>> = fields.collect();
            format!("{{ {} }}", fields?.join(", "))
        }
    })
}

/// The text without `key` of `[section]`; `None` as above.
pub(crate) fn remove_text(text: &str, section: &str, key: &str) -> Option<String> {
    let mut meant: Table = text.parse().ok()?;
    inner_table(&mut meant, section)?.remove(key);
    first_that_means(&meant, [Some(text.to_owned()), without_lines(text, section, key)])
}

/// Whether the document has a value for `key` of `[section]`.
pub(crate) fn has_key(document: &DeTable<'_>, section: &str, key: &str) -> bool {
    find(document, section, key).is_some()
}

fn first_that_means(meant: &Table, ways: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let is_meant = |edited: &String| {
        edited.parse::<Table>().is_ok_and(|read| without_empty(read) == without_empty(meant.clone()))
    };
    ways.into_iter().flatten().find(is_meant)
}

/// Without sections that have no keys: they mean nothing.
fn without_empty(table: Table) -> Table {
    let kept = table.into_iter().filter_map(|(name, value)| match value {
        Value::Table(inner) => {
            let inner = without_empty(inner);
            (!inner.is_empty()).then_some((name, Value::Table(inner)))
        }
        value => Some((name, value)),
    });
    kept.collect()
}

/// The table of a section such as `engine.ollama`, which is made where there is none. `None` if something else has its name.
fn inner_table<'a>(table: &'a mut Table, section: &str) -> Option<&'a mut Table> {
    section.split('.').try_fold(table, |outer, name| {
        outer.entry(name).or_insert_with(|| Value::Table(Table::new())).as_table_mut()
    })
}

/// The value of a key in the document.
fn find<'a>(document: &'a DeTable<'a>, section: &str, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
    let table = section.split('.').try_fold(document, |outer, name| outer.get(name)?.get_ref().as_table())?;
    table.get(key)
}

/// Another value in the place of the one that is there.
fn replaced(text: &str, section: &str, key: &str, value: &str) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let span = find(document.get_ref(), section, key)?.span();
    Some(format!("{}{value}{}", text.get(..span.start)?, text.get(span.end..)?))
}

/// Without the lines on which the key and its value stand.
fn without_lines(text: &str, section: &str, key: &str) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let span = find(document.get_ref(), section, key)?.span();
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |newline| newline + 1);
    let end = text.get(span.end..)?.find('\n').map_or(text.len(), |newline| span.end + newline + 1);
    Some(format!("{}{}", text.get(..start)?, text.get(end..)?))
}

/// A line below the section's header.
fn below_header(text: &str, section: &str, line: &str) -> Option<String> {
    let mut end = 0;
    for written in text.split_inclusive('\n') {
        end += written.len();
        let header = written.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
        if header.is_some_and(|(name, _)| name.trim() == section) {
            let (before, after) = text.split_at(end);
            let newline = if before.ends_with('\n') { "" } else { "\n" };
            return Some(format!("{before}{newline}{line}\n{after}"));
        }
    }
    None
}

/// The section with this line, at the end.
fn with_section(text: &str, section: &str, line: &str) -> String {
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}[{section}]\n{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(text: &str, section: &str, key: &str) -> bool {
        has_key(DeTable::parse(text).expect("TOML").get_ref(), section, key)
    }

    fn edited(text: &str) -> String {
        set_text(text, "intelligence", "default_model", "\"qwen3:8b\"").expect("it can be changed")
    }

    #[test]
    fn a_value_is_replaced_where_it_stands_and_comments_stay() {
        let text = "# mine\n[intelligence] # who answers\n# default_model = 'no'\ndefault_model = 'old' # for now\nrouter = 'grpo'\n";
        assert_eq!(edited(text), text.replace("'old'", "\"qwen3:8b\""));
        assert_eq!(edited("intelligence.default_model = ''"), "intelligence.default_model = \"qwen3:8b\"");
        assert_eq!(
            edited("intelligence = { default_model = \"a\", router = \"grpo\" }\n"),
            "intelligence = { default_model = \"qwen3:8b\", router = \"grpo\" }\n"
        );
    }

    #[test]
    fn a_value_that_is_not_there_yet_is_added_to_its_section() {
        assert_eq!(
            edited("[ intelligence ]\nrouter = 'grpo'\n\n[server]\nport = 1\n"),
            "[ intelligence ]\ndefault_model = \"qwen3:8b\"\nrouter = 'grpo'\n\n[server]\nport = 1\n"
        );
        assert_eq!(edited("[intelligence]"), "[intelligence]\ndefault_model = \"qwen3:8b\"\n");
        assert_eq!(edited(""), "[intelligence]\ndefault_model = \"qwen3:8b\"\n");
        assert_eq!(
            edited("[server]\nport = 1"),
            "[server]\nport = 1\n\n[intelligence]\ndefault_model = \"qwen3:8b\"\n"
        );
        assert_eq!(
            edited("intelligence.router = 'grpo'\n"),
            "intelligence.default_model = \"qwen3:8b\"\nintelligence.router = 'grpo'\n"
        );
    }

    #[test]
    fn a_text_that_only_looks_like_the_section_is_left_alone() {
        let text = "[server]\nmodel = '''\n[intelligence]\n'''\n";
        let after = edited(text);
        assert!(after.starts_with(text), "{after}");
        assert_eq!(set_text("intelligence = 1", "intelligence", "default_model", "'m'"), None);
        assert_eq!(set_text("not toml", "intelligence", "default_model", "'m'"), None);
    }

    #[test]
    fn any_name_of_a_model_survives() {
        for name in ["a\"b", "a\\b", "a'b", "a\nb", "hf:owner/repo:Q4", "ä # b"] {
            let after =
                set_text("# x\n", "intelligence", "default_model", &quote(name)).expect("it can be changed");
            let read: Table = after.parse().expect("TOML");
            assert_eq!(read["intelligence"]["default_model"].as_str(), Some(name));
        }
    }

    #[test]
    fn a_key_with_dots_is_written_in_quotes_and_found_again() {
        let text = set_text("", "sources.feeds", "example.org", "'a'").expect("it can be added");
        assert_eq!(text, "[sources.feeds]\n\"example.org\" = 'a'\n");
        assert!(has(&text, "sources.feeds", "example.org"));
        let changed = set_text(&text, "sources.feeds", "example.org", "'b'").expect("it can be changed");
        assert_eq!(changed, text.replace("'a'", "'b'"));
    }

    #[test]
    fn a_key_of_an_inner_section_is_set_and_removed() {
        let text =
            "[engine]\ndefault = 'ollama'\n\n# mine\n[engine.ollama]\n# slow disk\ntimeout = 9.0 # seconds\n";
        let set = set_text(text, "engine.ollama", "timeout", "30").expect("it can be changed");
        assert_eq!(set, text.replace("9.0", "30"));
        let removed = remove_text(&set, "engine.ollama", "timeout").expect("it can be removed");
        assert_eq!(removed, text.replace("timeout = 9.0 # seconds\n", ""));
        assert_eq!(remove_text(&removed, "engine.ollama", "timeout"), Some(removed.clone()));
        assert_eq!(
            (has(&set, "engine.ollama", "timeout"), has(&removed, "engine.ollama", "timeout")),
            (true, false)
        );
        let added = set_text("", "engine.embedded", "threads", "4").expect("it can be added");
        assert_eq!(added, "[engine.embedded]\nthreads = 4\n");
    }

    #[test]
    fn a_key_among_others_on_its_line_is_not_removed_with_them() {
        let text = "intelligence = { default_model = 'a', router = 'grpo' }\n";
        assert_eq!(remove_text(text, "intelligence", "default_model"), None);
    }
}
