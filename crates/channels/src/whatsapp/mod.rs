//! WhatsApp, through a subprocess that speaks it: started, watched, started again when it dies.

mod event;
mod install;
mod jid;
mod login;
mod mention;
mod process;
mod sender;
mod supervisor;

use std::sync::Arc;
use std::time::Duration;

use hob_core::EventBus;

use crate::channel_base::Station;
use crate::inbox::{Handler, InboxLimits, InboxParts};
use crate::outgoing::Line;
use crate::seen_messages::{Ledger, Recent};
use crate::status::Standing;
use crate::types::{ChannelError, ChannelReport, ChannelStatus};
use mention::Manners;
use sender::Outlet;
use supervisor::Link;

pub use install::{InstallError, Installer};
pub use login::{LoginError, LoginStep, login};
pub use process::{NotStarted, Program};

/// The channel's name.
pub const CHANNEL: &str = "whatsapp";

/// Whether a name given to `send` is ours.
pub fn is_ours(channel: &str) -> bool {
    channel == CHANNEL || jid::is_jid(channel)
}

/// What the channel needs to know.
#[derive(Clone)]
pub struct WhatsappOptions {
    pub program: Program,
    pub assistant_name: String,
    pub assistant_has_own_number: bool,
    /// The first wait before a dead subprocess is started again; the next ones double.
    pub restart_delay: Duration,
    /// The longest wait for WhatsApp to take a message.
    pub confirm_within: Duration,
    pub limits: InboxLimits,
    pub events: EventBus,
    pub ledger: Arc<dyn Ledger>,
}

impl WhatsappOptions {
    pub fn new(program: Program) -> Self {
        WhatsappOptions {
            program,
            assistant_name: "Hob".to_owned(),
            assistant_has_own_number: false,
            restart_delay: Duration::from_secs(1),
            confirm_within: Duration::from_secs(30),
            limits: InboxLimits::default(),
            events: EventBus::new(),
            ledger: Arc::new(Recent::default()),
        }
    }
}

/// The channel. Its subprocess stops when this is dropped; [`Self::close`] also waits for that.
pub struct Whatsapp {
    station: Station,
    link: Arc<Link>,
}

impl Whatsapp {
    pub fn new(options: WhatsappOptions) -> Self {
        let standing = Standing::default();
        let manners =
            Manners { name: options.assistant_name, has_own_number: options.assistant_has_own_number };
        let outlet = Arc::new(Outlet::new(manners.clone(), standing.clone(), options.confirm_within));
        let parts = InboxParts {
            line: Arc::clone(&outlet) as Arc<dyn Line>,
            ledger: options.ledger,
            events: options.events,
            limits: options.limits,
        };
        let station = Station::new(parts, standing.clone());
        let link = Link {
            program: options.program,
            restart_delay: options.restart_delay,
            manners,
            standing,
            outlet,
            inbox: station.inbox().clone(),
        };
        Whatsapp { station, link: Arc::new(link) }
    }

    /// Gets every message that is meant for the assistant. All handlers are called for every message.
    pub fn on_message(&self, handler: Arc<dyn Handler>) {
        self.station.on_message(handler);
    }

    /// Starts the subprocess, without waiting for it to be connected. Does nothing when it runs already.
    pub fn start(&self) {
        self.station.start(|stop| Arc::clone(&self.link).supervise(stop));
    }

    /// Starts the subprocess, and waits until it says that it is connected, or not.
    pub async fn connect(&self) -> ChannelStatus {
        self.start();
        self.station.settled().await
    }

    /// Stops the subprocess.
    pub async fn disconnect(&self) {
        self.station.disconnect().await;
    }

    /// Stops everything. Messages that were not answered stay in the ledger.
    pub async fn close(&self) {
        self.station.close().await;
    }

    /// Sends a message. `channel` is an address, or `whatsapp` with the address as the conversation.
    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        self.station.send(channel, content, conversation_id).await
    }

    pub fn status(&self) -> ChannelStatus {
        self.station.status()
    }

    pub fn report(&self) -> ChannelReport {
        self.station.report("")
    }
}
