//! A real Dovecot with one mailbox, as a process of its own. `./dev test` installs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::imap_server::{MAIL_PASSWORD, MAIL_USER};
use crate::{TestCertificate, free_port, part, tied_command};

/// The path of the program.
const PROGRAM: &str = "HOB_TEST_DOVECOT";

/// Far longer than a start takes.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The server. It is killed with its value.
pub struct Dovecot {
    child: Child,
    directory: tempfile::TempDir,
    account: Account,
    port: u16,
}

impl Dovecot {
    /// Starts it with an empty mailbox, and waits until it takes connections. It speaks TLS only.
    pub fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("hob-dovecot-").tempdir().expect("a directory");
        let port = free_port();
        let root = directory.path();
        TestCertificate::generate().write(&root.join("cert.pem"), &root.join("key.pem"));
        for folder in ["mail/new", "mail/cur", "mail/tmp"] {
            fs::create_dir_all(root.join(folder)).expect("a directory");
        }
        let users = format!("{MAIL_USER}:{{PLAIN}}{MAIL_PASSWORD}\n");
        fs::write(root.join("users"), users).expect("a file");
        let account = Account::of_test();
        let config = root.join("dovecot.conf");
        fs::write(&config, configuration(root, port, &account)).expect("a file");
        account.own(root);
        let log = fs::File::create(root.join("output")).expect("a log");
        let child = account
            .command(&part(PROGRAM))
            .args(["-F", "-c"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("started");
        let mut server = Dovecot { child, directory, account, port };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&mut self) {
        let since = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.child.try_wait().expect("a process");
            let is_late = since.elapsed() > START_LIMIT;
            assert!(ended.is_none() && !is_late, "Dovecot does not start:\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the server wrote.
    pub fn log(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.directory.path().join(name)).unwrap_or_default();
        read("output") + &read("log")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the server, which signs itself.
    pub fn authority(&self) -> PathBuf {
        self.directory.path().join("cert.pem")
    }

    /// Puts a message into the mailbox, as a mail server does: whole, and with one move.
    pub fn deliver(&self, message: &str) {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{}.{}.test", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mail = self.directory.path().join("mail");
        let file = mail.join("tmp").join(&name);
        fs::write(&file, message.replace("\r\n", "\n")).expect("a file");
        self.account.own(&file);
        fs::rename(file, mail.join("new").join(&name)).expect("moved");
    }

    /// Whether the server has marked any message as read.
    pub fn has_read_messages(&self) -> bool {
        let entries = fs::read_dir(self.directory.path().join("mail/cur")).expect("a directory");
        entries.flatten().any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.rsplit_once(":2,").is_some_and(|(_, flags)| flags.contains('S'))
        })
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The account that runs everything. Dovecot reads no mail as root.
struct Account {
    user: String,
    group: String,
    uid: u32,
    gid: u32,
    is_other: bool,
}

impl Account {
    fn of_test() -> Self {
        let is_other = id(&["-u"]) == "0";
        let of = |flag: &str| if is_other { id(&[flag, "nobody"]) } else { id(&[flag]) };
        let number = |flag: &str| of(flag).parse().expect("a number");
        Account { user: of("-un"), group: of("-gn"), uid: number("-u"), gid: number("-g"), is_other }
    }

    /// Gives a directory and everything in it to the account.
    fn own(&self, path: &Path) {
        if !self.is_other {
            return;
        }
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid)).expect("root may");
        if path.is_dir() {
            for entry in fs::read_dir(path).expect("a directory") {
                self.own(&entry.expect("an entry").path());
            }
        }
    }

    fn command(&self, program: &str) -> Command {
        if !self.is_other {
            return tied_command(program);
        }
        let mut command = tied_command("setpriv");
        let (uid, gid) = (self.uid.to_string(), self.gid.to_string());
        command.args([
            "--reuid",
            &uid,
            "--regid",
            &gid,
            "--clear-groups",
            "--pdeathsig",
            "KILL",
            "--",
            program,
        ]);
        command
    }
}

/// Everything runs as one user, without a chroot. The names of the settings are those of Dovecot 2.3.
fn configuration(root: &Path, port: u16, account: &Account) -> String {
    let root = root.display();
    let Account { user, group, uid, gid, .. } = account;
    format!(
        "base_dir = {root}/run\n\
         state_dir = {root}/run\n\
         log_path = {root}/log\n\
         protocols = imap\n\
         listen = 127.0.0.1\n\
         default_login_user = {user}\n\
         default_internal_user = {user}\n\
         default_internal_group = {group}\n\
         ssl = required\n\
         ssl_cert = <{root}/cert.pem\n\
         ssl_key = <{root}/key.pem\n\
         mail_location = maildir:{root}/mail\n\
         mail_uid = {uid}\n\
         mail_gid = {gid}\n\
         first_valid_uid = 0\n\
         auth_mechanisms = plain\n\
         passdb {{\n  driver = passwd-file\n  args = scheme=plain username_format=%u {root}/users\n}}\n\
         userdb {{\n  driver = static\n  args = uid={uid} gid={gid} home={root}\n}}\n\
         service anvil {{\n  chroot =\n}}\n\
         service stats {{\n  chroot =\n}}\n\
         service imap-login {{\n  chroot =\n  inet_listener imap {{\n    port = 0\n  }}\n  \
         inet_listener imaps {{\n    port = {port}\n    ssl = yes\n  }}\n}}\n"
    )
}

/// What the program `id` says.
fn id(arguments: &[&str]) -> String {
    let said = Command::new("id").args(arguments).output().expect("id is part of every system");
    String::from_utf8_lossy(&said.stdout).trim().to_owned()
}
