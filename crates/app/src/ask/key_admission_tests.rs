//! Tools by keys: every tool of Hob, with every reach and every list of tools of a key. And keys that change before a request is admitted.

use std::sync::Mutex;

use arc_swap::ArcSwap;
use futures::FutureExt;
use futures::future::ready;
use hob_agents::ToolSet;
use hob_agents::builtin::{Llm, LlmOptions, same_engine};
use hob_channels::{ChannelOptions, ChannelService};
use hob_config::{CalendarConfig, Config};
use hob_core::{
    AnswerDefaults, CallerRole, CollectionSet, Engine, EventBus, GenerateRequest, KeyRing, ModelPatterns,
    Permit, Reach, RequestSource, RunEvents, Tool,
};
use hob_telemetry::NoInferenceLog;
use hob_testkit::{ScriptedEngine, member_grant};

use super::*;
use crate::ask::run_context::Asked;
use crate::ask::{AskServiceParts, LlmTarget};
use crate::databases::{Databases, hob_database};
use crate::service_slot::ChannelSlot;
use crate::startup::memory::{MemoryWiring, open_memory};
use crate::startup::sources::open_sources;
use crate::startup::tasks::{task_options, task_service};
use crate::tool_registry::{ToolRegistry, ToolRegistryParts};

/// Every tool of Hob: its reach, and whether an agent of a member may use it at all. A new tool needs a line here.
const TOOLS: &str = "
    calculator              pure   yes
    think                   pure   yes
    current_time            pure   yes
    llm                     pure   yes
    file_read               read   yes
    web_fetch               act    yes
    code_interpreter        act    yes
    schedule_task           act    yes
    list_scheduled_tasks    read   no
    pause_scheduled_task    act    no
    resume_scheduled_task   act    no
    cancel_scheduled_task   act    no
    memory_search           read   no
    retrieval               read   no
    memory_store            act    no
    memory_index            act    no
    channel_send            act    no
    channel_list            read   no
    channel_status          read   no
    calendar                read   no
    feeds                   read   no
    weather                 read   no
    page_changes            read   no
    mail                    read   no
";

fn llm() -> LlmOptions {
    LlmOptions {
        engine: same_engine(Arc::new(ScriptedEngine::saying(&["yes"]))),
        model: Arc::new(|| ready(None).boxed()),
        defaults: AnswerDefaults::default(),
    }
}

/// All tools, none left out for want of a setting.
fn registry(home: &std::path::Path) -> ToolRegistry {
    let mut config = Config::default();
    config.sandbox.enabled = true;
    let address = || "https://example.org/".to_owned().into();
    config.sources.calendar.insert("work".to_owned(), CalendarConfig::Url(address()));
    config.sources.feeds.insert("news".to_owned(), address());
    config.sources.pages.insert("times".to_owned(), address());
    (config.sources.weather.latitude, config.sources.weather.longitude) = (Some(52.5), Some(13.4));
    config.mail.imap_host = Some("imap.example.org".to_owned());
    config.mail.user = Some("ann@example.org".to_owned());
    let memory = Databases::in_files(home).memory;
    let memory = open_memory(&config, home, memory, MemoryWiring::default()).unwrap();
    let parts = ToolRegistryParts {
        home: Some(home.to_owned()),
        llm: Some(llm()),
        memory: Some(memory),
        tasks: Some(task_service(hob_database(home), task_options(None))),
        channels: ChannelSlot::holding(Some(Arc::new(
            ChannelService::new(ChannelOptions::default()).unwrap(),
        ))),
        sources: open_sources(&config.sources, hob_database(home)),
        audit: None,
    };
    ToolRegistry::open(&config, parts)
}

fn grant(role: CallerRole, reach: Reach, tools: Option<Vec<String>>) -> Arc<KeyGrant> {
    let memory = if role == CallerRole::Owner { CollectionSet::All } else { CollectionSet::none() };
    Arc::new(KeyGrant { role, reach, tools, memory, ..member_grant("ana") })
}

/// A request with a key, as the server makes it.
fn request_with(key: &Arc<KeyGrant>) -> Caller {
    Caller { role: key.role, permit: key.permit(), ..Caller::trusted(RequestSource::Server, "run") }
}

fn service(tools: ToolSet) -> AskService {
    let engine: Arc<dyn Engine> = Arc::new(ScriptedEngine::saying(&["yes"]));
    AskService::new(AskServiceParts {
        engine,
        default_model: None,
        agent: None,
        tools,
        max_turns: 3,
        bus: EventBus::new(),
        log: Arc::new(NoInferenceLog),
    })
}

