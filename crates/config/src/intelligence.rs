//! `[intelligence]`: which model answers, and how where a caller does not say.

use hob_core::{MaxTokens, Temperature};

use crate::kind::{FLAG, MAX_TOKENS, OPTIONAL_TEXT, TEMPERATURE};
use crate::router_name::{ROUTER, RouterName};
use crate::settings_schema::keys_of;

/// Settings of the choice of a model.
#[derive(Debug, Clone)]
pub struct IntelligenceConfig {
    /// The model when nothing else names one; `None` leaves the choice to Hob.
    pub default_model: Option<String>,
    /// The policy that chooses the model for `auto`.
    pub router: RouterName,
    /// The model that answers if the default model or its engine is not available.
    pub fallback_model: Option<String>,
    /// Whether a request may go to the cloud when no local engine can answer it.
    pub allow_cloud_fallback: bool,
    /// The temperature of answers whose caller gives none; `None` leaves it to the engine.
    pub temperature: Option<Temperature>,
    /// The most tokens of answers whose caller gives no limit; `None` leaves it to the engine.
    pub max_tokens: Option<MaxTokens>,
}

impl Default for IntelligenceConfig {
    fn default() -> Self {
        IntelligenceConfig {
            default_model: None,
            router: RouterName::default(),
            fallback_model: None,
            allow_cloud_fallback: false,
            temperature: Some(Temperature::default()),
            max_tokens: Some(MaxTokens::default()),
        }
    }
}

keys_of! {
    IntelligenceConfig {
        default_model: OPTIONAL_TEXT, "Default model; \"\" is the model that Hob chose first, \"auto\" selects one for each question. 'hob model use' sets it.";
        router: ROUTER, "How \"auto\" selects a model: heuristic follows rules, grpo learns from the results of earlier choices.";
        fallback_model: OPTIONAL_TEXT, "Model that answers if the default model or its engine is not available; the answer says so.";
        allow_cloud_fallback: FLAG, "Whether the cloud may answer if no local engine can. The provider then sees the request.";
        temperature: TEMPERATURE, "Temperature for requests that set none; \"engine\" uses the engine's default.";
        max_tokens: MAX_TOKENS, "Token limit of an answer for requests that set none; \"engine\" uses the engine's default.";
    }
}
