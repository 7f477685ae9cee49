//! What a named API key allows, and what its requests are charged to. Knows nothing of secrets, of databases or of how a limit is
//! counted.

use std::borrow::Cow;
use std::fmt;
use std::future::Ready;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use futures::future::{BoxFuture, Either};

use crate::caller::CallerRole;
use crate::collection::CollectionSet;
use crate::engine::CLOUD;
use crate::generate::Usage;
use crate::limit::LimitReached;
use crate::model::{AGENT_MODEL, AUTO, DEFAULT_MODEL};
use crate::tool::{MEMORY_SEARCH_TOOLS, OWNER_TOOLS, Permit, Reach};

/// The tools that some keys never allow: those that search the memory, then those of the owner. Made once, so that a request copies no
/// list.
static WITHHELD_TOOLS: LazyLock<Vec<Cow<'static, str>>> =
    LazyLock::new(|| MEMORY_SEARCH_TOOLS.into_iter().chain(OWNER_TOOLS).map(Cow::Borrowed).collect());

/// The rights of a key that may be used now.
pub struct KeyGrant {
    pub name: Arc<str>,
    /// The rule that gives these rights to an identity from outside; `None` for a named key.
    pub rule: Option<Arc<str>>,
    /// `Owner` or `Member`.
    pub role: CallerRole,
    /// `None` for all models.
    pub models: Option<ModelPatterns>,
    /// The engines that may answer; `None` for all.
    pub engines: Option<Vec<String>>,
    /// Whether requests may go to a cloud provider.
    pub cloud: bool,
    /// How far tools may reach.
    pub reach: Reach,
    /// The tools that may be used; `None` for all within `reach`.
    pub tools: Option<Vec<String>>,
    /// The collections of documents that may be read.
    pub memory: CollectionSet,
    /// Counts what requests use; `None` for a key without limits.
    pub spending: Option<Arc<dyn Spending>>,
}

impl fmt::Debug for KeyGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyGrant").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

impl KeyGrant {
    /// What an agent may use for a request with this key.
    pub fn permit(&self) -> Permit {
        Permit {
            also: self.searches(),
            only: self.tools.clone(),
            key: Some(Arc::clone(&self.name)),
            rule: self.rule.clone(),
            ..Permit::up_to(self.reach)
        }
    }

    /// Whether the key names collections. Naming them allows to search them, whatever its reach.
    pub fn names_collections(&self) -> bool {
        self.memory != CollectionSet::All && !self.memory.is_empty()
    }

    /// The tools that the key allows by naming collections.
    fn searches(&self) -> Vec<String> {
        match self.names_collections() {
            true => MEMORY_SEARCH_TOOLS.map(str::to_owned).to_vec(),
            false => Vec::new(),
        }
    }

    /// `permit` without what this key does not allow. Rights that the key had when the permit was stored may be gone, and collections
    /// may have been added.
    pub(crate) fn narrow(&self, permit: Permit) -> Permit {
        let only = match (permit.only, &self.tools) {
            (only, None) => only,
            (None, Some(tools)) => Some(tools.clone()),
            (Some(mut only), Some(tools)) => {
                only.retain(|tool| tools.contains(tool));
                Some(only)
            }
        };
        // A tool that is allowed by name reaches further than `most`. How far is not known here, so only a key without a limit keeps it.
        let mut also = if self.reach == Reach::Act { permit.also } else { Vec::new() };
        also.extend(self.searches());
        Permit { most: permit.most.min(self.reach), also, only, ..permit }
    }

    /// The tools that this key never allows, whatever its reach: a member uses nothing of the owner's, and without collections there is
    /// nothing to search.
    pub(crate) fn withheld_tools(&self) -> &'static [Cow<'static, str>] {
        let searches = MEMORY_SEARCH_TOOLS.len();
        let start = if self.memory.is_empty() { 0 } else { searches };
        let end = if self.role == CallerRole::Owner { searches } else { WITHHELD_TOOLS.len() };
        &WITHHELD_TOOLS[start..end]
    }

    fn may_use_engine(&self, engine: &str) -> bool {
        let is_listed =
            self.engines.as_ref().is_none_or(|engines| engines.iter().any(|known| known == engine));
        is_listed && (engine != CLOUD || self.cloud)
    }
}

/// Finds the keys that may be used now.
#[async_trait]
pub trait KeyRing: Send + Sync {
    /// The rights of a key; `None` if there is no such key, or if it is disabled, revoked or expired. `rule` is the rule of an
    /// identity from outside.
    fn grant(&self, name: &str, rule: Option<&str>) -> Option<Arc<KeyGrant>>;

    /// The same, after a look at the keys as they are stored now if the key is not known or not valid. Waits while the keys could not be
    /// read yet, so a task does not fail because it is claimed before that.
    async fn stored_grant(&self, name: &str, rule: Option<&str>) -> Option<Arc<KeyGrant>> {
        self.grant(name, rule)
    }

