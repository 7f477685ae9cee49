//! Calendar files as programs write them, and as no program should.

use jiff::Timestamp;

use super::*;

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

fn range(from: &str, to: &str) -> EventRange {
    let moment = |text: &str| text.parse::<Timestamp>().unwrap();
    EventRange { from: moment(from), to: moment(to) }
}

/// The calendar with these lines in it.
fn calendar(lines: &[&str]) -> String {
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{}\r\nEND:VCALENDAR\r\n", lines.join("\r\n"))
}

fn read_lines(lines: &[&str], range: EventRange) -> CalendarReading {
    read_calendar(&[calendar(lines)], range, &berlin()).unwrap()
}

/// Events as `TITLE START`, in order.
fn shown(reading: &CalendarReading) -> Vec<String> {
    let mut shown: Vec<String> = reading
        .events
        .iter()
        .map(|event| match event.time {
            EventTime::Days { first, last } => format!("{first}..{last} {}", event.summary),
            EventTime::Span { start, end } => format!("{start}..{end} {}", event.summary),
        })
        .collect();
    shown.sort();
    shown
}

const MARCH: [&str; 2] = ["2026-03-01T00:00:00Z", "2026-04-15T00:00:00Z"];

fn in_march(lines: &[&str]) -> CalendarReading {
    read_lines(lines, range(MARCH[0], MARCH[1]))
}

#[test]
fn an_event_keeps_its_local_time_when_clocks_change() {
    let reading = in_march(&[
        "BEGIN:VEVENT",
        "UID:1",
        "SUMMARY:Team meeting",
        "LOCATION:Room 4",
        "DTSTART;TZID=Europe/Berlin:20260316T090000",
        "DTEND;TZID=Europe/Berlin:20260316T100000",
        "RRULE:FREQ=WEEKLY;COUNT=3",
        "BEGIN:VALARM",
        "SUMMARY:not the title",
        "END:VALARM",
        "END:VEVENT",
    ]);
    assert_eq!(
        shown(&reading),
        [
            "2026-03-16T08:00:00Z..2026-03-16T09:00:00Z Team meeting",
            "2026-03-23T08:00:00Z..2026-03-23T09:00:00Z Team meeting",
            "2026-03-30T07:00:00Z..2026-03-30T08:00:00Z Team meeting",
        ]
    );
    assert_eq!(reading.events[0].location.as_deref(), Some("Room 4"));
    assert!(reading.notes.is_empty(), "{:?}", reading.notes);
}

#[test]
fn dates_are_excluded_added_and_replaced() {
    let reading = in_march(&[
        "BEGIN:VEVENT",
        "UID:1",
        "SUMMARY:Run",
        "DTSTART:20260302T060000Z",
        "DURATION:PT30M",
        "RRULE:FREQ=DAILY;UNTIL=20260305T060000Z",
        "EXDATE:20260303T060000Z",
        "RDATE:20260310T060000Z",
        "END:VEVENT",
        "BEGIN:VEVENT",
        "UID:1",
        "RECURRENCE-ID:20260304T060000Z",
        "SUMMARY:Run later",
        "DTSTART:20260304T180000Z",
        "DURATION:PT30M",
        "END:VEVENT",
        "BEGIN:VEVENT",
        "UID:1",
        "RECURRENCE-ID:20260305T060000Z",
        "STATUS:CANCELLED",
        "DTSTART:20260305T060000Z",
        "END:VEVENT",
    ]);
    assert_eq!(
        shown(&reading),
        [
            "2026-03-02T06:00:00Z..2026-03-02T06:30:00Z Run",
            "2026-03-04T18:00:00Z..2026-03-04T18:30:00Z Run later",
            "2026-03-10T06:00:00Z..2026-03-10T06:30:00Z Run",
        ]
    );
}

#[test]
fn whole_days_are_days_of_the_owner() {
    let lines = [
        "BEGIN:VEVENT",
        "UID:1",
        "SUMMARY:Holiday",
        "DTSTART;VALUE=DATE:20260301",
        "DTEND;VALUE=DATE:20260303",
        "END:VEVENT",
        "BEGIN:VEVENT",
        "UID:2",
        "SUMMARY:Birthday",
        "DTSTART;VALUE=DATE:19800303",
        "RRULE:FREQ=YEARLY",
        "EXDATE;VALUE=DATE:20270303",
        "END:VEVENT",
    ];
    // 2 March in Berlin.
    let monday = read_lines(&lines, range("2026-03-01T23:00:00Z", "2026-03-02T23:00:00Z"));
    assert_eq!(shown(&monday), ["2026-03-01..2026-03-02 Holiday"]);
    let tuesday = read_lines(&lines, range("2026-03-02T23:00:00Z", "2026-03-03T23:00:00Z"));
    assert_eq!(shown(&tuesday), ["2026-03-03..2026-03-03 Birthday"]);
    let year_later = read_lines(&lines, range("2027-03-02T23:00:00Z", "2027-03-03T23:00:00Z"));
    assert_eq!(shown(&year_later), [] as [&str; 0]);
}

#[test]
fn an_event_that_began_earlier_and_goes_on_is_listed_and_one_that_ended_is_not() {
    let lines = [
        "BEGIN:VEVENT",
        "UID:1",
        "SUMMARY:Night",
        "DTSTART:20260301T220000Z",
        "DTEND:20260302T040000Z",
        "END:VEVENT",
        "BEGIN:VEVENT",
        "UID:2",
        "SUMMARY:Moment",
        "DTSTART:20260302T000000Z",
        "END:VEVENT",
    ];
    let found = read_lines(&lines, range("2026-03-02T00:00:00Z", "2026-03-02T01:00:00Z"));
    assert_eq!(found.events.len(), 2);
    let found = read_lines(&lines, range("2026-03-02T04:00:00Z", "2026-03-02T05:00:00Z"));
    assert_eq!(found.events.len(), 0);
}

