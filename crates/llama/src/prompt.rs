//! Prepares a request: the tokens of its prompt and the constraint of its answer.

use std::borrow::Cow;
use std::sync::Arc;

use hob_core::{
    AnswerWarning, CompletionRequest, EngineError, GenerateRequest, Message, PREFILL, Prompt, ResponseFormat,
};

use crate::chat::AnswerFormat;
use crate::chat_input::ChatInput;
use crate::constraint::{self, CallPlan, Constraint};
use crate::control_tokens;
use crate::error::{bad_request, context_exceeded, unsupported};
use crate::loaded_model::{LoadedModel, Template};
use crate::media::{self, EncodedMedia, MediaPart, PlacedVectors};
use crate::prompt_scores::{MAX_PROBABILITIES, RepeatedPrompt};
use crate::request::AnswerOptions;

/// A request, ready for the worker.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    /// With stand-ins for pictures and sound.
    pub(crate) prompt: Vec<i32>,
    /// In the order of the prompt.
    pub(crate) media: Vec<PlacedVectors>,
    pub(crate) ask: AnswerOptions,
    pub(crate) constraint: Constraint,
    /// How the answer is written; `None` if it is text as it stands.
    pub(crate) format: Option<AnswerFormat>,
    /// The control tokens that mark parts of the answer, which must be visible.
    pub(crate) visible: Vec<i32>,
    /// The prompt, if the answers begin with it and with the probabilities of its tokens.
    pub(crate) repeated: Option<RepeatedPrompt>,
}

/// Prepares a request whose messages are text, with marks for `files`. Slow with long conversations. One with schemas must run
/// in `grammar_thread`.
pub(crate) fn prepare(
    loaded: &LoadedModel,
    request: &GenerateRequest,
    files: &[Arc<EncodedMedia>],
) -> Result<Prepared, EngineError> {
    let mut ask = answer_options(loaded, request)?;
    let plan = CallPlan::read(request)?;
    let (messages, begun) = begun_answer(loaded, request, &mut ask)?;
    let chat = ChatInput { loaded, messages, offered: constraint::offered(request), ask: &ask };
    let rendered = chat.render(plan.as_ref())?;
    let text = with_beginning(&rendered.prompt, begun.as_deref());
    let PromptTokens { tokens: prompt, media } = prompt_tokens(loaded, &text, files)?;
    check_length(loaded, &prompt, "messages")?;
    let format = rendered.format;
    // A format without a mark of calls has rules only for calls that are forced.
    let calls = match &plan {
        Some(plan) if format.grammar().is_none() => {
            Some(chat.format(plan, plan.forced(), &rendered.prompt)?)
        }
        _ => None,
    };
    let constraint = Constraint::new(loaded, request, plan, &format, calls.as_ref())?;
    let visible = loaded.control_marks(format.marks());
    let follows_schema = request.response_format != ResponseFormat::Text;
    if follows_schema && !constraint.may_call() && !constraint::offered(request).is_empty() {
        // The grammar of calls is too large, or the model's format leaves no room for both.
        ask.warnings.push(AnswerWarning::Ignored("tools".to_owned()));
    }
    // An answer that follows a schema from its first token, and is no call, is text as it stands.
    let is_document = follows_schema && !format.is_in_thought() && !constraint.may_call();
    let format = Some(format).filter(|_| !is_document);
    Ok(Prepared { prompt, media, ask, constraint, format, visible, repeated: None })
}

/// Reads a text to continue, as [`prepare`] does a conversation.
pub(crate) fn prepare_completion(
    loaded: &LoadedModel,
    request: &CompletionRequest,
) -> Result<Prepared, EngineError> {
    let settings = request.settings();
    let mut ask = answer_options(loaded, &settings)?;
    if request.prompt_only {
        ask.max_tokens = 0;
    }
    let constraint = Constraint::of_text(loaded, &settings)?;
    let prompt = match (&request.prompt, &request.suffix) {
        (Prompt::Text(text), None) => loaded.tokens(text, true),
        (Prompt::Tokens(tokens), None) => loaded.known_tokens("prompt", tokens)?,
        (Prompt::Text(prefix), Some(suffix)) => around_gap(loaded, prefix, suffix)?,
        (Prompt::Tokens(_), Some(_)) => {
            return Err(unsupported("prompt", Some("with a suffix it must be text, not tokens")));
        }
    };
    check_length(loaded, &prompt, "prompt")?;
    let repeated = if request.echo { Some(repeated(loaded, request, &prompt, &ask)?) } else { None };
    Ok(Prepared { prompt, media: Vec::new(), ask, constraint, format: None, visible: Vec::new(), repeated })
}

