//! Callers who mean harm, or whose programs are broken, at the door of the HTTP server.

mod bodies;
mod caller;
mod forwarders;
mod half_closed;
mod heads;
mod keys;
mod peers;
mod schemas;
mod strangers;
mod values;

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_testkit::ScriptedEngine;

use crate::support::Running;

async fn serving(config: ServerConfig) -> Running {
    Running::start_with(Arc::new(ScriptedEngine::saying(&["hi"])), config).await
}
