//! Names of models as clients of Ollama write them: they add `:latest` to a name without a tag.

use hob_core::CallerRights;

use crate::error::{ApiError, ApiResult};
use crate::state::ServerState;

/// The tag that a name without one has.
const LATEST: &str = ":latest";

/// The model that a client means, as Hob lists it. A tag that no engine lists is dropped.
pub(super) async fn meant(state: &ServerState, name: &str, rights: impl Into<CallerRights>) -> String {
    let Some(bare) = name.strip_suffix(LATEST).filter(|bare| !bare.is_empty()) else {
        return name.to_owned();
    };
    let listed = state.system.listed_models(rights).await.unwrap_or_default();
    let is_listed = listed.iter().any(|listed| listed.model.id == name);
    if is_listed { name.to_owned() } else { bare.to_owned() }
}

/// The required name of a model. Older clients call the field `name`.
pub(super) fn required(model: Option<String>, name: Option<String>) -> ApiResult<String> {
    let named = model.or(name).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    named.ok_or_else(|| ApiError::invalid("model", "model is required: the name of a model, or 'default'"))
}
