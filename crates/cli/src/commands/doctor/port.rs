//! The port of the server: free, used by a running Hob, or used by another program.

use std::io;
use std::path::Path;

use hob_config::ServerConfig;
use tokio::net::TcpListener;

use super::report::{CheckStatus, DoctorCheck};
use crate::output::number::counted;
use crate::running_server::{self, ServerProbe};

const NAME: &str = "port";

pub async fn check(config: &ServerConfig, home: &Path) -> DoctorCheck {
    let (host, port) = (config.host.as_str(), config.port);
    // Closed at once: the search for a running server also looks here.
    match TcpListener::bind((host, port)).await.map(drop) {
        Ok(()) => {
            let free = format!("{port} is free for 'hob serve'");
            let server = running_server::locate(config, home).await;
            let message = match server.url() {
                Some(url) => format!("{free}; Hob is already running at {url}"),
                None => free,
            };
            DoctorCheck::new(NAME, CheckStatus::Good, message)
        }
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            match running_server::probe(host, port).await {
                ServerProbe::Hob { health: 503, .. } => {
                    let message = format!("Hob is already running on {port}, but its engine does not answer");
                    DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(
                        "Start that engine again, or restart 'hob serve' so that it selects another one",
                    )
                }
                ServerProbe::Hob { .. } => match running_server::unrecorded_calls(host, port).await {
                    None => {
                        DoctorCheck::new(NAME, CheckStatus::Good, format!("Hob is already running on {port}"))
                    }
                    Some(lost) => {
                        let message = format!(
                            "Hob is already running on {port}, but cannot write hob.db: {} lost so far",
                            counted(lost, "call")
                        );
                        DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(
                            "Its log shows the reason; Hob resumes recording when it can write hob.db again",
                        )
                    }
                },
                ServerProbe::OtherProgram | ServerProbe::NoListener => {
                    DoctorCheck::new(NAME, CheckStatus::Warning, format!("another program listens on {port}"))
                        .advise("Stop it, or choose another port: 'hob serve --port 8001', or [server] port")
                }
            }
        }
        Err(error) => {
            DoctorCheck::new(NAME, CheckStatus::Warning, format!("cannot listen on {host}:{port}: {error}"))
                .advise(remedy(&error))
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "Ports below 1024 are reserved: set [server] port to a higher one, e.g. 8000"
        }
        _ => {
            "Set [server] host to an address of this machine: \"127.0.0.1\" for local connections only, \"0.0.0.0\" for all"
        }
    }
}
