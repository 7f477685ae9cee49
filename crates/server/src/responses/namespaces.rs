//! Tools in namespaces, as Codex offers those of MCP servers. Engines know functions with one name, so a tool is offered under a name of
//! both, and a call of it gets its namespace and its own name again: Codex finds the tool by the two.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// The namespace whose tools are called by their plain names.
const PLAIN_NAMESPACE: &str = "functions";

/// Between the names, unless the namespace ends with it.
const SEPARATOR: &str = "__";

/// The longest name of a function that all providers accept, and what is kept of a longer one before its hash.
const MAX_NAME_CHARS: usize = 64;
const KEPT_CHARS: usize = 47;

/// The name under which a tool is offered to an engine. The same for a tool and for the calls of it in a conversation.
pub(super) fn offered_name(namespace: &str, name: &str) -> String {
    if matches!(namespace, "" | PLAIN_NAMESPACE) {
        return name.to_owned();
    }
    let separator = if namespace.ends_with(SEPARATOR) { "" } else { SEPARATOR };
    let joined = format!("{namespace}{separator}{name}");
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let allowed: String =
        joined.chars().map(|character| if is_allowed(character) { character } else { '_' }).collect();
    if allowed.len() <= MAX_NAME_CHARS {
        return allowed;
    }
    let mut hasher = DefaultHasher::new();
    joined.hash(&mut hasher);
    let kept: String = allowed.chars().take(KEPT_CHARS).collect();
    format!("{kept}_{:016x}", hasher.finish())
}

/// The tools of a request that are in a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Namespaces(Vec<NamespacedTool>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct NamespacedTool {
    offered: String,
    namespace: String,
    name: String,
}

impl Namespaces {
    /// Adds a tool, and gives the name under which it is offered. `is_taken` says which names other tools have.
    pub(super) fn add(&mut self, namespace: &str, name: &str, is_taken: impl Fn(&str) -> bool) -> String {
        let plain = offered_name(namespace, name);
        if plain == name {
            return plain;
        }
        let mut offered = plain.clone();
        let mut number = 2_usize;
        while is_taken(&offered) {
            offered = format!("{plain}_{number}");
            number = number.saturating_add(1);
        }
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        self.0.push(NamespacedTool { offered: offered.clone(), namespace, name });
        offered
    }

    /// The namespace of a tool that a model called, if it has one, and its name there.
    pub(super) fn split<'a>(&'a self, offered: &'a str) -> (Option<&'a str>, &'a str) {
        match self.0.iter().find(|tool| tool.offered == offered) {
            Some(tool) => (Some(&tool.namespace), &tool.name),
            None => (None, offered),
        }
    }

    /// A `tool_choice` with the names under which tools are offered.
    pub(super) fn resolved(&self, choice: &Value) -> Value {
        let mut choice = choice.clone();
        self.rename(&mut choice);
        if let Some(Value::Array(tools)) = choice.get_mut("tools") {
            tools.iter_mut().for_each(|tool| self.rename(tool));
        }
        choice
    }

    fn rename(&self, chosen: &mut Value) {
        let text = |field: &str| chosen.get(field).and_then(Value::as_str);
        let (Some(namespace), Some(name)) = (text("namespace"), text("name")) else { return };
        let known = self.0.iter().find(|tool| tool.namespace == namespace && tool.name == name);
        let offered = known.map_or_else(|| offered_name(namespace, name), |tool| tool.offered.clone());
        if let Some(field) = chosen.get_mut("name") {
            *field = Value::String(offered);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_offered_under_both_names_and_called_by_each() {
        for (namespace, name, expected) in [
            ("functions", "exec", "exec"),
            ("", "exec", "exec"),
            ("mcp__docs", "search", "mcp__docs__search"),
            ("mcp__docs__", "search", "mcp__docs__search"),
            ("a b", "ü.c", "a_b____c"),
        ] {
            assert_eq!(offered_name(namespace, name), expected);
        }
        let mut namespaces = Namespaces::default();
        let offered = namespaces.add("mcp__docs", "search", |_| false);
        assert_eq!(namespaces.split(&offered), (Some("mcp__docs"), "search"));
        assert_eq!(namespaces.split("search"), (None, "search"));
        assert_eq!(namespaces.add("functions", "exec", |_| false), "exec");
        assert_eq!(namespaces.split("exec"), (None, "exec"));
    }

    #[test]
    fn names_are_short_enough_and_unique() {
        let long = "x".repeat(100);
        let (one, other) = (offered_name(&long, "a"), offered_name(&long, "b"));
        assert!(one.len() == MAX_NAME_CHARS && one != other, "{one} {other}");
        let mut namespaces = Namespaces::default();
        let first = namespaces.add("a__b", "c", |_| false);
        let second = namespaces.add("a", "b__c", |name| name == first);
        assert_eq!((first.as_str(), second.as_str()), ("a__b__c", "a__b__c_2"));
        assert_eq!(namespaces.split(&second), (Some("a"), "b__c"));
    }

    #[test]
    fn a_choice_names_a_tool_by_its_namespace() {
        let mut namespaces = Namespaces::default();
        namespaces.add("ns", "f", |_| false);
        let chosen = json!({ "type": "function", "namespace": "ns", "name": "f" });
        assert_eq!(namespaces.resolved(&chosen)["name"], "ns__f");
        let allowed = json!({ "type": "allowed_tools", "tools": [chosen, { "name": "g" }] });
        let allowed = namespaces.resolved(&allowed);
        assert_eq!(
            (&allowed["tools"][0]["name"], &allowed["tools"][1]["name"]),
            (&json!("ns__f"), &json!("g"))
        );
        assert_eq!(namespaces.resolved(&json!("auto")), json!("auto"));
    }
}
