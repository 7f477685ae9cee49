//! Calendars of a real CalDAV server, Radicale.

#![allow(clippy::disallowed_methods, reason = "tests start programs with the environment they were given")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use hob_core::Zone;
use hob_db::Database;
use hob_sources::{
    CalendarAddress, CalendarSource, MIGRATIONS, SourceLogin, SourceOptions, SourceService, source_store,
    source_tools,
};
use hob_testkit::{free_port, part, tied_command};
use jiff::Timestamp;
use serde_json::json;

/// The server. It is killed with its value.
struct Radicale {
    child: Child,
    url: String,
}

impl Radicale {
    /// With one user, `ann`, whose password is `secret`.
    fn start(directory: &Path) -> Self {
        let port = free_port();
        let (users, config) = (directory.join("users"), directory.join("config"));
        std::fs::write(&users, "ann:secret\n").unwrap();
        let text = format!(
            "[server]\nhosts = 127.0.0.1:{port}\n[auth]\ntype = htpasswd\nhtpasswd_filename = {}\n\
             htpasswd_encryption = plain\ndelay = 0\n[storage]\nfilesystem_folder = {}\n[logging]\nlevel = info\n",
            users.display(),
            directory.join("store").display()
        );
        std::fs::write(&config, text).unwrap();
        let mut child = tied_command(part("HOB_TEST_PYTHON"))
            .args(["-m", "radicale", "--config"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        loop {
            let line = lines.next().unwrap_or_else(|| panic!("Radicale does not start:\n{said}")).unwrap();
            if line.contains("server ready") {
                break;
            }
            said += &format!("{line}\n");
        }
        // Its log must go somewhere, or it stops when the pipe is full.
        std::thread::spawn(move || for _ in lines.map_while(Result::ok) {});
        Radicale { child, url: format!("http://127.0.0.1:{port}") }
    }

    /// Sends a request as the user.
    async fn send(&self, method: &str, path: &str, body: String) {
        let client = hob_net::http_client(hob_net::HttpClientOptions {
            proxy: hob_net::ProxyUse::Never,
            ..hob_net::HttpClientOptions::default()
        })
        .unwrap();
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let sent = client
            .request(method, format!("{}{path}", self.url))
            .basic_auth("ann", Some("secret"))
            .header("content-type", "text/calendar; charset=utf-8")
            .body(body)
            .send()
            .await
            .unwrap();
        assert!(sent.status().is_success(), "{path}: {}", sent.status());
    }
}

impl Drop for Radicale {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn event(lines: &[&str]) -> String {
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:test\r\nBEGIN:VEVENT\r\nDTSTAMP:20260101T000000Z\r\n{}\r\n\
         END:VEVENT\r\nEND:VCALENDAR\r\n",
        lines.join("\r\n")
    )
}

/// The events of 2 March 2026 at an address of the server.
async fn events(address: String, password: &str) -> Result<String, String> {
    let login = SourceLogin { user: "ann".to_owned(), password: password.to_owned().into() };
    let address = CalendarAddress::CalDav { url: address, login };
    let now: Timestamp = "2026-03-02T07:00:00Z".parse().unwrap();
    let options = SourceOptions {
        calendars: vec![CalendarSource { name: "team".to_owned(), address }],
        zone: Zone::named("Europe/Berlin").unwrap(),
        clock: Arc::new(move || now),
        ..SourceOptions::default()
    };
    let store = source_store(Database::in_memory(&[MIGRATIONS]).unwrap());
    let tools = source_tools(&Arc::new(SourceService::new(options, store)));
    tools[0].call(json!({})).await.map_err(|error| error.0)
}

#[tokio::test]
async fn the_events_of_all_calendars_of_a_user_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let radicale = Radicale::start(directory.path());
    let nothing = events(format!("{}/", radicale.url), "secret").await.unwrap_err();
    assert!(nothing.contains("has no calendar for this user"), "{nothing}");

    for calendar in ["/ann/work/", "/ann/home/"] {
        radicale.send("MKCALENDAR", calendar, String::new()).await;
    }
    let weekly = event(&[
        "UID:1",
        "SUMMARY:Team meeting",
        "DTSTART:20260105T080000Z",
        "DTEND:20260105T090000Z",
        "RRULE:FREQ=WEEKLY",
    ]);
    radicale.send("PUT", "/ann/work/1.ics", weekly).await;
    let other_day =
        event(&["UID:2", "SUMMARY:Yesterday", "DTSTART:20260301T080000Z", "DTEND:20260301T090000Z"]);
    radicale.send("PUT", "/ann/work/2.ics", other_day).await;
    let birthday = event(&["UID:3", "SUMMARY:Birthday & cake <3", "DTSTART;VALUE=DATE:20260302"]);
    radicale.send("PUT", "/ann/home/3.ics", birthday).await;

    let expected = "Events from 2026-03-02 00:00 to 2026-03-03 00:00 (Europe/Berlin)\n\
        - Mon 2026-03-02, all day: Birthday & cake <3 [team]\n\
        - Mon 2026-03-02 09:00-10:00: Team meeting [team]";
    for address in ["/", "/ann/", "/ann"] {
        assert_eq!(
            events(format!("{}{address}", radicale.url), "secret").await.as_deref(),
            Ok(expected),
            "{address}"
        );
    }
    let one = events(format!("{}/ann/work/", radicale.url), "secret").await.unwrap();
    assert!(one.contains("Team meeting") && !one.contains("Birthday"), "{one}");
    let refused = events(format!("{}/", radicale.url), "wrong").await.unwrap_err();
    assert!(refused.contains("refuses the user name or the password"), "{refused}");
}
