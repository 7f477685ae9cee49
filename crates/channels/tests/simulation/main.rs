//! A messaging gateway on a simulated network that loses, delays and cuts. One seed decides everything that happens.

#![cfg(simulation)]

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::{SinkExt, StreamExt};
use hob_channels::{Channel, ChannelMessage, ChannelStatus, GatewayOptions, GatewayTimeouts};
use hob_channels::{HandlerResult, LiveReply, MessageHandler};
use hob_testkit::simulation::{CALLER, SimulatedFaults, for_each_seed, simulation};
use serde_json::json;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::{Error, Message};
use turmoil::net::{TcpListener, TcpStream};

const GATEWAY: &str = "gateway";
const PORT: u16 = 18789;

/// Messages while there are faults. There is one more afterwards.
const MESSAGES: usize = 40;

/// Far longer than it takes to notice a lost connection and to connect again.
const PATIENCE: Duration = Duration::from_secs(30);

fn options() -> GatewayOptions {
    let timeouts = GatewayTimeouts {
        open_within: Duration::from_secs(2),
        detect_within: Duration::from_millis(100),
        write_within: Duration::from_secs(1),
        confirm_within: Duration::from_secs(2),
        ping_every: Duration::from_millis(500),
        silent_for: Duration::from_millis(1_500),
    };
    GatewayOptions {
        reconnect_interval: Duration::from_millis(300),
        timeouts,
        ..GatewayOptions::new(format!("ws://{GATEWAY}:{PORT}/ws"))
    }
}

/// What the gateway has to deliver.
#[derive(Clone, Default)]
struct Mailbox {
    frames: Rc<RefCell<Vec<String>>>,
    is_calm: Rc<Cell<bool>>,
}

impl Mailbox {
    fn add(&self, number: usize) {
        let frame = json!({
            "channel": "telegram",
            "sender": "ann",
            "content": number.to_string(),
            "message_id": format!("id-{number}"),
            "conversation_id": "t1",
            "metadata": {},
        });
        self.frames.borrow_mut().push(frame.to_string());
    }
}

async fn serve(mailbox: Mailbox) -> turmoil::Result {
    let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT)).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        let mailbox = mailbox.clone();
        tokio::task::spawn_local(async move {
            // A client that leaves is no error of the gateway.
            _ = deliver(socket, &mailbox).await;
        });
    }
}

/// Sends every message from the first on, because the gateway does not know what arrived, and then those that are added.
async fn deliver(socket: TcpStream, mailbox: &Mailbox) -> Result<(), Error> {
    let mut socket = accept_async(socket).await?;
    let mut sent = 0;
    loop {
        let next = mailbox.frames.borrow().get(sent).cloned();
        if let Some(frame) = next {
            socket.send(Message::text(frame)).await?;
            sent += 1;
            continue;
        }
        // Reading answers the pings of the client.
        match timeout(Duration::from_millis(50), socket.next()).await {
            Ok(Some(frame)) => _ = frame?,
            Ok(None) => return Ok(()),
            Err(_) => {}
        }
    }
}

/// Keeps what it gets, and answers nothing.
#[derive(Clone, Default)]
struct Notebook(Arc<Mutex<Vec<String>>>);

impl Notebook {
    fn messages(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }
}

#[async_trait]
impl MessageHandler for Notebook {
    async fn handle(&self, message: &ChannelMessage, _: &dyn LiveReply) -> HandlerResult {
        sleep(Duration::from_millis(10)).await;
        self.0.lock().expect("no panic").push(message.content.clone());
        Ok(None)
    }
}

/// Hob: listens while messages are sent, and checks what arrived.
async fn listen(mailbox: Mailbox) -> turmoil::Result {
    let channel = Channel::gateway(options()).expect("an address");
    let notebook = Notebook::default();
    channel.on_message(Arc::new(notebook.clone()));
    channel.connect().await;
    for number in 0..MESSAGES {
        mailbox.add(number);
        sleep(Duration::from_millis(250)).await;
    }
    mailbox.is_calm.set(true);
    mailbox.add(MESSAGES);
    let all_arrived = async {
        while notebook.messages().len() <= MESSAGES {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let arrived = timeout(PATIENCE, all_arrived).await;
    assert!(arrived.is_ok(), "messages are missing: {:?}", notebook.messages());
    // Time for a message to arrive twice.
    sleep(Duration::from_secs(3)).await;
    let expected: Vec<String> = (0..=MESSAGES).map(|number| number.to_string()).collect();
    assert_eq!(notebook.messages(), expected, "each message once, in order");
    assert_eq!(channel.status(), ChannelStatus::Connected);
    channel.close().await;
    Ok(())
}

#[test]
fn every_message_arrives_once_and_in_order_on_a_bad_network() {
    for_each_seed(|seed| {
        // The pauses between two attempts to connect are random.
        fastrand::seed(seed);
        let mailbox = Mailbox::default();
        let mut sim = simulation(seed);
        let of_gateway = mailbox.clone();
        sim.host(GATEWAY, move || serve(of_gateway.clone()));
        sim.client(CALLER, listen(mailbox.clone()));
        let mut faults = SimulatedFaults::new(seed, [GATEWAY.to_owned()]);
        let mut has_ended = false;
        while !sim.step().expect("no host fails") {
            match (mailbox.is_calm.get(), has_ended) {
                (false, _) => _ = faults.step(&mut sim),
                (true, false) => {
                    faults.end(&mut sim);
                    has_ended = true;
                }
                (true, true) => {}
            }
        }
    });
}
