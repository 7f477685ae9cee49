//! nginx with the settings of `packaging/compose-nginx.conf`.

use std::process::Stdio;
use std::time::Duration;

use hob_testkit::{free_port, repository, tied_command};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// It ends with its value.
pub struct Nginx {
    // It ends before its directory is deleted.
    _child: Child,
    directory: TempDir,
    port: u16,
}

impl Nginx {
    /// In front of replicas at these ports.
    pub async fn start(replicas: &[u16]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let mut site = std::fs::read_to_string(repository::root().join("packaging/compose-nginx.conf"))
            .expect("the settings");
        let mut replace = |from: &str, to: &str| {
            assert!(site.contains(from), "'{from}' is not in compose-nginx.conf");
            site = site.replace(from, to);
        };
        replace("listen 8000;", &format!("listen 127.0.0.1:{port};"));
        for (index, replica) in replicas.iter().enumerate() {
            replace(&format!("hob-{}:8000", index + 1), &format!("127.0.0.1:{replica}"));
        }
        let path = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(path("site.conf"), site).expect("a file");
        // The answer names the replica, also of an error.
        let main = format!(
            "daemon off;\nmaster_process off;\npid {pid};\nerror_log {log};\n\
             events {{ worker_connections 1024; }}\n\
             http {{\n  access_log off;\n  client_body_temp_path {body};\n  proxy_temp_path {proxy};\n\
               fastcgi_temp_path {other};\n  uwsgi_temp_path {other};\n  scgi_temp_path {other};\n\
               add_header {REPLICA} $upstream_addr always;\n  include {site};\n}}\n",
            pid = path("pid"),
            log = path("log"),
            body = path("body"),
            proxy = path("proxy"),
            other = path("other"),
            site = path("site.conf"),
        );
        std::fs::write(path("nginx.conf"), main).expect("a file");
        let mut child = Command::from(tied_command(program()))
            .args(["-p", &path(""), "-c", &path("nginx.conf"), "-e", &path("log")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("nginx starts; './dev test' installs it");
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            let ended = child.try_wait().expect("a child");
            let log = || std::fs::read_to_string(path("log")).unwrap_or_default();
            assert!(ended.is_none(), "nginx does not start:\n{}", log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Nginx { directory, port, _child: child }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

/// The header with the addresses of the replicas that got a request, the last one last.
pub const REPLICA: &str = "x-replica";

/// On Debian, it is in a directory that is not on the PATH of ordinary users.
fn program() -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin"].map(std::path::PathBuf::from);
    let found = std::env::split_paths(&path).chain(usual).map(|directory| directory.join("nginx"));
    found.into_iter().find(|program| program.is_file()).unwrap_or_else(|| "nginx".into())
}
