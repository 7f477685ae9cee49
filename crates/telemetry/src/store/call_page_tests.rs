//! Pages of the table of calls, in both databases.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use crate::call_page::CallQuery;
use crate::call_record::CallOutcome;
use crate::inference::{CallDetails, Inference, InferenceEnd};
use crate::savings::Prices;
use crate::store::tests::{NewStore, TestStore, inference, noon, postgres, sqlite};

hob_testkit::on_both_databases!(
    sqlite, postgres:
    pages_have_every_matching_call_once_and_newest_first,
    a_call_is_found_by_its_request_and_by_its_run,
);

fn pages_have_every_matching_call_once_and_newest_first(new: NewStore) {
    let telemetry = new();
    let config = ProptestConfig::with_cases(32);
    // Few moments, so that many calls begin at the same one.
    let batch = prop::collection::vec((0u64..12, 0u8..3, any::<bool>()), 0..20);
    proptest!(config, |(
        batches in prop::collection::vec(batch, 1..6),
        limit in 1usize..9,
        model in prop::option::of(0u8..3),
        failed in any::<bool>(),
    )| {
        telemetry.clear().expect("cleared");
        let mut all = Vec::new();
        for (index, batch) in batches.iter().enumerate() {
            let call = |(place, (ago, model, failed)): (usize, &(u64, u8, bool))| Inference {
                started: noon() - Duration::from_secs(*ago),
                run: Arc::from(format!("{index}-{place}")),
                model: format!("m{model}"),
                ending: if *failed { InferenceEnd::Failed("no".to_owned()) } else { InferenceEnd::Cancelled },
                ..inference()
            };
            let calls: Vec<Inference> = batch.iter().enumerate().map(call).collect();
            telemetry.record_batch(&calls, &Prices::standard()).expect("recorded");
            all.extend(calls);
        }
        let mut query = CallQuery {
            model: model.map(|model| format!("m{model}")),
            outcome: failed.then_some(CallOutcome::Failed),
            limit,
            ..CallQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = telemetry.call_page(&query).expect("readable");
            prop_assert!(page.calls.len() <= limit);
            found.extend(page.calls);
            prop_assert!(found.len() <= all.len(), "no call comes twice");
            let Some(next) = page.next else { break };
            query.after = Some(next);
        }
        prop_assert!(found.is_sorted_by(|one, other| one.started >= other.started));
        let mut runs: Vec<&str> = found.iter().map(|call| call.run.as_str()).collect();
        let is_wanted = |call: &&Inference| {
            query.model.as_ref().is_none_or(|model| *model == call.model)
                && (!failed || matches!(call.ending, InferenceEnd::Failed(_)))
        };
        let mut expected: Vec<&str> = all.iter().filter(is_wanted).map(|call| &*call.run).collect();
        runs.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(runs, expected);
    });
}

fn a_call_is_found_by_its_request_and_by_its_run(new: NewStore) {
    let details = CallDetails {
        request_id: Some("req \"1\"".into()),
        route: Some("/v1/messages"),
        queued: Some(Duration::from_millis(3)),
        host: Some("http://10.0.0.7:8000".into()),
    };
    let named = Inference { details: details.clone(), key: Some("ana".into()), ..inference() };
    let telemetry = TestStore::with(new, &[named, Inference { run: "other".into(), ..inference() }]);
    let find =
        |query: CallQuery| telemetry.call_page(&CallQuery { limit: 9, ..query }).expect("readable").calls;
    let by_request = find(CallQuery { request: Some("req \"1\"".to_owned()), ..CallQuery::default() });
    assert_eq!(by_request.len(), 1);
    let call = &by_request[0];
    assert_eq!(
        (call.request_id.as_deref(), call.route.as_deref(), call.queued, call.host.as_deref()),
        (details.request_id.as_deref(), details.route, details.queued, details.host.as_deref())
    );
    assert_eq!(find(CallQuery { request: Some("run-1".to_owned()), ..CallQuery::default() }), by_request);
    assert_eq!(find(CallQuery { key: Some("ana".to_owned()), ..CallQuery::default() }), by_request);
    let unnamed = find(CallQuery { key: Some(String::new()), ..CallQuery::default() });
    assert_eq!(unnamed.iter().map(|call| call.run.as_str()).collect::<Vec<_>>(), ["other"]);
    assert_eq!(find(CallQuery { request: Some("nothing".to_owned()), ..CallQuery::default() }), []);
}
