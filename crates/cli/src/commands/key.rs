//! `hob key`: named API keys. Needs no server: the commands use the database directly, and a running server notices the change.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use hob_app::Databases;
use hob_app::startup::keys::key_service;
use hob_config::{Config, EngineName};
use hob_core::Zone;
use hob_keys::limits::dollars;
use hob_keys::{
    ApiKey, AuditActor, CreatedKey, KeyError, KeyName, KeyPatch, KeyRole, KeyService, KeyStatus, NewKey,
    QuotaUsage, Unit,
};
use jiff::Timestamp;
use serde_json::json;

use crate::args::{KeyChangeArgs, KeyCommand, KeyCreateArgs};
use crate::change_notice::{ChangedPart, tell_servers};
use crate::commands::{block_on, memory};
use crate::output;
use crate::output::OutputFormat;
use crate::output::table::{self, Column, print_facts};
use crate::output::text::one_line;
use crate::output::time;
use crate::settings;

const COLUMNS: [Column; 6] = [
    Column::Words("KEY"),
    Column::Words("ROLE"),
    Column::Words("STATUS"),
    Column::Words("MODELS"),
    Column::Words("LIMITS"),
    Column::Words("EXPIRES"),
];

pub fn run(command: KeyCommand) -> Result<ExitCode> {
    let config = settings::load()?;
    let databases = settings::databases(&config)?;
    let keys = key_service(&config, databases.hob.clone());
    let is_change = !matches!(command, KeyCommand::List { .. } | KeyCommand::Show { .. });
    block_on(async {
        match command {
            KeyCommand::Create(args) => {
                let format: OutputFormat = args.json.into();
                let collections = args.memory.clone().unwrap_or_default();
                create(&keys, args).await?;
                if format == OutputFormat::Text {
                    output::note("From now on, requests from other machines need a valid key.");
                    warn_of_empty(&config, databases, collections).await;
                }
            }
            KeyCommand::Change(args) => change(&keys, args).await?,
            KeyCommand::List { json } => list(&keys, json.into()).await?,
            KeyCommand::Show { name, json } => show(&keys, &name, json.into()).await?,
            KeyCommand::Disable(args) => {
                let key = keys.disable(&KeyName::parse(&args.name)?, AuditActor::terminal()).await?;
                print_changed(&key, args.json, "is disabled.")?;
            }
            KeyCommand::Enable(args) => {
                let key = keys.enable(&KeyName::parse(&args.name)?, AuditActor::terminal()).await?;
                print_changed(&key, args.json, &enabled(&key, Timestamp::now()))?;
            }
            KeyCommand::Revoke(args) => {
                let key = keys.revoke(&KeyName::parse(&args.name)?, AuditActor::terminal()).await?;
                print_changed(&key, args.json, "is revoked.")?;
            }
            KeyCommand::Rotate { name, overlap, json } => {
                let overlap = Duration::from_secs(overlap);
                let rotated = keys.rotate(&KeyName::parse(&name)?, overlap, AuditActor::terminal()).await?;
                print_secret(&rotated, json.into())?;
                if let Some(until) = rotated.key.previous_until {
                    output::note(format_args!(
                        "The old secret is valid until {}.",
                        time::in_full(until, &Zone::system())
                    ));
                }
            }
        }
        if is_change {
            tell_servers(ChangedPart::Keys);
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn create(keys: &Arc<KeyService>, args: KeyCreateArgs) -> Result<()> {
    let format = args.json.into();
    let names =
        |engines: Vec<EngineName>| engines.into_iter().map(|engine| engine.as_str().to_owned()).collect();
    let rules = KeyPatch {
        models: args.models.map(Some),
        engines: args.engines.map(names).map(Some),
        cloud: args.cloud.then_some(true),
        reach: args.reach,
        tools: args.tools.map(Some),
        memory: args.memory.map(Some),
        requests_per_minute: args.requests_per_minute.map(Some),
        tokens_per_minute: args.tokens_per_minute.map(Some),
        parallel: args.parallel.map(Some),
        budgets: Some(args.budget),
        expires: args.expires.map(Some),
    };
    let new = NewKey { name: KeyName::parse(&args.name)?, role: args.role, rules };
    match keys.create(new, AuditActor::terminal()).await {
        Ok(created) => print_secret(&created, format),
        Err(error @ KeyError::NameTaken { .. }) => Err(taken(keys, &error, &args.name).await),
        Err(error) => Err(error.into()),
    }
}

/// Warns of collections without documents, because their names are probably misspelt.
async fn warn_of_empty(config: &Config, databases: Databases, collections: Vec<String>) {
    if collections.is_empty() {
        return;
    }
    for name in memory::empty_collections(config, databases, collections).await {
        let name = one_line(&name);
        output::warning(format_args!(
            "the collection '{name}' has no documents yet. 'hob memory index PATH --collection {name}' adds some"
        ));
    }
}

/// What to do about a name that is taken: the user may only want another secret.
async fn taken(keys: &Arc<KeyService>, error: &KeyError, name: &str) -> anyhow::Error {
    let listed = keys.list().await.unwrap_or_default();
    match listed.iter().find(|key| key.name.as_str() == name).map(|key| key.status) {
        Some(KeyStatus::Active | KeyStatus::Disabled) => anyhow!(
            "{error}. Or give the key a new secret with 'hob key rotate {name}', or change it with 'hob key change {name}'."
        ),
        Some(KeyStatus::Revoked) => anyhow!("{error}. The key is revoked, which is final."),
        None => anyhow!("{error}."),
    }
}

async fn change(keys: &Arc<KeyService>, args: KeyChangeArgs) -> Result<()> {
    let name = KeyName::parse(&args.name)?;
    let memory = match args.memory {
        Some(names) => Some(changed_memory(keys, &name, names).await?),
        None => None,
    };
    let patch = KeyPatch {
        models: args.models.map(unless_all),
        engines: args.engines.map(unless_all),
        cloud: args.cloud,
        reach: args.reach,
        tools: args.tools.map(unless_all),
        memory,
        requests_per_minute: args.requests_per_minute.map(|limit| limit.0),
        tokens_per_minute: args.tokens_per_minute.map(|limit| limit.0),
        parallel: args.parallel.map(|limit| limit.0),
        budgets: (!args.budget.is_empty())
            .then(|| args.budget.into_iter().filter_map(|budget| budget.0).collect()),
        expires: args.expires.map(|when| Some(when).filter(|when| when != "never")),
    };
    if patch == KeyPatch::default() {
        bail!(
            "there is nothing to change. Add an option, such as --expires 90d; see 'hob key change --help'."
        );
    }
    let key = keys.patch(&name, patch, AuditActor::terminal()).await?;
    print_changed(&key, args.json, "is changed.")
}

/// The names, or `None` for no limit.
fn unless_all(names: Vec<String>) -> Option<Vec<String>> {
    Some(names).filter(|names| !names.iter().any(|name| name == "all"))
}

/// The collections, or `None` for what the role has without a list: none for a member, all for an owner.
async fn changed_memory(
    keys: &Arc<KeyService>,
    name: &KeyName,
    names: Vec<String>,
) -> Result<Option<Vec<String>>> {
    let [word] = &names[..] else { return Ok(Some(names)) };
    let role = match word.as_str() {
        "none" => KeyRole::Member,
        "all" => KeyRole::Owner,
        _ => return Ok(Some(names)),
    };
    let (key, _) = keys.show(name).await?;
    if key.role != role {
        bail!("--memory {word} is for a key with the role {}. Name the collections instead.", role.as_str());
    }
    Ok(None)
}

/// The secret goes to stdout, so that it can be piped. It is not stored.
fn print_secret(created: &CreatedKey, format: OutputFormat) -> Result<()> {
    let CreatedKey { key, secret } = created;
    match format {
        OutputFormat::Json => {
            let mut shown = json!(key);
            shown["secret"] = json!(secret.expose());
            output::json(&shown)?;
        }
        OutputFormat::Text => {
            output::line(secret.expose())?;
            output::note(format_args!(
                "This is the secret of the key '{}'. Hob stores only its hash, so copy it now.",
                key.name
            ));
        }
    }
    Ok(())
}

fn print_changed(key: &ApiKey, json: bool, words: &str) -> Result<()> {
    match json {
        true => output::json(key)?,
        false => output::line(format_args!("The key '{}' {words}", key.name))?,
    }
    Ok(())
}

/// What `hob key enable` did; completes "The key … ".
fn enabled(key: &ApiKey, now: Timestamp) -> String {
    match key.is_expired(now) {
        true => format!(
            "is enabled, but it has expired. Set a new date with 'hob key change {} --expires 90d'.",
            key.name
        ),
        false => "is valid again.".to_owned(),
    }
}

async fn list(keys: &Arc<KeyService>, format: OutputFormat) -> Result<()> {
    let keys = keys.list().await?;
    if format == OutputFormat::Json {
        return Ok(output::json(&keys)?);
    }
    if keys.is_empty() {
        output::note("There are no keys yet. Create one with 'hob key create NAME'.");
        return Ok(());
    }
    let now = Timestamp::now();
    Ok(table::print(&COLUMNS, &keys.iter().map(|key| row(key, now)).collect::<Vec<_>>())?)
}

fn row(key: &ApiKey, now: Timestamp) -> Vec<String> {
    vec![
        key.name.to_string(),
        key.role.as_str().to_owned(),
        status(key, now).to_owned(),
        key.rules.models.as_ref().map_or_else(|| "all".to_owned(), |models| one_line(&models.join(", "))),
        Some(limits(key).join(", ")).filter(|limits| !limits.is_empty()).unwrap_or_else(|| "-".to_owned()),
        key.expires_at.map_or_else(|| "never".to_owned(), |at| time::in_full(at, &Zone::system())),
    ]
}

fn status(key: &ApiKey, now: Timestamp) -> &'static str {
    match key.status {
        KeyStatus::Active if key.is_expired(now) => "expired",
        status => status.as_str(),
    }
}

fn limits(key: &ApiKey) -> Vec<String> {
    let parallel = key.rules.parallel.map(|parallel| format!("{parallel} at once"));
    key.rules.quotas().into_iter().map(|quota| quota.to_string()).chain(parallel).collect()
}

async fn show(keys: &Arc<KeyService>, name: &str, format: OutputFormat) -> Result<()> {
    let (key, usage) = keys.show(&KeyName::parse(name)?).await?;
    if format == OutputFormat::Json {
        let mut shown = json!(key);
        shown["usage"] = json!(usage);
        return Ok(output::json(&shown)?);
    }
    print_facts(&facts(&key))?;
    for usage in &usage {
        print_facts(&[("Used", used(usage))])?;
    }
    Ok(())
}

fn facts(key: &ApiKey) -> Vec<(&'static str, String)> {
    let rules = &key.rules;
    let list = |names: &Option<Vec<String>>| {
        names.as_ref().map_or_else(|| "all".to_owned(), |names| one_line(&names.join(", ")))
    };
    let zone = Zone::system();
    let facts = [
        ("Key", Some(key.name.to_string())),
        ("Role", Some(key.role.as_str().to_owned())),
        ("Status", Some(status(key, Timestamp::now()).to_owned())),
        ("Models", Some(list(&rules.models))),
        ("Engines", Some(list(&rules.engines))),
        ("Cloud", Some(if rules.cloud { "yes" } else { "no" }.to_owned())),
        ("Reach", Some(rules.reach.as_str().to_owned())),
        ("Tools", Some(list(&rules.tools))),
        ("Memory", Some(collections(key))),
        ("Limits", Some(limits(key).join(", ")).filter(|limits| !limits.is_empty())),
        ("Created", Some(time::in_full(key.created_at, &zone))),
        ("Expires", key.expires_at.map(|at| time::in_full(at, &zone))),
        (
            "Old secret",
            key.previous_until.map(|until| format!("valid until {}", time::in_full(until, &zone))),
        ),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The collections that the key may read.
fn collections(key: &ApiKey) -> String {
    match (&key.rules.memory, key.role) {
        (Some(names), _) => one_line(&names.join(", ")),
        (None, KeyRole::Owner) => "all".to_owned(),
        (None, KeyRole::Member) => "none".to_owned(),
    }
}

fn used(usage: &QuotaUsage) -> String {
    let amount = match usage.quota.unit {
        Unit::NanoDollars => format!("{} USD", dollars(usage.used)),
        Unit::Tokens => format!("{} tokens", usage.used),
        Unit::Requests => format!("{} requests", usage.used),
    };
    format!("{amount} of {}, until {}", usage.quota, time::in_full(usage.resets_at, &Zone::system()))
}

#[cfg(test)]
mod tests {
    use hob_keys::KeyRules;

    use super::*;

    #[test]
    fn an_enabled_key_that_has_expired_is_not_called_valid() {
        let now = Timestamp::UNIX_EPOCH;
        let mut key = ApiKey {
            id: "1".into(),
            name: KeyName::parse("ana").expect("a name"),
            role: KeyRole::Member,
            status: KeyStatus::Active,
            rules: KeyRules::of(KeyRole::Member),
            created_at: now,
            expires_at: None,
            previous_until: None,
        };
        assert_eq!(enabled(&key, now), "is valid again.");
        key.expires_at = Some(now);
        assert_eq!(
            enabled(&key, now),
            "is enabled, but it has expired. Set a new date with 'hob key change ana --expires 90d'."
        );
    }
}
