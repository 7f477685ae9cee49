//! The table of the Responses API in `docs/api-compatibility.md`: the effect of each field. The test sends every field.

use hob_testkit::{FakeServer, Reply};
use serde_json::{Value, json};

use super::StoringServer;
use crate::compatibility::{Outcome, Row, all_engines, check_table, fake_engine, table_row};

fn said(content: Value) -> Value {
    json!({ "input": [{ "role": "user", "content": [content] }] })
}

fn after_question(items: Value) -> Value {
    let mut input = vec![json!({ "role": "user", "content": "a" })];
    input.extend(items.as_array().unwrap().iter().cloned());
    json!({ "input": input })
}

fn with_tool(fields: Value) -> Value {
    let mut tool = json!({ "type": "function", "name": "f" });
    tool.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "tools": [tool] })
}

fn choosing(choice: Value) -> Value {
    let mut fields = with_tool(json!({}));
    fields["tool_choice"] = choice;
    fields
}

fn request_rows() -> Vec<Row> {
    let schema =
        json!({ "type": "json_schema", "name": "n", "schema": { "type": "object" }, "strict": true });
    let grammar = json!({ "type": "grammar", "syntax": "lark", "definition": "start: \"x\"" });
    vec![
        ("`model`", json!({}), "also `default` and `auto`"),
        ("`input`", json!({}), "string or items"),
        ("`instructions`", json!({ "instructions": "a" }), "not carried over by `previous_response_id`"),
        ("`stream`", json!({ "stream": true }), "with sequence numbers"),
        (
            "`stream_options.include_obfuscation`",
            json!({ "stream_options": { "include_obfuscation": true } }),
            "`false` is what Hob does",
        ),
        ("`temperature`, `top_p`", json!({ "temperature": 0.5, "top_p": 0.9 }), ""),
        ("`max_output_tokens`", json!({ "max_output_tokens": 16 }), "the default is no limit"),
        ("`max_tool_calls`", json!({ "max_tool_calls": 3 }), "counts tools that only OpenAI runs"),
        ("`top_logprobs`", json!({ "top_logprobs": 2 }), ""),
        (
            "`tools[]` `function`",
            with_tool(json!({ "parameters": { "type": "object" }, "strict": true })),
            "",
        ),
        (
            "`tools[]` `custom`",
            json!({ "tools": [{ "type": "custom", "name": "c" }] }),
            "emulated: a function with one string",
        ),
        (
            "`tools[].format` `grammar`",
            json!({ "tools": [{ "type": "custom", "name": "c", "format": grammar }] }),
            "emulated: the grammar is part of the prompt",
        ),
        ("`tools[].defer_loading` and others", with_tool(json!({ "defer_loading": true })), ""),
        (
            "`tools[]` `namespace`",
            json!({ "tools": [{ "type": "namespace", "name": "n", "tools": [{ "type": "function", "name": "f" }] }] }),
            "emulated: functions with the names of both",
        ),
        (
            "`tools[]` `web_search`, `file_search`, `mcp`, …",
            json!({ "tools": [{ "type": "web_search" }] }),
            "tools that only OpenAI runs",
        ),
        ("`tool_choice` `auto`, `none`, `required`", choosing(json!("required")), ""),
        ("`tool_choice` `function`, `custom`", choosing(json!({ "type": "function", "name": "f" })), ""),
        (
            "`tool_choice` `allowed_tools`",
            choosing(
                json!({ "type": "allowed_tools", "mode": "auto", "tools": [{ "type": "function", "name": "f" }] }),
            ),
            "emulated: only these are offered",
        ),
        ("`tool_choice` of a tool that only OpenAI runs", choosing(json!({ "type": "web_search" })), ""),
        ("`parallel_tool_calls`", json!({ "parallel_tool_calls": false }), ""),
        ("`text.format`", json!({ "text": { "format": schema } }), "`text`, `json_object`, `json_schema`"),
        ("`text.verbosity`", json!({ "text": { "verbosity": "low" } }), ""),
        (
            "`reasoning.effort`",
            json!({ "reasoning": { "effort": "low" } }),
            "vLLM, SGLang, llama.cpp, Ollama, the embedded engine and OpenAI's reasoning models; others ignore it with a warning",
        ),
        (
            "`reasoning.summary`",
            json!({ "reasoning": { "summary": "auto" } }),
            "emulated: the summary is the reasoning itself",
        ),
        (
            "`include` `reasoning.encrypted_content`",
            json!({ "include": ["reasoning.encrypted_content"] }),
            "emulated: it carries the reasoning, not encrypted, and what Anthropic signed or hid",
        ),
        (
            "`include` `message.output_text.logprobs`",
            json!({ "include": ["message.output_text.logprobs"] }),
            "",
        ),
        ("`include` of other results", json!({ "include": ["web_search_call.results"] }), ""),
        (
            "`truncation`",
            json!({ "truncation": "auto" }),
            "`auto` leaves out the oldest turns after the engine has refused the length",
        ),
        ("`metadata`", json!({ "metadata": { "a": "b" } }), ""),
        ("`store`", json!({ "store": false }), "the default is true"),
        ("`previous_response_id`", json!({ "previous_response_id": "$stored" }), ""),
        ("`conversation`", json!({ "conversation": "$conversation" }), ""),
        ("`background`", json!({ "background": true }), "needs `store`"),
        (
            "`prompt_cache_key`, `safety_identifier`, `service_tier`, `user`",
            json!({ "prompt_cache_key": "k", "user": "u" }),
            "pass to the engine",
        ),
        ("`prompt`", json!({ "prompt": { "id": "p" } }), "there are no prompt templates"),
        (
            "`client_metadata`, `context_management`, `moderation`, `prompt_cache_options`",
            json!({ "client_metadata": { "a": "b" } }),
            "",
        ),
        ("fields of chat completions, such as `seed`", json!({ "seed": 7 }), ""),
        ("`agent`", json!({ "agent": "none" }), "Hob's own field"),
        ("other fields, such as `top_k`", json!({ "top_k": 5 }), "pass to the engine"),
    ]
}

