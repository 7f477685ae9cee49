//! The port of the server: free, taken by a Hob that runs, or taken by something else.

use std::io;

use hob_config::ServerConfig;
use tokio::net::TcpListener;

use super::report::{Check, Status};
use crate::output::number::counted;
use crate::running_server::{self, Neighbour};

const NAME: &str = "port";

pub async fn check(config: &ServerConfig) -> Check {
    let (host, port) = (config.host.as_str(), config.port);
    match TcpListener::bind((host, port)).await {
        Ok(_) => Check::new(NAME, Status::Good, format!("{port} is free for 'hob serve'")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            match running_server::look(host, port).await {
                Neighbour::Hob { health: 503 } => {
                    let message = format!("Hob runs on {port} already, but its engine does not answer");
                    Check::new(NAME, Status::Warning, message).advise(
                        "Start that engine again, or end and start 'hob serve', which then chooses anew",
                    )
                }
                Neighbour::Hob { .. } => match running_server::unrecorded_calls(host, port).await {
                    None => Check::new(NAME, Status::Good, format!("Hob runs on {port} already")),
                    Some(lost) => {
                        let message = format!(
                            "Hob runs on {port} already, but cannot write hob.db: {} lost so far",
                            counted(lost, "call")
                        );
                        Check::new(NAME, Status::Warning, message).advise(
                            "Its log says why; once hob.db can be written, Hob records calls again by itself",
                        )
                    }
                },
                Neighbour::Stranger | Neighbour::Nobody => {
                    Check::new(NAME, Status::Warning, format!("something else listens on {port}"))
                        .advise("Stop it, or choose another port: 'hob serve --port 8001', or [server] port")
                }
            }
        }
        Err(error) => Check::new(NAME, Status::Warning, format!("cannot listen on {host}:{port}: {error}"))
            .advise(remedy(&error)),
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