/// The prompt that the answers begin with. The engine repeats it only with the probabilities of its tokens.
fn repeated(
    loaded: &LoadedModel,
    request: &CompletionRequest,
    tokens: &[i32],
    ask: &AnswerOptions,
) -> Result<RepeatedPrompt, EngineError> {
    let with_probabilities = Some("not together with 'echo' and 'logprobs'");
    if request.suffix.is_some() {
        return Err(unsupported("suffix", with_probabilities));
    }
    if request.response_format != ResponseFormat::Text {
        return Err(unsupported("response_format", with_probabilities));
    }
    let each = 1 + ask.logprobs.unwrap_or(0);
    let all = tokens.len() * each * ask.answers;
    if all > MAX_PROBABILITIES {
        let message = format!(
            "the prompt has {} tokens, and with 'echo' and 'logprobs' the answer would have {all} probabilities; the limit is \
             {MAX_PROBABILITIES}. Ask for fewer alternatives, or shorten the prompt",
            tokens.len()
        );
        return Err(bad_request(message, Some("logprobs")));
    }
    Ok(match &request.prompt {
        Prompt::Text(text) => {
            let is_begun_by_token = loaded.model.vocab().should_add_bos();
            RepeatedPrompt { text: text.clone(), is_begun_by_token }
        }
        Prompt::Tokens(_) => RepeatedPrompt { text: loaded.text_of(tokens), is_begun_by_token: false },
    })
}

/// The texts around a gap, between the model's own tokens for that. Nothing in the texts is a control token.
fn around_gap(loaded: &LoadedModel, prefix: &str, suffix: &str) -> Result<Vec<i32>, EngineError> {
    let vocab = loaded.model.vocab();
    let [before, after, gap] = [vocab.fim_pre(), vocab.fim_suf(), vocab.fim_mid()].map(|token| token.0);
    if before < 0 || after < 0 || gap < 0 {
        let hint = format!(
            "'{}' has no tokens to fill in the middle; choose a model for code, such as one of Qwen-Coder",
            loaded.id
        );
        return Err(unsupported("suffix", Some(&hint)));
    }
    let begin = Some(vocab.bos().0).filter(|bos| vocab.should_add_bos() && *bos >= 0);
    let mut tokens: Vec<i32> = begin.into_iter().chain([before]).collect();
    tokens.extend(loaded.tokens_of_words(prefix, false));
    tokens.push(after);
    tokens.extend(loaded.tokens_of_words(suffix, false));
    tokens.push(gap);
    Ok(tokens)
}

fn answer_options(loaded: &LoadedModel, request: &GenerateRequest) -> Result<AnswerOptions, EngineError> {
    let mut ask = AnswerOptions::read(request, loaded.parallel)?;
    ask.place_effort(template_source(loaded));
    if ask.ignore_eos {
        let vocab = loaded.model.vocab();
        let ends = [vocab.eos(), vocab.eot()];
        ask.sampling
            .bias
            .extend(ends.iter().filter(|token| token.0 >= 0).map(|token| (token.0, f32::NEG_INFINITY)));
    }
    Ok(ask)
}

/// The tokens of the prompt, to read them ahead or to count them. With stand-ins for `files`.
pub(crate) fn prompt_of(
    loaded: &LoadedModel,
    request: &GenerateRequest,
    files: &[Arc<EncodedMedia>],
) -> Result<Vec<i32>, EngineError> {
    let mut ask = answer_options(loaded, request)?;
    let (messages, begun) = begun_answer(loaded, request, &mut ask)?;
    let chat = ChatInput { loaded, messages, offered: constraint::offered(request), ask: &ask };
    let rendered = chat.render(None)?;
    let text = with_beginning(&rendered.prompt, begun.as_deref());
    let prompt = prompt_tokens(loaded, &text, files)?.tokens;
    check_length(loaded, &prompt, "messages")?;
    Ok(prompt)
}

