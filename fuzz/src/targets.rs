//! The table of targets.

use std::sync::OnceLock;

use hob_core::GenerateRequest;

use crate::{documents, gguf, markdown, schedule, signal_stack, web_page};

#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// A file of `dictionaries/`, without its extension; `-` for none.
    pub dictionary: &'static str,
    /// The longest time for one input.
    pub seconds: u32,
    /// The most memory of the process.
    pub megabytes: u32,
    /// Megabytes of its stack.
    pub stack: u32,
    /// Whether Hob catches panics of a library here and reports them as an error.
    pub catches_panics: bool,
}

const fn target(name: &'static str, run: fn(&[u8]), dictionary: &'static str) -> Target {
    Target { name, run, dictionary, seconds: 5, megabytes: 1024, stack: 2, catches_panics: false }
}

/// The limits are those of the process that reads PDF files, because the library has none.
const PDF: Target =
    Target { seconds: 30, stack: 8, catches_panics: true, ..target("document_pdf", documents::pdf, "pdf") };

/// Each rendering of a template has 5 seconds and 512 MiB.
#[cfg(feature = "llama")]
const CHAT_TEMPLATE: Target = Target {
    seconds: 30,
    megabytes: 2048,
    ..target("chat_template", hob_llama::fuzzing::chat_template, "jinja")
};

/// All rules of a calendar may take 20 million steps together, which takes seconds with the checks of this build.
const CALENDAR: Target =
    Target { seconds: 15, ..target("calendar", hob_sources::fuzzing::calendar, "calendar") };

pub const TARGETS: &[Target] = &[
    // Requests.
    target("openai_chat", openai_chat, "openai"),
    target("openai_completion", hob_server::fuzzing::completion, "openai"),
    target("openai_inputs", hob_server::fuzzing::inputs, "openai"),
    target("openai_responses", openai_responses, "openai"),
    target("multipart", hob_server::fuzzing::multipart, "multipart"),
    target("anthropic_messages", anthropic_messages, "anthropic"),
    target("ollama", ollama, "ollama"),
    target("ollama_template", hob_server::fuzzing::template, "jinja"),
    target("token", hob_keys::fuzzing::token, "json"),
    // Answers of engines.
    target("sse", hob_engines::fuzzing::sse, "stream"),
    target("ndjson", hob_engines::fuzzing::ndjson, "stream"),
    target("http1", hob_engines::fuzzing::http1, "http"),
    target("answer_openai", hob_engines::fuzzing::openai_answer, "stream"),
    target("answer_ollama", hob_engines::fuzzing::ollama_answer, "stream"),
    target("answer_anthropic", hob_engines::fuzzing::anthropic_answer, "stream"),
    target("answer_gemini", hob_engines::fuzzing::gemini_answer, "stream"),
    // The embedded engine.
    target("gguf", gguf::header, "gguf"),
    #[cfg(feature = "llama")]
    target("chat_answer", hob_llama::fuzzing::answer, "chat"),
    #[cfg(feature = "llama")]
    CHAT_TEMPLATE,
    #[cfg(feature = "llama")]
    target("schema", hob_llama::fuzzing::schema, "schema"),
    #[cfg(feature = "llama")]
    target("picture", hob_llama::fuzzing::picture, "picture"),
    // Documents.
    PDF,
    target("document_docx", documents::docx, "docx"),
    target("document_xlsx", documents::xlsx, "xlsx"),
    target("document_pptx", documents::pptx, "pptx"),
    target("document_odt", documents::odt, "odf"),
    target("document_ods", documents::ods, "odf"),
    target("document_mail", documents::mail, "mail"),
    target("document_mailbox", documents::mailbox, "mail"),
    target("document_html", documents::html, "html"),
    target("document_markdown", documents::markdown, "markdown"),
    target("document_json", documents::json, "json"),
    target("document_table", documents::table, "-"),
    target("document_code", documents::code, "-"),
    target("document_plain", documents::plain, "-"),
    target("web_page", web_page::read, "html"),
    target("markdown", markdown::render, "markdown"),
    // Sources and mailboxes of the owner.
    target("feed", hob_sources::fuzzing::feed, "feed"),
    CALENDAR,
    target("imap_answer", hob_mail::fuzzing::imap_answer, "imap"),
    // Messages, tasks, settings, tools, the database.
    target("gateway_frame", hob_channels::fuzzing::gateway_frame, "channel"),
    target("whatsapp_line", hob_channels::fuzzing::whatsapp_line, "channel"),
    target("schedule", schedule::parse, "schedule"),
    target("config", hob_config::fuzzing::config, "config"),
    target("tool_arguments", hob_agents::fuzzing::tool_arguments, "json"),
    target("agent_text", hob_agents::fuzzing::agent_text, "agent"),
    target("calculator", calculator, "calculator"),
    target("telemetry_page", hob_telemetry::fuzzing::page, "telemetry"),
];

