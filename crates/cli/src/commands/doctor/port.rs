//! The port of the server: free, taken by a Hob that runs, or taken by something else.

use std::io;

use hob_config::ServerConfig;
use tokio::net::TcpListener;

use super::report::{CheckStatus, DoctorCheck};
use crate::output::number::counted;
use crate::running_server::{self, ServerProbe};

const NAME: &str = "port";

pub async fn check(config: &ServerConfig) -> DoctorCheck {
    let (host, port) = (config.host.as_str(), config.port);
    match TcpListener::bind((host, port)).await {
        Ok(_) => DoctorCheck::new(NAME, CheckStatus::Good, format!("{port} is free for 'hob serve'")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            match running_server::probe(host, port).await {
                ServerProbe::Hob { health: 503 } => {
                    let message = format!("Hob runs on {port} already, but its engine does not answer");
                    DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(
                        "Start that engine again, or end and start 'hob serve', which then chooses anew",
                    )
                }
                ServerProbe::Hob { .. } => match running_server::unrecorded_calls(host, port).await {
                    None => DoctorCheck::new(NAME, CheckStatus::Good, format!("Hob runs on {port} already")),
                    Some(lost) => {
                        let message = format!(
                            "Hob runs on {port} already, but cannot write hob.db: {} lost so far",
                            counted(lost, "call")
                        );
                        DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(
                            "Its log says why; once hob.db can be written, Hob records calls again by itself",
                        )
                    }
                },
                ServerProbe::OtherProgram | ServerProbe::NoListener => {
                    DoctorCheck::new(NAME, CheckStatus::Warning, format!("something else listens on {port}"))
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
            "Ports below 1024 are the system's: set [server] port to a higher one, such as 8000"
        }
        _ => {
            "Set [server] host to an address of this machine: \"127.0.0.1\" for itself, \"0.0.0.0\" for everybody"
        }
    }
}
