//! `[mcp.servers.NAME]`: servers of the Model Context Protocol whose tools agents may use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hob_core::Reach;
use secrecy::{ExposeSecret, SecretString};
use toml::de::{DeTable, DeValue};

use crate::kind::{expand, quote, quote_all, quote_name};
use crate::settings_schema::{Exposure, Keys, Kind, Section, Typed};

/// Settings of all servers.
#[derive(Debug, Clone, Default)]
pub struct McpConfig {
    /// By the name that their tools carry.
    pub servers: BTreeMap<String, McpServerConfig>,
}

/// One server.
#[derive(Debug, Clone)]
pub struct McpServerConfig {
    pub transport: McpTransportConfig,
    /// How far its tools reach: `pure`, `read` or `act`.
    pub reach: Reach,
    /// How long a call may take.
    pub timeout: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum McpTransportConfig {
    /// A program to start.
    Command { command: PathBuf, args: Vec<String>, env: Vec<(String, SecretString)> },
    /// An address to talk to.
    Url { url: String, headers: Vec<(String, SecretString)> },
}

/// The keys a server may have.
const FIELDS: [&str; 7] = ["command", "args", "env", "url", "headers", "reach", "timeout"];

const TIMEOUT: Duration = Duration::from_secs(30);

const SERVER: Kind<McpServerConfig> = Kind {
    expected: "a server such as { command = \"npx\", args = [\"-y\", \"some-mcp-server\"] } or { url = \"https://…\" }, \
               with env or headers, reach (pure, read, act) and timeout (seconds) as needed",
    read: |typed| Server { table: typed.value.as_table()?, typed }.read(),
    write,
    // Headers and variables hold keys.
    exposure: Exposure::Secret,
};

/// A server as it is written in the file.
struct Server<'a> {
    table: &'a DeTable<'a>,
    typed: &'a Typed<'a>,
}

impl Server<'_> {
    fn read(&self) -> Option<McpServerConfig> {
        let known = |name: &str| FIELDS.contains(&name);
        if !self.table.iter().all(|(name, _)| known(name.get_ref())) {
            return None;
        }
        let has = |name: &str| self.table.get(name).is_some();
        let transport = match (has("command"), has("url")) {
            (true, false) if !has("headers") => McpTransportConfig::Command {
                command: expand(self.text("command")?, self.typed.home)?,
                args: self.list("args")?,
                env: self.secrets("env")?,
            },
            (false, true) if !has("args") && !has("env") => {
                let url = self.text("url")?;
                let ours = url.starts_with("http://") || url.starts_with("https://");
                McpTransportConfig::Url {
                    url: ours.then(|| url.to_owned())?,
                    headers: self.secrets("headers")?,
                }
            }
            _ => return None,
        };
        let reach = match has("reach") {
            true => Reach::parse(self.text("reach")?)?,
            // What an unknown program does is not known, so it has the highest reach.
            false => Reach::Act,
        };
        let timeout = match self.value("timeout") {
            Some(value) => {
                let seconds = Typed { value, home: None }
                    .number()
                    .filter(|seconds| (0.001..=86400.0).contains(seconds))?;
                Duration::from_secs_f64(seconds)
            }
            None => TIMEOUT,
        };
        Some(McpServerConfig { transport, reach, timeout })
    }

    fn value(&self, name: &str) -> Option<&DeValue<'_>> {
        self.table.get(name).map(|value| value.get_ref())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_str().filter(|text| !text.trim().is_empty())
    }

    fn list(&self, name: &str) -> Option<Vec<String>> {
        match self.value(name) {
            Some(value) => {
                let texts = Typed { value, home: None }.texts()?;
                Some(texts.into_iter().map(str::to_owned).collect())
            }
            None => Some(Vec::new()),
        }
    }

    fn secrets(&self, name: &str) -> Option<Vec<(String, SecretString)>> {
        let Some(value) = self.value(name) else { return Some(Vec::new()) };
        let entries = value.as_table()?.iter();
        entries
            .map(|(name, value)| {
                Some((name.get_ref().to_string(), value.get_ref().as_str()?.to_owned().into()))
            })
            .collect()
    }
}

fn write(server: &McpServerConfig) -> String {
    let table = |entries: &[(String, SecretString)]| {
        let entry = |(name, value): &(String, SecretString)| {
            format!("{} = {}", quote_name(name), quote(value.expose_secret()))
        };
        format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
    };
    let transport = match &server.transport {
        McpTransportConfig::Command { command, args, env } => {
            format!(
                "command = {}, args = {}, env = {}",
                quote(&command.to_string_lossy()),
                quote_all(args),
                table(env)
            )
        }
        McpTransportConfig::Url { url, headers } => {
            format!("url = {}, headers = {}", quote(url), table(headers))
        }
    };
    let (reach, timeout) = (quote(server.reach.as_str()), server.timeout.as_secs_f64());
    format!("{{ {transport}, reach = {reach}, timeout = {timeout:?} }}")
}

impl Section for McpConfig {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let McpConfig { servers } = self;
        keys.table(
            "servers",
            servers,
            SERVER,
            "By name, such as { files = { command = \"npx\", args = [\"-y\", \"some-mcp-server\"], reach = \"read\" } }.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_server_is_a_program_or_an_address() {
        let program =
            read_as(&SERVER, "{ command = '~/bin/x', args = ['-y'], env = { KEY = 's3cret' }, timeout = 2 }");
        let program = program.unwrap();
        assert_eq!((program.reach, program.timeout), (Reach::Act, Duration::from_secs(2)));
        match &program.transport {
            McpTransportConfig::Command { command, args, env } => {
                assert_eq!(
                    (command.to_str(), args.as_slice()),
                    (Some("/home/ann/bin/x"), &["-y".to_owned()][..])
                );
                assert_eq!((env[0].0.as_str(), env[0].1.expose_secret()), ("KEY", "s3cret"));
            }
            McpTransportConfig::Url { .. } => panic!("a program"),
        }
        assert!(!format!("{program:?}").contains("s3cret"));

        let address = read_as(&SERVER, "{ url = 'https://example.org/mcp', reach = 'read' }").unwrap();
        assert_eq!((address.reach, address.timeout), (Reach::Read, TIMEOUT));
    }

    #[test]
    fn half_a_server_or_two_in_one_are_refused() {
        for bad in [
            "{}",
            "'npx'",
            "{ command = '' }",
            "{ command = 'x', url = 'http://y' }",
            "{ url = 'ftp://y' }",
            "{ url = 'http://y', args = ['x'] }",
            "{ command = 'x', reach = 'all' }",
            "{ command = 'x', timeout = 0 }",
            "{ command = 'x', comand = 'y' }",
            "{ command = 'x', env = { A = 1 } }",
        ] {
            assert!(read_as(&SERVER, bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        for typed in [
            "{ command = '/x', args = ['a b'], env = { K = 'v' } }",
            "{ url = 'http://y', headers = { A = 'b' } }",
        ] {
            let server = read_as(&SERVER, typed).unwrap();
            let again = read_as(&SERVER, &write(&server)).unwrap();
            assert_eq!(write(&again), write(&server));
        }
    }
}
