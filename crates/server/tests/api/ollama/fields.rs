//! The table of Ollama's API in `docs/api-compatibility.md`: the effect of each field, by engine. The test sends every field.

use std::fmt::Write;

use serde_json::{Value, json};

use super::post;
use crate::compatibility::{Outcome, Row, all_engines, check_table, fake_engine, table_row};
use crate::support::TestServer;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn asking(fields: Value) -> Value {
    let mut body = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

fn saying(message: Value) -> Value {
    json!({ "messages": [{ "role": "user", "content": "hi" }, message] })
}

fn option(name: &str, value: Value) -> Value {
    asking(json!({ "options": { name: value } }))
}

fn chat_rows() -> Vec<Row> {
    let tool =
        json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    let call = json!([{ "function": { "name": "f", "arguments": {} } }]);
    vec![
        ("`model`", asking(json!({})), "a tag `:latest` that no engine lists is dropped"),
        ("`messages[].role`, `content`", asking(json!({})), ""),
        (
            "`messages[].images`",
            saying(json!({ "role": "user", "images": [PNG] })),
            "the media type comes from the bytes",
        ),
        (
            "`messages[].thinking`",
            json!({ "messages": [
                { "role": "user", "content": "hi" },
                { "role": "assistant", "content": "x", "thinking": "hm" },
                { "role": "user", "content": "hi" },
            ] }),
            "reasoning of the history",
        ),
        (
            "`messages[].tool_calls`",
            saying(json!({ "role": "assistant", "tool_calls": call })),
            "a call without an id gets one",
        ),
        (
            "`messages[].tool_name`, `tool_call_id`",
            saying(json!({ "role": "tool", "content": "1", "tool_name": "f" })),
            "without them, results belong to the calls in their order",
        ),
        ("`messages: []`", json!({ "messages": [] }), "loads the model"),
        ("`tools`", asking(json!({ "tools": tool })), "calls come with an object of arguments"),
        ("`format: \"json\"`", asking(json!({ "format": "json" })), "`response_format` `json_object`"),
        (
            "`format` with a schema",
            asking(json!({ "format": { "type": "object" } })),
            "`response_format` `json_schema`",
        ),
        ("`stream`", asking(json!({ "stream": false })), "the default is true"),
        (
            "`think: true`, or a level",
            asking(json!({ "think": true })),
            "`reasoning_effort`, or variables of the chat template",
        ),
        ("`think: false`", asking(json!({ "think": false })), "and the answer has no `thinking`"),
        ("`keep_alive`", asking(json!({ "keep_alive": "5m" })), "0 without messages unloads the model"),
        ("`logprobs`, `top_logprobs`", asking(json!({ "logprobs": true, "top_logprobs": 2 })), ""),
        ("`agent`", asking(json!({ "agent": "none" })), "Hob's own field"),
        ("`options.temperature`", option("temperature", json!(0.5)), ""),
        ("`options.num_predict`", option("num_predict", json!(5)), "0 and less, or none: no limit"),
        ("`options.top_p`", option("top_p", json!(0.5)), ""),
        ("`options.seed`", option("seed", json!(5)), "-1: random"),
        ("`options.stop`", option("stop", json!(["x"])), ""),
        ("`options.presence_penalty`, `frequency_penalty`", option("presence_penalty", json!(0.5)), ""),
        ("`options.top_k`", option("top_k", json!(5)), "cloud: Anthropic and Gemini"),
        ("`options.min_p`", option("min_p", json!(0.5)), ""),
        ("`options.repeat_penalty`", option("repeat_penalty", json!(1.1)), ""),
        ("`options.repeat_last_n`", option("repeat_last_n", json!(64)), ""),
        ("`options.typical_p`", option("typical_p", json!(0.5)), ""),
        ("`options.mirostat`, `mirostat_tau`, `mirostat_eta`", option("mirostat", json!(1)), ""),
        (
            "`options.num_ctx`",
            option("num_ctx", json!(4096)),
            "other engines fix the context when they load a model",
        ),
        (
            "`options.num_batch`, `num_gpu`, `main_gpu`, `num_keep`, `num_thread`, `numa`, `use_mmap`, `use_mlock`, `penalize_newline`",
            option("num_gpu", json!(1)),
            "",
        ),
        (
            "`options.low_vram`, `f16_kv`, `vocab_only`, `tfs_z`",
            option("low_vram", json!(true)),
            "of older versions",
        ),
        ("other options and fields", asking(json!({ "tool_choice": "auto" })), ""),
    ]
}

fn generate_rows() -> Vec<Row> {
    vec![
        ("`prompt`", json!({ "prompt": "hi" }), "a question; without it the model is loaded"),
        ("`system`", json!({ "prompt": "hi", "system": "x" }), ""),
        ("`images`", json!({ "prompt": "hi", "images": [PNG] }), ""),
        (
            "`raw`",
            json!({ "prompt": "hi", "raw": true }),
            "continues the text without a template; the cloud gets it as a question",
        ),
        (
            "`suffix`",
            json!({ "prompt": "hi", "suffix": "x" }),
            "filled in by the model's own markers, where it has them",
        ),
        (
            "`template`",
            json!({ "prompt": "hi", "template": "{{ .Prompt }}" }),
            "variables and conditions; other actions are refused",
        ),
        (
            "`template` with other actions",
            json!({ "prompt": "hi", "template": "{{ range .Messages }}{{ end }}" }),
            "",
        ),
        ("`context`", json!({ "prompt": "hi", "context": [1] }), "answers have none"),
    ]
}

/// Regenerate with `HOB_WRITE_DOCS=1 cargo nextest run --workspace the_table_of_ollamas_fields`.
#[tokio::test]
async fn the_table_of_ollamas_fields_is_up_to_date() {
    let fake = fake_engine().await;
    let mut servers = Vec::new();
    for asked in all_engines(&fake) {
        servers.push((asked.name, asked.model, TestServer::start(asked.engine).await));
    }
    let mut table = String::new();
    for (path, rows) in [("/api/chat", chat_rows()), ("/api/generate", generate_rows())] {
        write!(table, "| `{path}` | | |\n| --- | --- | --- |\n").unwrap();
        for row in rows {
            let mut outcomes = Vec::new();
            for (name, model, server) in &servers {
                let mut body = json!({ "model": model, "stream": false });
                body.as_object_mut().unwrap().extend(row.1.as_object().unwrap().clone());
                outcomes.push((*name, Outcome::of(post(server, path, &body).await, row.0).await));
            }
            table.push_str(&table_row(&row, &outcomes));
        }
        table.push('\n');
    }
    check_table("ollama", "the_table_of_ollamas_fields", &table);
}
