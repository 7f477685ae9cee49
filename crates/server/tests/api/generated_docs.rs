//! Makes `docs/api.md` from the API description, and the table of request limits in `docs/security.md`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use hob_core::request_budget::{LIMITS, thousands};
use serde_json::{Map, Value};

fn page_at(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

const BUDGET_BEGINS: &str = "<!-- request-budget: made from crates/core/src/request_budget.rs. To renew it: HOB_WRITE_DOCS=1 cargo nextest run -p hob-server the_table_of_limits -->\n";
const BUDGET_ENDS: &str = "<!-- /request-budget -->";

/// Regenerate with `HOB_WRITE_DOCS=1 cargo nextest run -p hob-server the_table_of_limits`.
#[test]
fn the_table_of_limits_is_up_to_date() {
    let mut table = "| Field | Unit | Limit |\n| --- | --- | ---: |\n".to_owned();
    for limit in LIMITS {
        writeln!(table, "| {} | {} | {} |", limit.field, limit.what, thousands(limit.most)).unwrap();
    }
    let path = page_at("security.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BUDGET_BEGINS).expect("the table's beginning is marked");
    let (written, after) = rest.split_once(BUDGET_ENDS).expect("the table's end is marked");
    if std::env::var_os("HOB_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BUDGET_BEGINS}{table}{BUDGET_ENDS}{after}")).unwrap();
    } else {
        assert_eq!(
            written, table,
            "run: HOB_WRITE_DOCS=1 cargo nextest run -p hob-server the_table_of_limits"
        );
    }
}

/// Regenerate with `HOB_WRITE_DOCS=1 cargo nextest run -p hob-server the_page_of_the_api`.
#[test]
fn the_page_of_the_api_is_up_to_date() {
    let document: Value = serde_json::from_str(include_str!("../../src/admin/openapi.json")).unwrap();
    let page = page(&document);
    let path = page_at("api.md");
    if std::env::var_os("HOB_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/api.md is out of date. Run: HOB_WRITE_DOCS=1 cargo nextest run -p hob-server the_page_of_the_api"
    );
}

fn page(document: &Value) -> String {
    let mut page = "# API\n\n\
        <!-- Made from crates/server/src/admin/openapi.json. To renew it: HOB_WRITE_DOCS=1 cargo nextest run -p hob-server the_page_of_the_api -->\n\n\
        All requests of the server. `GET /openapi.json` has the same for programs; [Serve the API](serving.md) explains how to use it. If\n\
        `[server] api_key` is set, every request except `GET /health`, the probes below it and the browser pages must send it: `authorization: Bearer KEY`.\n\
        Every answer has an `x-request-id`, which the server's log and traces contain too; only the answer to bytes that are no HTTP request has none.\n\n\
        | Request | Description |\n| --- | --- |\n"
        .to_owned();
    let operations = operations(document);
    for (title, operation) in &operations {
        writeln!(page, "| [`{title}`](#{}) | {} |", anchor(title), text(operation, "summary")).unwrap();
    }
    for (title, operation) in &operations {
        describe(&mut page, title, operation, document);
    }
    page += "\n## Schemas\n";
    for (name, schema) in fields(&document["components"]["schemas"]) {
        write!(page, "\n### {name}\n\n").unwrap();
        describe_schema(&mut page, schema);
    }
    page
}

fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = fields(&document["paths"]);
    paths
        .flat_map(|(path, methods)| {
            fields(methods)
                .map(move |(method, operation)| (format!("{} {path}", method.to_uppercase()), operation))
        })
        .collect()
}

/// What a value stands for, itself or elsewhere in the document.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let named = text(value, "$ref").strip_prefix('#').and_then(|name| document.pointer(name));
    named.unwrap_or(value)
}

fn describe(page: &mut String, title: &str, operation: &Value, document: &Value) {
    write!(page, "\n## `{title}`\n\n{}.", text(operation, "summary")).unwrap();
    if !text(operation, "description").is_empty() {
        write!(page, " {}", sentence(text(operation, "description"))).unwrap();
    }
    page.push('\n');
    let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    if !parameters.is_empty() {
        *page += "\n| Parameter | In | Type | |\n| --- | --- | --- | --- |\n";
        for parameter in parameters {
            let (name, place) = (text(parameter, "name"), text(parameter, "in"));
            let required = if parameter["required"] == true { "" } else { ", optional" };
            let about = cell(text(parameter, "description"));
            writeln!(page, "| `{name}` | {place}{required} | {} | {about} |", kind(&parameter["schema"]))
                .unwrap();
        }
    }
    for (media, content) in fields(&operation["requestBody"]["content"]) {
        writeln!(page, "\nBody: `{media}`, {}.", kind(&content["schema"])).unwrap();
    }
    *page += "\n| Status | Meaning | Body |\n| --- | --- | --- |\n";
    for (status, response) in fields(&operation["responses"]) {
        let response = resolved(document, response);
        let bodies: Vec<String> = fields(&response["content"])
            .map(|(media, content)| match media {
                "application/json" => kind(&content["schema"]),
                other => format!("{} as `{other}`", kind(&content["schema"])),
            })
            .collect();
        let about = cell(text(response, "description"));
        writeln!(page, "| {status} | {about} | {} |", bodies.join("; or ")).unwrap();
    }
    let refusals = operation["x-also-refused"].as_array().map_or(&[][..], Vec::as_slice);
    if !refusals.is_empty() {
        *page += "\n| Field | Also refused with 400 if |\n| --- | --- |\n";
        for refusal in refusals {
            writeln!(page, "| `{}` | {} |", text(refusal, "param"), cell(text(refusal, "when"))).unwrap();
        }
    }
    describe_headers(page, &operation["responses"], document);
}

