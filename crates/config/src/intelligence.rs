//! `[intelligence]`: which model answers, and how where a caller does not say.

use hob_core::{MaxTokens, Temperature};

use crate::kind::{FLAG, MAX_TOKENS, OPTIONAL_TEXT, TEMPERATURE};
use crate::router_name::{ROUTER, RouterName};
use crate::section_keys::keys_of;

/// Settings of the choice of a model.
#[derive(Debug, Clone)]
pub struct IntelligenceConfig {
    /// The model when nothing else names one; `None` leaves the choice to Hob.
    pub default_model: Option<String>,
    /// Who chooses where the model is `auto`.
    pub router: RouterName,
    /// The model that answers for the default one when that, or its engine, is not there.
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
        default_model: OPTIONAL_TEXT, "Model when nothing else names one; \"\" is the one that Hob chose first, \"auto\" the one that suits the question. 'hob model use' writes it.";
        router: ROUTER, "Who chooses when the model is \"auto\": heuristic follows rules, grpo learns from what came of its choices.";
        fallback_model: OPTIONAL_TEXT, "Model that answers for the default one when that, or its engine, is not there; the answer says so.";
        allow_cloud_fallback: FLAG, "Whether the cloud may answer when no local engine can. It sees the request then.";
        temperature: TEMPERATURE, "Temperature of answers when a request gives none; \"engine\" leaves it to the engine.";
        max_tokens: MAX_TOKENS, "Most tokens of an answer when a request gives no limit; \"engine\" leaves it to the engine.";
    }
}
