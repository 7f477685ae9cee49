//! Finds the name that was probably meant by an unknown one.

use std::fmt;

use strsim::damerau_levenshtein;

/// Longer names are not typing errors, and comparing them would take time.
const LONGEST: usize = 64;

/// The known name that `unknown` was probably meant to be: a likely misspelling, else the same key of another section.
/// Names are written with their section, `server.port`.
pub(crate) fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    if unknown.len() > LONGEST {
        return None;
    }
    let unknown = unknown.to_lowercase();
    let key = last(&unknown);
    let slips = key.chars().count().div_ceil(3);
    let distance = |name: &str| damerau_levenshtein(&unknown, name);
    let misspelt =
        known.iter().map(|name| (distance(name), *name)).filter(|(distance, _)| *distance <= slips);
    let misplaced =
        || known.iter().filter(|name| last(name) == key).map(|name| (distance(name), *name)).min();
    misspelt.min().or_else(misplaced).map(|(_, name)| name)
}

/// Ends a message with the name that was probably meant, if there is one.
pub(crate) fn did_you_mean(f: &mut fmt::Formatter<'_>, nearest: Option<&str>) -> fmt::Result {
    match nearest {
        Some(nearest) => write!(f, " (did you mean '{nearest}'?)"),
        None => Ok(()),
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = [
        "server.host",
        "server.port",
        "engine.ollama.host",
        "engine.vllm.host",
        "agent.max_turns",
        "server.model",
    ];

    #[test]
    fn a_slip_of_the_fingers_is_recognised() {
        for (typed, meant) in [
            ("server.prot", "server.port"),
            ("server.Port", "server.port"),
            ("SERVER.PORT", "server.port"),
            ("engine.olama.host", "engine.ollama.host"),
            ("engine.ollama_hots", "engine.ollama.host"),
            ("agent.max-turns", "agent.max_turns"),
        ] {
            assert_eq!(nearest(typed, &KNOWN), Some(meant), "{typed}");
        }
    }

    #[test]
    fn a_key_in_the_wrong_section_is_recognised() {
        assert_eq!(nearest("server.max_turns", &KNOWN), Some("agent.max_turns"));
        assert_eq!(nearest("port", &KNOWN), Some("server.port"));
    }

    #[test]
    fn what_resembles_nothing_gets_no_advice() {
        assert_eq!(nearest("server.colour", &KNOWN), None);
        assert_eq!(nearest("", &KNOWN), None);
        assert_eq!(nearest(&"server.port".repeat(1000), &KNOWN), None);
    }
}
