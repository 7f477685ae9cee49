//! The port of the server: free, used by a running Hob, or used by another program. A server on another port is found too.

use std::io;
use std::path::Path;

use hob_config::ServerConfig;
use hob_net::check_port;

use super::report::{CheckStatus, DoctorCheck};
use crate::output::number::counted;
use crate::running_server::{self, LocatedServer, ServerProbe};

const NAME: &str = "port";

/// The check, and the server that runs.
pub async fn check(config: &ServerConfig, home: &Path) -> (DoctorCheck, Option<LocatedServer>) {
    let (host, port) = (config.host.as_str(), config.port);
    let free = check_port(host, port).await;
    if let Err(error) = &free
        && error.kind() != io::ErrorKind::AddrInUse
    {
        let message = format!("cannot listen on {host}:{port}: {error}");
        return (DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(remedy(error)), None);
    }
    let server = running_server::locate(config, home).await;
    if let (ServerProbe::Hob { health, .. }, Some(url)) = (server.probe, server.url()) {
        let running = match free {
            Ok(()) => format!("{port} is free for 'hob serve'; Hob is already running at {url}"),
            Err(_) if server.port == port => format!("Hob is already running on {port}"),
            Err(_) => format!("Hob is already running at {url}"),
        };
        return (check_running(running, health, &server).await, Some(server));
    }
    let check = match free {
        Ok(()) => DoctorCheck::new(NAME, CheckStatus::Good, format!("{port} is free for 'hob serve'")),
        Err(_) => DoctorCheck::new(NAME, CheckStatus::Warning, format!("another program listens on {port}"))
            .advise("Stop it, or choose another port: 'hob serve --port 8001', or [server] port"),
    };
    (check, None)
}

/// The health of a running server, which `running` names.
async fn check_running(running: String, health: u16, server: &LocatedServer) -> DoctorCheck {
    if health != 200 {
        let message = format!("{running}, but its engine does not answer");
        return DoctorCheck::new(NAME, CheckStatus::Warning, message)
            .advise("Start that engine again, or restart 'hob serve' so that it selects another one");
    }
    match running_server::unrecorded_calls(&server.host, server.port).await {
        None => DoctorCheck::new(NAME, CheckStatus::Good, running),
        Some(lost) => {
            let message =
                format!("{running}, but cannot write hob.db: {} lost so far", counted(lost, "call"));
            DoctorCheck::new(NAME, CheckStatus::Warning, message)
                .advise("Its log shows the reason; Hob resumes recording when it can write hob.db again")
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
