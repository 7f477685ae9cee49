//! A loaded model and its properties. The worker computes.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use hob_core::{EngineError, ModelCapabilities};
use hob_models::tuned::file_to_load;
use hob_models::{ContextPlan, ContextShape, KvPrecision, MemoryEstimate, MemoryNeeds, StoredModel};
use llama_cpp_2::LlamaCppError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams, LlamaPoolingType};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::model::{LlamaChatTemplate, LlamaModel};
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;

use crate::batch_plan::STEP;
use crate::chat::ChatTemplate;
use crate::control_tokens::ControlTokens;
use crate::error::{bad_request, unusable};
use crate::grammar::{GrammarError, Spelling, Vocabulary};
use crate::log;
use crate::options::{FlashAttention, LlamaOptions};
use crate::resident;
use crate::slots::Reuse;

/// The longest text to embed.
const MAX_EMBEDDED: u32 = 2048;

/// The most common beginning of reasoning.
const THOUGHT_MARK: &str = "<think>";

/// The marks of the format for models whose template has none.
const COMMON_MARKS: [&str; 4] = ["<tool_call>", "</tool_call>", THOUGHT_MARK, "</think>"];

/// llama.cpp's number for models that give a score in the place of a vector.
const RANK_POOLING: &str = "4";

/// Short texts per batch.
const EMBED_BATCH: usize = 64;

/// llama.cpp's global state, once per process and never freed.
pub(crate) fn backend() -> Result<&'static LlamaBackend, EngineError> {
    static BACKEND: OnceLock<Result<LlamaBackend, LlamaCppError>> = OnceLock::new();
    let started = BACKEND.get_or_init(|| {
        log::capture();
        LlamaBackend::init()
    });
    started.as_ref().map_err(|error| unusable(format!("cannot start llama.cpp: {error}")))
}

/// The size of the context memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextSize {
    /// Tokens of one conversation.
    pub(crate) context: u32,
    /// Tokens of all conversations, at most. The memory is allocated as needed.
    pub(crate) cells: u32,
    pub(crate) first_cells: u32,
    /// Tokens up to which the memory grows only to keep what was read. Beyond, it grows for active conversations.
    pub(crate) cached_cells: u32,
    pub(crate) slots: usize,
}

/// Conversations of full length that stay in the cache although nobody continues them.
const CACHED_CONVERSATIONS: u32 = 2;

/// llama.cpp counts cells with 31 bits.
const MAX_CELLS: u64 = 1 << 30;

impl ContextSize {
    pub(crate) fn of(stored: &StoredModel, options: &LlamaOptions) -> Self {
        match stored.needs() {
            Some(needs) => {
                Self::planned(&ContextPlan::new(&needs, stored.trained(), &options.context_wish()))
            }
            // Not a model: loading it gives the reason.
            None => ContextSize { context: 1, cells: 1, first_cells: 1, cached_cells: 1, slots: 1 },
        }
    }

    fn planned(plan: &ContextPlan) -> Self {
        let cells = |cells: u64| u32::try_from(cells.clamp(1, MAX_CELLS)).unwrap_or(1);
        let context = cells(plan.context);
        ContextSize {
            context,
            cells: cells(plan.cells),
            first_cells: cells(plan.first_cells()),
            cached_cells: context.saturating_mul(CACHED_CONVERSATIONS).min(cells(plan.cells)),
            slots: plan.slots,
        }
    }
}

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
    needs: Option<MemoryNeeds>,
    kv: KvPrecision,
    flash_attention: FlashAttention,
    threads: i32,
    /// An embedding model, which cannot generate.
    pub(crate) embeds_only: bool,
    pooling: LlamaPoolingType,
    /// Made to score a document for a question.
    compares_texts: bool,
    /// Tokens that went through the model, of prompts and answers.
    pub(crate) computed: AtomicU64,
}

impl LoadedModel {
    /// Loads a model, in its tuned form if there is one. Blocks.
    pub(crate) fn load(stored: &StoredModel, options: &LlamaOptions) -> Result<Self, EngineError> {
        Self::load_file(stored, &file_to_load(&stored.path), options)
    }