/// The target of a program that has only one, which `HOB_FUZZ_ONLY` named when it was built. After every input, libFuzzer reads a
/// counter for each edge of the program. Without the code of the other targets, these are few, and a fast target runs many times
/// as fast.
const ONLY: Option<Target> = match option_env!("HOB_FUZZ_ONLY") {
    Some(name) => Some(named(name)),
    None => None,
};

static CHOSEN: OnceLock<Target> = OnceLock::new();

/// A copy, because a reference would keep the whole table in the program, and with it the code of all targets.
const fn named(name: &str) -> Target {
    let mut at = 0;
    while at < TARGETS.len() {
        if is_equal(TARGETS[at].name.as_bytes(), name.as_bytes()) {
            return TARGETS[at];
        }
        at += 1;
    }
    panic!("HOB_FUZZ_ONLY names no target");
}

const fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let mut at = 0;
    while at < left.len() && at < right.len() && left[at] == right[at] {
        at += 1;
    }
    at == left.len() && at == right.len()
}

/// Chooses the target that the program has, or the one that `HOB_FUZZ_TARGET` names. Without one, lists all and exits.
pub fn choose() {
    let target = match ONLY {
        Some(target) => target,
        None => named_by_environment(),
    };
    signal_stack::install();
    if target.catches_panics {
        // libFuzzer's own hook ends the process at any panic. One that Hob does not catch still does.
        std::panic::set_hook(Box::new(|_| {}));
    }
    CHOSEN.get_or_init(|| target);
}

fn named_by_environment() -> Target {
    let name = std::env::var("HOB_FUZZ_TARGET").unwrap_or_default();
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        for Target { name, dictionary, seconds, megabytes, stack, .. } in TARGETS {
            println!("{name} {dictionary} {seconds} {megabytes} {stack}");
        }
        std::process::exit(i32::from(!name.is_empty()));
    };
    *target
}

pub fn chosen() -> &'static Target {
    CHOSEN.get().expect("libFuzzer calls LLVMFuzzerInitialize first")
}

/// What is parsed is also written for every engine.
fn pass_on(request: Option<GenerateRequest>) {
    if let Some(request) = request {
        hob_engines::fuzzing::write_requests(&request);
    }
}

fn openai_chat(body: &[u8]) {
    pass_on(hob_server::fuzzing::chat(body));
}

fn openai_responses(body: &[u8]) {
    pass_on(hob_server::fuzzing::response(body));
}

fn anthropic_messages(body: &[u8]) {
    pass_on(hob_server::fuzzing::messages(body));
}

fn ollama(body: &[u8]) {
    pass_on(hob_server::fuzzing::ollama(body));
}

fn calculator(bytes: &[u8]) {
    let Ok(expression) = std::str::from_utf8(bytes) else { return };
    match hob_agents::builtin::calculator::evaluate(expression) {
        Ok(value) => assert!(!value.is_empty(), "a value has no digits"),
        Err(error) => assert!(!error.to_string().is_empty(), "an error has no message"),
    }
}
