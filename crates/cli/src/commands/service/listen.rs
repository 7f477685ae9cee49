//! Where the server of a service listens: on this machine only, unless the configuration or the user says otherwise.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use hob_config::{Config, Environment, ServerConfig, SettingSource, SettingsFile};

use super::definition::VARIABLES;
use super::systemd::{KEYS_FILE, SYSTEM_CONFIG_PATH, SYSTEM_KEYS_PATH};
use crate::named_keys::NamedKeys;
use crate::running_server::UrlScheme;

const THIS_MACHINE: &str = "127.0.0.1";
const ALL_ADDRESSES: &str = "0.0.0.0";

/// Who may reach the server of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceReach {
    /// The machines that the configuration allows; only this machine if it names no address.
    AsConfigured,
    /// All machines of the network.
    Network,
}

/// The address of the server of a service.
#[derive(Debug)]
pub struct ListenPlan {
    /// The host for `hob serve --host`; `None` if the configuration names it.
    pub flag: Option<&'static str>,
    /// What the server reads, with the host that it listens on.
    config: Config,
    /// Where the server keeps its files.
    home: PathBuf,
    /// Has the variables with keys for the server, under systemd.
    keys_file: PathBuf,
}

impl ListenPlan {
    /// Of a server that reads the configuration of this environment.
    pub fn read(environment: &Environment, reach: ServiceReach) -> Result<Self> {
        let mut config = hob_config::load(environment)?.config;
        let flag = match reach {
            ServiceReach::Network => Some(ALL_ADDRESSES),
            ServiceReach::AsConfigured if is_host_named(environment)? => None,
            ServiceReach::AsConfigured => Some(THIS_MACHINE),
        };
        if let Some(host) = flag {
            host.clone_into(&mut config.server.host);
        }
        let home = environment.config_dir()?;
        Ok(ListenPlan { flag, config, keys_file: home.join(KEYS_FILE), home })
    }

    /// Of the service of the machine. The installation writes its configuration, with an address, if there is none.
    pub fn of_machine(reach: ServiceReach) -> Result<Self> {
        if Path::new(SYSTEM_CONFIG_PATH).exists() {
            let plan = Self::read(&machine_environment(), reach)?;
            return Ok(ListenPlan { keys_file: SYSTEM_KEYS_PATH.into(), ..plan });
        }
        let flag = (reach == ServiceReach::Network).then_some(ALL_ADDRESSES);
        Self::of_new_file(flag)
    }

    /// Of the service of a package: only its configuration decides.
    pub fn of_package() -> Result<Self> {
        // Users who are not in the group of the service do not see the file.
        if !Path::new(SYSTEM_CONFIG_PATH).exists() {
            return Self::of_new_file(None);
        }
        let environment = machine_environment();
        let config = hob_config::load(&environment)?.config;
        let home = environment.config_dir()?;
        Ok(ListenPlan { flag: None, config, home, keys_file: SYSTEM_KEYS_PATH.into() })
    }

    /// With the configuration that comes with Hob, which limits the server to this machine.
    fn of_new_file(flag: Option<&'static str>) -> Result<Self> {
        let mut config = Config::default();
        flag.unwrap_or(THIS_MACHINE).clone_into(&mut config.server.host);
        let home = machine_environment().config_dir()?;
        Ok(ListenPlan { flag, config, home, keys_file: SYSTEM_KEYS_PATH.into() })
    }

    /// Whether only this machine reaches the server.
    pub fn is_local(&self) -> bool {
        let host = &self.config.server.host;
        match host.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        }
    }

    /// Whether anyone who reaches the server may use it, as far as the configuration says.
    pub fn is_open(&self) -> bool {
        let server = &self.config.server;
        !self.is_local() && server.api_key.is_none() && !server.identity.is_on()
    }

    /// Whether the server has named keys, which also close it.
    pub async fn named_keys(&self) -> NamedKeys {
        NamedKeys::look_up(&self.config, &self.home).await
    }

    /// How to give the service the key that the shell has.
    pub fn key_advice(&self) -> String {
        match cfg!(target_os = "macos") {
            true => "Set 'api_key' under [server] in config.toml".to_owned(),
            false => format!("Put 'HOB_API_KEY=…' into {}", self.keys_file.display()),
        }
    }

    /// The address, for people.
    pub fn shown(&self) -> String {
        let ServerConfig { host, port, .. } = &self.config.server;
        let is_everywhere = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
        if is_everywhere {
            return format!("port {port} of all addresses of this machine, so other machines can reach it");
        }
        let url = UrlScheme::of(&self.config.server).url(host, *port);
        match self.is_local() {
            true => format!("{url}, for this machine only"),
            false => format!("{url}, so other machines can reach it"),
        }
    }
}

