//! `[telemetry]`: the record of calls.

use crate::kind::{COUNT_OR_NONE, FLAG, HTTP_URL, quote};
use crate::settings_schema::{Exposure, Kind, keys_of};

/// Settings of the telemetry.
#[derive(Debug, Clone)]
pub struct TelemetryConfig {
    /// Whether calls are recorded.
    pub enabled: bool,
    /// Days after which records are deleted; 0 is never.
    pub retention_days: usize,
    /// Whether figures are counted for `/metrics`.
    pub metrics: bool,
    /// Whether the energy of answers is measured where the machine can.
    pub energy: bool,
    /// Where traces are sent; `None` sends none.
    pub otlp_endpoint: Option<String>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        TelemetryConfig { enabled: true, retention_days: 0, metrics: true, energy: true, otlp_endpoint: None }
    }
}

const ENDPOINT: Kind<Option<String>> = Kind {
    expected: "an http or https address such as http://localhost:4318, or \"\" for none",
    read: |typed| match typed.text()?.trim() {
        "" => Some(None),
        _ => (HTTP_URL.read)(typed).map(Some),
    },
    write: |endpoint| quote(endpoint.as_deref().unwrap_or_default()),
    exposure: Exposure::Open,
};

keys_of! {
    TelemetryConfig {
        enabled: FLAG, "Whether to record calls for 'hob telemetry' and the dashboard. Records stay on this machine.";
        retention_days: COUNT_OR_NONE, "Days after which records are deleted; 0 is never.";
        metrics: FLAG, "Whether to serve metrics for Prometheus at /metrics.";
        energy: FLAG, "Whether to measure the energy of answers, if the processor or graphics card has a meter that Hob can read.";
        otlp_endpoint: ENDPOINT, "OpenTelemetry collector to send traces to, such as \"http://localhost:4318\"; \"\" for none.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn traces_go_to_an_http_address_or_nowhere() {
        assert_eq!(read_as(&ENDPOINT, "''"), Some(None));
        assert_eq!(read_as(&ENDPOINT, "'localhost:4318/'"), Some(Some("http://localhost:4318".to_owned())));
        for bad in ["'grpc://localhost:4317'", "'http://'", "4318"] {
            assert_eq!(read_as(&ENDPOINT, bad), None, "{bad}");
        }
    }
}
