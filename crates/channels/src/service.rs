//! The service of all channels: sends, lists, reports, and answers incoming messages. Knows no configuration file, and nothing of how
//! a question is answered.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::join_all;
use hob_core::{Ask, EventBus};
use hob_db::DbResult;
use hob_process::LockFile;
use parking_lot::Mutex;

use crate::auto_reply::{ReplyHandler, ReplyRules};
use crate::blocking::blocking;
use crate::channel::Channel;
use crate::email::{self, EmailOptions};
use crate::gateway::client::GatewayOptions;
use crate::message_queue::MessageHandler;
use crate::pairing::normalized_code;
use crate::seen_messages::{RecentMessages, SeenMessages};
use crate::sharing::ChannelSharing;
use crate::store::{ApprovedSender, ChannelStore, PendingSender, RecentLine, ThreadKey};
use crate::stored_messages::StoredMessages;
use crate::telegram::{self, TelegramOptions};
use crate::types::{ChannelError, ChannelReport, ChannelStatus};
use crate::whatsapp::{self, LinkCode, WhatsappOptions};

/// The options of a [`ChannelService`].
#[derive(Default)]
pub struct ChannelOptions {
    /// `None` if no gateway is used.
    pub gateway: Option<GatewayOptions>,
    /// `None` if WhatsApp is not used.
    pub whatsapp: Option<WhatsappOptions>,
    /// `None` if Telegram is not used, or only through the gateway.
    pub telegram: Option<TelegramOptions>,
    /// `None` if e-mail is not used.
    pub email: Option<EmailOptions>,
    /// `None` if messages are not answered.
    pub reply_rules: Option<ReplyRules>,
    /// `None` if nothing can be saved.
    pub store: Option<Arc<dyn ChannelStore>>,
    /// What the processes that share the database have in common. `None` if only one process uses it at a time.
    pub sharing: Option<ChannelSharing>,
    /// The file that the one process that answers messages locks. `None` if there is only one process, or `sharing` decides.
    pub lock: Option<PathBuf>,
    /// Gets the events of the channels.
    pub events: EventBus,
}

/// All channels.
pub struct ChannelService {
    gateway: Option<Channel>,
    whatsapp: Option<Channel>,
    telegram: Option<Channel>,
    email: Option<Channel>,
    /// The code that links an account to WhatsApp.
    link_code: LinkCode,
    reply_rules: Option<ReplyRules>,
    store: Option<Arc<dyn ChannelStore>>,
    lock_path: Option<PathBuf>,
    /// Held while this process is the one that answers.
    lock: Mutex<Option<LockFile>>,
}

impl ChannelService {
    /// Creates the channels. Connects none.
    pub fn new(options: ChannelOptions) -> Result<Self, ChannelError> {
        let ChannelOptions { gateway, whatsapp, telegram, email, reply_rules, store, sharing, lock, events } =
            options;
        let seen_messages: Arc<dyn SeenMessages> = match store.clone() {
            Some(store) => Arc::new(StoredMessages::new(store, sharing.is_some())),
            None => Arc::new(RecentMessages::default()),
        };
        let link_code = LinkCode::default();
        let mut direct_channels = vec![whatsapp::CHANNEL];
        direct_channels.extend(telegram.is_some().then_some(telegram::CHANNEL));
        direct_channels.extend(email.is_some().then_some(email::CHANNEL));
        let gateway = gateway.map(|options| {
            let (events, seen_messages) = (events.clone(), Arc::clone(&seen_messages));
            let sharing = sharing.clone();
            Channel::gateway(GatewayOptions { events, seen_messages, sharing, direct_channels, ..options })
        });
        let telegram = telegram.map(|options| {
            let (events, seen_messages) = (events.clone(), Arc::clone(&seen_messages));
            Channel::telegram(TelegramOptions { events, seen_messages, sharing: sharing.clone(), ..options })
        });
        let whatsapp = whatsapp.map(|options| {
            let (events, seen_messages) = (events.clone(), Arc::clone(&seen_messages));
            let (link_code, sharing) = (link_code.clone(), sharing.clone());
            Channel::whatsapp(WhatsappOptions { events, seen_messages, sharing, link_code, ..options })
        });
        let email = email.map(|options| {
            let (events, seen_messages) = (events.clone(), Arc::clone(&seen_messages));
            let (store, sharing) = (store.clone(), sharing.clone());
            Channel::email(EmailOptions { events, seen_messages, store, sharing, ..options })
        });
        Ok(ChannelService {
            gateway: gateway.transpose()?,
            whatsapp,
            telegram: telegram.transpose()?,
            email,
            link_code,
            reply_rules,
            store,
            lock_path: lock,
            lock: Mutex::default(),
        })
    }

