//! `[intelligence]`: which model answers.

use crate::keys::keys_of;
use crate::kind::{FLAG, OPTIONAL_TEXT};
use crate::router_key::{ROUTER, RouterKey};

/// Settings of the choice of a model.
#[derive(Debug, Clone, Default)]
pub struct IntelligenceConfig {
    /// The model when nothing else names one; `None` is the first of the engine.
    pub default_model: Option<String>,
    /// Who chooses where the model is `auto`.
    pub router: RouterKey,
    /// The model that answers for the default one when that, or its engine, is not there.
    pub fallback_model: Option<String>,
    /// Whether a request may go to the cloud when no local engine can answer it.
    pub allow_cloud_fallback: bool,
}

keys_of! {
    IntelligenceConfig {
        default_model: OPTIONAL_TEXT, "Model when nothing else names one; \"\" is the first of the engine, \"auto\" the one that suits the question.";
        router: ROUTER, "Who chooses when the model is \"auto\": heuristic follows rules, grpo learns from what came of its choices.";
        fallback_model: OPTIONAL_TEXT, "Model that answers for the default one when that, or its engine, is not there; the answer says so.";
        allow_cloud_fallback: FLAG, "Whether the cloud may answer when no local engine can. It sees the request then.";
    }
}
