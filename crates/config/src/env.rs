//! The environment variables Hob reads. The only file of this crate that reads the process's environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use crate::error::ConfigError;

/// Every variable that is read.
pub(crate) const VARIABLES: [&str; 15] = [
    "HOME",
    "HOB_HOME",
    "HOB_CONFIG",
    "HOB_API_KEY",
    "HOB_MAIL_PASSWORD",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "HF_ENDPOINT",
    "HF_TOKEN",
    "HOB_BACKENDS",
    "HOB_DATABASE_URL",
    "PGPASSFILE",
    "HOB_TELEGRAM_TOKEN",
];

/// The variables Hob reads, as they were at one moment. An empty variable counts as unset.
#[derive(Clone, Default)]
pub struct Environment {
    values: BTreeMap<&'static str, OsString>,
}

impl Environment {
    /// The environment of this process.
    pub fn from_process() -> Self {
        let mut environment = Environment::from_lookup(|name| std::env::var_os(name));
        // HOME is often unset for services; the system's user database still knows.
        if let (false, Some(home)) = (environment.values.contains_key("HOME"), std::env::home_dir()) {
            environment.values.insert("HOME", home.into_os_string());
        }
        environment
    }

    /// An environment in which `lookup` finds a variable's value.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name| lookup(name).filter(|value| !value.is_empty()).map(|value| (name, value));
        Environment { values: VARIABLES.into_iter().filter_map(set).collect() }
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<&Path> {
        self.values.get("HOME").map(Path::new)
    }

    /// Where Hob keeps its files: `$HOB_HOME`, else `~/.hob`.
    pub fn config_dir(&self) -> Result<PathBuf, ConfigError> {
        match (self.values.get("HOB_HOME"), self.home()) {
            (Some(dir), _) => Ok(PathBuf::from(dir)),
            (None, Some(home)) => Ok(home.join(".hob")),
            (None, None) => Err(ConfigError::NoHome),
        }
    }

    /// The configuration file: `$HOB_CONFIG`, else `config.toml` in [`Self::config_dir`].
    pub fn config_file(&self) -> Result<PathBuf, ConfigError> {
        match self.named_config_file() {
            Some(path) => Ok(path.to_owned()),
            None => Ok(self.config_dir()?.join("config.toml")),
        }
    }

    /// `$HOB_CONFIG`.
    pub(crate) fn named_config_file(&self) -> Option<&Path> {
        self.values.get("HOB_CONFIG").map(Path::new)
    }

    /// Whether a variable is set.
    pub(crate) fn has(&self, variable: &str) -> bool {
        self.values.contains_key(variable)
    }

    /// `$HOB_API_KEY`.
    pub(crate) fn api_key(&self) -> Result<Option<SecretString>, ConfigError> {
        self.secret("HOB_API_KEY")
    }

    /// `$HOB_MAIL_PASSWORD`.
    pub(crate) fn mail_password(&self) -> Result<Option<SecretString>, ConfigError> {
        self.secret("HOB_MAIL_PASSWORD")
    }

    /// The cloud providers' keys.
    pub(crate) fn provider_keys(&self) -> Result<ProviderKeys, ConfigError> {
        let gemini = match self.secret("GEMINI_API_KEY")? {
            None => self.secret("GOOGLE_API_KEY")?,
            key => key,
        };
        Ok(ProviderKeys {
            openai: self.secret("OPENAI_API_KEY")?,
            anthropic: self.secret("ANTHROPIC_API_KEY")?,
            gemini,
        })
    }

    /// The model hub, where it is another than the usual one.
    pub(crate) fn hub(&self) -> Result<Hub, ConfigError> {
        let endpoint = match self.values.get("HF_ENDPOINT") {
            Some(value) => {
                Some(value.to_str().ok_or(ConfigError::VariableNotText { variable: "HF_ENDPOINT" })?)
            }
            None => None,
        };
        let endpoint = endpoint.map(|text| text.trim().trim_end_matches('/').to_owned());
        Ok(Hub { endpoint, token: self.secret("HF_TOKEN")? })
    }

    /// `$HOB_BACKENDS`. A relative path is an error: it would mean libraries of whatever directory Hob is started in.
    pub(crate) fn backends(&self) -> Result<Option<PathBuf>, ConfigError> {
        let variable = "HOB_BACKENDS";
        match self.values.get(variable).map(PathBuf::from) {
            Some(path) if path.is_relative() => Err(ConfigError::RelativeVariable { variable }),
            path => Ok(path),
        }
    }

    /// `$HOB_DATABASE_URL`, which may contain a password.
    pub(crate) fn database_url(&self) -> Result<Option<SecretString>, ConfigError> {
        self.secret("HOB_DATABASE_URL")
    }

    /// `$HOB_TELEGRAM_TOKEN`.
    pub(crate) fn telegram_token(&self) -> Result<Option<SecretString>, ConfigError> {
        self.secret("HOB_TELEGRAM_TOKEN")
    }

