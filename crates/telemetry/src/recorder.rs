//! Where calls are recorded: database, metrics, traces, energy. Each is optional.

use std::sync::Arc;

use crate::energy::EnergyMeters;
use crate::inference::InferenceLog;
use crate::metrics::InferenceMetrics;
use crate::service::{TelemetryOptions, TelemetryService};
use crate::trace::Tracer;

/// Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    /// The database and the metrics.
    pub log: Arc<dyn InferenceLog>,
    /// `None` if nothing is counted.
    pub metrics: Option<Arc<InferenceMetrics>>,
    pub tracer: Tracer,
    pub meters: EnergyMeters,
}

impl Recorder {
    pub fn new(options: &TelemetryOptions, service: &TelemetryService, tracer: Tracer) -> Self {
        let service: Arc<dyn InferenceLog> = Arc::new(service.clone());
        // Without records, nothing needs to be measured.
        let meters = if options.energy && (options.enabled || options.metrics) {
            EnergyMeters::open()
        } else {
            EnergyMeters::default()
        };
        if !options.metrics {
            return Recorder { log: service, metrics: None, tracer, meters };
        }
        Recorder { tracer, meters, ..Recorder::counting(service) }
    }

    /// Counts inferences and passes them on to `log`. Sends no traces, and measures no energy.
    pub fn counting(log: Arc<dyn InferenceLog>) -> Self {
        let metrics = Arc::new(InferenceMetrics::before(log));
        Recorder { metrics: Some(Arc::clone(&metrics)), ..Recorder::to(metrics) }
    }

    /// Only passes inferences on to `log`.
    pub fn to(log: Arc<dyn InferenceLog>) -> Self {
        Recorder { log, metrics: None, tracer: Tracer::default(), meters: EnergyMeters::default() }
    }
}
