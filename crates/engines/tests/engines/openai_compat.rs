//! The OpenAI-compatible engines over real sockets, against recordings of the real ones.

mod failures;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use hob_core::{
    Answer, Collector, Content, Delta, Engine, EngineError, FinishReason, GenerateRequest, Generation,
    JsonSchema, Message, ModelCapabilities, ModelInfo, ResponseFormat, Role, Sampling, ToolCall,
    ToolCallDelta, ToolChoice, ToolDefinition, Usage,
};
use hob_engines::openai_compat::chunks::ChatChunkDecoder;
use hob_engines::wire::frames::Frames;
use hob_engines::wire::stream_decoder::Decoder;
use hob_engines::{OpenAiCompat, Style};
use hob_testkit::{FakeServer, Reply, Transcript};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{CAPITAL, all, asking, asking_for_the_weather, body, endpoint};

/// The engines with recordings, and their directories.
const RECORDED: [(Style, &str); 3] =
    [(Style::VLLM, "vllm"), (Style::SGLANG, "sglang"), (Style::LLAMACPP, "llama-server")];

fn engine(style: Style, server: &FakeServer) -> OpenAiCompat {
    OpenAiCompat::new(style, endpoint(style.key, server))
}

/// The answer of a real engine to a request, which must equal the recorded request.
async fn replayed(
    style: Style,
    recording: &str,
    request: &GenerateRequest,
) -> Result<Generation, EngineError> {
    let server = FakeServer::replying(Reply::transcript(recording)).await;
    let outcome = engine(style, &server).generate(request).await;
    let recorded = Transcript::load(recording);
    let sent = &server.requests()[0];
    assert_eq!((sent.method.as_str(), &sent.path), ("POST", &recorded.path));
    let mut expected = body(&recorded.request_body);
    // The recorder omitted the engine's defaults, which Hob sends.
    for (field, default) in [("stream", json!(false)), ("temperature", json!(0.7))] {
        if expected.get(field).is_none() {
            expected[field] = default;
        }
    }
    assert_eq!(body(&sent.text()), expected, "{recording}");
    outcome
}

fn said(content: &str, finish_reason: FinishReason) -> Answer {
    Answer {
        content: content.into(),
        reasoning: None,
        tool_calls: Vec::new(),
        finish_reason,
        sealed_reasoning: Vec::new(),
        later_thoughts: Vec::new(),
        logprobs: None,
    }
}

#[tokio::test]
async fn every_engine_answers_a_question() {
    for (style, place) in RECORDED {
        let generation = replayed(style, &format!("{place}/chat"), &asking(CAPITAL, 32)).await.unwrap();
        let usage = Usage {
            prompt_tokens: 42,
            completion_tokens: 8,
            cached_tokens: (style == Style::LLAMACPP).then_some(0),
            reasoning_tokens: None,
            load_time: None,
        };
        let expected = Generation {
            model: "smollm2".into(),
            answer: said("The capital of France is Paris.", FinishReason::Stop),
            alternatives: Vec::new(),
            usage: Some(usage),
            warnings: Vec::new(),
        };
        assert_eq!(generation, expected, "{place}");
    }
}

#[tokio::test]
async fn every_engine_streams_deltas_and_then_usage() {
    for (style, place) in RECORDED {
        let recording = format!("{place}/chat_stream_usage");
        let server = FakeServer::replying(Reply::transcript(&recording)).await;
        let stream = engine(style, &server).stream(&asking(CAPITAL, 8)).await.unwrap();
        assert_eq!(stream.warnings, []);
        let (deltas, error) = all(stream).await;
        assert!(error.is_none(), "{place}: {error:?}");
        let usage = Usage {
            prompt_tokens: 42,
            completion_tokens: 8,
            cached_tokens: (style == Style::LLAMACPP).then_some(41),
            reasoning_tokens: None,
            load_time: None,
        };
        let words = ["The", " capital", " of", " France", " is", " Paris", "."];
        let expected: Vec<Delta> = words
            .map(Delta::text)
            .into_iter()
            .chain([
                Delta::Finish { choice: 0, reason: FinishReason::Stop },
                Delta::Done { usage: Some(usage) },
            ])
            .collect();
        assert_eq!(deltas, expected, "{place}");
        assert_eq!(
            body(&server.requests()[0].text()),
            body(&Transcript::load(&recording).request_body),
            "{place}"
        );
    }
}