/// What answers say besides their bodies.
fn describe_headers(page: &mut String, responses: &Value, document: &Value) {
    let mut rows = fields(responses)
        .flat_map(|(status, response)| {
            let headers = fields(&resolved(document, response)["headers"]);
            headers.map(move |(name, header)| (status, name, resolved(document, header)))
        })
        // Every answer has it.
        .filter(|(_, name, _)| *name != "x-request-id")
        .peekable();
    if rows.peek().is_some() {
        *page += "\n| Header | Status | Meaning |\n| --- | --- | --- |\n";
    }
    for (status, name, header) in rows {
        writeln!(page, "| `{name}` | {status} | {} |", cell(text(header, "description"))).unwrap();
    }
}

/// A schema of its own: its fields, or what it is.
fn describe_schema(page: &mut String, schema: &Value) {
    if !text(schema, "description").is_empty() {
        write!(page, "{}\n\n", sentence(text(schema, "description"))).unwrap();
    }
    let mut rows = Vec::new();
    collect(schema, "", &mut rows);
    if rows.is_empty() {
        writeln!(page, "{}.", capitalised(&kind(schema))).unwrap();
        return;
    }
    *page += "| Field | Type | |\n| --- | --- | --- |\n";
    for row in rows {
        *page += &row;
    }
}

/// A row for each field, those of objects inside included, by their path: `choices[].index`.
fn collect(schema: &Value, path: &str, rows: &mut Vec<String>) {
    let parts = ["allOf", "anyOf"].into_iter().flat_map(|word| schema[word].as_array().into_iter().flatten());
    for part in parts {
        let base = text(part, "$ref");
        // Of a choice, the schemas that have a name are described under it.
        if base.is_empty() || schema["anyOf"].is_array() {
            collect(part, path, rows);
        } else {
            rows.push(format!("| … | | all of {} |\n", link(base)));
        }
    }
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    for (name, field) in fields(&schema["properties"]) {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let mark = if required.iter().any(|required| required == name) { "" } else { ", optional" };
        rows.push(format!("| `{path}` | {}{mark} | {} |\n", kind(field), cell(&about(field))));
        if field["items"].is_object() {
            collect(&field["items"], &format!("{path}[]"), rows);
        }
        collect(field, &path, rows);
    }
}

/// What the description says, and the bounds.
fn about(schema: &Value) -> String {
    let mut facts = vec![text(schema, "description").to_owned()];
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, Value::Null) => {}
        (least, Value::Null) => facts.push(format!("{least} or more")),
        (Value::Null, most) => facts.push(format!("{most} at most")),
        (least, most) => facts.push(format!("{least} to {most}")),
    }
    for (bound, unit) in [("maxLength", "characters"), ("maxItems", "entries"), ("maxProperties", "entries")]
    {
        if let Some(most) = schema[bound].as_u64().and_then(|most| usize::try_from(most).ok()) {
            facts.push(format!("{} {unit} at most", thousands(most)));
        }
    }
    if !schema["default"].is_null() {
        facts.push(format!("default `{}`", schema["default"]));
    }
    facts.retain(|fact| !fact.is_empty());
    facts.join("; ")
}

/// What may stand there, in a few words.
fn kind(schema: &Value) -> String {
    if !text(schema, "$ref").is_empty() {
        return link(text(schema, "$ref"));
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[choice].as_array() {
            return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    if !schema["const"].is_null() {
        return format!("`{}`", schema["const"]);
    }
    let one = |name: &str| match name {
        "array" => match kind(&schema["items"]).as_str() {
            "anything" => "array".to_owned(),
            items => format!("array of {items}"),
        },
        name => match text(schema, "format") {
            "" => name.to_owned(),
            format => format!("{name} ({format})"),
        },
    };
    match &schema["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            names
                .map(|name| if name == "null" { name.to_owned() } else { one(name) })
                .collect::<Vec<_>>()
                .join(" or ")
        }
        _ => "anything".to_owned(),
    }
}

fn link(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    format!("[{name}](#{})", anchor(name))
}

/// As the book names its headings.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn fields(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter).map(|(name, value)| (name.as_str(), value))
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

fn sentence(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