    /// Whether these are still the rights of a key that may be used now.
    fn is_current(&self, key: &Arc<KeyGrant>) -> bool {
        let granted = self.grant(&key.name, key.rule.as_deref());
        granted.is_some_and(|granted| Arc::ptr_eq(&granted, key))
    }
}

/// Has no keys.
pub struct EmptyKeyRing;

impl KeyRing for EmptyKeyRing {
    fn grant(&self, _name: &str, _rule: Option<&str>) -> Option<Arc<KeyGrant>> {
        None
    }
}

/// The role of a caller, and the key that it named.
#[derive(Debug, Clone)]
pub struct CallerRights {
    pub role: CallerRole,
    pub key: Option<Arc<KeyGrant>>,
}

impl From<CallerRole> for CallerRights {
    fn from(role: CallerRole) -> Self {
        CallerRights { role, key: None }
    }
}

impl CallerRights {
    /// Whether a request may go to a cloud provider, which the owner pays.
    pub fn may_use_cloud(&self) -> bool {
        self.may_use_engine(CLOUD)
    }

    /// Whether the engine may answer.
    pub fn may_use_engine(&self, engine: &str) -> bool {
        match &self.key {
            Some(key) => key.may_use_engine(engine),
            None => engine != CLOUD || self.role.may_use_cloud_without_key(),
        }
    }

    /// Whether the caller may ask for a model by this name.
    pub fn may_use_model(&self, model: &str) -> bool {
        self.patterns().is_none_or(|patterns| patterns.allow(model))
    }

    /// Whether Hob may choose this model for the caller. A key that names only `auto` leaves the choice to Hob.
    pub fn may_be_given(&self, model: &str) -> bool {
        self.patterns().is_none_or(|patterns| !patterns.name_models() || patterns.allow(model))
    }

    /// The collections of documents that the caller may read. Every way to the memory asks here: the API, tools, and passages for a
    /// question. A channel sender reads what the owner allows by name, and then everything.
    pub fn collections(&self) -> CollectionSet {
        match (&self.key, self.role) {
            (Some(key), _) => key.memory.clone(),
            (None, CallerRole::Owner | CallerRole::ChannelSender) => CollectionSet::All,
            (None, CallerRole::Member | CallerRole::Stranger) => CollectionSet::none(),
        }
    }

    fn patterns(&self) -> Option<&ModelPatterns> {
        self.key.as_ref()?.models.as_ref()
    }
}

/// Names of models, in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPatterns(Vec<String>);

impl ModelPatterns {
    pub fn new(patterns: Vec<String>) -> Self {
        ModelPatterns(patterns)
    }

    pub fn allow(&self, model: &str) -> bool {
        self.0.iter().any(|pattern| matches_pattern(pattern, model))
    }

    /// Whether a pattern is for models, and not only for the names that leave the choice to Hob.
    fn name_models(&self) -> bool {
        self.0.iter().any(|pattern| ![AUTO, DEFAULT_MODEL, AGENT_MODEL].contains(&pattern.as_str()))
    }
}

/// Whether `text` fits the pattern, in which `*` stands for any text. Takes time in proportion to both lengths at most.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut from) = (0, 0);
    // Where the last star is, and how much of the text it stands for.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, from));
            at += 1;
        } else if pattern.get(at) == text.get(from) {
            at += 1;
            from += 1;
        } else if let Some((place, end)) = star {
            star = Some((place, end + 1));
            at = place + 1;
            from = end + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// What the limits of a key say. Usually that is known at once, and then no future is allocated.
pub type LimitAnswer<'a, T> = Either<Ready<Result<T, LimitReached>>, BoxFuture<'a, Result<T, LimitReached>>>;

/// Counts what a key uses, and refuses what would be too much.
pub trait Spending: Send + Sync {
    /// Admits a request. It runs until what this returns is dropped.
    fn begin_request(&self) -> LimitAnswer<'_, RunningRequest>;

    /// Reserves what a call to an engine is expected to use, before it is made.
    fn reserve<'a>(&'a self, call: PlannedCall<'a>) -> LimitAnswer<'a, Box<dyn CallReservation>>;
}

/// A request that counts as running until this is dropped.
pub struct RunningRequest(pub Box<dyn Send + Sync>);

impl fmt::Debug for RunningRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunningRequest")
    }
}

/// A call before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedCall<'a> {
    pub engine: &'a str,
    pub model: &'a str,
    /// An estimate.
    pub prompt_tokens: u64,
    /// The most that the answer may have; `None` if the request sets no limit.
    pub completion_tokens: Option<u64>,
    /// How far the limit may be lowered where a key has less left; `None` if the caller set it.
    pub lowest_completion: Option<u64>,
}

/// What is reserved for a call. Dropping it without `settle` gives everything back, for a call that used nothing.
pub trait CallReservation: Send + Sync {
    /// The most tokens that the answer may have, if the key has less left than was planned.
    fn lowered_completion(&self) -> Option<u64>;

    /// The call has ended, however it ended, and used this.
    fn settle(self: Box<Self>, usage: Usage);

