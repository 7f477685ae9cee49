//! The alerts and the dashboard in `packaging/`: well-formed, and every metric in them is one that a server exports.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::fakes;
use crate::home::Home;
use crate::http::get;
use crate::manifests::checked_by;
use crate::running::Running;

/// What `tests/packages/monitoring.py` finds.
#[derive(Debug, Deserialize)]
struct UsedMetrics {
    alerts: BTreeSet<String>,
    dashboard: BTreeSet<String>,
}

/// The names of the samples that a server exports, by the types that it declares.
async fn exported() -> BTreeSet<String> {
    let ollama = fakes::ollama().await;
    let server = Running::start(&Home::with_engines(&[("ollama", &ollama.url())]), &[]).await;
    let page = get(server.address(), "/metrics").await.all().await;
    let declared = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let names = declared.flat_map(|(name, kind)| match kind {
        "histogram" => ["_bucket", "_sum", "_count"].map(|suffix| format!("{name}{suffix}")).to_vec(),
        _ => vec![name.to_owned()],
    });
    names.collect()
}

// Only Linux shows the memory of the process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn every_metric_of_the_alerts_and_the_dashboard_is_exported() {
    let UsedMetrics { alerts, dashboard } = checked_by("monitoring.py").await;
    let mut exported = exported().await;
    // Prometheus adds it to every target.
    exported.insert("up".to_owned());
    assert_eq!(alerts.difference(&exported).collect::<Vec<_>>(), [] as [&String; 0], "in the alerts");
    assert_eq!(dashboard.difference(&exported).collect::<Vec<_>>(), [] as [&String; 0], "in the dashboard");
    // What an operator must be alerted to.
    for name in [
        "hob_http_requests_total",
        "hob_first_token_seconds_bucket",
        "hob_requests_queued",
        "hob_engine_up",
        "hob_telemetry_dropped_total",
        "hob_key_refusals_total",
        "hob_dependency_up",
    ] {
        assert!(alerts.contains(name) && dashboard.contains(name), "{name}");
    }
}
