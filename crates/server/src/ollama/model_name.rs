//! Names of models as clients of Ollama write them: they add `:latest` to a name without a tag.

use std::collections::HashSet;

use hob_core::{CallerRights, ListedModel};

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

/// The names of a list as clients of Ollama expect them: each with a tag. Some look up what they send in the list, after they have added
/// the tag.
pub(super) struct TaggedNames<'a> {
    ids: HashSet<&'a str>,
}

impl<'a> TaggedNames<'a> {
    pub(super) fn of(listed: &'a [ListedModel]) -> Self {
        TaggedNames { ids: listed.iter().map(|listed| listed.model.id.as_str()).collect() }
    }

    /// The name of a model, which [`meant`] reads as this model. One whose name with the tag is another model has none.
    pub(super) fn name(&self, id: &str) -> String {
        let tagged = format!("{id}{LATEST}");
        match id.contains(':') || self.ids.contains(tagged.as_str()) {
            true => id.to_owned(),
            false => tagged,
        }
    }
}

/// The required name of a model. Older clients call the field `name`.
pub(super) fn required(model: Option<String>, name: Option<String>) -> ApiResult<String> {
    let named = model.or(name).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    named.ok_or_else(|| ApiError::invalid("model", "model is required: the name of a model, or 'default'"))
}