/// Whether the configuration file names the address, even if it is the default one.
fn is_host_named(environment: &Environment) -> Result<bool> {
    let sections = SettingsFile::new(environment.clone()).list()?;
    let mut settings = sections.iter().flat_map(|section| &section.settings);
    Ok(settings.any(|setting| setting.key == "server.host" && setting.source == SettingSource::File))
}

/// What the service of a user sees: none of the keys of this shell, but those of the file that its unit names.
pub fn user_environment() -> Result<Environment> {
    let shell = Environment::from_process();
    let keys = match cfg!(target_os = "macos") {
        true => BTreeMap::new(),
        false => keys_in(&std::fs::read_to_string(shell.config_dir()?.join(KEYS_FILE)).unwrap_or_default()),
    };
    let user_home = shell.home().map(|home| home.as_os_str().to_owned());
    Ok(Environment::from_lookup(|name| match name {
        "HOME" => user_home.clone(),
        name if VARIABLES.contains(&name) => std::env::var_os(name),
        name => keys.get(name).map(OsString::from),
    }))
}

/// The variables of a file with one NAME=VALUE per line.
fn keys_in(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), unquoted(value.trim()).to_owned())).collect()
}

fn unquoted(value: &str) -> &str {
    let within = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

/// What the unit of the machine sets.
fn machine_environment() -> Environment {
    Environment::from_lookup(|name| match name {
        "HOME" | "HOB_HOME" => Some(OsString::from("/var/lib/hob")),
        "HOB_CONFIG" => Some(OsString::from(SYSTEM_CONFIG_PATH)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(config: &str, reach: ServiceReach) -> ListenPlan {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("config.toml"), config).expect("a file");
        let home = directory.path().as_os_str().to_owned();
        let environment =
            Environment::from_lookup(move |name| matches!(name, "HOME" | "HOB_HOME").then(|| home.clone()));
        ListenPlan::read(&environment, reach).expect("a configuration")
    }

    #[test]
    fn a_service_listens_on_this_machine_unless_the_user_says_otherwise() {
        use ServiceReach::{AsConfigured, Network};
        let everywhere = "port 9000 of all addresses of this machine, so other machines can reach it";
        for (config, reach, flag, shown) in [
            ("", AsConfigured, Some("127.0.0.1"), "http://127.0.0.1:8000, for this machine only"),
            (
                "[server]\nport = 9000\n",
                AsConfigured,
                Some("127.0.0.1"),
                "http://127.0.0.1:9000, for this machine only",
            ),
            ("[server]\nport = 9000\nhost = \"0.0.0.0\"\n", AsConfigured, None, everywhere),
            ("[server]\nport = 9000\nhost = \"127.0.0.1\"\n", Network, Some("0.0.0.0"), everywhere),
            ("[server]\nhost = \"::1\"\n", AsConfigured, None, "http://[::1]:8000, for this machine only"),
            (
                "[server]\nhost = \"10.0.0.2\"\n",
                AsConfigured,
                None,
                "http://10.0.0.2:8000, so other machines can reach it",
            ),
        ] {
            let plan = plan(config, reach);
            assert_eq!((plan.flag, plan.shown().as_str()), (flag, shown), "{config}");
            assert_eq!(plan.is_open(), !plan.is_local(), "{config}");
        }
        assert!(!plan("[server]\napi_key = \"hob_0123456789abcdef0123\"\n", Network).is_open());
    }

    #[test]
    fn the_file_of_keys_is_read_as_systemd_does() {
        let text =
            "# a comment\n; another\n\nHOB_API_KEY = \"a=b\"\nHF_TOKEN='c'\nOPENAI_API_KEY=\nnothing\n";
        let expected = [("HF_TOKEN", "c"), ("HOB_API_KEY", "a=b"), ("OPENAI_API_KEY", "")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(keys_in(text), BTreeMap::from(expected));
    }

    #[test]
    fn a_configuration_that_cannot_be_used_is_an_error() {
        let nowhere = Environment::from_lookup(|name| {
            matches!(name, "HOME" | "HOB_CONFIG").then(|| OsString::from("/nowhere/config.toml"))
        });
        assert!(ListenPlan::read(&nowhere, ServiceReach::AsConfigured).is_err());
    }
}