#[tokio::test]
async fn a_stream_without_usage_is_complete_too() {
    for (style, place) in RECORDED {
        let server = FakeServer::replying(Reply::transcript(&format!("{place}/chat_stream"))).await;
        let stream = engine(style, &server).stream(&asking(CAPITAL, 8)).await.unwrap();
        let (deltas, error) = all(stream).await;
        assert!(error.is_none(), "{place}: {error:?}");
        assert_eq!(deltas.last(), Some(&Delta::Done { usage: None }), "{place}");
    }
}

#[tokio::test]
async fn a_forced_call_comes_back_as_the_model_wrote_it() {
    let request = GenerateRequest { tool_choice: Some(ToolChoice::Required), ..asking_for_the_weather(64) };
    let generation = replayed(Style::VLLM, "vllm/fs_required", &request).await.unwrap();
    let expected = Answer {
        tool_calls: vec![ToolCall {
            id: "chatcmpl-tool-aa77d044b32ff467".into(),
            name: "get_weather".into(),
            arguments: "\"Paris\"".into(),
        }],
        ..said("", FinishReason::ToolCalls)
    };
    assert_eq!(generation.answer, expected);
}

#[tokio::test]
async fn a_streamed_call_begins_once_and_continues_in_fragments() {
    let server = FakeServer::replying(Reply::transcript("vllm/fs_required_stream")).await;
    let request = GenerateRequest { tool_choice: Some(ToolChoice::Required), ..asking_for_the_weather(64) };
    let stream = engine(Style::VLLM, &server).stream(&request).await.unwrap();
    let (deltas, error) = all(stream).await;
    assert!(error.is_none(), "{error:?}");
    let fragment = |arguments: &str| {
        Delta::ToolCall(ToolCallDelta { arguments: arguments.into(), ..ToolCallDelta::default() })
    };
    let expected = vec![
        Delta::ToolCall(ToolCallDelta {
            id: Some("chatcmpl-tool-8428bcead5625ec4".into()),
            name: Some("get_weather".into()),
            ..ToolCallDelta::default()
        }),
        fragment("\""),
        fragment("Paris"),
        fragment("\""),
        Delta::Finish { choice: 0, reason: FinishReason::ToolCalls },
        Delta::Done {
            usage: Some(Usage {
                prompt_tokens: 131,
                completion_tokens: 46,
                cached_tokens: None,
                reasoning_tokens: None,
                load_time: None,
            }),
        },
    ];
    assert_eq!(deltas, expected);
    assert_eq!(
        body(&server.requests()[0].text()),
        body(&Transcript::load("vllm/fs_required_stream").request_body)
    );
}

fn asking_with_a_result() -> GenerateRequest {
    let call = ToolCall {
        id: "call_1".into(),
        name: "get_weather".into(),
        arguments: "{\"city\":\"Paris\"}".into(),
    };
    let parameters = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "unit": { "type": "string", "enum": ["celsius", "fahrenheit"] },
        },
        "required": ["city"],
    });
    GenerateRequest {
        messages: vec![
            Message::new(Role::User, "What is the weather in Paris? Use the tool."),
            Message { content: Content::Empty, tool_calls: vec![call], ..Message::new(Role::Assistant, "") },
            Message::tool_result("call_1", "{\"temp_c\":18}"),
        ],
        tools: vec![ToolDefinition {
            name: "get_weather".into(),
            description: Some("Get the current weather in a city".into()),
            parameters: Some(parameters),
            strict: None,
        }],
        ..asking("", 48)
    }
}

