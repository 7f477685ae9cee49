//! `hob channel add telegram`: checks the token of a bot, writes it into the configuration file, and waits for the owner's first message.

use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, anyhow};
use hob_channels::telegram::{
    CHANNEL, PairingMessage, TelegramApi, TelegramBot, TelegramError, first_message_with,
};
use hob_channels::{SenderKey, new_code, open_channel_store, shown_code};
use hob_config::{Config, Environment, LocalSetting, write_local_settings};
use secrecy::ExposeSecret;

use super::blocking::blocking;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::secret_line::read_secret;
use crate::output::text::one_line;
use crate::settings;

const QUESTION: &str = "Token of the bot (write /newbot to @BotFather in Telegram to get one): ";

/// Whether to wait for the first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstMessage {
    Await,
    Skip,
}

pub async fn run(config: &Config, first_message: FirstMessage) -> Result<ExitCode> {
    let token = read_secret(QUESTION).await?;
    let settings = &config.channel.telegram;
    let api = TelegramApi::new(&settings.api_url, token.clone()).map_err(|reason| anyhow!(reason))?;
    let bot = {
        let _waiting = Spinner::start("asking Telegram");
        api.get_me().await?
    };
    let wanted = [
        LocalSetting::new("channel.telegram", "token", token.expose_secret()),
        LocalSetting::new("channel.telegram", "enabled", true),
    ];
    let file = write_local_settings(&Environment::from_process(), &wanted)?;
    output::line(format_args!("The bot @{} is in {file}.", one_line(&bot.username)))?;
    if settings.pairing && first_message == FirstMessage::Await {
        pair(config, &api, &bot).await?;
    }
    output::note("Start 'hob serve', or run 'hob reload' if it runs. Then write to the bot.");
    Ok(ExitCode::SUCCESS)
}

/// Approves the account that sends a code which only this terminal shows.
async fn pair(config: &Config, api: &TelegramApi, bot: &TelegramBot) -> Result<()> {
    let code = new_code();
    let (username, shown) = (one_line(&bot.username), shown_code(&code));
    output::line(format_args!(
        "To approve your account, open https://t.me/{username}?start={code} and press Start, or send {shown} to @{username}."
    ))?;
    output::note(
        "Waiting for that message. Press Ctrl-C to approve accounts later, with 'hob channel approve'.",
    );
    let received = {
        let _waiting = Spinner::start("waiting for your message");
        first_message_with(&code, api, bot).await
    };
    let PairingMessage { sender, name } = match received {
        Ok(received) => received,
        Err(TelegramError::Conflict { .. }) => {
            output::warning(
                "a running Hob receives the messages of this bot. Write to the bot and approve the code that it answers with.",
            );
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let store = open_channel_store(&settings::databases(config)?.hob)?.store;
    let approved = (sender.clone(), name.clone());
    blocking(move || {
        let (sender, name) = approved;
        store.approve_sender(SenderKey { channel: CHANNEL, sender: &sender }, &name, SystemTime::now())
    })
    .await?;
    output::line(format_args!("{} ({CHANNEL}:{sender}) is approved.", one_line(&name)))?;
    Ok(())
}
