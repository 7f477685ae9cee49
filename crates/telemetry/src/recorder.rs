//! What is written down of every question: the record, the totals, the traces, the energy, each where it is wanted.

use std::sync::Arc;

use crate::energy::Meters;
use crate::inference::InferenceLog;
use crate::metrics::Totals;
use crate::service::{Record, TelemetryOptions};
use crate::trace::Spans;

/// Everybody in the house who asks an engine has these.
#[derive(Clone)]
pub struct Accounts {
    /// Takes an inference down in the record and the totals.
    pub log: Arc<dyn InferenceLog>,
    pub totals: Option<Arc<Totals>>,
    pub spans: Spans,
    pub meters: Meters,
}

impl Accounts {
    pub fn new(options: &TelemetryOptions, record: &Record, spans: Spans) -> Self {
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
