use super::*;

const LIMITS: MessageLimits = MessageLimits { text_chars: 1_000, attachment_bytes: 1_000 };

fn read(text: &str) -> MailMessage {
    MailMessage::read(text.replace('\n', "\r\n").as_bytes(), LIMITS).expect("a message")
}

#[test]
fn a_message_is_read_with_its_people_and_its_thread() {
    let message = read(
        "From: =?utf-8?q?J=C3=BCrgen?= <juergen@example.org>\nTo: hob@example.org, Ann <ann@example.org>\n\
         Subject: =?utf-8?b?R3LDvMOfZQ==?=\nDate: Tue, 1 Dec 2026 10:00:00 +0100\nMessage-ID: <b@example.org>\n\
         In-Reply-To: <a@hob>\nReferences: <root@hob> <a@hob>\n\nHello.\n",
    );
    let person = |name: Option<&str>, address: &str| MailPerson {
        name: name.map(str::to_owned),
        address: address.to_owned(),
    };
    assert_eq!(
        message,
        MailMessage {
            message_id: Some("b@example.org".into()),
            in_reply_to: Some("a@hob".into()),
            references: vec!["root@hob".into(), "a@hob".into()],
            from: vec![person(Some("Jürgen"), "juergen@example.org")],
            to: vec![person(None, "hob@example.org"), person(Some("Ann"), "ann@example.org")],
            subject: "Grüße".into(),
            date: Some("2026-12-01T09:00:00Z".parse().expect("a time")),
            text: "Hello.".into(),
            ..MailMessage::default()
        }
    );
}

#[test]
fn html_becomes_text_and_attachments_are_files() {
    let message = read(
        "From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\
         Content-Type: text/html\n\n<p>Hello <b>you</b></p><script>evil()</script>\n--x\n\
         Content-Type: text/csv; name=\"../../etc/table.csv\"\nContent-Disposition: attachment\n\n1,2\n--x--\n",
    );
    assert_eq!(message.text, "Hello you");
    let [file] = message.attachments.as_slice() else { panic!("{:?}", message.attachments) };
    assert_eq!((file.name.as_str(), file.media_type.as_str()), ("table.csv", "text/csv"));
    assert_eq!(String::from_utf8_lossy(&file.bytes).trim(), "1,2");
}

#[test]
fn a_large_attachment_is_only_named_and_a_long_text_is_shortened() {
    let body = "x".repeat(3_000);
    let message = read(&format!(
        "From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\
         Content-Type: text/plain\n\n{body}\n--x\nContent-Type: application/zip; name=a.zip\n\
         Content-Disposition: attachment\n\n{body}\n--x--\n"
    ));
    assert_eq!((message.text.len(), message.is_shortened), (1_000, true));
    let [file] = message.attachments.as_slice() else { panic!("{:?}", message.attachments) };
    assert!(file.bytes.is_empty() && file.size >= 3_000, "{}", file.size);
}

#[test]
fn ids_that_could_start_a_header_are_dropped() {
    assert_eq!(id("<a@b>"), Some("a@b".to_owned()));
    for bad in ["", "<>", "a b", "a\r\nBcc: x@y", "<a><b>", "ä@b", &"x".repeat(501)] {
        assert_eq!(id(bad), None, "{bad}");
    }
}

#[test]
fn a_very_long_thread_keeps_its_first_message_and_the_newest_ones() {
    let references: Vec<String> = (0..200).map(|number| format!("<m{number}@x>")).collect();
    let message = read(&format!("From: a@example.org\nReferences: {}\n\nHi\n", references.join("\n ")));
    assert_eq!(message.references.len(), MAX_REFERENCES);
    assert_eq!(message.references.first().map(String::as_str), Some("m0@x"));
    assert_eq!(message.references.last().map(String::as_str), Some("m199@x"));
}

#[test]
fn what_is_not_a_message_is_none() {
    assert!(MailMessage::read(b"", LIMITS).is_none());
    // Any other bytes are a message or not, and never end the program.
    for bytes in [&b"\0\0\0"[..], b"From", &[0xff; 4_000]] {
        let _ = MailMessage::read(bytes, LIMITS);
    }
}

#[test]
fn a_field_of_a_server_counts_in_any_character_set() {
    let text = b"Authentication-Results: mx.example.org; spf=fail smtp.mailfrom=\xff@evil.org\r\n\
        Authentication-Results: mx.example.org; dmarc=pass\r\nFrom: a@example.org\r\n\r\nHello.\r\n";
    let results = MailMessage::read(text, LIMITS).expect("a message").authentication_results;
    assert_eq!(results.len(), 2);
    assert!(results[0].starts_with("mx.example.org; spf=fail"), "{results:?}");
}

#[test]
fn messages_in_messages_do_not_end_the_process() {
    let nested = "Content-Type: message/rfc822\n\n".repeat(200_000);
    let message = read(&format!("From: a@example.org\n{nested}Subject: x\n\nHi\n"));
    assert_eq!(message.from[0].address, "a@example.org");
    let [file] = message.attachments.as_slice() else { panic!("{} attachments", message.attachments.len()) };
    assert_eq!((file.media_type.as_str(), file.size > 1_000_000), ("message/rfc822", true));
}

#[test]
fn a_message_in_a_message_is_a_file_and_its_type_in_a_text_is_a_text() {
    let message = read(
        "From: a@example.org\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\n\
         What does\nContent-Type: message/rfc822\nmean?\n--x\nContent-Type: message/rfc822; name=b.eml\n\n\
         Subject: Inner\n\nHello.\n--x--\n",
    );
    assert_eq!(message.text, "What does\nContent-Type: message/rfc822\nmean?");
    let [file] = message.attachments.as_slice() else { panic!("{:?}", message.attachments) };
    assert_eq!((file.name.as_str(), file.media_type.as_str()), ("b.eml", "message/rfc822"));
    assert_eq!(String::from_utf8_lossy(&file.bytes).trim(), "Subject: Inner\r\n\r\nHello.");
}
