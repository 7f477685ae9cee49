//! The engine `cloud`: OpenAI, Anthropic and Google, chosen by the model's name. Each provider is an engine in its
//! own file.
//!
//! Does not read the environment: keys and hosts come in [`CloudOptions`].

mod access;
mod anthropic;
mod gemini;
mod openai;
mod translate;

#[cfg(fuzzing)]
pub(crate) use {anthropic::fuzzing as anthropic_fuzzing, gemini::fuzzing as gemini_fuzzing};

use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use hob_core::{
    CompletionRequest, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation,
    GenerationStream, MediaAnswer, MediaRequest, ModelInfo,
};
use secrecy::{ExposeSecret, SecretString};

use access::ProviderAccess;
use anthropic::Anthropic;
use gemini::Gemini;
use openai::OpenAi;

use crate::health_cache::is_any_healthy;

/// The engine's key in the configuration.
const KEY: &str = "cloud";

/// The address of a provider, and the API key.
#[derive(Debug, Clone)]
pub struct Provider {
    /// Base URL. A trailing slash is removed.
    pub host: String,
    /// Without a key, the provider is not used.
    pub key: Option<SecretString>,
}

impl Provider {
    fn at(host: &str) -> Self {
        Provider { host: host.to_owned(), key: None }
    }
}

/// Options of the cloud engine.
#[derive(Debug, Clone)]
pub struct CloudOptions {
    /// Its base URL ends in `/v1`, as in OpenAI's own clients.
    pub openai: Provider,
    pub anthropic: Provider,
    pub gemini: Provider,
    /// The longest wait for the next bytes of a connection, including the head of the response.
    pub timeout: Duration,
}

impl Default for CloudOptions {
    fn default() -> Self {
        CloudOptions {
            openai: Provider::at("https://api.openai.com/v1"),
            anthropic: Provider::at("https://api.anthropic.com"),
            gemini: Provider::at("https://generativelanguage.googleapis.com"),
            timeout: Duration::from_secs(120),
        }
    }
}

/// A provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    OpenAi,
    Anthropic,
    Gemini,
}

impl Vendor {
    const ALL: [Vendor; 3] = [Vendor::OpenAi, Vendor::Anthropic, Vendor::Gemini];

    fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        if model.contains("claude") {
            Vendor::Anthropic
        } else if model.contains("gemini") {
            Vendor::Gemini
        } else {
            Vendor::OpenAi
        }
    }

    /// Its name in errors. The engine's key comes first, so that users find it in their configuration.
    fn label(self) -> &'static str {
        match self {
            Vendor::OpenAi => "cloud (OpenAI)",
            Vendor::Anthropic => "cloud (Anthropic)",
            Vendor::Gemini => "cloud (Gemini)",
        }
    }

    /// The environment variables that hold its API key.
    fn variables(self) -> &'static str {
        match self {
            Vendor::OpenAi => "OPENAI_API_KEY",
            Vendor::Anthropic => "ANTHROPIC_API_KEY",
            Vendor::Gemini => "GEMINI_API_KEY or GOOGLE_API_KEY",
        }
    }
}

/// All providers that have an API key.
pub struct Cloud {
    providers: Vec<(Vendor, Box<dyn Engine>)>,
    /// The hosts of all providers.
    address: String,
}

impl Cloud {
    pub fn new(options: CloudOptions) -> Result<Self, EngineError> {
        let mut providers: Vec<(Vendor, Box<dyn Engine>)> = Vec::new();
        for vendor in Vendor::ALL {
            let Provider { host, key } = match vendor {
                Vendor::OpenAi => &options.openai,
                Vendor::Anthropic => &options.anthropic,
                Vendor::Gemini => &options.gemini,
            };
            // Users unset a key with an empty variable.
            let Some(key) = key.clone().filter(|key| !key.expose_secret().trim().is_empty()) else {
                continue;
            };
            let access = ProviderAccess { label: vendor.label(), host, key, timeout: options.timeout };
            providers.push((
                vendor,
                match vendor {
                    Vendor::OpenAi => Box::new(OpenAi::new(access)?),
                    Vendor::Anthropic => Box::new(Anthropic::new(access)?),
                    Vendor::Gemini => Box::new(Gemini::new(access)?),
                },
            ));
        }
        let hosts: Vec<&str> = providers.iter().map(|(_, engine)| engine.address()).collect();
        Ok(Cloud { address: hosts.join(", "), providers })
    }

    /// The provider that answers `model`.
    fn provider(&self, model: &str) -> Result<&dyn Engine, EngineError> {
        let vendor = Vendor::of(model);
        self.providers
            .iter()
            .find(|(known, _)| *known == vendor)
            .map(|(_, engine)| engine.as_ref())
            .ok_or_else(|| EngineError::NotConfigured {
                engine: vendor.label().to_owned(),
                reason: format!("'{model}' needs a key; set {}", vendor.variables()),
            })
    }
}

