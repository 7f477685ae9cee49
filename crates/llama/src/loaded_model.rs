//! A loaded model and its properties. The worker computes.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use hob_core::{EngineError, ModelCapabilities};
use hob_models::{KvPrecision, MemoryNeeds, StoredModel};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams, LlamaPoolingType};
use llama_cpp_2::model::{LlamaChatTemplate, LlamaModel};
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;

use crate::backends::backend;
use crate::batching::plan::{CARD_STEP, STEP, StepSize};
use crate::chat::ChatTemplate;
use crate::context_size::ContextSize;
use crate::control_tokens::{ControlTokens, Origin};
use crate::error::{bad_request, unusable};
use crate::gpu_layers::Offload;
use crate::grammar::{GrammarError, Spelling, Vocabulary};
use crate::log;
use crate::media::{Projector, Senses, WHOLE_PICTURE};
use crate::options::{DraftUse, FlashAttention, LlamaOptions};
use crate::prefix_cache::Reuse;
use crate::vector_context::VectorContext;

/// The most common beginning of reasoning.
const THOUGHT_MARK: &str = "<think>";

/// The marks of the format for models whose template has none.
const COMMON_MARKS: [&str; 4] = ["<tool_call>", "</tool_call>", THOUGHT_MARK, "</think>"];

/// llama.cpp's number for models that give a score in the place of a vector.
const RANK_POOLING: &str = "4";

/// The most threads that choose tokens. More would hardly be faster: waking them takes as long as the choices.
const MAX_SAMPLING_THREADS: usize = 8;

/// The chat template.
#[derive(Debug)]
pub(crate) enum Template {
    /// The model's own template, and its template for conversations with tools if it has one.
    Own { usual: Box<ChatTemplate>, tool_use: Option<Box<ChatTemplate>> },
    /// A template of llama.cpp, if the model has none that works.
    BuiltIn(LlamaChatTemplate),
}

impl Template {
    /// The texts that mark calls and reasoning.
    fn marks(&self) -> impl Iterator<Item = &str> {
        let own = match self {
            Template::Own { usual, tool_use } => [Some(usual), tool_use.as_ref()],
            Template::BuiltIn(_) => [None, None],
        };
        own.into_iter().flatten().flat_map(|template| template.marks.iter().map(String::as_str))
    }
}

/// A model in memory.
#[derive(Debug)]
pub(crate) struct LoadedModel {
    pub(crate) id: String,
    /// What reads pictures and sound, if the model has it. Before the model, which must outlive it.
    pub(crate) projector: Option<Projector>,
    pub(crate) model: LlamaModel,
    pub(crate) template: Template,
    /// Its control tokens.
    pub(crate) control: ControlTokens,
    /// The control tokens around tool calls and reasoning. A grammar sees them as text.
    pub(crate) marks: Vec<i32>,
    /// Created for the first grammar.
    vocabulary: OnceLock<Result<Arc<Vocabulary>, GrammarError>>,
    pub(crate) context_size: ContextSize,
    pub(crate) parallel: usize,
    /// What it needs, with the size of the weights as they are in memory.
    pub(crate) needs: Option<MemoryNeeds>,
    pub(crate) kv: KvPrecision,
    flash_attention: FlashAttention,
    threads: i32,
    /// The most threads that choose the tokens of a step.
    pub(crate) sampling_threads: usize,
    /// An embedding model, which cannot generate.
    pub(crate) embeds_only: bool,
    /// Whether a model that generates has a second context, to embed.
    pub(crate) embeds_too: AtomicBool,
    pooling: LlamaPoolingType,
    /// Made to score a document for a question.
    compares_texts: bool,
    /// Whether the next tokens of answers that repeat earlier text are guessed.
    pub(crate) prompt_lookup: bool,
    /// A smaller model that guesses for this one.
    pub(crate) draft: Option<Box<DraftModel>>,
    /// Tokens that went through the model, of prompts and answers.
    pub(crate) computed: AtomicU64,
    /// Tokens of answers that were guessed.
    pub(crate) guessed: AtomicU64,
    /// The part of it on graphics cards.
    pub(crate) offload: Offload,
}

/// A draft model in memory, with its target.
#[derive(Debug)]
pub(crate) struct DraftModel {
    pub(crate) loaded: LoadedModel,
    pub(crate) when: DraftUse,
    /// The cells of its memory; 0 when it is turned off.
    pub(crate) cells: AtomicU32,
    /// Tokens that it guessed.
    pub(crate) guessed: AtomicU64,
    /// Those of them that the target chose too.
    pub(crate) right: AtomicU64,
}

