//! The table of Anthropic's API in `docs/api-compatibility.md`: the effect of each field. The test sends every field.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{asking, create};
use crate::compatibility::{Outcome, Row, all_engines, check_table, fake_engine, table_row};
use crate::support::TestServer;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A PDF with the text "Hello PDF".
const PDF: &str = "JVBERi0xLjQKMSAwIG9iago8PCAvVHlwZSAvQ2F0YWxvZyAvUGFnZXMgMiAwIFIgPj4KZW5kb2JqCjIgMCBvYmoKPDwgL1R5cGUgL1BhZ2VzIC9LaWRzIFszIDAgUl0gL0NvdW50IDEgPj4KZW5kb2JqCjMgMCBvYmoKPDwgL1R5cGUgL1BhZ2UgL1BhcmVudCAyIDAgUiAvTWVkaWFCb3ggWzAgMCAzMDAgMjAwXSAvQ29udGVudHMgNCAwIFIgL1Jlc291cmNlcyA8PCAvRm9udCA8PCAvRjEgNSAwIFIgPj4gPj4gPj4KZW5kb2JqCjQgMCBvYmoKPDwgL0xlbmd0aCA0MCA+PgpzdHJlYW0KQlQgL0YxIDI0IFRmIDIwIDEwMCBUZCAoSGVsbG8gUERGKSBUaiBFVAplbmRzdHJlYW0KZW5kb2JqCjUgMCBvYmoKPDwgL1R5cGUgL0ZvbnQgL1N1YnR5cGUgL1R5cGUxIC9CYXNlRm9udCAvSGVsdmV0aWNhID4+CmVuZG9iagp4cmVmCjAgNgowMDAwMDAwMDAwIDY1NTM1IGYgCjAwMDAwMDAwMDkgMDAwMDAgbiAKMDAwMDAwMDA1OCAwMDAwMCBuIAowMDAwMDAwMTE1IDAwMDAwIG4gCjAwMDAwMDAyNDEgMDAwMDAgbiAKMDAwMDAwMDMzMSAwMDAwMCBuIAp0cmFpbGVyIDw8IC9TaXplIDYgL1Jvb3QgMSAwIFIgPj4Kc3RhcnR4cmVmCjQwMQolJUVPRgo=";

fn block(block: Value) -> Value {
    json!({ "messages": [{ "role": "user", "content": [block] }] })
}

fn said(block: Value) -> Value {
    json!({ "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": [block] }, { "role": "user", "content": "b" }] })
}

fn result(content: Value) -> Value {
    block(json!({ "type": "tool_result", "tool_use_id": "t", "content": content }))
}

fn with_tool(fields: Value) -> Value {
    let mut tool = json!({ "name": "f", "input_schema": { "type": "object" } });
    tool.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "tools": [tool] })
}

fn choosing(choice: Value) -> Value {
    let mut fields = with_tool(json!({}));
    fields["tool_choice"] = choice;
    fields
}

fn content_rows() -> Vec<Row> {
    let image =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } });
    let text = json!({ "type": "text", "media_type": "text/plain", "data": "x" });
    let pdf = json!({ "type": "base64", "media_type": "application/pdf", "data": PDF });
    vec![
        (
            "`messages[].role`",
            json!({}),
            "`user`, `assistant`; a `system` message becomes part of the user's turn",
        ),
        ("`text`", block(json!({ "type": "text", "text": "a" })), ""),
        ("`image`", block(image), "`base64` and `url`; only the owner can name an address"),
        ("`document` with `text` or `content`", block(json!({ "type": "document", "source": text })), "text"),
        (
            "`document` with `base64` or `url`",
            block(json!({ "type": "document", "source": pdf })),
            "a PDF; engines that read no files get its text",
        ),
        (
            "`source.file_id`",
            block(json!({ "type": "image", "source": { "type": "file", "file_id": "f" } })),
            "there is no store of files",
        ),
        (
            "`search_result`",
            block(json!({ "type": "search_result", "source": "s", "title": "t", "content": [] })),
            "text",
        ),
        (
            "`citations`",
            block(json!({ "type": "document", "source": text, "citations": { "enabled": true } })),
            "",
        ),
        ("`tool_use`", said(json!({ "type": "tool_use", "id": "t", "name": "f", "input": {} })), ""),
        ("`tool_result`", result(json!("x")), "an image in it follows in the user's turn"),
        (
            "`tool_result.is_error`",
            block(json!({ "type": "tool_result", "tool_use_id": "t", "is_error": true })),
            "the text says `Error:`",
        ),
        (
            "`tool_reference`",
            result(json!([{ "type": "tool_reference", "tool_name": "f" }])),
            "the model gets the deferred tool",
        ),
        (
            "`thinking`",
            said(json!({ "type": "thinking", "thinking": "hm", "signature": "s" })),
            "reasoning of the history; Anthropic gets its own signature back",
        ),
        (
            "`redacted_thinking`",
            said(json!({ "type": "redacted_thinking", "data": "s" })),
            "for Anthropic; no other engine can read it",
        ),
        (
            "`server_tool_use` and results of server tools",
            said(json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} })),
            "",
        ),
        (
            "`cache_control`",
            block(json!({ "type": "text", "text": "a", "cache_control": { "type": "ephemeral" } })),
            "engines cache by themselves",
        ),
    ]
}