#[test]
fn a_zone_that_is_not_known_counts_as_its_offset_with_a_note() {
    let reading = in_march(&[
        "BEGIN:VTIMEZONE",
        "TZID:Customized Time Zone",
        "BEGIN:DAYLIGHT",
        "TZOFFSETFROM:+0100",
        "TZOFFSETTO:+0200",
        "END:DAYLIGHT",
        "BEGIN:STANDARD",
        "TZOFFSETFROM:+0200",
        "TZOFFSETTO:+0100",
        "END:STANDARD",
        "END:VTIMEZONE",
        "BEGIN:VEVENT",
        "UID:1",
        "SUMMARY:Call",
        "DTSTART;TZID=Customized Time Zone:20260310T090000",
        "END:VEVENT",
    ]);
    assert_eq!(shown(&reading), ["2026-03-10T08:00:00Z..2026-03-10T08:00:00Z Call"]);
    assert_eq!(reading.notes.len(), 1);
    assert!(reading.notes.iter().all(|note| note.contains("UTC+01")), "{:?}", reading.notes);
}

#[test]
fn what_cannot_be_followed_is_noted_and_the_rest_is_read() {
    let reading = in_march(&[
        "BEGIN:VEVENT",
        "SUMMARY:No start",
        "END:VEVENT",
        "BEGIN:VEVENT",
        "SUMMARY:Odd rule",
        "DTSTART:20260310T090000Z",
        "RRULE:FREQ=YEARLY;BYWEEKNO=11",
        "END:VEVENT",
        "BEGIN:VEVENT",
        "SUMMARY:Every second",
        "DTSTART:20200310T090000Z",
        "RRULE:FREQ=SECONDLY",
        "END:VEVENT",
        "a line that is none",
        "BEGIN:VEVENT",
        "DTSTART:20260311T090000Z",
        "END:VEVENT",
    ]);
    assert!(reading.events.iter().any(|event| event.summary == "Odd rule"));
    assert!(reading.events.iter().any(|event| event.summary == "(no title)"));
    let notes: Vec<&str> = reading.notes.iter().map(String::as_str).collect();
    assert_eq!(
        notes,
        [
            "'Every second' repeats too often; some of its dates are missing.",
            "An event without a valid start is skipped.",
            "The rule by which 'Odd rule' repeats has BYWEEKNO, which is not supported; only its first date is known.",
        ]
    );
}

#[test]
fn the_number_of_events_is_limited() {
    let event =
        "BEGIN:VEVENT\nUID:1\nDTSTART:20260310T090000Z\nRRULE:FREQ=SECONDLY;COUNT=4000000000\nEND:VEVENT\n";
    let text = format!("BEGIN:VCALENDAR\n{}END:VCALENDAR", event.repeat(20_010));
    let reading = read_calendar(&[text], range(MARCH[0], MARCH[1]), &berlin()).unwrap();
    assert_eq!(reading.events.len(), 5_000);
    assert!(reading.notes.iter().any(|note| note.contains("10 are skipped")), "{:?}", reading.notes);
}

#[test]
fn what_is_no_calendar_is_said() {
    for text in ["", "<html>Sign in</html>", "BEGIN:VCARD\nEND:VCARD", "\u{0}\u{1}"] {
        let read = read_calendar(&[text.to_owned()], range(MARCH[0], MARCH[1]), &berlin());
        assert_eq!(read, Err(CalendarError::NotCalendar), "{text}");
    }
}

#[test]
fn many_files_have_no_more_work_than_one() {
    let event = |title: &str, rule: &str| {
        let lines = ["BEGIN:VEVENT", "UID:1", "DTSTART:20260301T090000Z", title, rule, "END:VEVENT"];
        calendar(&lines)
    };
    // The positions make each second count as many steps, so that the limit is reached soon. The rule without them uses up the rest.
    let positions: Vec<String> = (1..=366).map(|position: i32| position.to_string()).collect();
    let never = "RRULE:FREQ=SECONDLY;BYMONTH=8";
    let mut files = vec![event("SUMMARY:Never", &format!("{never};BYSETPOS={}", positions.join(","))); 60];
    files.push(event("SUMMARY:Never", never));
    files.push(event("SUMMARY:Last", "RRULE:FREQ=DAILY"));
    let reading = read_calendar(&files, range(MARCH[0], MARCH[1]), &berlin()).unwrap();
    let cut = "'Last' repeats too often; some of its dates are missing.";
    assert!(reading.notes.contains(cut), "{:?}", reading.notes);
}

#[test]
fn a_long_name_of_a_zone_is_not_copied_for_each_date() {
    let dates = vec!["20260310T090000"; 10_000].join(",");
    let excluded = format!("EXDATE;TZID={}:{dates}", "x".repeat(5 << 20));
    let lines =
        ["BEGIN:VEVENT", "UID:1", "DTSTART:20260310T090000Z", &excluded, "SUMMARY:Call", "END:VEVENT"];
    // With a copy for each date, this would take 50 gigabytes.
    assert_eq!(in_march(&lines).notes.len(), 1);
}

#[test]
fn notes_are_limited() {
    let event = |number: usize| {
        format!("BEGIN:VEVENT\nUID:{number}\nSUMMARY:{number}\nDTSTART:20260310\nRRULE:x\nEND:VEVENT\n")
    };
    let events: String = (0..1_000).map(event).collect();
    assert_eq!(in_march(&[events.as_str()]).notes.len(), 20);
}
