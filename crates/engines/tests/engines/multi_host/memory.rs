//! Models in the memory of several hosts.

use std::sync::Arc;

use hob_core::Engine;
use hob_engines::{MultiHost, MultiHostOptions};
use hob_testkit::ScriptedEngine;

#[tokio::test]
async fn a_model_is_loaded_and_unloaded_on_every_host_and_listed_once() {
    let hosts = [0, 1].map(|_| Arc::new(ScriptedEngine::saying(&["hi"])));
    let engines = hosts.iter().map(|host| Arc::clone(host) as Arc<dyn Engine>).collect();
    let both = MultiHost::of(engines, MultiHostOptions::default()).unwrap();
    both.prepare("m").await.unwrap();
    let running = both.running_models().await.unwrap();
    assert_eq!(running.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["m"]);
    both.unload("m").await.unwrap();
    assert_eq!(both.running_models().await.unwrap(), []);
    for host in hosts {
        assert_eq!(host.loaded(), ["load m", "unload m"]);
    }
}
