//! The server, the login and the limits. The password is in no text that this file makes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use hob_core::defaults::{DATABASE_CONNECT_TIMEOUT, DATABASE_CONNECTIONS, DATABASE_STATEMENT_TIMEOUT};
use thiserror::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};

use super::password_file;
use super::tls::{Roots, TlsMode};
use crate::{DatabaseError, DbResult};

/// A URL that cannot be used. The message does not contain it, because it may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the URL of the database is not valid: {0}")]
pub struct InvalidUrl(&'static str);

/// How to reach a database in PostgreSQL.
#[derive(Clone)]
pub struct PostgresOptions {
    pub(super) config: Config,
    pub(super) tls: TlsMode,
    pub(super) roots: Roots,
    /// A file with the password and nothing else.
    pub password_file: Option<PathBuf>,
    /// A password file of libpq: lines with host, port, database, user and password.
    pub passfile: Option<PathBuf>,
    /// Without the one that listens for changes.
    pub max_connections: usize,
    pub connect_timeout: Duration,
    pub statement_timeout: Duration,
}

impl FromStr for PostgresOptions {
    type Err = InvalidUrl;

    /// Reads `postgres://user:password@host:5432,host2:5432/database?sslmode=verify-full`. `host=/directory` names a Unix socket.
    fn from_str(url: &str) -> Result<Self, InvalidUrl> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(InvalidUrl("it must start with postgres://"));
        }
        // A password may contain a '?'.
        let login_end = url.find('@').unwrap_or_default();
        let query_start = url[login_end..].find('?').map_or(url.len(), |found| login_end + found);
        let (base, query) = (&url[..query_start], url.get(query_start + 1..).unwrap_or_default());
        let mut own = OwnParameters::default();
        let others: Vec<&str> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .filter_map(|pair| own.take(pair).err())
            .collect();
        let own = own.checked()?;
        let mut config: Config = format!("{base}?{}", others.join("&")).parse().map_err(|_| {
            InvalidUrl("it must look like postgres://user@host:5432/database?sslmode=require")
        })?;
        if config.get_hosts().is_empty() {
            return Err(InvalidUrl("it names no host. 'host=/directory' after the '?' names a Unix socket"));
        }
        let counts = [config.get_ports().len(), config.get_hostaddrs().len()];
        let is_odd = |count| count > 0 && count != config.get_hosts().len();
        // One port is for all hosts.
        if (counts[0] != 1 && is_odd(counts[0])) || is_odd(counts[1]) {
            return Err(InvalidUrl(
                "it must name one port for all hosts or one for each host, and as many addresses as hosts",
            ));
        }
        if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
            // After a failover, the old primary is a standby.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if config.get_application_name().is_none() {
            config.application_name("hob");
        }
        let tls = if is_local(&config) { TlsMode::Disable } else { own.tls };
        config.ssl_mode(match tls {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        let connect_timeout = config.get_connect_timeout().copied().unwrap_or(DATABASE_CONNECT_TIMEOUT);
        Ok(PostgresOptions {
            config,
            tls,
            roots: own.roots,
            password_file: None,
            passfile: own.passfile,
            max_connections: DATABASE_CONNECTIONS,
            connect_timeout,
            statement_timeout: DATABASE_STATEMENT_TIMEOUT,
        })
    }
}

impl PostgresOptions {
    /// The hosts and the database, for messages. Contains neither user nor password.
    pub fn server(&self) -> String {
        let ports = self.config.get_ports();
        let host = |(number, host): (usize, &Host)| {
            let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(directory) => directory.display().to_string(),
            }
        };
        let hosts: Vec<String> = self.config.get_hosts().iter().enumerate().map(host).collect();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("{}/{database}", hosts.join(","))
    }

    /// Whether the password is in the URL, where other users of the machine may see it.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// The logins at each host, in the order in which they are tried.
    pub(super) fn logins(&self) -> DbResult<Vec<Config>> {
        let login = self.login()?;
        let mut logins: Vec<Config> =
            (0..login.get_hosts().len()).map(|number| at_host(&login, number)).collect();
        if login.get_load_balance_hosts() == LoadBalanceHosts::Random {
            fastrand::shuffle(&mut logins);
        }
        Ok(logins)
    }

    /// The login, with the password as it is now: a file may have a new one.
    fn login(&self) -> DbResult<Config> {
        let mut config = self.config.clone();
        config.connect_timeout(self.connect_timeout);
        // A host that is gone must not hold a statement for longer than a slow server may.
        config.tcp_user_timeout(self.statement_timeout + self.connect_timeout);
        config.keepalives_idle(self.connect_timeout.max(Duration::from_secs(1)) * 2);
        if self.has_password() {
            return Ok(config);
        }
        if let Some(path) = &self.password_file {
            let unreadable = |source| DatabaseError::PasswordFile { path: path.clone(), source };
            let text = std::fs::read_to_string(path).map_err(unreadable)?;
            config.password(text.trim_end_matches(['\r', '\n']));
        } else if let Some(path) = &self.passfile
            && let Some(password) = self.password_in(path)
        {
            config.password(password);
        }
        Ok(config)
    }

    fn password_in(&self, path: &Path) -> Option<String> {
        let lines = password_file::read(path)?;
        let ports = self.config.get_ports();
        let user = self.config.get_user().unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or(user);
        self.config.get_hosts().iter().enumerate().find_map(|(number, host)| {
            let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432).to_string();
            let names = match host {
                Host::Tcp(name) => vec![name.clone()],
                #[cfg(unix)]
                Host::Unix(directory) => vec![directory.display().to_string(), "localhost".to_owned()],
            };
            names.iter().find_map(|host| password_file::find(&lines, [host, &port, database, user]))
        })
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PostgresOptions").field("server", &self.server()).finish_non_exhaustive()
    }
}

