//! Which collections are searched for the question of a caller. Pure.

use hob_core::tool::MEMORY_SEARCH_TOOLS;
use hob_core::{Caller, CollectionSet, MemoryUse, Permit, Reach, RequestSource};

/// The collections that the caller asks for, as far as it may read them; `None` if it gets no passages.
pub fn question_collections(caller: &Caller) -> Option<CollectionSet> {
    if !may_recall(caller) {
        return None;
    }
    let allowed = caller.rights().collections();
    Some(match &caller.memory {
        MemoryUse::Wanted(wanted) => match wanted.names() {
            None => allowed,
            Some([]) => CollectionSet::none(),
            Some(names) => allowed.select(names.to_vec()).unwrap_or_else(|_| CollectionSet::none()),
        },
        MemoryUse::Allowed | MemoryUse::Unwanted => allowed,
    })
}

/// Whether the caller gets passages of the collections that it may read. Its tools must reach that far, or its key must name
/// collections. A channel sender needs permission by name, because there trust in tools applies to all senders. So does a task with
/// selected tools, because a channel sender may have created it.
fn may_recall(caller: &Caller) -> bool {
    let reads_memory =
        |names: &Vec<String>| names.iter().any(|name| MEMORY_SEARCH_TOOLS.contains(&name.as_str()));
    let Permit { most, also, only, except, .. } = &caller.permit;
    let has_collections = !caller.rights().collections().is_empty();
    let is_excepted = except.iter().any(|name| MEMORY_SEARCH_TOOLS.contains(&&**name));
    if caller.memory == MemoryUse::Unwanted || !has_collections || is_excepted {
        return false;
    }
    let reaches = *most >= Reach::Read || caller.key.as_ref().is_some_and(|key| key.names_collections());
    match caller.source {
        RequestSource::Channel => reads_memory(also),
        RequestSource::Scheduler => reaches && only.as_ref().is_none_or(reads_memory),
        _ => reaches,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::Arc;

    use hob_core::{CollectionName, KeyGrant};
    use hob_testkit::member_grant;

    use super::*;

    fn owner(source: RequestSource) -> Caller {
        Caller::trusted(source, "run-1")
    }

    fn searches() -> Vec<String> {
        MEMORY_SEARCH_TOOLS.map(str::to_owned).to_vec()
    }

    #[test]
    fn a_caller_gets_passages_only_if_its_tools_may_read_the_memory() {
        let all = Some(CollectionSet::All);
        assert_eq!(question_collections(&owner(RequestSource::Server)), all);
        let pure = Caller { permit: Permit::up_to(Reach::Pure), ..owner(RequestSource::Server) };
        assert_eq!(question_collections(&pure), None);
        let excepted =
            Permit { except: Cow::Owned(vec![MEMORY_SEARCH_TOOLS[0].into()]), ..Permit::up_to(Reach::Act) };
        assert_eq!(question_collections(&Caller { permit: excepted, ..owner(RequestSource::Server) }), None);
        let unwanted = Caller { memory: MemoryUse::Unwanted, ..owner(RequestSource::Server) };
        assert_eq!(question_collections(&unwanted), None);
    }

    #[test]
    fn channel_senders_and_tasks_with_selected_tools_need_permission_by_name() {
        let all = Some(CollectionSet::All);
        let channel = owner(RequestSource::Channel);
        assert_eq!(question_collections(&channel), None, "trust in tools applies to all senders");
        let named = Permit { also: searches(), ..Permit::up_to(Reach::Pure) };
        assert_eq!(question_collections(&Caller { permit: named, ..channel }), all);

        let task = owner(RequestSource::Scheduler);
        assert_eq!(question_collections(&task), all);
        let selected = |tools| Permit { only: Some(tools), ..Permit::up_to(Reach::Act) };
        let other = Caller { permit: selected(vec!["calculator".to_owned()]), ..task.clone() };
        assert_eq!(question_collections(&other), None);
        assert_eq!(question_collections(&Caller { permit: selected(searches()), ..task }), all);
    }

    #[test]
    fn a_caller_gets_the_collections_that_it_asks_for() {
        for wanted in
            [CollectionSet::All, CollectionSet::none(), CollectionSet::of(CollectionName::default())]
        {
            let memory = MemoryUse::Wanted(wanted.clone());
            let caller = Caller { memory, ..owner(RequestSource::Server) };
            assert_eq!(question_collections(&caller), Some(wanted));
        }
    }

    #[test]
    fn a_key_gets_no_other_collections_than_it_names() {
        let [team, house] =
            ["team", "house"].map(|name| CollectionSet::of(CollectionName::parse(name).unwrap()));
        let key = Arc::new(KeyGrant { memory: team.clone(), ..member_grant("ana") });
        for (memory, expected) in [
            (MemoryUse::Allowed, &team),
            (MemoryUse::Wanted(CollectionSet::All), &team),
            (MemoryUse::Wanted(team.clone()), &team),
            (MemoryUse::Wanted(house), &CollectionSet::none()),
        ] {
            let caller = Caller { memory, ..owner(RequestSource::Server).under_key(Arc::clone(&key)) };
            assert_eq!(question_collections(&caller).as_ref(), Some(expected), "{:?}", caller.memory);
        }
    }
}