#[tokio::test]
async fn a_run_of_a_key_gets_exactly_the_tools_that_its_role_reach_and_list_allow() {
    let home = tempfile::tempdir().unwrap();
    let registry = registry(home.path());
    let tools = registry.tools().unwrap();
    let lines = TOOLS.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut table: Vec<_> = lines.filter(|words| !words.is_empty()).collect();
    table.sort();
    let mut found: Vec<_> = tools.specs().map(|spec| (spec.name.as_str(), spec.reach.as_str())).collect();
    found.sort_unstable();
    assert_eq!(found, table.iter().map(|words| (words[0], words[1])).collect::<Vec<_>>());
    for spec in tools.specs() {
        let is_for_members = table.iter().any(|words| words[0] == spec.name && words[2] == "yes");
        let lists = [None, Some(vec![spec.name.clone()]), Some(vec!["some_other_tool".to_owned()])];
        for role in [CallerRole::Owner, CallerRole::Member] {
            for reach in [Reach::Pure, Reach::Read, Reach::Act] {
                for list in &lists {
                    let is_listed = list.as_ref().is_none_or(|list| list.contains(&spec.name));
                    let is_for_role = role == CallerRole::Owner || is_for_members;
                    let key = grant(role, reach, list.clone());
                    let permit = request_with(&key).under_key(key).permit;
                    let expected = spec.reach <= reach && is_listed && is_for_role;
                    let what = (role, reach, list, &spec.name);
                    assert_eq!(permit.allows(spec), expected, "{what:?}");
                    // A name in the request does not reach further than the key.
                    let by_name = Permit { also: vec![spec.name.clone()], ..Permit::up_to(Reach::Pure) };
                    let key = grant(role, reach, list.clone());
                    let caller = Caller { permit: by_name, ..request_with(&key) };
                    let permit = caller.under_key(key).permit;
                    assert!(expected || !permit.allows(spec), "by name: {what:?}");
                }
            }
        }
    }
    registry.close().await;
}

#[test]
fn a_message_that_a_key_pays_for_stays_a_message_of_a_sender() {
    for (role, may_send) in [(CallerRole::Owner, true), (CallerRole::Member, false)] {
        let sender =
            Caller { role: CallerRole::ChannelSender, ..Caller::trusted(RequestSource::Channel, "run") };
        let Caller { role, permit, .. } = sender.under_key(grant(role, Reach::Act, None));
        assert_eq!(role, CallerRole::ChannelSender);
        assert_eq!(!permit.except.iter().any(|tool| tool == "channel_send"), may_send);
    }
}

#[tokio::test]
async fn the_tool_that_asks_a_model_is_only_for_keys_that_may_use_its_model() {
    let tool: Arc<dyn Tool> = Arc::new(Llm::new(llm()));
    let system = service(ToolSet::new([tool]).unwrap());
    let target = LlmTarget { engine: "vllm".into(), model: Some("large".into()) };
    let system = AskService { llm_target: Some(Arc::new(ArcSwap::from_pointee(target))), ..system };
    let has_tool = |models: Option<&[&str]>, engines: Option<&[&str]>| {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let models = models.map(names).map(ModelPatterns::new);
        let key = Arc::new(KeyGrant { models, engines: engines.map(names), ..member_grant("ana") });
        let caller = request_with(&key).under_key(key);
        let request = GenerateRequest::default();
        let asked = Asked { request: &request, caller: &caller };
        let tools = system.tools_for(asked, &RunEvents::without_subscribers()).unwrap();
        tools.definitions().iter().any(|tool| tool.name == "llm")
    };
    assert!(has_tool(None, None));
    assert!(has_tool(Some(&["large", "small"]), Some(&["vllm"])));
    assert!(has_tool(Some(&["auto"]), None), "the choice is Hob's");
    assert!(!has_tool(Some(&["small"]), None));
    assert!(!has_tool(None, Some(&["ollama"])));
}

/// One key, which a test can change.
struct OneKey(Mutex<Option<Arc<KeyGrant>>>);

impl KeyRing for OneKey {
    fn grant(&self, _name: &str, _rule: Option<&str>) -> Option<Arc<KeyGrant>> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn a_request_is_admitted_with_the_rights_that_its_key_has_then() {
    let key = grant(CallerRole::Member, Reach::Act, None);
    let ring = Arc::new(OneKey(Mutex::new(Some(Arc::clone(&key)))));
    let system = service(ToolSet::default()).with_keys(Arc::clone(&ring) as Arc<dyn KeyRing>);
    let caller = request_with(&key).under_key(key);
    let admitted = system.admitted(Cow::Borrowed(&caller)).await.unwrap();
    assert!(matches!(admitted.caller, Cow::Borrowed(_)), "the key is the same, and nothing is copied");
    // Changed, and then revoked, after the rights were applied.
    *ring.0.lock().unwrap() = Some(grant(CallerRole::Member, Reach::Pure, None));
    let admitted = system.admitted(Cow::Borrowed(&caller)).await.unwrap();
    let of_key = admitted.caller.key.as_ref().map(|key| key.reach);
    assert_eq!((admitted.caller.permit.most, of_key), (Reach::Pure, Some(Reach::Pure)));
    *ring.0.lock().unwrap() = None;
    let refused = system.admitted(Cow::Borrowed(&caller)).await;
    assert!(matches!(refused, Err(AskError::KeyNotValid { .. })));
}
