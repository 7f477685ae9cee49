//! Who may ask the server: this machine only, those with a key, or everybody who reaches it.

use std::net::IpAddr;

use hob_config::ServerConfig;

use super::report::{Check, Status};

const NAME: &str = "access";

pub fn check(server: &ServerConfig) -> Check {
    let host = &server.host;
    if is_inside(host) {
        Check::new(NAME, Status::Good, format!("'hob serve' answers this machine only ({host})"))
    } else if server.api_key.is_some() {
        Check::new(NAME, Status::Good, format!("'hob serve' answers everybody who has its key ({host})"))
    } else {
        let message = format!("'hob serve' answers everybody who reaches this machine ({host}, no key)");
        Check::new(NAME, Status::Warning, message).advise(
            "Set [server] host = \"127.0.0.1\" to keep it to this machine, or HOB_API_KEY to ask for a key",
        )
    }
}

fn is_inside(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_open_door_is_worth_a_warning() {
        let open = ServerConfig::default();
        let inside = |host: &str| ServerConfig { host: host.into(), ..ServerConfig::default() };
        let locked = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..ServerConfig::default() };
        assert_eq!(check(&open).status, Status::Warning);
        assert!(check(&open).advice.is_some());
        for safe in [inside("127.0.0.1"), inside("::1"), inside("localhost"), locked] {
            assert_eq!(check(&safe).status, Status::Good, "{}", safe.host);
        }
        assert_eq!(check(&inside("192.168.0.7")).status, Status::Warning);
    }
}