    /// Loads this file of a model.
    pub(crate) fn load_file(
        stored: &StoredModel,
        file: &Path,
        options: &LlamaOptions,
    ) -> Result<Self, EngineError> {
        let name = &stored.id;
        if let Some(problem) = &stored.problem {
            return Err(unusable(format!("the model '{name}' is not usable: {problem}")));
        }
        let backend = backend()?;
        let params = LlamaModelParams::default().with_n_gpu_layers(options.gpu_layers);
        let (loaded, said) = log::listen(|| LlamaModel::load_from_file(backend, file, &params));
        let model = loaded.map_err(|_| {
            let reason = match said.errors.first() {
                Some(first) => first.as_str(),
                None => "llama.cpp gives no reason",
            };
            unusable(format!("cannot load the model '{name}': {reason}"))
        })?;
        let copied = said.buffers.copied_weights;
        if copied > stored.size / 2 {
            let parts = stored.files.iter().map(PathBuf::as_path).filter(|_| file == stored.path);
            parts.chain([file]).for_each(resident::release_file);
        }
        let header = stored.header.as_deref();
        let context_size = ContextSize::of(stored, options);
        if let Some(trained) = stored.trained().filter(|trained| u64::from(context_size.context) > *trained) {
            tracing::warn!(model = %name, context = context_size.context, trained, "the context is longer than the model was trained for");
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
        Ok(LoadedModel {
            id: name.clone(),
            template,
            control: control_tokens(&model),
            marks,
            vocabulary: OnceLock::new(),
            context_size,
            parallel: context_size.slots,
            needs: stored.needs().map(|needs| needs.with_weights(needs.weights.max(copied))),
            kv: options.kv,
            flash_attention: options.flash_attention,
            threads: i32::try_from(options.threads.max(1)).unwrap_or(1),
            embeds_only: header.is_some_and(|header| header.is_embedding),
            pooling,
            compares_texts: named_pooling.as_deref() == Ok(RANK_POOLING),
            computed: AtomicU64::new(0),
            model,
        })
    }

    /// Whether a prefix of a sequence can be kept.
    pub(crate) fn reuse(&self) -> Reuse {
        if self.model.is_recurrent() || self.model.is_hybrid() { Reuse::Nothing } else { Reuse::Prefixes }
    }

    /// The context to generate, with this many cells.
    pub(crate) fn writing_context(&self, cells: u32) -> Result<LlamaContext<'_>, EngineError> {
        let batch = u32::try_from(STEP.tokens_of(self.parallel)).unwrap_or(1024);
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
        let size = self.longest_embedded();
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(size))
            .with_n_batch(size)
            .with_n_ubatch(size)
            .with_n_seq_max(u32::try_from(self.embedded_together()).unwrap_or(1))
            .with_kv_unified(true)
            .with_embeddings(true)
            .with_pooling_type(self.pooling)
            .with_n_threads(self.threads)
            .with_n_threads_batch(self.threads)
            .with_no_perf(true);
        self.context(params)
    }

    /// The number of texts in a batch.
    pub(crate) fn embedded_together(&self) -> usize {
        match self.reuse() {
            Reuse::Prefixes => EMBED_BATCH,
            // Every sequence of such a model has its own memory.
            Reuse::Nothing => self.parallel,
        }
    }

    pub(crate) fn longest_embedded(&self) -> u32 {
        self.context_size.context.min(MAX_EMBEDDED)
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

    /// The memory of the model with this many cells.
    pub(crate) fn memory(&self, cells: u32) -> Option<MemoryEstimate> {
        let batch = match self.embeds_only {
            true => self.longest_embedded().into(),
            false => STEP.tokens_of(self.parallel) as u64,
        };
        let slots = if self.embeds_only { self.embedded_together() } else { self.parallel } as u64;
        let shape = ContextShape { cells: cells.into(), slots, batch, kv: self.kv };
        self.needs.map(|needs| needs.estimate(shape))
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
        ModelCapabilities {
            vision: Some(false),
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
            tracing::warn!(model = name, "{error}; using a template of llama.cpp instead");
            return Ok(Template::BuiltIn(template));
        }
    };
    let tool_use = model.chat_template(Some("tool_use")).ok().and_then(|template| {
        let read = read_template(model, &template, name);
        read.inspect_err(|error| tracing::warn!(model = name, "the template for tools is ignored: {error}"))
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

#[cfg(test)]
#[path = "loaded_model_tests.rs"]
mod tests;
