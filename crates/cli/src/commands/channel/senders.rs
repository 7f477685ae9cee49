//! `hob channel approve`, `senders` and `remove-sender`. Need no server: they use the database, and a running server notices the change.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use hob_app::Databases;
use hob_channels::{ChannelStore, SenderKey, normalized_code, open_channel_store, shown_code};
use hob_config::Config;
use hob_core::Zone;
use serde_json::json;

use super::blocking::blocking;
use crate::commands::audit;
use crate::output;
use crate::output::OutputFormat;
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::output::time;
use crate::settings;

const COLUMNS: [Column; 4] =
    [Column::Words("SENDER"), Column::Words("NAME"), Column::Words("STATUS"), Column::Words("CODE")];

/// The store, and where changes are noted.
fn open(config: &Config) -> Result<(Arc<dyn ChannelStore>, Databases)> {
    let databases = settings::databases(config)?;
    Ok((open_channel_store(&databases.hob)?.store, databases))
}

pub async fn approve(config: &Config, typed: &str, format: OutputFormat) -> Result<ExitCode> {
    let ((store, databases), code) = (open(config)?, normalized_code(typed));
    let Some(approved) = blocking(move || store.approve_code(&code, SystemTime::now())).await? else {
        bail!(
            "the code '{}' is not valid: codes expire after an hour. 'hob channel senders' lists the valid ones",
            one_line(typed)
        );
    };
    let sender = format!("{}:{}", approved.channel, approved.sender);
    note(databases, "channel.approve", &sender).await?;
    match format {
        OutputFormat::Json => output::json(&json!({ "sender": sender, "name": approved.name }))?,
        OutputFormat::Text => {
            output::line(format_args!("{} ({}) is approved.", one_line(&approved.name), one_line(&sender)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn list(config: &Config, format: OutputFormat) -> Result<ExitCode> {
    let (store, _) = open(config)?;
    let (approved, pending) =
        blocking(move || Ok((store.approved_senders()?, store.pending_senders(SystemTime::now())?))).await?;
    if format == OutputFormat::Json {
        let approved = approved.iter().map(|one| {
            json!({ "sender": format!("{}:{}", one.channel, one.sender), "name": one.name, "approved": one.approved })
        });
        let pending = pending.iter().map(|one| {
            let sender = format!("{}:{}", one.channel, one.sender);
            json!({ "sender": sender, "name": one.name, "code": shown_code(&one.code), "expires": one.ends })
        });
        let (approved, pending): (Vec<_>, Vec<_>) = (approved.collect(), pending.collect());
        output::json(&json!({ "approved": approved, "waiting": pending }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if approved.is_empty() && pending.is_empty() {
        output::note("No sender is approved, and none waits.");
        return Ok(ExitCode::SUCCESS);
    }
    let zone = Zone::system();
    let approved = approved.into_iter().map(|one| {
        let since = time::in_full(one.approved.timestamp(), &zone);
        vec![format!("{}:{}", one.channel, one.sender), one.name, format!("approved {since}"), String::new()]
    });
    let pending = pending.into_iter().map(|one| {
        let sender = format!("{}:{}", one.channel, one.sender);
        vec![sender, one.name, "waits".to_owned(), shown_code(&one.code)]
    });
    table::print(&COLUMNS, &approved.chain(pending).collect::<Vec<_>>())?;
    Ok(ExitCode::SUCCESS)
}

pub async fn remove(config: &Config, sender: &str) -> Result<ExitCode> {
    let (channel, id) =
        sender.split_once(':').context("write the sender as CHANNEL:SENDER, such as telegram:12345")?;
    let ((store, databases), key) = (open(config)?, (channel.to_owned(), id.to_owned()));
    let removed = blocking(move || {
        let (channel, sender) = key;
        store.remove_sender(SenderKey { channel: &channel, sender: &sender })
    });
    if !removed.await? {
        bail!("{} is not approved. 'hob channel senders' lists the approved senders", one_line(sender));
    }
    note(databases, "channel.remove_sender", sender).await?;
    output::line(format_args!("{} is not answered anymore.", one_line(sender)))?;
    Ok(ExitCode::SUCCESS)
}

/// Enters a change into the audit log.
async fn note(databases: Databases, action: &'static str, sender: &str) -> Result<()> {
    let sender = sender.to_owned();
    Ok(tokio::task::spawn_blocking(move || audit::note(&databases, action, &sender)).await?)
}
