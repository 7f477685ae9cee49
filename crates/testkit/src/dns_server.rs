//! A small DNS server with scripted answers (RFC 1035, RFC 2782), over UDP, and over TCP for long answers. It answers A, AAAA and SRV
//! questions, one per message. An alias (CNAME) is the whole answer: its target is not looked up.
//!
//! A message is a header of six big-endian 16-bit numbers (id, flags, and the counts of questions, answers, authorities and
//! additional records), then the question as it came, then the answers. A name is a list of labels, each after its length, that ends
//! with a length of zero; `0xc00c` in its place repeats the name of the question, which begins at byte 12. An answer is a name, a
//! type, a class, a time to live and the length of its data: four bytes for A, sixteen for AAAA, a name for CNAME, and for SRV
//! priority, weight, port and the name of the target.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
const TYPE_SRV: u16 = 33;
const CLASS_IN: u16 = 1;
const HEADER_BYTES: usize = 12;
const NAME_OF_QUESTION: u16 = 0xc00c;

/// A response, authoritative, with recursion.
const FLAGS: u16 = 0x8580;
const SERVER_FAILURE: u16 = 2;
const NO_SUCH_NAME: u16 = 3;

/// The answer is too long for UDP.
const TRUNCATED: u16 = 0x0200;

/// The longest answer over UDP.
const UDP_BYTES: usize = 512;

/// One record of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsRecord {
    Address(IpAddr),
    /// The name is another name of this one.
    Alias(String),
    Service {
        priority: u16,
        port: u16,
        target: String,
    },
}

/// How questions for a name are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsAnswer {
    Records(Vec<DnsRecord>),
    /// The server cannot tell (SERVFAIL).
    Failure,
    /// No answer comes.
    Silence,
}

impl DnsAnswer {
    /// These addresses.
    pub fn addresses(addresses: &[&str]) -> Self {
        let record = |text: &&str| DnsRecord::Address(text.parse().expect("the test gives proper addresses"));
        DnsAnswer::Records(addresses.iter().map(record).collect())
    }

    /// The name is another name of this one.
    pub fn alias(target: &str) -> Self {
        DnsAnswer::Records(vec![DnsRecord::Alias(target.to_owned())])
    }
}

/// The server. It stops when it is dropped.
pub struct DnsServer {
    address: SocketAddr,
    script: Arc<Script>,
    serving: JoinHandle<()>,
}

struct Script {
    answers: Mutex<HashMap<String, DnsAnswer>>,
    /// The time to live of all records, in seconds.
    ttl: u32,
    /// How many questions came.
    asked: watch::Sender<usize>,
}

impl Script {
    fn answers(&self) -> MutexGuard<'_, HashMap<String, DnsAnswer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DnsServer {
    /// Starts on a free port of the loopback address. Records may be used for `ttl` seconds.
    pub async fn start(ttl: u32) -> Self {
        let (socket, listener) = sockets().await;
        let address = socket.local_addr().expect("a bound socket has an address");
        let script = Arc::new(Script { answers: Mutex::default(), ttl, asked: watch::Sender::new(0) });
        let served = Arc::clone(&script);
        let serving = tokio::spawn(async move {
            tokio::join!(serve(socket, &served), serve_long_answers(listener, &served));
        });
        DnsServer { address, script, serving }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Questions for this name are answered so from now on. A name that was never set does not exist.
    pub fn set(&self, name: &str, answer: DnsAnswer) {
        self.script.answers().insert(name.to_owned(), answer);
    }

    /// Waits until this many more questions came.
    pub async fn asked_again(&self, times: usize) {
        let mut asked = self.script.asked.subscribe();
        let until = *asked.borrow() + times;
        // The sender lives as long as `self`.
        let _ = asked.wait_for(|asked| *asked >= until).await;
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Sockets of both kinds on one free port of the loopback address.
async fn sockets() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("a bound socket has an address");
        // The port can be taken by a socket of the other kind.
        if let Ok(listener) = TcpListener::bind(address).await {
            return (socket, listener);
        }
    }
    panic!("no port is free for both kinds of sockets")
}

async fn serve(socket: UdpSocket, script: &Script) {
    let mut buffer = [0; 4096];
    while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
        if let Some(reply) = answer(&buffer[..length], script) {
            // A client that went away needs no answer.
            let _ = socket.send_to(&if_short(reply), client).await;
        }
        script.asked.send_modify(|asked| *asked += 1);
    }
}

