//! Callers that are not on this machine, for tests of what strangers may do. No test is skipped for want of one: where the
//! machine has no network, one is made, and where that cannot be done, the test fails and says what is missing.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Addresses for measurements between networks (RFC 2544), which no real network uses: four of them for each namespace.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const NETWORKS: u32 = 1 << 15;

/// An address of this machine that is not loopback. All its callers, also from this machine, count as coming from outside.
pub struct Outside {
    address: IpAddr,
    /// The network of that address, where it was made for the test.
    _made: Option<Namespace>,
}

impl Outside {
    /// The machine's own address, or that of a network made for the test.
    ///
    /// # Panics
    /// Where there is neither.
    pub fn find() -> Self {
        if let Some(address) = own_address() {
            return Outside { address, _made: None };
        }
        match Namespace::new() {
            Ok(made) => Outside { address: made.host.into(), _made: Some(made) },
            Err(reason) => panic!("this machine has no address but loopback, and none can be made: {reason}"),
        }
    }

    pub fn address(&self) -> IpAddr {
        self.address
    }
}

/// This machine's address on a network; `None` where it is on none. Nothing is sent.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

/// Another machine, as far as the network is concerned: a network namespace of Linux, joined to this one by a pair of virtual
/// devices. It is gone with its value.
pub struct Namespace {
    name: String,
    device: String,
    host: Ipv4Addr,
    remote: Ipv4Addr,
}

impl Namespace {
    /// Needs root, or a `sudo` that does not ask, and `ip` (iproute2).
    pub fn new() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let network = (process.wrapping_mul(8).wrapping_add(number) % NETWORKS) * 4;
        let address = |host: u32| Ipv4Addr::from_bits(FIRST.to_bits() + network + host);
        let namespace = Namespace {
            name: format!("hob-{process}-{number}"),
            device: format!("hv{process}x{number}"),
            host: address(1),
            remote: address(2),
        };
        let Namespace { name, device, host, remote } = &namespace;
        forget_the_dead();
        // What an earlier step has made goes with the value when a later one fails.
        ip(&["netns", "add", name])?;
        ip(&["link", "add", device, "type", "veth", "peer", "name", "remote", "netns", name])?;
        ip(&["addr", "add", &format!("{host}/30"), "dev", device])?;
        ip(&["link", "set", device, "up"])?;
        ip(&["-n", name, "addr", "add", &format!("{remote}/30"), "dev", "remote"])?;
        ip(&["-n", name, "link", "set", "remote", "up"])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// This machine's address, as seen from inside.
    pub fn host(&self) -> IpAddr {
        self.host.into()
    }

    /// The address that those inside come from.
    pub fn remote(&self) -> IpAddr {
        self.remote.into()
    }

    /// Runs `curl` inside, silently, and gives what it printed. Blocks.
    ///
    /// # Panics
    /// Where curl itself fails: a refusal of the server's is no failure.
    pub fn curl(&self, arguments: &[&str]) -> String {
        let curl = ["netns", "exec", &self.name, "curl", "--silent", "--show-error", "--max-time", "30"];
        let ran = run(&[&curl, arguments].concat()).expect("ip can be started");
        let told = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "curl from the namespace: {told}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // One that was never made cannot be deleted, which is as good.
        let _ = ip(&["link", "delete", &self.device]);
        let _ = ip(&["netns", "delete", &self.name]);
    }
}

/// Deletes the namespaces of tests that were killed.
fn forget_the_dead() {
    let Ok(names) = std::fs::read_dir("/run/netns") else { return };
    for name in names.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let process =
            name.strip_prefix("hob-").and_then(|rest| rest.split_once('-')).map(|(process, _)| process);
        if process.is_some_and(|process| !std::path::Path::new("/proc").join(process).exists()) {
            let _ = ip(&["netns", "delete", &name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let line = arguments.join(" ");
    let ran = run(arguments).map_err(|error| {
        format!("'ip {line}' cannot be started ({error}). Install iproute2, and run the tests as root or with a sudo that does not ask")
    })?;
    if ran.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&ran.stderr);
    Err(format!("'ip {line}' failed: {}. It needs root, or a sudo that does not ask", told.trim()))
}

fn run(arguments: &[&str]) -> std::io::Result<Output> {
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let mut command = match is_root {
        true => Command::new("ip"),
        false => Command::new("sudo"),
    };
    if !is_root {
        command.args(["--non-interactive", "ip"]);
    }
    command.args(arguments).stdin(Stdio::null()).output()
}