/// The messages to answer, and the beginning of the answer if the caller wrote one, marked. A model whose template begins a thought
/// cannot continue it: there, the beginning is a message like others, with a warning.
fn begun_answer<'a>(
    loaded: &LoadedModel,
    request: &'a GenerateRequest,
    ask: &mut AnswerOptions,
) -> Result<(&'a [Message], Option<String>), EngineError> {
    if !ask.continues_last {
        return Ok((request.messages.as_slice(), None));
    }
    let Some((before, words)) = request.begun_answer() else {
        let message =
            "'continue_final_message' needs a last message of the assistant that has text and no tool calls";
        return Err(bad_request(message, Some("messages")));
    };
    let options: &AnswerOptions = ask;
    let chat = ChatInput { loaded, messages: before, offered: constraint::offered(request), ask: options };
    if chat.render(None)?.format.is_in_thought() {
        ask.warnings.push(AnswerWarning::Ignored(PREFILL.to_owned()));
        return Ok((request.messages.as_slice(), None));
    }
    Ok((before, Some(loaded.control.mark(&words).into_owned())))
}

fn with_beginning<'a>(prompt: &'a str, begun: Option<&str>) -> Cow<'a, str> {
    match begun {
        Some(words) => Cow::Owned(format!("{prompt}{words}")),
        None => Cow::Borrowed(prompt),
    }
}

/// The program of the model's own template, which can have variables.
fn template_source(loaded: &LoadedModel) -> Option<&str> {
    match &loaded.template {
        Template::Own { usual, .. } => Some(usual.source()),
        Template::BuiltIn(_) => None,
    }
}

/// Whether the prompt of `field` is neither empty nor too long.
fn check_length(loaded: &LoadedModel, prompt: &[i32], field: &str) -> Result<(), EngineError> {
    let context = loaded.context_size.context as usize;
    if prompt.is_empty() {
        let message = match field {
            "messages" => "the conversation is empty once the model's template is applied",
            _ => "the prompt is empty, and the model has no token to begin a text with",
        };
        return Err(bad_request(message, Some(field)));
    }
    if prompt.len() >= context {
        return Err(context_exceeded(
            format!(
                "This model's maximum context length is {context} tokens. However, your {field} resulted in {} tokens, which \
                 leaves '{}' no room for an answer. Please reduce the length of the {field}.",
                prompt.len(),
                loaded.id
            ),
            field,
        ));
    }
    Ok(())
}

/// A prompt as the model reads it.
struct PromptTokens {
    tokens: Vec<i32>,
    media: Vec<PlacedVectors>,
}

/// The tokens of a rendered prompt, with its files in their places.
fn prompt_tokens(
    loaded: &LoadedModel,
    text: &str,
    files: &[Arc<EncodedMedia>],
) -> Result<PromptTokens, EngineError> {
    if files.is_empty() {
        return Ok(PromptTokens { tokens: tokenize(loaded, text, true), media: Vec::new() });
    }
    let parts = media::parts(text, files).ok_or_else(|| {
        bad_request("the model's chat template leaves out a picture or a sound", Some("messages"))
    })?;
    let mut prompt = PromptTokens { tokens: Vec::new(), media: Vec::new() };
    for (number, part) in parts.into_iter().enumerate() {
        match part {
            MediaPart::Text(text) => prompt.tokens.extend(tokenize(loaded, text, number == 0)),
            MediaPart::Tokens(tokens) => prompt.tokens.extend(tokens),
            MediaPart::Vectors { stand_ins, is_read_whole, media, chunk } => {
                prompt.media.push(PlacedVectors {
                    start: prompt.tokens.len(),
                    length: stand_ins.len(),
                    is_read_whole,
                    media: Arc::clone(media),
                    chunk,
                });
                prompt.tokens.extend(stand_ins);
            }
        }
    }
    // The answer continues a token.
    if prompt.tokens.last().is_some_and(|token| media::is_stand_in(*token)) {
        let message = "the model's chat template ends with a picture or a sound";
        return Err(bad_request(message, Some("messages")));
    }
    Ok(prompt)
}

/// The tokens of a marked text, which may begin a prompt.
fn tokenize(loaded: &LoadedModel, text: &str, begins: bool) -> Vec<i32> {
    let vocab = loaded.model.vocab();
    // Most templates write the beginning-of-text token themselves; a second one confuses models.
    let bos = vocab.bos();
    let written = !begins
        || bos.0 >= 0
            && String::from_utf8(loaded.bytes_of(bos.0, true))
                .is_ok_and(|bos| !bos.is_empty() && text.starts_with(&bos));
    if !control_tokens::is_marked(text) {
        return loaded.tokens(text, !written);
    }
    loaded.tokens_of_marked(text, !written)
}