fn item_rows() -> Vec<Row> {
    let call = json!({ "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}" });
    let custom = json!({ "type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x" });
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,AAAA" });
    let developer = json!([{ "role": "assistant", "content": "b" }, { "role": "developer", "content": "c" }]);
    let tools = json!([{ "type": "additional_tools", "role": "developer", "tools": [{ "type": "custom", "name": "exec" }] }]);
    vec![
        (
            "`message`",
            json!({ "input": [{ "role": "user", "content": "a" }] }),
            "with or without its `type`; string or parts",
        ),
        (
            "`message` of `system` or `developer`",
            after_question(developer),
            "at the start one system message; later part of the user's turn",
        ),
        ("`input_text`, `output_text`, `refusal`", said(json!({ "type": "input_text", "text": "a" })), ""),
        ("`input_image`", said(image), "only the owner can name an address"),
        (
            "`input_file` with `file_data`",
            said(
                json!({ "type": "input_file", "filename": "a", "file_data": "data:text/plain;base64,AAAA" }),
            ),
            "a `file` part",
        ),
        (
            "`input_file` with `file_url`",
            said(json!({ "type": "input_file", "file_url": "$file" })),
            "Hob fetches the file; only the owner can name an address",
        ),
        ("`file_id`", said(json!({ "type": "input_image", "file_id": "f" })), "there is no store of files"),
        (
            "`input_audio`",
            said(json!({ "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } })),
            "",
        ),
        (
            "`function_call`, `function_call_output`",
            after_question(json!([call, { "type": "function_call_output", "call_id": "c", "output": "x" }])),
            "the output is a string or parts; images and files of it follow as a message of the user",
        ),
        (
            "`custom_tool_call`, `custom_tool_call_output`",
            after_question(
                json!([custom, { "type": "custom_tool_call_output", "call_id": "c", "output": "x" }]),
            ),
            "",
        ),
        (
            "an output without its call",
            after_question(json!([{ "type": "function_call_output", "call_id": "c", "output": "x" }])),
            "",
        ),
        (
            "`reasoning`",
            after_question(
                json!([{ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm" }] }, { "role": "assistant", "content": "b" }]),
            ),
            "reasoning of the history",
        ),
        (
            "`reasoning.encrypted_content` of another service",
            after_question(
                json!([{ "type": "reasoning", "summary": [], "encrypted_content": "gAAA" }, { "role": "assistant", "content": "b" }]),
            ),
            "",
        ),
        (
            "`item_reference`",
            json!({ "input": [{ "type": "item_reference", "id": "$item" }] }),
            "to a stored item",
        ),
        ("`additional_tools`", after_question(tools), ""),
        (
            "`web_search_call` and others",
            after_question(json!([{ "type": "web_search_call", "id": "ws_1" }])),
            "",
        ),
    ]
}

/// The request, with what is stored on this server and the address of a file.
async fn placed(server: &StoringServer, files: &FakeServer, model: &str, fields: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut fields = fields.to_string().replace("$file", &format!("{}/a.txt", files.url()));
    if fields.contains("$stored") || fields.contains("$item") {
        let stored = server.created(json!({ "model": model })).await;
        fields = fields
            .replace("$stored", &text(&stored["id"]))
            .replace("$item", &text(&stored["output"][0]["id"]));
    }
    if fields.contains("$conversation") {
        let conversation = super::json_of(server.post("/v1/conversations", &json!({})).await).await;
        fields = fields.replace("$conversation", &text(&conversation["id"]));
    }
    let mut fields: Value = serde_json::from_str(&fields).unwrap();
    fields["model"] = json!(model);
    fields
}

/// Regenerate with `HOB_WRITE_DOCS=1 cargo nextest run --workspace the_table_of_the_fields_of_responses`.
#[tokio::test]
async fn the_table_of_the_fields_of_responses_is_true() {
    let fake = fake_engine().await;
    let files = FakeServer::start(|_| Reply::new(200, "text/plain", "words")).await;
    let mut servers = Vec::new();
    for asked in all_engines(&fake) {
        servers.push((asked.name, asked.model, StoringServer::start_beside(&files, asked.engine).await));
    }
    let mut tables = Vec::new();
    for (title, rows) in [("Field of the request", request_rows()), ("Item of `input`", item_rows())] {
        let mut table = format!("| {title} | | |\n| --- | --- | --- |\n");
        for row in rows {
            let mut outcomes = Vec::new();
            for (name, model, server) in &servers {
                let response = server.create(placed(server, &files, model, &row.1).await).await;
                outcomes.push((*name, Outcome::of(response, row.0).await));
            }
            table.push_str(&table_row(&row, &outcomes));
        }
        tables.push(table);
    }
    check_table("responses", "the_table_of_the_fields_of_responses", &tables.join("\n"));
}
