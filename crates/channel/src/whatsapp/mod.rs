//! WhatsApp, through a subprocess that speaks it: started, watched, started again when it dies.

mod address;
mod event;
mod install;
mod jid;
mod link;
mod login;
mod outlet;
mod process;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hob_core::{ChannelError, ChannelReport, ChannelStatus, EventBus};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::inbox::{Handler, Inbox, InboxLimits, InboxParts};
use crate::ledger::{Ledger, Recent};
use crate::line::{Line, Outgoing, deliver};
use crate::standing::Standing;
use crate::state::Trigger;
use address::Manners;
use link::Link;
use outlet::Outlet;

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
    inbox: Inbox,
    outlet: Arc<Outlet>,
    link: Arc<Link>,
    events: EventBus,
    running: Mutex<Option<Running>>,
}

struct Running {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Whatsapp {
    pub fn new(options: WhatsappOptions) -> Self {
        let standing = Standing::default();
        let manners =
            Manners { name: options.assistant_name, has_own_number: options.assistant_has_own_number };
        let outlet = Arc::new(Outlet::new(manners.clone(), standing.clone(), options.confirm_within));
        let inbox = Inbox::new(InboxParts {
            line: Arc::clone(&outlet) as Arc<dyn Line>,
            ledger: options.ledger,
            events: options.events.clone(),
            limits: options.limits,
        });
        let link = Link {
            program: options.program,
            restart_delay: options.restart_delay,
            manners,
            standing,
            outlet: Arc::clone(&outlet),
            inbox: inbox.clone(),
        };
        let events = options.events;
        Whatsapp { inbox, outlet, link: Arc::new(link), events, running: Mutex::default() }
    }

    /// Gets every message that is meant for the assistant. All handlers are called for every message.
    pub fn on_message(&self, handler: Arc<dyn Handler>) {
        self.inbox.on_message(handler);
    }

    /// Starts the subprocess, without waiting for it to be connected. Does nothing when it runs already.
    pub fn start(&self) {
        let mut running = lock(&self.running);
        if running.as_ref().is_some_and(|running| !running.task.is_finished()) {
            return;
        }
        self.link.standing.note(Trigger::Connect);
        let stop = CancellationToken::new();
        let task = tokio::spawn(Arc::clone(&self.link).supervise(stop.clone()));
        *running = Some(Running { stop: stop.drop_guard(), task });
    }

    /// Starts the subprocess, and waits until it says that it is connected, or not.
    pub async fn connect(&self) -> ChannelStatus {
        self.start();
        self.link.standing.settled().await.status
    }

    /// Stops the subprocess.
    pub async fn disconnect(&self) {
        let running = lock(&self.running).take();
        if let Some(Running { stop, task }) = running {
            drop(stop);
            if let Err(error) = task.await {
                tracing::error!(%error, "the supervisor of the WhatsApp bridge failed");
            }
        }
        self.link.standing.note(Trigger::Disconnect);
    }

    /// Stops everything. Messages that were not answered stay in the ledger.
    pub async fn close(&self) {
        // First, so that a reply that is ready still finds its way.
        self.inbox.close().await;
        self.disconnect().await;
    }

    /// Sends a message. `channel` is an address, or `whatsapp` with the address as the conversation.
    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        let message = Outgoing::new(channel, content, conversation_id)?;
        deliver(self.outlet.as_ref(), &self.events, &message).await.map_err(|error| error.explain(channel))
    }

    pub fn status(&self) -> ChannelStatus {
        self.link.standing.get().status
    }

    pub fn report(&self) -> ChannelReport {
        let stand = self.link.standing.get();
        ChannelReport { status: stand.status, gateway_url: String::new(), trouble: stand.trouble }
    }
}

impl Drop for Whatsapp {
    fn drop(&mut self) {
        self.inbox.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