/// The login at one of the hosts. The client library would wait for a host that accepts connections and then says nothing, and not
/// try the next one.
fn at_host(login: &Config, number: usize) -> Config {
    let mut config = Config::new();
    match login.get_hosts().get(number) {
        Some(Host::Tcp(name)) => config.host(name),
        #[cfg(unix)]
        Some(Host::Unix(directory)) => config.host_path(directory),
        None => &mut config,
    };
    if let Some(address) = login.get_hostaddrs().get(number) {
        config.hostaddr(*address);
    }
    let ports = login.get_ports();
    if let Some(port) = ports.get(number).or(ports.first()) {
        config.port(*port);
    }
    if let Some(user) = login.get_user() {
        config.user(user);
    }
    if let Some(name) = login.get_dbname() {
        config.dbname(name);
    }
    if let Some(options) = login.get_options() {
        config.options(options);
    }
    if let Some(name) = login.get_application_name() {
        config.application_name(name);
    }
    if let Some(password) = login.get_password() {
        config.password(password);
    }
    if let Some(timeout) = login.get_connect_timeout() {
        config.connect_timeout(*timeout);
    }
    if let Some(timeout) = login.get_tcp_user_timeout() {
        config.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = login.get_keepalives_interval() {
        config.keepalives_interval(interval);
    }
    if let Some(retries) = login.get_keepalives_retries() {
        config.keepalives_retries(retries);
    }
    config
        .ssl_mode(login.get_ssl_mode())
        .ssl_negotiation(login.get_ssl_negotiation())
        .keepalives(login.get_keepalives())
        .keepalives_idle(login.get_keepalives_idle())
        .target_session_attrs(login.get_target_session_attrs())
        .channel_binding(login.get_channel_binding());
    config
}

fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(_) => false,
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

/// The parameters that the client library does not know.
#[derive(Default)]
struct OwnParameters {
    mode: Option<String>,
    root: Option<PathBuf>,
    passfile: Option<PathBuf>,
}

struct CheckedParameters {
    tls: TlsMode,
    roots: Roots,
    passfile: Option<PathBuf>,
}

impl OwnParameters {
    /// Returns a pair that is for the client library.
    fn take<'a>(&mut self, pair: &'a str) -> Result<(), &'a str> {
        let (name, value) = pair.split_once('=').ok_or(pair)?;
        let value = decode(value);
        match name {
            "sslmode" => self.mode = Some(value),
            "sslrootcert" => self.root = Some(value.into()),
            "passfile" => self.passfile = Some(value.into()),
            _ => return Err(pair),
        }
        Ok(())
    }

    fn checked(self) -> Result<CheckedParameters, InvalidUrl> {
        let tls = match self.mode.as_deref() {
            None | Some("prefer") => TlsMode::Prefer,
            Some("disable") => TlsMode::Disable,
            // As in libpq: certificates are checked if there is something to check them with.
            Some("require") if self.root.is_some() => TlsMode::VerifyCa,
            Some("require") => TlsMode::Require,
            Some("verify-ca") => TlsMode::VerifyCa,
            Some("verify-full") => TlsMode::VerifyFull,
            Some(_) => {
                return Err(InvalidUrl(
                    "sslmode must be one of disable, prefer, require, verify-ca, verify-full",
                ));
            }
        };
        let roots = match self.root {
            Some(path) if path.as_os_str() != "system" => Roots::File(path),
            _ => Roots::System,
        };
        Ok(CheckedParameters { tls, roots, passfile: self.passfile })
    }
}

/// Decodes `%41`.
fn decode(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => {
                std::str::from_utf8(&[*high, *low]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
