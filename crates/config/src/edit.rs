//! Changes one value in the text of a configuration file, and leaves everything else in it as it is, comments included.

use toml::de::DeTable;
use toml::{Table, Value};

use crate::kind::quote;

/// The text with `key` of `[section]` set; `None` where it is written in a way that cannot be changed in place.
///
/// Tries every way of writing it and uses the first that changes only this value, so the result never differs in other
/// settings.
pub(crate) fn set_text(text: &str, section: &str, key: &str, value: &str) -> Option<String> {
    let meant = meant(text, section, key, value)?;
    let line = format!("{key} = {}", quote(value));
    let ways = [
        replaced(text, section, key, value),
        below_header(text, section, &line),
        Some(with_section(text, section, &line)),
        Some(format!("{section}.{line}\n{text}")),
    ];
    ways.into_iter().flatten().find(|edited| edited.parse::<Table>().is_ok_and(|read| read == meant))
}

/// The value to write.
fn meant(text: &str, section: &str, key: &str, value: &str) -> Option<Table> {
    let mut table: Table = text.parse().ok()?;
    let inner = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    inner.as_table_mut()?.insert(key.to_owned(), Value::from(value));
    Some(table)
}

/// Another value in the place of the one that is there.
fn replaced(text: &str, section: &str, key: &str, value: &str) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let span = document.get_ref().get(section)?.get_ref().as_table()?.get(key)?.span();
    Some(format!("{}{}{}", text.get(..span.start)?, quote(value), text.get(span.end..)?))
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

    fn edited(text: &str) -> String {
        set_text(text, "intelligence", "default_model", "qwen3:8b").expect("it can be changed")
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
        assert_eq!(set_text("intelligence = 1", "intelligence", "default_model", "m"), None);
        assert_eq!(set_text("not toml", "intelligence", "default_model", "m"), None);
    }

    #[test]
    fn any_name_of_a_model_survives() {
        for name in ["a\"b", "a\\b", "a'b", "a\nb", "hf:owner/repo:Q4", "ä # b"] {
            let after = set_text("# x\n", "intelligence", "default_model", name).expect("it can be changed");
            let read: Table = after.parse().expect("TOML");
            assert_eq!(read["intelligence"]["default_model"].as_str(), Some(name));
        }
    }
}
