//! SIGHUP, `hob reload` and a change on the settings page: read the configuration, the keys and the certificate again. Applies the settings that can change at run
//! time, and names the others.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use anyhow::Result;
use hob_app::{AskService, ChannelOpener, SourceOpener};
use hob_config::Config;
use hob_keys::{AuditActor, KeyService};
use hob_net::CertificateChange;
use hob_server::{
    Server, ServerControl, ServerSettings, is_of_channels, is_of_mail, is_of_sources, is_reloaded,
};
use serde_json::json;

use super::control_socket::ControlSocket;
use super::settings_in_effect::{apply, warn_if_open};
use crate::args::ServeArgs;
use crate::failure;
use crate::output;
use crate::reload_socket::{ReloadOutcome, ReloadReport};
use crate::settings;
use crate::signals::{ServerSignal, Signals};

/// What a reload changes or asks.
pub struct ReloadedParts {
    pub system: Arc<AskService>,
    pub keys: Arc<KeyService>,
    /// The file, which the settings page changes.
    pub file: Arc<ServerSettings>,
    pub channels: ChannelOpener,
    pub sources: SourceOpener,
}

/// The settings of a running server.
pub struct RunningSettings {
    control: ServerControl,
    /// Answers with the default model.
    system: Arc<AskService>,
    keys: Arc<KeyService>,
    /// The file, which the settings page changes.
    file: Arc<ServerSettings>,
    channels: ChannelOpener,
    sources: SourceOpener,
    address: SocketAddr,
    /// The command-line options, which override the file.
    args: ServeArgs,
    /// The settings in effect.
    config: Config,
}

impl RunningSettings {
    pub fn new(server: &Server, config: &Config, args: ServeArgs, parts: ReloadedParts) -> Self {
        let ReloadedParts { system, keys, file, channels, sources } = parts;
        RunningSettings {
            control: server.control(),
            system,
            keys,
            file,
            channels,
            sources,
            address: server.address(),
            args,
            config: config.clone(),
        }
    }

    /// Reloads on every SIGHUP, every request of `hob reload` and every change of `/v1/settings`, until a signal stops the server. That
    /// signal also ends a reload, which may wait for a database that does not answer.
    pub async fn reload_until_stopped(&mut self, signals: &mut Signals, mut socket: ControlSocket) {
        let mut is_asked_again = false;
        loop {
            let (actor, request) = tokio::select! {
                biased;
                () = std::future::ready(()), if is_asked_again => (by_signal(), None),
                signal = signals.next_for_server() => match signal {
                    ServerSignal::Reload => (by_signal(), None),
                    ServerSignal::Stop(_) => return,
                },
                request = socket.next() => (request.actor.clone(), Some(request)),
                actor = self.file.changed() => (actor, None),
            };
            is_asked_again = false;
            let mut reloading = pin!(self.reload(actor));
            let reloaded = loop {
                tokio::select! {
                    reloaded = &mut reloading => break reloaded,
                    signal = signals.next_for_server() => match signal {
                        // What changed since the beginning may not be read.
                        ServerSignal::Reload => is_asked_again = true,
                        ServerSignal::Stop(_) => return,
                    },
                }
            };
            let outcome = match reloaded {
                Ok(report) => ReloadOutcome::Done(report),
                Err(error) => ReloadOutcome::Failed { error: failure::explain(&error) },
            };
            print(&outcome);
            if let Some(request) = request {
                request.answer(outcome);
            }
        }
    }

    async fn reload(&mut self, actor: AuditActor) -> Result<ReloadReport> {
        let mut new = settings::load_for_server()?;
        apply(self.args.clone(), &mut new);
        self.keys.reload().await?;
        // A page may have let it answer already.
        if new.engine.default.is_some_and(|key| key.as_str() == self.system.engine().key()) {
            self.config.engine.default = new.engine.default;
        }
        let (applied, after_restart) = changes(&self.config, &new);
        let has_mail_channel = self.config.channel.email.enabled || new.channel.email.enabled;
        let is_of_channel = |key: &String| is_of_channels(key) || (has_mail_channel && is_of_mail(key));
        let channels = match applied.iter().any(is_of_channel) {
            true => Some(self.channels.prepare(&new)?),
            false => None,
        };
        let (control, server) = (self.control.clone(), new.server.clone());
        // Files may be slow to read, and this thread accepts connections.
        let certificate = tokio::task::spawn_blocking(move || control.reload(&server)).await??;
        if let Some(channels) = channels {
            self.channels.replace(channels).await;
            self.config.channel = new.channel.clone();
            self.control.announce("channels", None);
        }
        if applied.iter().any(|key| is_of_sources(key)) {
            self.sources.replace(&new);
            self.config.sources = new.sources.clone();
            self.config.mail = new.mail.clone();
        }
        if !applied.is_empty() {
            if self.config.default_model() != new.default_model() {
                self.system.set_default_model(new.default_model());
                self.control.announce("models", None);
            }
            self.config.intelligence.default_model = new.intelligence.default_model;
            let has_tls = self.config.server.tls.is_on();
            let keeps_identity = self.config.server.identity.is_on() == new.server.identity.is_on();
            let server = &mut self.config.server;
            server.model = new.server.model;
            server.api_key = new.server.api_key;
            server.allowed_hosts = new.server.allowed_hosts;
            server.cors_origins = new.server.cors_origins;
            server.access_log = new.server.access_log;
            server.header_timeout = new.server.header_timeout;
            server.write_timeout = new.server.write_timeout;
            if has_tls && new.server.tls.is_on() {
                server.tls = new.server.tls;
            }
            if keeps_identity {
                server.identity.rules = new.server.identity.rules;
                server.identity.blocked = new.server.identity.blocked;
            }
            if !self.keys.snapshot().has_keys() {
                warn_if_open(self.address, server);
            }
            self.note(actor, &applied).await;
        }
        let certificate_renewed = certificate == CertificateChange::Renewed;
        Ok(ReloadReport { applied, after_restart, certificate_renewed })
    }