    /// The store of messages and senders; `None` if nothing can be saved.
    pub fn store(&self) -> Option<Arc<dyn ChannelStore>> {
        self.store.clone()
    }

    fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.gateway.iter().chain(&self.whatsapp).chain(&self.telegram).chain(&self.email)
    }

    /// Sends a message to a target, as [`Self::resolve_target`] understands it. Success means that the channel accepted it. Dropping the
    /// future stops the attempt.
    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        let target = self.resolve_target(channel, conversation_id).await?;
        let direct = self.direct_for(&target).map(|(_, direct)| direct);
        let sender = match direct.or(self.gateway.as_ref()) {
            Some(sender) => sender,
            None if self.channels().next().is_none() => return Err(ChannelError::NotConfigured),
            None => {
                let known: Vec<&str> = self.reports().into_iter().map(|(name, _)| name).collect();
                let reason = format!("there is no channel '{channel}'; there is {}", known.join(", "));
                return Err(ChannelError::Invalid { reason });
            }
        };
        sender.send(&target, content, conversation_id).await?;
        self.note_sent(&target, content, conversation_id).await;
        Ok(())
    }

    /// The channel that Hob connects to itself and that a target is on. All other targets are the gateway's, which may have its own
    /// WhatsApp, Telegram and e-mail.
    fn direct_for(&self, target: &str) -> Option<(&'static str, &Channel)> {
        let is_ours = |name: &str| match name {
            whatsapp::CHANNEL => whatsapp::is_ours(target),
            telegram::CHANNEL => telegram::is_ours(target),
            email::CHANNEL => email::is_ours(target),
            _ => false,
        };
        // Without a gateway, the channel says what is wrong with its recipient.
        let is_named = |name: &str| {
            self.gateway.is_none() && target.split_once(':').is_some_and(|(channel, _)| channel == name)
        };
        self.direct().find(|(name, _)| is_ours(name) || is_named(name))
    }

    /// Refuses a recipient that a channel cannot have. Accepts a channel without a recipient, and every target of the gateway.
    fn check_recipient(&self, target: &str, conversation_id: Option<&str>) -> Result<(), ChannelError> {
        let conversation_id = conversation_id.filter(|id| !id.is_empty());
        match self.direct_for(target) {
            Some((name, channel)) if target != name || conversation_id.is_some() => {
                let checked = channel.check_recipient(target, conversation_id);
                checked.map_err(|failure| failure.explain(target))
            }
            _ => Ok(()),
        }
    }

    /// The target with its recipient: Telegram or e-mail without one, and without a conversation, means its only approved sender. Targets
    /// of the gateway stay as they are.
    pub async fn resolve_target(
        &self,
        target: &str,
        conversation_id: Option<&str>,
    ) -> Result<String, ChannelError> {
        self.check_recipient(target, conversation_id)?;
        let has_conversation = conversation_id.is_some_and(|id| !id.is_empty());
        let bare = self.direct_for(target).filter(|(name, _)| *name == target && !has_conversation);
        let Some((name, channel)) = bare else { return Ok(target.to_owned()) };
        let Err(missing) = channel.check_recipient(name, None) else { return Ok(target.to_owned()) };
        // WhatsApp has no approved senders.
        if name == whatsapp::CHANNEL {
            return Err(missing.explain(target));
        }
        let approved = self.approved_senders().await.map_err(|error| ChannelError::Undelivered {
            channel: target.to_owned(),
            reason: error.to_string(),
        })?;
        let approved: Vec<ApprovedSender> =
            approved.into_iter().filter(|sender| sender.channel == name).collect();
        let count = match approved.as_slice() {
            [only] => return Ok(format!("{name}:{}", only.sender)),
            [] => "no approved sender".to_owned(),
            several => format!("{} approved senders", several.len()),
        };
        Err(ChannelError::Invalid { reason: format!("{name} has {count}, so {missing}") })
    }

    /// Saves a message that was sent, for the list of messages. [`Self::send`] does that itself. A failure is only logged: the message is
    /// sent.
    pub async fn note_sent(&self, channel: &str, content: &str, conversation_id: Option<&str>) {
        let Some(store) = self.store.clone() else { return };
        let (channel, content) = (channel.to_owned(), content.to_owned());
        let conversation = conversation_id.unwrap_or_default().to_owned();
        let noted = blocking(move || {
            let thread = ThreadKey { channel: &channel, conversation: &conversation };
            store.note_sent(thread, &content, SystemTime::now())
        });
        if let Some(Err(error)) = noted.await {
            tracing::warn!(
                %error,
                "a message was sent, but is not in the list of messages. 'hob doctor' checks the database"
            );
        }
    }

    /// The last messages in and out, newest first; empty if nothing is saved.
    pub async fn recent(&self, most: usize) -> DbResult<Vec<RecentLine>> {
        match self.store.clone() {
            // The program ends.
            Some(store) => blocking(move || store.recent(most)).await.unwrap_or(Ok(Vec::new())),
            None => Ok(Vec::new()),
        }
    }

    /// The senders who wait for an approval, oldest first; empty if nothing is saved.
    pub async fn pending_senders(&self) -> DbResult<Vec<PendingSender>> {
        match self.store.clone() {
            // The program ends.
            Some(store) => {
                blocking(move || store.pending_senders(SystemTime::now())).await.unwrap_or(Ok(Vec::new()))
            }
            None => Ok(Vec::new()),
        }
    }

    /// The approved senders; empty if nothing is saved.
    pub async fn approved_senders(&self) -> DbResult<Vec<ApprovedSender>> {
        match self.store.clone() {
            Some(store) => blocking(move || store.approved_senders()).await.unwrap_or(Ok(Vec::new())),
            None => Ok(Vec::new()),
        }
    }

    /// Approves the sender who got this code; `None` if the code is not valid.
    pub async fn approve(&self, typed: &str) -> DbResult<Option<ApprovedSender>> {
        let Some(store) = self.store.clone() else { return Ok(None) };
        let code = normalized_code(typed);
        let approved = blocking(move || store.approve_code(&code, SystemTime::now()));
        approved.await.unwrap_or(Ok(None))
    }

    /// How messages are answered, and who is trusted; `None` if they are not answered.
    pub fn rules(&self) -> Option<&ReplyRules> {
        self.reply_rules.as_ref()
    }

    /// The content of the QR code that links an account to WhatsApp, while it is to be scanned.
    pub fn link_code(&self) -> Option<String> {
        self.link_code.get()
    }

    /// The status of each channel by its name: `gateway`, `whatsapp`, `telegram` and `email`.
    pub fn reports(&self) -> Vec<(&'static str, ChannelReport)> {
        let gateway = self.gateway.as_ref().map(|channel| ("gateway", channel.report()));
        gateway.into_iter().chain(self.direct().map(|(name, channel)| (name, channel.report()))).collect()
    }

    /// The channels that Hob connects to itself, by their names.
    fn direct(&self) -> impl Iterator<Item = (&'static str, &Channel)> {
        let whatsapp = self.whatsapp.iter().map(|channel| (whatsapp::CHANNEL, channel));
        let telegram = self.telegram.iter().map(|channel| (telegram::CHANNEL, channel));
        whatsapp.chain(telegram).chain(self.email.iter().map(|channel| (email::CHANNEL, channel)))
    }

    /// The names that [`Self::send`] can reach.
    pub async fn list(&self) -> Result<Vec<String>, ChannelError> {
        let mut names = match &self.gateway {
            Some(gateway) => match gateway.list_channels().await {
                Ok(names) => names,
                // The others still work.
                Err(error) if self.direct().next().is_some() => {
                    tracing::warn!(
                        %error,
                        "the channels of the gateway are not listed. Check that it runs, and [channel] \
                         gateway_url and token"
                    );
                    Vec::new()
                }
                Err(error) => return Err(error),
            },
            None => Vec::new(),
        };
        for (direct, _) in self.direct() {
            if !names.iter().any(|name| name == direct) {
                names.push(direct.to_owned());
            }
        }
        Ok(names)
    }

    /// The worst status of all channels: `connected` means that all are.
    pub fn report(&self) -> ChannelReport {
        summary(self.channels().map(Channel::report).collect())
    }

    /// Connects, and answers incoming messages. If another process already does that, this one only sends.
    pub fn listen(&self, ask: &Arc<dyn Ask>) {
        match self.lock_path.as_deref().map_or(Claim::Ours(None), claim) {
            Claim::Taken => {
                tracing::warn!(
                    "another Hob of this home already answers messages; this one only sends. To answer here, \
                     stop the other, then restart this one"
                );
                return;
            }
            Claim::Ours(lock) => *self.lock.lock() = lock,
        }
        if let Some(rules) = &self.reply_rules {
            let handler = Arc::new(ReplyHandler::new(ask, rules.clone(), self.store.clone()));
            for channel in self.channels() {
                channel.on_message(Arc::clone(&handler) as Arc<dyn MessageHandler>);
            }
        }
        self.channels().for_each(Channel::start);
    }

    /// Disconnects. Messages that were received and not answered are answered after the next start.
    pub async fn close(&self) {
        join_all(self.channels().map(Channel::close)).await;
        *self.lock.lock() = None;
    }
}

