//! What is written down of every question: the record, the totals, the traces, the energy, each where it is wanted.

use std::sync::Arc;

use hob_core::InferenceLog;

use crate::energy::Meters;
use crate::metrics::Totals;
use crate::record::{Record, TelemetryOptions};
use crate::trace::Spans;

/// Everybody in the house who asks an engine has these.
#[derive(Clone)]
pub(crate) struct Accounts {
    /// Takes an inference down in the record and the totals.
    pub(crate) log: Arc<dyn InferenceLog>,
    pub(crate) totals: Option<Arc<Totals>>,
    pub(crate) spans: Spans,
    pub(crate) meters: Meters,
}

impl Accounts {
    pub(crate) fn new(options: &TelemetryOptions, record: &Record, spans: Spans) -> Self {
        let record: Arc<dyn InferenceLog> = Arc::new(record.clone());
        // Without anybody to write it down nobody needs to measure.
        let meters = if options.energy && (options.enabled || options.metrics) {
            Meters::open()
        } else {
            Meters::default()
        };
        if !options.metrics {
            return Accounts { log: record, totals: None, spans, meters };
        }
        let totals = Arc::new(Totals::before(record));
        Accounts { log: Arc::clone(&totals) as Arc<dyn InferenceLog>, totals: Some(totals), spans, meters }
    }
}
