use proptest::prelude::*;

use super::*;

fn line(text: &str) -> Fragment {
    Fragment::Line(text.as_bytes().to_vec())
}

fn read(text: &str) -> Result<ImapResponse, MailError> {
    read_response(&[line(text)])
}

fn text(text: &str) -> ResponseValue {
    ResponseValue::Text(text.as_bytes().to_vec())
}

fn atom(text: &str) -> ResponseValue {
    ResponseValue::Atom(text.as_bytes().to_vec())
}

#[test]
fn the_usual_responses_are_read() {
    assert_eq!(read("+ idling").unwrap(), ImapResponse::Continue);
    assert_eq!(read("* 23 EXISTS").unwrap(), ImapResponse::Exists(23));
    assert_eq!(read("* 22 EXPUNGE").unwrap(), ImapResponse::Other);
    assert_eq!(read("* FLAGS (\\Answered \\Seen)").unwrap(), ImapResponse::Other);
    assert_eq!(read("* SEARCH 2 84 882").unwrap(), ImapResponse::Search(vec![2, 84, 882]));
    assert_eq!(read("* SEARCH").unwrap(), ImapResponse::Search(Vec::new()));
    assert_eq!(
        read("* capability IMAP4rev1 idle AUTH=PLAIN").unwrap(),
        ImapResponse::Capabilities(vec!["IMAP4REV1".into(), "IDLE".into(), "AUTH=PLAIN".into()])
    );
    assert_eq!(
        read("A4 OK [READ-ONLY] done").unwrap(),
        ImapResponse::Done { tag: "A4".into(), status: ImapStatus::Ok, text: "done".into() }
    );
    assert_eq!(
        read("* OK [UIDVALIDITY 3857529045] UIDs valid").unwrap(),
        ImapResponse::Status {
            status: ImapStatus::Ok,
            code: Some("UIDVALIDITY 3857529045".into()),
            text: "UIDs valid".into()
        }
    );
}

#[test]
fn a_message_has_its_parts_by_name() {
    let fragments = [
        line("* 12 FETCH (UID 5 FLAGS (\\Seen $Junk) BODY[HEADER.FIELDS (FROM TO)]<0> {9}"),
        Fragment::Literal(b"From: a\r\n".to_vec()),
        line(" INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" X NIL)"),
    ];
    let expected = vec![
        ("UID".to_owned(), atom("5")),
        ("FLAGS".to_owned(), ResponseValue::List(vec![atom("\\Seen"), atom("$Junk")])),
        ("BODY[HEADER.FIELDS (FROM TO)]<0>".to_owned(), text("From: a\r\n")),
        ("INTERNALDATE".to_owned(), text("17-Jul-1996 02:44:25 -0700")),
        ("X".to_owned(), atom("NIL")),
    ];
    assert_eq!(read_response(&fragments).unwrap(), ImapResponse::Fetch(expected));
}

#[test]
fn quotes_inside_a_text_are_escaped() {
    let read = read(r#"* 1 FETCH (A "say \"hi\" \\ ")"#).unwrap();
    assert_eq!(read, ImapResponse::Fetch(vec![("A".to_owned(), text(r#"say "hi" \ "#))]));
}

#[test]
fn free_text_announces_no_literal() {
    assert!(is_free_text(b"* OK you have {5}"));
    assert!(is_free_text(b"A1 no {5}"));
    assert!(is_free_text(b"+ {5}"));
    assert!(!is_free_text(b"* 1 FETCH (BODY[] {5}"));
}

#[test]
fn the_length_of_a_literal_is_a_number() {
    let cases: [(&[u8], Option<usize>); 8] = [
        (b"x {12}", Some(12)),
        (b"{0}", Some(0)),
        (b"{12+}", Some(12)),
        (b"{}", None),
        (b"{-1}", None),
        (b"{99999999999999999999999}", None),
        (b"{1} ", None),
        (b"}", None),
    ];
    for (line, expected) in cases {
        assert_eq!(literal_length(line), expected, "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn hostile_responses_are_errors() {
    let deep = format!("* 1 FETCH {}", "(".repeat(100_000));
    for bad in [
        "",
        "nonsense",
        "* SEARCH one",
        "* 1 FETCH",
        "* 1 FETCH (",
        "* 1 FETCH (UID)",
        "* 1 FETCH (UID 5",
        "* 1 FETCH (\"UID\" 5)",
        "* 1 FETCH (A \"x)",
        "* 1 FETCH (A {3}",
        "* 1 FETCH (A {3} {4}",
        "* 1 FETCH )",
        &deep,
    ] {
        let shown: String = bad.chars().take(40).collect();
        assert!(read(bad).is_err(), "{shown}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_response_or_an_error(first in ".{0,80}", literal in prop::collection::vec(any::<u8>(), 0..20), last in ".{0,40}") {
        let fragments = [
            Fragment::Line(format!("* 1 FETCH ({first}").into_bytes()),
            Fragment::Literal(literal),
            Fragment::Line(last.into_bytes()),
        ];
        let _ = read_response(&fragments);
        let _ = read_response(&[Fragment::Line(first.into_bytes())]);
    }
}
