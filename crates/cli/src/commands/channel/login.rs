//! `hob channel login whatsapp`: installs the WhatsApp bridge, shows the QR code, and waits until it is scanned.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::channels;
use hob_channels::whatsapp::{LoginStep, login};
use hob_config::Config;

use crate::change_notice::{ChangedPart, tell_servers};
use crate::output;
use crate::output::progress::Spinner;
use crate::output::qr;

const HOW: &str = "On your phone: WhatsApp → Settings → Linked devices → Link a device. Then scan this code:";

pub async fn run(config: &Config, home: &Path) -> Result<ExitCode> {
    let installer = channels::installer(home);
    if !installer.is_complete() {
        let _waiting = Spinner::start("installing the WhatsApp bridge with npm");
        installer.install().await?;
    }
    output::note("connecting to WhatsApp");
    let mut is_noted = false;
    login(&channels::program(config, home), |step| match step {
        LoginStep::Scan { data } => show(&data),
        LoginStep::Waiting if is_noted => {}
        LoginStep::Waiting => {
            is_noted = true;
            output::note("WhatsApp is not reachable yet; retrying. Press Ctrl-C to stop");
        }
    })
    .await?;
    tell_servers(ChangedPart::Channels);
    output::line("WhatsApp is linked.")?;
    if !config.channel.whatsapp.enabled {
        output::note(
            "Set 'enabled = true' under [channel.whatsapp] in config.toml, then start 'hob serve'. A server that runs without \
             channels needs only 'hob reload'.",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// A code that cannot be drawn is not fatal: WhatsApp sends another one soon.
fn show(data: &str) {
    let shown = match qr::render(data) {
        Ok(code) => output::line(format_args!("{HOW}\n\n{code}")),
        Err(error) => {
            output::warning(format_args!("cannot draw the QR code: {error}"));
            Ok(())
        }
    };
    if let Err(error) = shown {
        tracing::debug!(%error, "the code cannot be shown");
    }
}