impl LoadedModel {
    /// A model that llama.cpp has loaded, with the bytes of weights that it copied.
    pub(crate) fn new(
        stored: &StoredModel,
        options: &LlamaOptions,
        offload: &Offload,
        (model, copied): (LlamaModel, u64),
    ) -> Result<Self, EngineError> {
        let name = &stored.id;
        let header = stored.header.as_deref();
        let context_size = ContextSize::of(stored, options, offload.room);
        if let Some(trained) = stored.trained().filter(|trained| u64::from(context_size.context) > *trained) {
            tracing::warn!(
                model = %name,
                context = context_size.context,
                trained,
                "the context is longer than the model was trained for. Lower [engine.embedded] context if \
                 answers are bad"
            );
        }
        let template = choose_template(&model, name)?;
        let marks = control_marks(&model, template.marks().chain(COMMON_MARKS));
        let architecture = header.and_then(|header| header.architecture.clone()).unwrap_or_default();
        // A model that names no pooling was not made for embeddings; the mean of its tokens is the usual way then.
        let named_pooling = model.meta_val_str(&format!("{architecture}.pooling_type"));
        let pooling = match named_pooling.as_deref() {
            Err(_) | Ok("0") => LlamaPoolingType::Mean,
            Ok(_) => LlamaPoolingType::Unspecified,
        };
        // If the cards compute everything, more threads would only wait for each other.
        let threads = if offload.is_whole { 1 } else { i32::try_from(options.threads.max(1)).unwrap_or(1) };
        // The threads that compute keep their cores busy for a while after a step, so others would only take turns with them.
        let sampling_threads =
            if offload.is_whole { options.threads.clamp(1, MAX_SAMPLING_THREADS) } else { 1 };
        let projector = stored.projector.as_ref();
        Ok(LoadedModel {
            id: name.clone(),
            projector: projector.map(|stored| Projector::new(stored, threads, offload.layers > 0)),
            template,
            control: control_tokens(&model),
            marks,
            vocabulary: OnceLock::new(),
            context_size,
            parallel: context_size.slots,
            needs: stored.needs().map(|needs| needs.with_weights(needs.weights.max(copied))),
            kv: options.kv,
            flash_attention: options.flash_attention,
            threads,
            sampling_threads,
            embeds_only: header.is_some_and(|header| header.is_embedding),
            embeds_too: AtomicBool::new(false),
            pooling,
            compares_texts: named_pooling.as_deref() == Ok(RANK_POOLING),
            prompt_lookup: options.prompt_lookup,
            draft: None,
            computed: AtomicU64::new(0),
            guessed: AtomicU64::new(0),
            offload: offload.clone(),
            model,
        })
    }

    /// Whether a prefix of a sequence can be kept.
    pub(crate) fn reuse(&self) -> Reuse {
        if self.model.is_recurrent() || self.model.is_hybrid() { Reuse::Nothing } else { Reuse::Prefixes }
    }

    /// The initial cells. A card has the memory for all of them, and a larger context takes longer to make than to fill.
    pub(crate) fn first_cells(&self) -> u32 {
        if self.offload.layers > 0 { self.context_size.cells } else { self.context_size.first_cells }
    }

    /// Prompt tokens per step.
    pub(crate) fn step(&self) -> StepSize {
        if self.offload.layers > 0 { CARD_STEP } else { STEP }
    }

    /// The most tokens or vectors that are read at once.
    pub(crate) fn batch(&self) -> usize {
        let reads_whole = self.projector.as_ref().is_some_and(|projector| projector.reads_whole);
        let largest = if reads_whole { WHOLE_PICTURE } else { 0 };
        self.step().tokens_of(self.parallel).max(largest)
    }

    /// Tokens of the step that runs the model once when it is loaded. A card gets all memory that a step needs while its reserve is
    /// free, because llama.cpp ends the process if there is none later. On the processor, a full step would delay the first answer.
    pub(crate) fn warm_up_tokens(&self) -> usize {
        match self.offload.layers {
            0 => 2,
            _ => self.step().tokens_of(self.parallel).min(self.first_cells() as usize),
        }
    }