async fn serve_long_answers(listener: TcpListener, script: &Script) {
    while let Ok((client, _)) = listener.accept().await {
        // A client that went away needs no answer.
        let _ = answer_stream(client, script).await;
    }
}

/// Answers one message. Over TCP, its length comes first.
async fn answer_stream(mut client: TcpStream, script: &Script) -> std::io::Result<()> {
    let mut message = vec![0; usize::from(client.read_u16().await?)];
    client.read_exact(&mut message).await?;
    if let Some(reply) = answer(&message, script) {
        client.write_u16(u16::try_from(reply.len()).expect("a test has few records")).await?;
        client.write_all(&reply).await?;
    }
    Ok(())
}

/// The reply as it is, or without its records if it is too long for UDP.
fn if_short(mut reply: Vec<u8>) -> Vec<u8> {
    if reply.len() > UDP_BYTES {
        let (_, after) = read_name(&reply, HEADER_BYTES).expect("the reply repeats the question");
        reply.truncate(after + 4);
        reply[2..4].copy_from_slice(&(FLAGS | TRUNCATED).to_be_bytes());
        // No records.
        reply[6..8].fill(0);
    }
    reply
}

/// The reply to a message; `None` for silence.
fn answer(message: &[u8], script: &Script) -> Option<Vec<u8>> {
    let id = message.get(..2)?;
    let (name, after) = read_name(message, HEADER_BYTES)?;
    let kind = u16::from_be_bytes([*message.get(after)?, *message.get(after + 1)?]);
    let question = message.get(HEADER_BYTES..after + 4)?;
    let (code, records) = match script.answers().get(&name) {
        Some(DnsAnswer::Records(records)) => {
            let wanted = records.iter().filter(|record| [kind, TYPE_CNAME].contains(&record_type(record)));
            (0, wanted.cloned().collect())
        }
        Some(DnsAnswer::Failure) => (SERVER_FAILURE, Vec::new()),
        Some(DnsAnswer::Silence) => return None,
        None => (NO_SUCH_NAME, Vec::new()),
    };
    let mut reply = id.to_vec();
    let count = u16::try_from(records.len()).ok()?;
    for number in [FLAGS | code, 1, count, 0, 0] {
        reply.extend(number.to_be_bytes());
    }
    reply.extend(question);
    for record in &records {
        for number in [NAME_OF_QUESTION, record_type(record), CLASS_IN] {
            reply.extend(number.to_be_bytes());
        }
        reply.extend(script.ttl.to_be_bytes());
        let data = record_data(record);
        reply.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        reply.extend(data);
    }
    Some(reply)
}

fn record_type(record: &DnsRecord) -> u16 {
    match record {
        DnsRecord::Address(IpAddr::V4(_)) => TYPE_A,
        DnsRecord::Address(IpAddr::V6(_)) => TYPE_AAAA,
        DnsRecord::Alias(_) => TYPE_CNAME,
        DnsRecord::Service { .. } => TYPE_SRV,
    }
}

fn record_data(record: &DnsRecord) -> Vec<u8> {
    match record {
        DnsRecord::Address(IpAddr::V4(ip)) => ip.octets().to_vec(),
        DnsRecord::Address(IpAddr::V6(ip)) => ip.octets().to_vec(),
        DnsRecord::Alias(target) => name_data(target),
        DnsRecord::Service { priority, port, target } => {
            let mut data: Vec<u8> = Vec::new();
            for number in [*priority, 0, *port] {
                data.extend(number.to_be_bytes());
            }
            data.extend(name_data(target));
            data
        }
    }
}

fn name_data(name: &str) -> Vec<u8> {
    let mut data: Vec<u8> = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        data.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        data.extend(label.as_bytes());
    }
    data.push(0);
    data
}

/// The name at `at` in lower case without its final dot, and where it ends.
fn read_name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels: Vec<String> = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = message.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
}
