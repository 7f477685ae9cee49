//! The compose file and the Kubernetes manifests in `packaging/`: valid by their schemas, and what they say of Hob is true.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

use hob_config::{Config, Environment};
use hob_core::{HostDiscovery, HostRecords};
use hob_testkit::part;
use hob_testkit::repository::root;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::process::Command;

use crate::home::Home;

/// What `tests/packages/manifests.py` finds.
#[derive(Debug, Deserialize)]
struct Manifests {
    kubernetes: KubernetesFacts,
    compose: ComposeFacts,
}

#[derive(Debug, Deserialize)]
struct KubernetesFacts {
    settings: String,
    image: String,
    command: Vec<String>,
    environment: Vec<String>,
    probes: Vec<String>,
    ports: Vec<u16>,
    mounts: Vec<String>,
    user: u32,
    stop_seconds: u64,
    engine_port: u16,
    headless: bool,
    replicas: u32,
}

#[derive(Debug, Deserialize)]
struct ComposeFacts {
    settings: String,
    upstreams: Vec<String>,
    nginx: String,
    environment: Vec<String>,
    config_file: String,
    stop_seconds: u64,
    engine_command: Vec<String>,
}

/// Checks files of `packaging/` with a script of `tests/packages`, and returns what it finds.
pub async fn checked_by<T: DeserializeOwned>(script: &str) -> T {
    let checked = Command::new(part("HOB_TEST_PYTHON"))
        .args([root().join("tests/packages").join(script), root().join("packaging")])
        .kill_on_drop(true)
        .output()
        .await
        .expect("Python starts");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    serde_json::from_slice(&checked.stdout).expect("JSON")
}

/// The settings as Hob reads them, without a warning.
fn read(settings: &str) -> Config {
    let home = Home::with_config(settings);
    let file = OsString::from(home.config_file());
    let environment = Environment::from_lookup(|name| (name == "HOB_CONFIG").then(|| file.clone()));
    let loaded = hob_config::load(&environment).expect("Hob reads the settings");
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    loaded.config
}

/// The time for a stop is longer than Hob takes at most.
fn can_stop(config: &Config, seconds: u64) -> bool {
    let longest = config.server.drain_seconds + config.server.shutdown_grace;
    !config.server.drain_seconds.is_zero() && longest < Duration::from_secs(seconds)
}

/// The name and the port under which Hob looks for vLLM.
fn engine_hosts(config: &Config) -> (String, u16) {
    assert_eq!(config.engine.default.map(|key| key.as_str()), Some("vllm"));
    match config.engine.vllm.discover.clone() {
        Some(HostDiscovery { name, records: HostRecords::Addresses { port }, .. }) => (name, port),
        other => panic!("vLLM is not found by its addresses: {other:?}"),
    }
}

/// The variables that Hob reads.
fn variables() -> BTreeSet<String> {
    let names = RefCell::new(BTreeSet::new());
    Environment::from_lookup(|name| {
        names.borrow_mut().insert(name.to_owned());
        None
    });
    names.into_inner()
}

/// Fails if Hob does not know one of these variables.
fn assert_known(environment: &[String]) {
    let known = variables();
    let unknown: Vec<&String> = environment.iter().filter(|name| !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?} of {environment:?}");
}

#[tokio::test]
async fn the_manifests_of_kubernetes_fit_their_schemas_and_hob() {
    let KubernetesFacts {
        settings,
        image,
        command,
        environment,
        probes,
        ports,
        mounts,
        user,
        stop_seconds,
        engine_port,
        headless,
        replicas,
    } = checked_by::<Manifests>("manifests.py").await.kubernetes;
    let config = read(&settings);
    assert_eq!((replicas, ports), (3, vec![config.server.port]));
    assert!(can_stop(&config, stop_seconds), "{stop_seconds} s");
    assert_eq!(engine_hosts(&config), ("vllm.hob.svc.cluster.local.".to_owned(), engine_port));
    assert!(headless, "an ordinary service has one address for all pods");
    assert_known(&environment);

    let api: Value =
        serde_json::from_str(include_str!("../../../server/src/admin/openapi.json")).expect("JSON");
    for probe in probes {
        let security = &api["paths"][&probe]["get"]["security"];
        assert_eq!(security.to_string(), "[{}]", "{probe} needs no key");
    }
    let containerfile = std::fs::read_to_string(root().join("packaging/Containerfile")).expect("a file");
    for needle in [
        format!("USER {user}:{user}\n"),
        "ENTRYPOINT [\"hob\"]".to_owned(),
        format!("CMD [\"{}\"", command[0]),
        format!("build --format docker -t {image} "),
    ] {
        assert!(containerfile.contains(&needle), "{needle}");
    }
    // What Hob writes is a volume: its home and temporary files.
    for place in ["/var/lib/hob", "/tmp"] {
        assert!(containerfile.contains(place) && mounts.iter().any(|mount| mount == place), "{mounts:?}");
    }
}

#[tokio::test]
async fn the_compose_file_fits_its_schema_and_hob() {
    let ComposeFacts { settings, upstreams, nginx, environment, config_file, stop_seconds, engine_command } =
        checked_by::<Manifests>("manifests.py").await.compose;
    let config = read(&settings);
    assert!(can_stop(&config, stop_seconds), "{stop_seconds} s");
    let (engine, port) = engine_hosts(&config);
    assert_eq!((engine.as_str(), engine_command.last().cloned()), ("vllm", Some(port.to_string())));
    assert_known(&environment);
    assert_eq!(config_file, "/etc/hob/config.toml");

    assert_eq!(upstreams.len(), 3);
    for upstream in upstreams {
        let server = format!("    server {upstream}:{} ", config.server.port);
        assert!(nginx.contains(&server), "{server}");
    }
    let body = format!("client_max_body_size {}m;", config.server.max_body_mb);
    assert!(nginx.contains(&body), "{body}");
}