    /// The context to generate, with this many cells.
    pub(crate) fn writing_context(&self, cells: u32) -> Result<LlamaContext<'_>, EngineError> {
        let batch = u32::try_from(self.batch()).unwrap_or(1024);
        let kv = match self.kv {
            KvPrecision::F16 => KvCacheType::F16,
            KvPrecision::Q8 => KvCacheType::Q8_0,
        };
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(cells))
            .with_n_batch(batch)
            .with_n_ubatch(batch)
            .with_n_seq_max(u32::try_from(self.parallel).unwrap_or(1))
            .with_type_k(kv)
            .with_type_v(kv)
            .with_flash_attention_policy(self.flash_attention.policy())
            // One pool for all sequences: they share common prefixes for free, a single one may use all of it, and a step over
            // prompts and single tokens stays one pass over the weights.
            .with_kv_unified(true)
            .with_n_threads(self.threads)
            .with_n_threads_batch(self.threads)
            .with_no_perf(true);
        self.context(params)
    }

    /// The context to embed.
    pub(crate) fn embedding_context(&self) -> Result<LlamaContext<'_>, EngineError> {
        let VectorContext { tokens, texts } = self.vector_context();
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(tokens))
            .with_n_batch(tokens)
            .with_n_ubatch(tokens)
            .with_n_seq_max(u32::try_from(texts).unwrap_or(1))
            .with_kv_unified(true)
            .with_embeddings(true)
            .with_pooling_type(self.pooling)
            .with_n_threads(self.threads)
            .with_n_threads_batch(self.threads)
            .with_no_perf(true);
        self.context(params)
    }

    /// The size of that context.
    pub(crate) fn vector_context(&self) -> VectorContext {
        let states = match self.reuse() {
            Reuse::Prefixes => None,
            // Every sequence of such a model has its own memory.
            Reuse::Nothing => Some(self.parallel),
        };
        VectorContext::new(self.context_size.context, states)
    }

    /// Tokens of the longest text to embed.
    pub(crate) fn longest_embedded(&self) -> u32 {
        self.vector_context().tokens
    }

    /// The vocabulary for grammars. Slow the first time; blocks.
    pub(crate) fn vocabulary(&self) -> Result<&Arc<Vocabulary>, EngineError> {
        let made = self.vocabulary.get_or_init(|| {
            let vocab = self.model.vocab();
            let ends = vocab
                .tokens()
                .filter(|token| vocab.is_eog(*token))
                .filter_map(|token| u32::try_from(token.0).ok());
            let ends = ends.collect();
            let spelled: Vec<(bool, Vec<u8>)> = vocab
                .tokens()
                .map(|token| {
                    let special = vocab.is_control(token) || vocab.is_eog(token);
                    (special && !self.marks.contains(&token.0), self.bytes_of(token.0, special))
                })
                .collect();
            let spellings = spelled.iter().map(|(control, bytes)| match control {
                true => Spelling::Control(bytes),
                false => Spelling::Text(bytes),
            });
            Vocabulary::new(spellings, ends).map(Arc::new)
        });
        made.as_ref().map_err(|error| {
            unusable(format!("the tokens of the model '{}' cannot be used for grammars: {error}", self.id))
        })
    }

    fn context(&self, params: LlamaContextParams) -> Result<LlamaContext<'_>, EngineError> {
        let backend = backend()?;
        let (context, said) = log::listen(|| self.model.new_context(backend, params));
        context.map_err(|_| {
            unusable(format!("not enough memory for the model '{}': {}", self.id, said.errors.join("; ")))
        })
    }

    /// The text of tokens, with the names of control tokens.
    pub(crate) fn text_of(&self, tokens: &[i32]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| self.bytes_of(*token, true)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The bytes of a token. `special` includes the names of control tokens.
    pub(crate) fn bytes_of(&self, token: i32, special: bool) -> Vec<u8> {
        self.model.vocab().token_to_piece(LlamaToken(token), special, None)
    }

    pub(crate) fn ends_text(&self, token: i32) -> bool {
        self.model.vocab().is_eog(LlamaToken(token))
    }

    /// Tokens of `place` in the request as the caller numbered them, if the model has them all.
    pub(crate) fn known_tokens(&self, place: &str, tokens: &[u32]) -> Result<Vec<i32>, EngineError> {
        let vocabulary = self.model.n_vocab();
        let known = |token: &u32| i32::try_from(*token).ok().filter(|token| *token < vocabulary);
        tokens.iter().map(|token| known(token).ok_or(token)).collect::<Result<_, _>>().map_err(|token| {
            let message = format!(
                "{place} has the token {token}; those of '{}' are numbered from 0 to {}",
                self.id,
                vocabulary - 1
            );
            bad_request(message, Some(place.split('[').next().unwrap_or(place)))
        })
    }

    /// What it can read beyond text.
    pub(crate) fn senses(&self) -> Senses {
        self.projector.as_ref().map_or(Senses::default(), |projector| projector.senses)
    }

    /// What its tokens and its template can.
    pub(crate) fn capabilities(&self) -> ModelCapabilities {
        let vocab = self.model.vocab();
        let has_gap_tokens =
            [vocab.fim_pre(), vocab.fim_suf(), vocab.fim_mid()].iter().all(|token| token.0 >= 0);
        let has_mark = !self.control_marks([THOUGHT_MARK].into_iter()).is_empty();
        let thinks = match &self.template {
            Template::Own { usual, .. } => usual.thinks || usual.source().contains(THOUGHT_MARK) || has_mark,
            Template::BuiltIn(_) => has_mark,
        };
        let senses = self.senses();
        ModelCapabilities {
            vision: Some(senses.sees),
            audio: Some(senses.hears),
            tools: Some(!self.embeds_only),
            reasoning: Some(thinks),
            fill_in_middle: Some(has_gap_tokens),
        }
    }

    /// The control tokens among these marks.
    pub(crate) fn control_marks<'a>(&self, marks: impl Iterator<Item = &'a str>) -> Vec<i32> {
        control_marks(&self.model, marks)
    }

    /// Whether the model was made to score a document for a question.
    pub(crate) fn compares_texts(&self) -> bool {
        self.compares_texts
    }

    /// The tokens of text in which nothing that looks like a control token is one.
    pub(crate) fn tokens_of_words(&self, text: &str, add_special: bool) -> Vec<i32> {
        let tokens = self.model.vocab().tokenize(text.as_bytes(), add_special, false);
        tokens.into_iter().map(|token| token.0).collect()
    }

    /// The tokens of a marked text, in which only the control tokens of the template are tokens.
    pub(crate) fn tokens_of_marked(&self, marked: &str, add_special: bool) -> Vec<i32> {
        let vocab = self.model.vocab();
        let mut tokens: Vec<i32> = Vec::new();
        for (at, span) in self.control.spans(marked).iter().enumerate() {
            let add_special = add_special && at == 0;
            let removes = |token: &i32| vocab.attr(LlamaToken(*token)).contains(LlamaTokenAttr::RStrip);
            let read = match span.origin {
                Origin::Template => self.tokens(&span.text, add_special),
                // Some control tokens remove the blanks after them.
                Origin::User if tokens.last().is_some_and(removes) => {
                    self.tokens_of_words(span.text.trim_ascii_start(), add_special)
                }
                Origin::User => self.tokens_of_words(&span.text, add_special),
            };
            tokens.extend(read);
        }
        tokens
    }

    /// The tokens of text with control tokens.
    pub(crate) fn tokens(&self, text: &str, add_special: bool) -> Vec<i32> {
        let tokens = self.model.vocab().tokenize(text.as_bytes(), add_special, true);
        tokens.into_iter().map(|token| token.0).collect()
    }
}

