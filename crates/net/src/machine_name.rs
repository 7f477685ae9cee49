//! What this machine is called, and the names under which its own network finds it. Resolves no name.

use url::Host;

/// The longest part of a name between two dots (RFC 1035).
const LONGEST_LABEL: usize = 63;

/// The name of this machine in lower case, without a domain. `None` if it has none that a URL can contain.
pub fn machine_name() -> Option<String> {
    first_label(&host_name()?)
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().map(str::to_owned).ok()
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    None
}

/// The names that only this machine has: its name, and its name in multicast DNS.
///
/// A host name with a domain is not one of them: some systems take it from the network they join, and its domain can belong to anyone.
pub fn machine_names() -> Vec<String> {
    machine_name().map_or_else(Vec::new, |name| vec![local_name(&name), name])
}

/// The name of a machine in multicast DNS (RFC 6762).
pub fn local_name(machine: &str) -> String {
    format!("{machine}.local")
}

fn first_label(host_name: &str) -> Option<String> {
    let label = host_name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_label =
        is_plain && label.len() <= LONGEST_LABEL && !label.starts_with('-') && !label.ends_with('-');
    // A number such as `127` is an address in a URL, and `localhost` is every machine.
    let is_name = label != "localhost" && matches!(Host::parse(&label), Ok(Host::Domain(_)));
    (is_label && is_name).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_called_by_its_first_label_in_lower_case() {
        for (host_name, expected) in [
            ("ada", "ada"),
            ("Ada-PC", "ada-pc"),
            ("ada.local", "ada"),
            ("ada.example.org", "ada"),
            ("3f2a1b", "3f2a1b"),
        ] {
            assert_eq!(first_label(host_name).as_deref(), Some(expected), "{host_name}");
        }
    }

    #[test]
    fn a_host_name_that_no_url_can_contain_is_no_name() {
        let long = "a".repeat(64);
        for host_name in [
            "",
            ".",
            "localhost",
            "LOCALHOST.localdomain",
            "127",
            "0x7f",
            "a b",
            "-a",
            "a-",
            "adä",
            "a/b",
            &long,
        ] {
            assert_eq!(first_label(host_name), None, "{host_name:?}");
        }
    }

    #[test]
    fn only_names_without_a_domain_and_local_names_belong_to_this_machine() {
        for name in machine_names() {
            let rest = name.strip_suffix(".local").unwrap_or(&name);
            assert!(!rest.is_empty() && !rest.contains('.'), "{name}");
        }
    }
}
