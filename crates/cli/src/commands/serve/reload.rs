//! SIGHUP: reloads the configuration. Applies the settings that can change at run time, and names the others.

use std::net::SocketAddr;

use anyhow::Result;
use hob_config::Config;
use hob_server::{RELOADED_KEYS, Server, ServerControl};

use super::settings_in_effect::{apply, warn_if_open};
use crate::args::ServeArgs;
use crate::failure;
use crate::output;
use crate::settings;
use crate::signals::{ServerSignal, Signals};

/// The settings of a running server.
pub struct RunningSettings {
    control: ServerControl,
    address: SocketAddr,
    /// The command-line options, which override the file.
    args: ServeArgs,
    /// The settings in effect.
    config: Config,
}

impl RunningSettings {
    pub fn new(server: &Server, config: &Config, args: ServeArgs) -> Self {
        RunningSettings { control: server.control(), address: server.address(), args, config: config.clone() }
    }

    /// Reloads on every SIGHUP, until a signal stops the server.
    pub async fn reload_until_stopped(&mut self, signals: &mut Signals) {
        while signals.next_for_server().await == ServerSignal::Reload {
            match self.reload() {
                Ok(changes) => changes.print(),
                Err(error) => output::warning(format_args!(
                    "the configuration was not reloaded; the old one stays in effect: {}",
                    failure::explain(&error)
                )),
            }
        }
    }

    fn reload(&mut self) -> Result<Changes> {
        let mut new = settings::load_for_server()?;
        apply(self.args.clone(), &mut new);
        let changes = Changes::between(&self.config, &new);
        if !changes.applied.is_empty() {
            self.control.reload(&new.server)?;
            let server = &mut self.config.server;
            server.api_key = new.server.api_key;
            server.allowed_hosts = new.server.allowed_hosts;
            server.cors_origins = new.server.cors_origins;
            server.identity.rules = new.server.identity.rules;
            server.identity.blocked = new.server.identity.blocked;
            warn_if_open(self.address, server);
        }
        Ok(changes)
    }
}

/// The keys whose values changed.
#[derive(Debug, PartialEq, Eq)]
struct Changes {
    applied: Vec<String>,
    /// Keys that take effect after a restart.
    after_restart: Vec<String>,
}

impl Changes {
    fn between(old: &Config, new: &Config) -> Self {
        let is_reloaded = |key: &String| RELOADED_KEYS.contains(&key.as_str());
        let (applied, after_restart) = old.changed_keys(new).into_iter().partition(is_reloaded);
        Changes { applied, after_restart }
    }

    fn print(&self) {
        match &self.applied[..] {
            [] => output::note("configuration reloaded: no setting that can change at run time has changed"),
            keys => output::note(format_args!("configuration reloaded: {}", keys.join(", "))),
        }
        if !self.after_restart.is_empty() {
            output::warning(format_args!("{}: takes effect after a restart", self.after_restart.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reloadable_settings_are_separated_from_the_others() {
        let (old, mut new) = (Config::default(), Config::default());
        new.server.cors_origins = vec!["https://app.example.org".into()];
        new.server.port = 9000;
        new.memory.chunk_size = 7;
        let expected = Changes {
            applied: vec!["server.cors_origins".into()],
            after_restart: vec!["server.port".into(), "memory.chunk_size".into()],
        };
        assert_eq!(Changes::between(&old, &new), expected);
    }
}