#[async_trait]
impl Engine for Cloud {
    fn key(&self) -> &str {
        KEY
    }

    fn address(&self) -> &str {
        &self.address
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        self.provider(&request.model)?.generate(request).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.provider(&request.model)?.stream(request).await
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        self.provider(&request.model)?.embed(request).await
    }

    /// The providers have no API for completion any more, so the text is sent as a question.
    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        self.generate(&as_question(request)?).await
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        self.stream(&as_question(request)?).await
    }

    async fn media(&self, request: &MediaRequest) -> Result<MediaAnswer, EngineError> {
        self.provider(&request.model)?.media(request).await
    }

    /// The models of every provider. If one provider fails, the others are still listed.
    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        let lists = join_all(
            self.providers.iter().map(|(vendor, engine)| async { (*vendor, engine.list_models().await) }),
        )
        .await;
        let mut models = Vec::new();
        let mut failures = Vec::new();
        for (vendor, list) in lists {
            match list {
                // Requests for this name go to another provider, so it cannot be used.
                Ok(list) => models.extend(list.into_iter().filter(|model| Vendor::of(&model.id) == vendor)),
                Err(error) => failures.push(error),
            }
        }
        if failures.len() == self.providers.len() {
            return Err(failures.into_iter().next().unwrap_or_else(without_any_key));
        }
        for error in failures {
            tracing::warn!(
                engine = KEY,
                %error,
                "a provider did not list its models; the list has those of the others. Check its key, and \
                 [engine.cloud]"
            );
        }
        Ok(models)
    }

    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        self.provider(&model.id).ok()?.describe(model).await
    }

    /// Whether any provider answers.
    async fn health(&self) -> bool {
        let checks: Vec<_> = self.providers.iter().map(|(_, engine)| engine.health()).collect();
        is_any_healthy(checks).await
    }

    /// Providers accept aliases and preview models that they do not list.
    fn lists_every_model(&self) -> bool {
        false
    }
}

/// The text as a question. What only a text that is continued can have is refused by name.
fn as_question(request: &CompletionRequest) -> Result<GenerateRequest, EngineError> {
    let unsupported = |field: &str, hint: &str| EngineError::Unsupported {
        engine: KEY.to_owned(),
        field: field.to_owned(),
        hint: Some(hint.to_owned()),
    };
    let asked = [
        (
            "suffix",
            request.suffix.is_some(),
            "its models do not fill in the middle; choose a local model for code",
        ),
        ("echo", request.echo, "it returns no probabilities of the prompt"),
        (
            "logprobs",
            request.sampling.logprobs,
            "it returns no probabilities for a text; send a conversation",
        ),
    ];
    if let Some((field, _, hint)) = asked.into_iter().find(|(_, asked, _)| *asked) {
        return Err(unsupported(field, hint));
    }
    request.as_question().ok_or_else(|| unsupported("prompt", "it accepts text, not tokens"))
}

fn without_any_key() -> EngineError {
    let variables = Vendor::ALL.map(Vendor::variables);
    EngineError::NotConfigured {
        engine: KEY.to_owned(),
        reason: format!("no provider has a key; set {}", variables.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_name_chooses_the_provider() {
        let vendors =
            ["claude-opus-4-6", "Claude-3", "gemini-3.1-pro", "models/gemini-2.5-flash", "gpt-5.2", ""];
        assert_eq!(
            vendors.map(Vendor::of),
            [
                Vendor::Anthropic,
                Vendor::Anthropic,
                Vendor::Gemini,
                Vendor::Gemini,
                Vendor::OpenAi,
                Vendor::OpenAi
            ]
        );
    }

    #[test]
    fn a_provider_without_a_key_names_the_variable_to_set() {
        let cloud = Cloud::new(CloudOptions {
            openai: Provider { key: Some(" ".to_owned().into()), ..CloudOptions::default().openai },
            ..CloudOptions::default()
        })
        .unwrap();
        let reason = |model: &str| match cloud.provider(model) {
            Ok(_) => "it has a key".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(
            [reason("gpt-5.2"), reason("claude-x"), reason("gemini-x")],
            [
                "cloud (OpenAI) is not set up: 'gpt-5.2' needs a key; set OPENAI_API_KEY",
                "cloud (Anthropic) is not set up: 'claude-x' needs a key; set ANTHROPIC_API_KEY",
                "cloud (Gemini) is not set up: 'gemini-x' needs a key; set GEMINI_API_KEY or GOOGLE_API_KEY",
            ]
        );
        assert_eq!(cloud.address(), "");
    }
}