#[tokio::test]
async fn a_conversation_with_tool_results_is_sent_as_it_was() {
    let generation = replayed(Style::VLLM, "vllm/tool_result", &asking_with_a_result()).await.unwrap();
    assert!(generation.answer.content.contains("18°C"), "{}", generation.answer.content);
    let generation = replayed(Style::LLAMACPP, "llama-server/tooljson_tool_result", &asking_with_a_result())
        .await
        .unwrap();
    let expected = Answer {
        tool_calls: vec![ToolCall {
            id: "zpDk1SjQX4exLf9Z9GWSXtTwset8c2AJ".into(),
            name: "get_weather".into(),
            arguments: "{\"city\": \"Paris\"}".into(),
        }],
        ..said("", FinishReason::ToolCalls)
    };
    assert_eq!(generation.answer, expected);
}

#[tokio::test]
async fn a_proxy_that_flattens_calls_is_understood() {
    let flat = json!({
        "model": "gpt",
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant",
            "content": null,
            "tool_calls": [{ "id": "c9", "name": "get_weather", "arguments": "{\"city\":\"Paris\"}" }],
        } }],
    });
    let server = FakeServer::replying(Reply::json(200, flat.to_string())).await;
    let generation = engine(Style::LITELLM, &server).generate(&asking_for_the_weather(64)).await.unwrap();
    let expected = Answer {
        tool_calls: vec![ToolCall {
            id: "c9".into(),
            name: "get_weather".into(),
            arguments: "{\"city\":\"Paris\"}".into(),
        }],
        ..said("", FinishReason::ToolCalls)
    };
    assert_eq!((generation.answer, generation.usage), (expected, None));
}

#[tokio::test]
async fn thoughts_under_both_of_their_names_are_read_once() {
    let twice = r#"{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"4","reasoning":"2+2","reasoning_content":"2+2"}}]}"#;
    let server = FakeServer::replying(Reply::json(200, twice)).await;
    let generation = engine(Style::VLLM, &server).generate(&asking("2+2?", 8)).await.unwrap();
    assert_eq!(generation.answer.reasoning.as_deref(), Some("2+2"));

    let twice = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"reasoning_content\":\"hm\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = FakeServer::replying(Reply::sse(twice)).await;
    let stream = engine(Style::VLLM, &server).stream(&asking("2+2?", 8)).await.unwrap();
    let thought = Delta::Reasoning { choice: 0, text: "hm".into() };
    assert_eq!(all(stream).await.0.first(), Some(&thought));
}

#[tokio::test]
async fn probabilities_arrive_untouched() {
    for (style, place) in RECORDED {
        let request = GenerateRequest {
            sampling: Sampling { logprobs: true, top_logprobs: Some(2), ..Sampling::default() },
            ..asking(CAPITAL, 3)
        };
        let recording = format!("{place}/logprobs");
        let generation = replayed(style, &recording, &request).await.unwrap();
        let recorded: Value = serde_json::from_str(&Transcript::load(&recording).body).unwrap();
        let logprobs = generation.answer.logprobs.unwrap();
        assert_eq!(logprobs, recorded["choices"][0]["logprobs"], "{place}");
        assert_eq!(logprobs["content"].as_array().map(Vec::len), Some(3), "{place}");
    }
}

#[tokio::test]
async fn two_answers_are_two_answers() {
    for (style, place) in RECORDED {
        let request = GenerateRequest {
            temperature: None,
            sampling: Sampling { n: NonZeroU32::new(2), ..Sampling::default() },
            ..asking(CAPITAL, 4)
        };
        let generation = replayed(style, &format!("{place}/n2"), &request).await.unwrap();
        let answer = said("The capital of France", FinishReason::Length);
        assert_eq!(generation.answers().collect::<Vec<_>>(), [&answer, &answer], "{place}");
    }
}

#[tokio::test]
async fn a_stop_sequence_ends_the_answer() {
    for (style, place) in RECORDED {
        let request = GenerateRequest {
            sampling: Sampling { stop: vec!["France".into()], ..Sampling::default() },
            ..asking(CAPITAL, 32)
        };
        let generation = replayed(style, &format!("{place}/stop"), &request).await.unwrap();
        // vLLM and SGLang say which of the words it was.
        let reason = match place {
            "llama-server" => FinishReason::Stop,
            _ => FinishReason::StopSequence("France".into()),
        };
        assert_eq!(generation.answer, said("The capital of ", reason), "{place}");
    }
}

