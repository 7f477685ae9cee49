//! `[intelligence]`: which model answers.

use crate::keys::keys_of;
use crate::kind::{FLAG, OPTIONAL_TEXT};

/// Settings of the choice of a model.
#[derive(Debug, Clone, Default)]
pub struct IntelligenceConfig {
    /// The model when nothing else names one; `None` is the first of the engine.
    pub default_model: Option<String>,
    /// The model when the default one is not there.
    pub fallback_model: Option<String>,
    /// Whether a request may go to the cloud when no local engine can answer it.
    pub allow_cloud_fallback: bool,
}

keys_of! {
    IntelligenceConfig {
        default_model: OPTIONAL_TEXT, "Model when nothing else names one; \"\" is the first of the engine.";
        fallback_model: OPTIONAL_TEXT, "Model to use when the default one is not there.";
        allow_cloud_fallback: FLAG, "Whether the cloud may answer when no local engine can. It sees the request then.";
    }
}