    /// Notes the names of changed settings in the audit log, without their values: some are secret.
    async fn note(&self, actor: AuditActor, applied: &[String]) {
        let audit = self.keys.audit();
        let detail = json!({ "settings": applied });
        let work = move || audit.note(actor, "config.reload", "server", &detail);
        if tokio::task::spawn_blocking(work).await.is_err() {
            tracing::error!(
                "a change of the configuration was made, but is not in the audit log. Report this bug with \
                 the panic message on standard error"
            );
        }
    }
}

/// A signal does not say who sent it.
fn by_signal() -> AuditActor {
    AuditActor { name: "owner".to_owned(), origin: "signal".to_owned() }
}

/// The keys whose values changed: those that are in effect now, and those that take effect after a restart.
fn changes(old: &Config, new: &Config) -> (Vec<String>, Vec<String>) {
    let keeps_tls = old.server.tls.is_on() == new.server.tls.is_on();
    let keeps_identity = old.server.identity.is_on() == new.server.identity.is_on();
    let takes_effect = |key: &String| {
        is_reloaded(key)
            && (keeps_tls || !key.starts_with("server.tls."))
            && (keeps_identity || !key.starts_with("server.identity."))
    };
    old.changed_keys(new).into_iter().partition(takes_effect)
}

fn print(outcome: &ReloadOutcome) {
    match outcome {
        ReloadOutcome::Done(ReloadReport { applied, after_restart, certificate_renewed }) => {
            match &applied[..] {
                [] => {
                    output::note("configuration reloaded: no setting that can change at run time has changed")
                }
                keys => output::note(format_args!("configuration reloaded: {}", keys.join(", "))),
            }
            if *certificate_renewed {
                output::note("the certificate was renewed; new connections use it");
            }
            if !after_restart.is_empty() {
                output::warning(format_args!("{}: takes effect after a restart", after_restart.join(", ")));
            }
        }
        ReloadOutcome::Failed { error } => output::warning(format_args!(
            "the configuration was not reloaded; the old one stays in effect: {error}"
        )),
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
        new.server.tls.cert = Some("/etc/hob/cert.pem".into());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let after_restart = ["server.port", "server.tls.cert", "memory.chunk_size"];
        assert_eq!(changes(&old, &new), (names(&["server.cors_origins"]), names(&after_restart)));
        // Another certificate needs no restart if there is one already.
        let mut renewed = new.clone();
        renewed.server.tls.cert = Some("/etc/hob/other.pem".into());
        assert_eq!(changes(&new, &renewed), (names(&["server.tls.cert"]), Vec::new()));
        // The same for who is blocked, if identities are accepted already.
        let mut accepting = old.clone();
        accepting.server.identity.issuer = Some("https://sso.example.org".into());
        accepting.server.identity.blocked = vec!["mallory@example.org".into()];
        let after_restart = ["server.identity.issuer", "server.identity.blocked"];
        assert_eq!(changes(&old, &accepting), (Vec::new(), names(&after_restart)));
        let mut unblocked = accepting.clone();
        unblocked.server.identity.blocked = Vec::new();
        assert_eq!(changes(&accepting, &unblocked), (names(&["server.identity.blocked"]), Vec::new()));
        // Channels are replaced.
        let mut linked = old.clone();
        linked.channel.whatsapp.enabled = true;
        assert_eq!(changes(&old, &linked), (names(&["channel.whatsapp.enabled"]), Vec::new()));
        // So are sources, and the mail account.
        let mut reading = old.clone();
        reading.sources.feeds.insert("news".into(), "https://example.org/feed.xml".to_owned().into());
        reading.sources.weather.latitude = Some(52.5);
        reading.mail.folder = "Archive".into();
        let applied = ["mail.folder", "sources.feeds", "sources.weather.latitude"];
        assert_eq!(changes(&old, &reading), (names(&applied), Vec::new()));
    }
}
