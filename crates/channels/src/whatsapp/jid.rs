//! WhatsApp's addresses: `4915112345678@s.whatsapp.net` for a person, `120363041234567890@g.us` for a group.

pub const CHANNEL: &str = "whatsapp";

/// Whether `channel` is WhatsApp or one of its addresses.
pub fn is_ours(channel: &str) -> bool {
    channel == CHANNEL || is_jid(channel)
}

const PEOPLE: [&str; 2] = ["s.whatsapp.net", "lid"];
const GROUPS: &str = "g.us";

/// Whether `text` is a WhatsApp address.
pub(crate) fn is_jid(text: &str) -> bool {
    let Some((user, server)) = text.split_once('@') else { return false };
    let digits = |user: &str| !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_digit());
    match server {
        // Ids of older groups contain their creator and their time: `4915112345678-1512345678`.
        GROUPS => user.split('-').all(digits),
        server => PEOPLE.contains(&server) && digits(user),
    }
}

pub(crate) fn is_group(jid: &str) -> bool {
    jid.ends_with(&format!("@{GROUPS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_people_and_groups_have_addresses() {
        for good in ["4915112345678@s.whatsapp.net", "120363041234567890@g.us", "49151-1512@g.us", "123@lid"]
        {
            assert!(is_jid(good), "{good}");
        }
        for bad in
            ["", "telegram", "@g.us", "x@s.whatsapp.net", "49@example.org", "+49@s.whatsapp.net", "4-@g.us"]
        {
            assert!(!is_jid(bad), "{bad}");
        }
        assert!(is_group("120363041234567890@g.us") && !is_group("49@s.whatsapp.net"));
    }
}
