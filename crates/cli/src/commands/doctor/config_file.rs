//! The configuration file: is it readable, is it valid, can other users read it.

use std::io::ErrorKind;
use std::path::Path;

use hob_config::{
    CalendarConfig, Config, ConfigError, ConfigWarning, Environment, Loaded, McpTransportConfig,
};

use super::report::{CheckStatus, DoctorCheck};
use crate::failure;

const NAME: &str = "config";

/// The settings, unless the file cannot be used.
pub fn check(environment: &Environment) -> (Vec<DoctorCheck>, Option<Config>) {
    let Loaded { config, warnings, path } = match hob_config::load(environment) {
        Ok(loaded) => loaded,
        Err(error) => {
            let advice = remedy(&error);
            let check =
                DoctorCheck::new(NAME, CheckStatus::Bad, failure::explain(&error.into())).advise(advice);
            return (vec![check], None);
        }
    };
    let Some(path) = path else {
        let check =
            DoctorCheck::new(NAME, CheckStatus::Good, "no file; all settings have their default values")
                .advise("Create one for this machine with 'hob init'");
        return (vec![check], Some(config));
    };
    let mut checks = vec![DoctorCheck::new(NAME, CheckStatus::Good, path.display().to_string())];
    checks.extend(warnings.iter().map(|warning| {
        // 'hob serve' does not start with such a setting.
        let status = if warning.is_about_server() { CheckStatus::Bad } else { CheckStatus::Warning };
        DoctorCheck::new(NAME, status, warning.to_string()).advise(remedy_of_warning(warning))
    }));
    if holds_key(&config) && others_may_read(&path) {
        let message = "the file contains a key, and other users of this machine can read it";
        checks.push(
            DoctorCheck::new(NAME, CheckStatus::Warning, message)
                .advise(format!("chmod 600 '{}'", path.display())),
        );
    }
    (checks, Some(config))
}

/// What to do about something without effect.
fn remedy_of_warning(warning: &ConfigWarning) -> String {
    match warning {
        ConfigWarning::UnknownKey { key, line, .. } if warning.is_about_server() => {
            format!("Correct or remove '{key}' in line {line}: 'hob serve' does not start with it")
        }
        ConfigWarning::UnknownSection { section, line, .. } if warning.is_about_server() => {
            format!("Correct or remove [{section}] in line {line}: 'hob serve' does not start with it")
        }
        ConfigWarning::UnknownKey { key, line, .. } => {
            format!("Correct or remove '{key}' in line {line}: it has no effect")
        }
        ConfigWarning::UnknownSection { section, line, .. } => {
            format!("Correct or remove [{section}] in line {line}: it has no effect")
        }
        ConfigWarning::NoEffect { key, line, .. } => format!("Remove '{key}' in line {line}"),
        ConfigWarning::MoreUnknown { .. } => "Correct or remove them: they have no effect".to_owned(),
    }
}

/// What to do about a file that cannot be used.
fn remedy(error: &ConfigError) -> String {
    match error {
        ConfigError::NoHome => "export HOB_HOME=/path/to/a/directory".to_owned(),
        ConfigError::Missing { .. } => "Create it with 'hob init', or unset HOB_CONFIG".to_owned(),
        ConfigError::Directory { file } => format!("Move the directory {file} away, then run 'hob init'"),
        ConfigError::Unreadable { file, source } if source.kind() == ErrorKind::PermissionDenied => {
            format!("Take ownership: 'chown \"$USER\" {file}', then 'chmod 600 {file}'")
        }
        ConfigError::Unreadable { file, source } if source.kind() == ErrorKind::NotFound => {
            format!("{file} is a broken link: correct it, or remove it and run 'hob init'")
        }
        ConfigError::VariableNotText { variable } => format!("Set {variable} to the key itself, or unset it"),
        ConfigError::RelativeVariable { variable } => {
            format!("Set {variable} to an absolute path, or unset it")
        }
        ConfigError::Unreadable { .. }
        | ConfigError::TooLarge { .. }
        | ConfigError::NotUtf8 { .. }
        | ConfigError::Syntax { .. }
        | ConfigError::BadValues(_) => "Correct the file, or replace it with 'hob init --force'".to_owned(),
    }
}

/// Whether the file contains a key.
fn holds_key(config: &Config) -> bool {
    let engine = &config.engine;
    let servers = [&engine.ollama, &engine.vllm, &engine.sglang, &engine.llamacpp.server, &engine.litellm];
    // The server's own key may come from the environment, which hides whether the file has one too.
    let from_environment = std::env::var_os("HOB_API_KEY").is_some_and(|key| !key.is_empty());
    (config.server.api_key.is_some() && !from_environment)
        || config.channel.token.is_some()
        || servers.iter().any(|server| server.api_key.is_some())
        || config.mcp.servers.values().any(|server| match &server.transport {
            McpTransportConfig::Command { env, .. } => !env.is_empty(),
            McpTransportConfig::Url { headers, .. } => !headers.is_empty(),
        })
        || config.sources.calendar.values().any(|calendar| match calendar {
            // Anyone who knows the address can read the calendar.
            CalendarConfig::Url(_) | CalendarConfig::CalDav { .. } => true,
            CalendarConfig::File(_) => false,
        })
}

#[cfg(unix)]
fn others_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
fn others_may_read(_: &Path) -> bool {
    false
}
