//! Messaging, if enabled: does the gateway answer, is WhatsApp linked, is the token of the Telegram bot valid.

use std::path::Path;
use std::time::Duration;

use hob_app::startup::channels;
use hob_channels::ChannelStatus;
use hob_config::Config;

use super::report::{CheckStatus, DoctorCheck};

/// A healthy gateway answers immediately.
const TIMEOUT: Duration = Duration::from_secs(5);

pub async fn check(config: &Config, home: &Path) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    if config.channel.enabled {
        checks.push(gateway(config).await);
    }
    if config.channel.whatsapp.enabled {
        checks.push(whatsapp(config, home));
    }
    if config.channel.telegram.enabled {
        checks.push(telegram(config).await);
    }
    checks
}

async fn gateway(config: &Config) -> DoctorCheck {
    const NAME: &str = "channel";
    let url = &config.channel.gateway_url;
    let client = match channels::gateway(&config.channel, None) {
        Ok(client) => client,
        Err(error) => {
            return DoctorCheck::new(NAME, CheckStatus::Warning, error.to_string())
                .advise("Correct [channel] gateway_url");
        }
    };
    let status = tokio::time::timeout(TIMEOUT, client.connect()).await;
    let problem = client.report().problem;
    client.close().await;
    match status {
        Ok(ChannelStatus::Connected) => {
            DoctorCheck::new(NAME, CheckStatus::Good, format!("the gateway at {url} answers"))
        }
        _ => {
            let silent = || format!("the gateway at {url} does not answer within {} s", TIMEOUT.as_secs());
            DoctorCheck::new(NAME, CheckStatus::Warning, problem.unwrap_or_else(silent))
                .advise("Start the gateway, correct [channel] gateway_url, or set [channel] enabled = false")
        }
    }
}

async fn telegram(config: &Config) -> DoctorCheck {
    const NAME: &str = "telegram";
    let silent = || Err(format!("Telegram does not answer within {} s", TIMEOUT.as_secs()));
    match tokio::time::timeout(TIMEOUT, channels::telegram_bot(config)).await.unwrap_or_else(|_| silent()) {
        Ok(bot) => DoctorCheck::new(
            NAME,
            CheckStatus::Good,
            format!("the token belongs to the bot @{}", bot.username),
        ),
        Err(problem) => DoctorCheck::new(NAME, CheckStatus::Warning, problem)
            .advise("Check the network, or get a token from @BotFather and run 'hob channel add telegram'"),
    }
}

fn whatsapp(config: &Config, home: &Path) -> DoctorCheck {
    const NAME: &str = "whatsapp";
    let session = channels::program(config, home).auth_dir;
    let is_linked = session.read_dir().is_ok_and(|mut files| files.next().is_some());
    if !channels::installer(home).is_complete() {
        DoctorCheck::new(NAME, CheckStatus::Warning, "the WhatsApp bridge is not installed")
            .advise("Install and link it with 'hob channel login whatsapp'")
    } else if !is_linked {
        DoctorCheck::new(NAME, CheckStatus::Warning, "no phone is linked")
            .advise("Link yours with 'hob channel login whatsapp'")
    } else {
        DoctorCheck::new(NAME, CheckStatus::Good, "linked; 'hob serve' connects to it")
    }
}