    /// `$PGPASSFILE`, else `~/.pgpass`: where clients of PostgreSQL look for passwords.
    pub(crate) fn passfile(&self) -> Option<PathBuf> {
        let named = self.values.get("PGPASSFILE").map(PathBuf::from);
        named.or_else(|| self.home().map(|home| home.join(".pgpass")))
    }

    /// A key without the newline that reading it from a file often leaves behind. One that is no text is an error: to
    /// ignore it could leave a server without the key that its owner has set.
    fn secret(&self, variable: &'static str) -> Result<Option<SecretString>, ConfigError> {
        let Some(value) = self.values.get(variable) else {
            return Ok(None);
        };
        let text = value.to_str().ok_or(ConfigError::VariableNotText { variable })?.trim();
        Ok(Some(text).filter(|text| !text.is_empty()).map(SecretString::from))
    }
}

impl<K: Into<String>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        let given: BTreeMap<String, OsString> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Environment::from_lookup(|name| given.get(name).cloned())
    }
}

/// Names only: most of the values are keys.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

/// Where models are fetched from.
#[derive(Debug, Clone, Default)]
pub struct Hub {
    /// Base address of the hub; `None` for the usual one.
    pub endpoint: Option<String>,
    /// Token for models with restricted access on the hub.
    pub token: Option<SecretString>,
}

/// The keys for the cloud providers, as far as there are any.
#[derive(Debug, Clone, Default)]
pub struct ProviderKeys {
    pub openai: Option<SecretString>,
    pub anthropic: Option<SecretString>,
    pub gemini: Option<SecretString>,
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn with(variables: &[(&str, &str)]) -> Environment {
        variables.iter().copied().collect()
    }

    fn shown(secret: Option<SecretString>) -> Option<String> {
        secret.map(|secret| secret.expose_secret().to_owned())
    }

    #[test]
    fn libraries_are_never_looked_for_relative_to_the_current_directory() {
        let of = |path: &str| with(&[("HOB_BACKENDS", path)]).backends();
        assert_eq!(of("/opt/cards").expect("absolute"), Some(PathBuf::from("/opt/cards")));
        assert_eq!(of("").expect("unset"), None);
        for relative in [".", "cards", "../cards"] {
            assert!(matches!(of(relative), Err(ConfigError::RelativeVariable { .. })), "{relative}");
        }
    }

    #[test]
    fn files_are_in_the_home_directory_unless_told_otherwise() {
        let file = |variables: &[(&str, &str)]| with(variables).config_file().ok();
        assert_eq!(file(&[("HOME", "/home/ann")]), Some("/home/ann/.hob/config.toml".into()));
        assert_eq!(
            file(&[("HOME", "/home/ann"), ("HOB_HOME", "")]),
            Some("/home/ann/.hob/config.toml".into())
        );
        assert_eq!(
            file(&[("HOME", "/home/ann"), ("HOB_HOME", "/srv/hob")]),
            Some("/srv/hob/config.toml".into())
        );
        assert_eq!(
            file(&[("HOB_HOME", "/srv/hob"), ("HOB_CONFIG", "/etc/hob.toml")]),
            Some("/etc/hob.toml".into())
        );
        assert!(matches!(with(&[]).config_file(), Err(ConfigError::NoHome)));
    }

    #[test]
    fn google_has_two_names_for_its_key() {
        let gemini =
            |variables: &[(&str, &str)]| shown(with(variables).provider_keys().expect("text").gemini);
        assert_eq!(gemini(&[("GOOGLE_API_KEY", "b")]).as_deref(), Some("b"));
        assert_eq!(gemini(&[("GEMINI_API_KEY", "a"), ("GOOGLE_API_KEY", "b")]).as_deref(), Some("a"));
        assert_eq!(gemini(&[("GEMINI_API_KEY", " \n"), ("GOOGLE_API_KEY", "b\n")]).as_deref(), Some("b"));
        assert_eq!(gemini(&[]), None);
    }

    #[test]
    fn keys_never_show_in_debug_output() {
        let environment = with(&[("HOB_API_KEY", "s3cret"), ("OPENAI_API_KEY", "s3cret")]);
        assert_eq!(format!("{environment:?}"), r#"{"HOB_API_KEY", "OPENAI_API_KEY"}"#);
        let keys = environment.provider_keys().expect("text");
        assert!(!format!("{keys:?}").contains("s3cret"));
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_is_no_text_is_an_error_rather_than_an_open_server() {
        use std::os::unix::ffi::OsStringExt;
        let garbled: Environment =
            [("HOB_API_KEY", OsString::from_vec(vec![0xff, 0xfe]))].into_iter().collect();
        let error = garbled.api_key().expect_err("not text").to_string();
        assert_eq!(error, "$HOB_API_KEY is not valid UTF-8. Set it to the key itself, or unset it.");
    }
}