fn asking_for_a_city() -> GenerateRequest {
    GenerateRequest {
        response_format: ResponseFormat::JsonSchema(JsonSchema {
            name: "c".into(),
            description: None,
            schema: json!({
                "type": "object",
                "properties": { "city": { "type": "string" }, "country": { "type": "string" } },
                "required": ["city", "country"],
                "additionalProperties": false,
            }),
            strict: Some(true),
        }),
        ..asking("Give JSON about Paris.", 64)
    }
}

#[tokio::test]
async fn answers_keep_the_form_that_was_asked_for() {
    for (style, place) in [(Style::VLLM, "vllm"), (Style::LLAMACPP, "llama-server")] {
        let generation =
            replayed(style, &format!("{place}/json_schema"), &asking_for_a_city()).await.unwrap();
        let city: Value = serde_json::from_str(&generation.answer.content).unwrap();
        assert_eq!(city, json!({ "city": "Paris", "country": "FRANCE" }), "{place}");
    }
    let request = GenerateRequest {
        response_format: ResponseFormat::JsonObject,
        ..asking("Give JSON about Paris.", 48)
    };
    let generation = replayed(Style::VLLM, "vllm/json_object", &request).await.unwrap();
    assert!(serde_json::from_str::<Value>(&generation.answer.content).is_ok());
}

#[tokio::test]
async fn models_are_listed_with_their_properties_by_engine() {
    let expected = [
        ModelInfo { created: Some(1_794_707_334), context: Some(2048), ..ModelInfo::named("smollm2") },
        ModelInfo { created: Some(1_794_709_407), context: Some(8192), ..ModelInfo::named("smollm2") },
        ModelInfo {
            created: Some(1_794_705_100),
            parameters: Some(134_515_008),
            context: Some(2048),
            size: Some(96_576_768),
            quantization: Some("Q4_1".into()),
            capabilities: ModelCapabilities {
                vision: Some(false),
                audio: Some(false),
                ..ModelCapabilities::default()
            },
            ..ModelInfo::named("smollm2")
        },
    ];
    for ((style, place), expected) in RECORDED.into_iter().zip(expected) {
        let server = FakeServer::replying(Reply::transcript(&format!("{place}/models"))).await;
        let models = engine(style, &server).list_models().await.unwrap();
        assert_eq!(models, [expected], "{place}");
        assert_eq!(server.requests()[0].path, "/v1/models");
    }
}

/// Decodes a stream that arrives in these packets, as [`hob_engines::wire::stream_decoder`] does.
fn decode(packets: &[&[u8]]) -> Vec<Delta> {
    let mut frames = Frames::new(ChatChunkDecoder::FRAMING);
    let mut chunks = ChatChunkDecoder::new(1);
    let mut deltas = VecDeque::new();
    for packet in packets {
        frames.push(packet).unwrap();
        while let Some(frame) = frames.next_frame() {
            chunks.frame(frame, &mut deltas).unwrap();
        }
    }
    deltas.into()
}

proptest! {
    #[test]
    fn any_split_of_a_recorded_stream_gives_the_same_deltas(
        name in prop::sample::select(vec![
            "vllm/chat_stream_usage",
            "vllm/fs_required_stream",
            "sglang/chat_stream_usage",
            "llama-server/tooljson_tools_required_stream",
            "ollama/v1_tools_stream",
        ]),
        splits in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let body = Transcript::load(name).body.into_bytes();
        let mut at: Vec<usize> = splits.iter().map(|split| split.index(body.len())).collect();
        at.extend([0, body.len()]);
        at.sort_unstable();
        let packets: Vec<&[u8]> = at.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect();
        let whole = decode(&[&body]);
        let mut collector = Collector::default();
        whole.iter().cloned().for_each(|delta| collector.push(delta));
        prop_assert!(collector.finish("m").is_some());
        prop_assert_eq!(decode(&packets), whole);
    }
}