fn control_tokens(model: &LlamaModel) -> ControlTokens {
    let vocab = model.vocab();
    let special =
        |token: &LlamaToken| vocab.is_control(*token) || vocab.attr(*token).contains(LlamaTokenAttr::Unknown);
    ControlTokens::new(
        vocab
            .tokens()
            .filter(special)
            .filter_map(|token| Some(vocab.text(token)?.to_string_lossy().into_owned())),
    )
}

/// The marks that are control tokens.
fn control_marks<'a>(model: &LlamaModel, marks: impl Iterator<Item = &'a str>) -> Vec<i32> {
    let vocab = model.vocab();
    let alone = |mark: &str| match vocab.tokenize(mark.as_bytes(), false, true)[..] {
        [token] if vocab.is_control(token) => Some(token.0),
        _ => None,
    };
    marks.filter_map(alone).collect()
}

fn choose_template(model: &LlamaModel, name: &str) -> Result<Template, EngineError> {
    let Ok(template) = model.chat_template(None) else {
        // Models without a template are mostly base models; this is a neutral choice.
        return LlamaChatTemplate::new("chatml")
            .map(Template::BuiltIn)
            .map_err(|error| unusable(error.to_string()));
    };
    let usual = match read_template(model, &template, name) {
        Ok(usual) => usual,
        Err(error) => {
            tracing::warn!(model = name, "{error}; Hob uses a template of llama.cpp instead");
            return Ok(Template::BuiltIn(template));
        }
    };
    let tool_use = model.chat_template(Some("tool_use")).ok().and_then(|template| {
        let read = read_template(model, &template, name);
        read.inspect_err(|error| {
            tracing::warn!(
                model = name,
                "the template for tools is not usable, so Hob uses the usual one: {error}"
            )
        })
        .ok()
    });
    Ok(Template::Own { usual, tool_use })
}

fn read_template(
    model: &LlamaModel,
    template: &LlamaChatTemplate,
    name: &str,
) -> Result<Box<ChatTemplate>, EngineError> {
    let vocab = model.vocab();
    let text = |token: LlamaToken| {
        let known = token.0 >= 0;
        let bytes = known.then(|| vocab.token_to_piece(token, true, None));
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    };
    let source =
        template.to_str().map_err(|_| unusable(format!("the chat template of '{name}' is not text")))?;
    ChatTemplate::new(source, &text(vocab.bos()), &text(vocab.eos()))
        .map(Box::new)
        .map_err(|error| unusable(error.to_string()))
}