fn request_rows() -> Vec<Row> {
    vec![
        ("`model`", json!({}), "also `default`, `auto` and the names of `[models.aliases]`"),
        ("`max_tokens`", json!({}), "required"),
        ("`system`", json!({ "system": [{ "type": "text", "text": "a" }] }), "string or blocks"),
        ("`stream`", json!({ "stream": false }), ""),
        ("`temperature`, `top_p`", json!({ "temperature": 0.5, "top_p": 0.9 }), ""),
        ("`top_k`", json!({ "top_k": 5 }), ""),
        (
            "`stop_sequences`",
            json!({ "stop_sequences": ["x"] }),
            "the answer has `stop_sequence` if the engine reports it",
        ),
        ("`tools[]`", with_tool(json!({})), "with `input_schema`"),
        ("`tools[].strict`", with_tool(json!({ "strict": true })), ""),
        (
            "`tools[].defer_loading`",
            with_tool(json!({ "defer_loading": true })),
            "withheld until a `tool_reference` names the tool",
        ),
        (
            "`tools[]` without `input_schema`",
            json!({ "tools": [{ "type": "web_search_20250305", "name": "web_search" }] }),
            "tools that run at Anthropic",
        ),
        ("`tool_choice` `auto`, `any`, `tool`, `none`", choosing(json!({ "type": "any" })), ""),
        (
            "`tool_choice.disable_parallel_tool_use`",
            choosing(json!({ "type": "auto", "disable_parallel_tool_use": true })),
            "",
        ),
        (
            "`thinking` `enabled`, `adaptive`, `disabled`",
            json!({ "thinking": { "type": "adaptive" } }),
            "`reasoning_effort`",
        ),
        (
            "`thinking.display`",
            json!({ "thinking": { "type": "adaptive", "display": "omitted" } }),
            "the signature carries the reasoning",
        ),
        ("`output_config.effort`", json!({ "output_config": { "effort": "low" } }), "`reasoning_effort`"),
        (
            "`output_config.format`, `output_format`",
            json!({ "output_config": { "format": { "type": "json_schema", "schema": { "type": "object" } } } }),
            "`response_format`",
        ),
        (
            "`output_config.task_budget`",
            json!({ "output_config": { "task_budget": { "type": "tokens", "total": 5 } } }),
            "",
        ),
        ("`metadata.user_id`", json!({ "metadata": { "user_id": "ann" } }), "about the caller only"),
        ("`service_tier`", json!({ "service_tier": "auto" }), "there is one tier"),
        ("`context_management`", json!({ "context_management": { "edits": [] } }), ""),
        ("`container`", json!({ "container": "c" }), ""),
        (
            "`mcp_servers`",
            json!({ "mcp_servers": [{ "type": "url", "url": "https://example.org", "name": "x" }] }),
            "",
        ),
        ("`agent`", json!({ "agent": "none" }), "Hob's own field"),
        ("fields that engines know, such as `min_p`", json!({ "min_p": 0.1 }), "pass to the engine"),
        ("other fields", json!({ "speed": "fast" }), ""),
    ]
}

/// Regenerate with `HOB_WRITE_DOCS=1 cargo nextest run --workspace the_table_of_anthropics_fields`.
#[tokio::test]
async fn the_table_of_anthropics_fields_is_true() {
    let fake = fake_engine().await;
    let mut servers = Vec::new();
    for asked in all_engines(&fake) {
        servers.push((asked.name, asked.model, TestServer::start(asked.engine).await));
    }
    let mut table = String::new();
    for (title, rows) in [("Field of the request", request_rows()), ("Content", content_rows())] {
        write!(table, "\n| {title} | | |\n| --- | --- | --- |\n").unwrap();
        for row in rows {
            let mut outcomes = Vec::new();
            for (name, model, server) in &servers {
                let mut body = asking(row.1.clone());
                body["model"] = json!(model);
                outcomes.push((*name, Outcome::of(create(server, &body).await, row.0).await));
            }
            table.push_str(&table_row(&row, &outcomes));
        }
    }
    table.push('\n');
    check_table("anthropic", "the_table_of_anthropics_fields", &table);
}
