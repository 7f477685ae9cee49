//! Who writes on a channel, as `channel:sender`, and how far each of them is trusted.

use std::collections::BTreeMap;

use hob_core::Reach;

use crate::kind::{REACH, quote, quote_all, quote_name};
use crate::settings_schema::{Exposure, Kind, Typed};

/// Senders. The same id may be another person on another channel, so an entry without a channel is refused.
pub(crate) const SENDERS: Kind<Vec<String>> = Kind {
    expected: "a list of senders with their channels, each written as CHANNEL:SENDER, such as [\"telegram:12345\"]",
    read: |typed| typed.texts()?.into_iter().map(|text| sender(text).map(str::to_owned)).collect(),
    write: |senders| quote_all(senders),
    exposure: Exposure::Open,
};

/// How far senders are trusted. Earlier versions had one value for all senders; `pure` is the default now.
pub(crate) const SENDERS_TRUST: Kind<BTreeMap<String, Reach>> = Kind {
    expected: "pure, read or act for each sender, written as CHANNEL:SENDER, such as { \"telegram:12345\" = \"read\" }",
    read: |typed| {
        if typed.text().and_then(Reach::parse) == Some(Reach::Pure) {
            return Some(BTreeMap::new());
        }
        let table = typed.value.as_table()?;
        let entry = |(name, value): (&toml::Spanned<std::borrow::Cow<'_, str>>, &toml::Spanned<_>)| {
            let reach = (REACH.read)(&Typed { value: value.get_ref(), home: typed.home })?;
            Some((sender(name.get_ref())?.to_owned(), reach))
        };
        table.iter().map(entry).collect()
    },
    write: |trust| {
        let entry =
            |(name, reach): (&String, &Reach)| format!("{} = {}", quote_name(name), quote(reach.as_str()));
        let entries: Vec<String> = trust.iter().map(entry).collect();
        if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
    },
    exposure: Exposure::Open,
};

fn sender(text: &str) -> Option<&str> {
    let text = text.trim();
    let (channel, sender) = text.split_once(':')?;
    (!channel.is_empty() && !sender.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_sender_without_a_channel_is_refused() {
        let read = |typed: &str| read_as(&SENDERS, typed);
        assert_eq!(read("['telegram:12345']"), Some(vec!["telegram:12345".to_owned()]));
        assert_eq!(read("['whatsapp:49:1@s.whatsapp.net']").map(|senders| senders.len()), Some(1));
        for bad in
            ["['12345']", "[':12345']", "['telegram:']", "['telegram:1', 'ann']", "['*']", "'telegram:1'"]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn trust_is_given_to_each_sender_by_name() {
        let read = |typed: &str| read_as(&SENDERS_TRUST, typed);
        let trust = read("{ 'telegram:1' = 'read', 'slack:U2' = 'act' }").expect("proper");
        assert_eq!((trust["telegram:1"], trust["slack:U2"]), (Reach::Read, Reach::Act));
        assert_eq!(read(&(SENDERS_TRUST.write)(&trust)), Some(trust));
        assert_eq!(read("'pure'"), Some(BTreeMap::new()));
        for bad in ["'read'", "'act'", "{ '12345' = 'read' }", "{ 'telegram:1' = 'all' }", "['telegram:1']"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
