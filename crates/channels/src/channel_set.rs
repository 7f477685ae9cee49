//! The channels together: the name in a message decides which of them sends it.

use std::sync::Arc;

use crate::gateway::client::GatewayClient;
use crate::inbox::MessageHandler;
use crate::types::{ChannelError, ChannelReport, ChannelStatus};
use crate::whatsapp::{self, Whatsapp};

/// All channels.
#[derive(Default)]
pub(crate) struct ChannelSet {
    pub gateway: Option<GatewayClient>,
    pub whatsapp: Option<Whatsapp>,
}

impl ChannelSet {
    /// Gets the messages of all channels.
    pub fn on_message(&self, handler: &Arc<dyn MessageHandler>) {
        if let Some(gateway) = &self.gateway {
            gateway.on_message(Arc::clone(handler));
        }
        if let Some(whatsapp) = &self.whatsapp {
            whatsapp.on_message(Arc::clone(handler));
        }
    }

    /// Begins to listen everywhere, without waiting for any connection.
    pub fn start(&self) {
        if let Some(gateway) = &self.gateway {
            gateway.start();
        }
        if let Some(whatsapp) = &self.whatsapp {
            whatsapp.start();
        }
    }

    pub async fn close(&self) {
        let gateway = async {
            if let Some(gateway) = &self.gateway {
                gateway.close().await;
            }
        };
        let whatsapp = async {
            if let Some(whatsapp) = &self.whatsapp {
                whatsapp.close().await;
            }
        };
        tokio::join!(gateway, whatsapp);
    }

    fn reports(&self) -> Vec<ChannelReport> {
        let gateway = self.gateway.iter().map(GatewayClient::report);
        gateway.chain(self.whatsapp.iter().map(Whatsapp::report)).collect()
    }

    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        match (&self.whatsapp, &self.gateway) {
            (Some(ours), _) if whatsapp::is_ours(channel) => {
                ours.send(channel, content, conversation_id).await
            }
            // The gateway may have a WhatsApp of its own.
            (_, Some(gateway)) => gateway.send(channel, content, conversation_id).await,
            (Some(_), None) => {
                let reason =
                    format!("there is no channel '{channel}'; without a gateway there is only WhatsApp");
                Err(ChannelError::Invalid { reason })
            }
            (None, None) => Err(ChannelError::NotConfigured),
        }
    }

    pub async fn list(&self) -> Result<Vec<String>, ChannelError> {
        let mut names = match &self.gateway {
            Some(gateway) => match gateway.list_channels().await {
                Ok(names) => names,
                // The other channel is still there.
                Err(error) if self.whatsapp.is_some() => {
                    tracing::warn!(%error, "the gateway's channels are left out");
                    Vec::new()
                }
                Err(error) => return Err(error),
            },
            None => Vec::new(),
        };
        if self.whatsapp.is_some() && !names.iter().any(|name| name == whatsapp::CHANNEL) {
            names.push(whatsapp::CHANNEL.to_owned());
        }
        Ok(names)
    }

    /// The report of the channel with the worst status: `connected` means all of them.
    pub fn report(&self) -> ChannelReport {
        summary(self.reports())
    }
}

fn summary(reports: Vec<ChannelReport>) -> ChannelReport {
    let gateway_url = reports.iter().map(|report| report.gateway_url.clone()).find(|url| !url.is_empty());
    let troubles: Vec<String> = reports.iter().filter_map(|report| report.trouble.clone()).collect();
    let status = reports.iter().map(|report| report.status).max_by_key(|status| match status {
        ChannelStatus::NotConfigured => 0,
        ChannelStatus::Connected => 1,
        ChannelStatus::Connecting => 2,
        ChannelStatus::Disconnected => 3,
        ChannelStatus::Error => 4,
    });
    ChannelReport {
        status: status.unwrap_or(ChannelStatus::NotConfigured),
        gateway_url: gateway_url.unwrap_or_default(),
        trouble: (!troubles.is_empty()).then(|| troubles.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(status: ChannelStatus, gateway_url: &str, trouble: Option<&str>) -> ChannelReport {
        ChannelReport { status, gateway_url: gateway_url.into(), trouble: trouble.map(str::to_owned) }
    }

    #[test]
    fn a_house_without_channels_is_not_configured() {
        assert_eq!(ChannelSet::default().report(), report(ChannelStatus::NotConfigured, "", None));
    }

    #[test]
    fn the_worst_off_is_what_is_shown() {
        let good = report(ChannelStatus::Connected, "ws://x", None);
        let bad = report(ChannelStatus::Error, "", Some("no node"));
        assert_eq!(summary(vec![good.clone(), bad]), report(ChannelStatus::Error, "ws://x", Some("no node")));
        assert_eq!(summary(vec![good.clone()]), good);
    }
}