/// Whether this process may answer messages.
enum Claim {
    Ours(Option<LockFile>),
    Taken,
}

/// Tries to lock the file. If that cannot be done at all, this process answers.
fn claim(path: &Path) -> Claim {
    let taken = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| LockFile::try_take(path));
    match taken {
        Ok(None) => Claim::Taken,
        Ok(lock) => Claim::Ours(lock),
        Err(error) => {
            tracing::debug!(%error, "cannot check whether another Hob answers messages");
            Claim::Ours(None)
        }
    }
}

fn summary(reports: Vec<ChannelReport>) -> ChannelReport {
    let gateway_url = reports.iter().map(|report| report.gateway_url.clone()).find(|url| !url.is_empty());
    let problems: Vec<String> = reports.iter().filter_map(|report| report.problem.clone()).collect();
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
        problem: (!problems.is_empty()).then(|| problems.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(status: ChannelStatus, gateway_url: &str, problem: Option<&str>) -> ChannelReport {
        ChannelReport { status, gateway_url: gateway_url.into(), problem: problem.map(str::to_owned) }
    }

    #[test]
    fn without_channels_the_status_is_not_configured() {
        let service = ChannelService::new(ChannelOptions::default()).expect("created");
        assert_eq!(service.report(), report(ChannelStatus::NotConfigured, "", None));
    }

    #[tokio::test]
    async fn a_recipient_that_the_channel_cannot_have_is_refused() {
        let program = whatsapp::WhatsappProgram {
            node: "node".into(),
            script: "none.js".into(),
            auth_dir: "none".into(),
        };
        let whatsapp = Some(WhatsappOptions::new(program));
        let service =
            ChannelService::new(ChannelOptions { whatsapp, ..ChannelOptions::default() }).expect("created");
        for (target, conversation, problem) in [
            ("whatsapp", None, "cannot send this message: the message needs a recipient"),
            ("whatsapp", Some("Ann"), "'Ann' is not a WhatsApp address"),
            ("whatsapp:Ann", None, "'whatsapp:Ann' is not a WhatsApp address"),
        ] {
            let refused = service.resolve_target(target, conversation).await.expect_err(target).to_string();
            assert!(refused.contains(&format!("{problem}. Write COUNTRYCODE+NUMBER@")), "{refused}");
            let unsent = service.send(target, "Dinner is ready.", conversation).await;
            assert!(matches!(unsent, Err(ChannelError::Invalid { .. })), "{target}: {unsent:?}");
        }
        let ann = "4915112345678@s.whatsapp.net";
        for (target, conversation) in [(ann, None), ("whatsapp", Some(ann)), ("pigeons", None)] {
            let resolved = service.resolve_target(target, conversation).await;
            assert_eq!(resolved.as_deref(), Ok(target));
        }
    }

    #[test]
    fn the_worst_status_is_reported() {
        let good = report(ChannelStatus::Connected, "ws://x", None);
        let bad = report(ChannelStatus::Error, "", Some("no node"));
        assert_eq!(summary(vec![good.clone(), bad]), report(ChannelStatus::Error, "ws://x", Some("no node")));
        assert_eq!(summary(vec![good.clone()]), good);
    }
}