    /// The call was cancelled, broke off or timed out before it said anything, or its answer cannot be read. It may have used all that
    /// is reserved, so all of it counts.
    fn keep(self: Box<Self>);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::CollectionName;

    fn allowed(patterns: &[&str], model: &str) -> bool {
        ModelPatterns::new(patterns.iter().map(|text| (*text).to_owned()).collect()).allow(model)
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, model, expected) in [
            ("qwen*", "qwen3:8b", true),
            ("qwen*", "qwen", true),
            ("qwen*", "aqwen", false),
            ("*", "", true),
            ("*", "anything/at:all", true),
            ("*8b", "qwen3:8b", true),
            ("q*3*b", "qwen3:8b", true),
            ("q*3*b", "qwen3:8bx", false),
            ("c*é*x", "c-é-x", true),
            ("a*a*a", "aa", false),
            ("auto", "auto", true),
            ("auto", "Auto", false),
            ("", "auto", false),
        ] {
            assert_eq!(allowed(&[pattern], model), expected, "{pattern} {model}");
        }
        assert!(!allowed(&[], "auto"));
    }

    fn grant(models: Option<&[&str]>) -> KeyGrant {
        KeyGrant {
            name: "ana".into(),
            rule: None,
            role: CallerRole::Member,
            models: models
                .map(|names| ModelPatterns::new(names.iter().map(|name| (*name).to_owned()).collect())),
            engines: None,
            cloud: false,
            reach: Reach::Read,
            tools: Some(vec!["calculator".to_owned(), "llm".to_owned()]),
            memory: CollectionSet::none(),
            spending: None,
        }
    }

    #[test]
    fn a_key_that_names_only_auto_leaves_the_choice_to_hob() {
        let rights = |models| CallerRights { role: CallerRole::Member, key: Some(Arc::new(grant(models))) };
        let only_auto = rights(Some(&["auto"]));
        assert!(only_auto.may_use_model("auto") && !only_auto.may_use_model("qwen3:8b"));
        assert!(only_auto.may_be_given("qwen3:8b"));
        let qwen = rights(Some(&["qwen*", "auto"]));
        assert!(qwen.may_be_given("qwen3:8b") && !qwen.may_be_given("llama3:8b"));
        assert!(rights(None).may_use_model("anything"));
    }

    #[test]
    fn a_permit_never_allows_more_than_its_key() {
        let key = grant(None);
        let wide = Permit { only: None, ..Permit::up_to(Reach::Act) };
        let narrow = Permit { only: Some(vec!["llm".into(), "shell".into()]), ..Permit::up_to(Reach::Pure) };
        assert_eq!(key.narrow(wide), Permit { only: key.tools.clone(), ..Permit::up_to(Reach::Read) });
        assert_eq!(
            key.narrow(narrow),
            Permit { only: Some(vec!["llm".into()]), ..Permit::up_to(Reach::Pure) }
        );
        let by_name = Permit { also: vec!["llm".into()], ..Permit::up_to(Reach::Pure) };
        assert_eq!(
            key.narrow(by_name.clone()).also,
            Vec::<String>::new(),
            "a name does not reach further than the key"
        );
        let wide_key = KeyGrant { reach: Reach::Act, ..grant(None) };
        assert_eq!(wide_key.narrow(by_name).also, ["llm"]);
    }

    #[test]
    fn a_caller_reads_the_collections_of_its_key_and_nothing_without_one() {
        let team = CollectionSet::of(CollectionName::parse("team").expect("a name"));
        let key = KeyGrant { memory: team.clone(), ..grant(None) };
        let searches = MEMORY_SEARCH_TOOLS.map(str::to_owned).to_vec();
        assert_eq!(key.permit().also, searches);
        assert_eq!(key.narrow(Permit::up_to(Reach::Pure)).also, searches);
        assert_eq!(grant(None).permit().also, [""; 0]);
        let rights = |role, key: Option<KeyGrant>| CallerRights { role, key: key.map(Arc::new) };
        assert_eq!(rights(CallerRole::Member, Some(key)).collections(), team);
        assert_eq!(rights(CallerRole::Member, Some(grant(None))).collections(), CollectionSet::none());
        for (role, expected) in [
            (CallerRole::Owner, CollectionSet::All),
            (CallerRole::ChannelSender, CollectionSet::All),
            (CallerRole::Member, CollectionSet::none()),
            (CallerRole::Stranger, CollectionSet::none()),
        ] {
            assert_eq!(rights(role, None).collections(), expected, "{role:?}");
        }
    }

    #[test]
    fn the_cloud_needs_permission_even_if_the_key_names_it() {
        let key = KeyGrant { engines: Some(vec![CLOUD.to_owned(), "ollama".to_owned()]), ..grant(None) };
        let rights = CallerRights { role: CallerRole::Member, key: Some(Arc::new(key)) };
        assert!(rights.may_use_engine("ollama") && !rights.may_use_engine("vllm"));
        assert!(!rights.may_use_cloud());
    }
}
