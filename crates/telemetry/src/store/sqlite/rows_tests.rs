//! The last calls, in whatever batches they were recorded.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::inference::Inference;
use crate::savings::Prices;
use crate::store::TelemetryStore;
use crate::store::tests::{inference, noon, telemetry};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_last_calls_are_the_last_however_batches_overlap(
        batches in prop::collection::vec(prop::collection::vec((0u64..200_000, 0u8..4), 0..20), 1..8),
        most in 0usize..40,
        run in 0u8..5,
        ago in 0u64..200_000,
    ) {
        let telemetry = telemetry();
        let began = |ago: u64| noon() - Duration::from_secs(ago);
        for batch in &batches {
            let call = |(ago, run): &(u64, u8)| Inference {
                started: began(*ago),
                run: Arc::from(format!("\"{run}\"")),
                ..inference()
            };
            telemetry.record_batch(&batch.iter().map(call).collect::<Vec<_>>(), &Prices::standard()).expect("recorded");
        }
        let mut all: Vec<(Moment, u8)> =
            batches.iter().flatten().map(|(ago, run)| (Moment::of(began(*ago)), *run)).collect();
        all.sort_by_key(|(started, _)| std::cmp::Reverse(*started));

        let recent: Vec<Moment> =
            telemetry.recent(most).expect("readable").into_iter().map(|row| row.started).collect();
        let expected: Vec<Moment> = all.iter().take(most).map(|(started, _)| *started).collect();
        prop_assert_eq!(recent, expected);

        let (since, wanted) = (Moment::of(began(ago)), format!("\"{run}\""));
        let quoted = serde_json::Value::from(wanted.as_str()).to_string();
        let search = Search { since, text: &quoted };
        let found = telemetry
            .database
            .read(|connection| newest(connection, &search, |inference, _| inference.run == wanted))
            .expect("readable");
        let expected = all.iter().find(|(started, its)| *its == run && *started >= since);
        prop_assert_eq!(found.map(|row| row.started), expected.map(|(started, _)| *started));
    }
}
