//! `hob serve` with a certificate, and the commands that look for a running server.

use hob_testkit::TestCertificate;
use serde_json::{Value, json};

use crate::fakes;
use crate::home::{Home, Ran, engines_config};
use crate::overview::shows;
use crate::running::Running;

/// A home whose server has this certificate.
fn home(ollama: &str, certificate: &TestCertificate) -> Home {
    let home = Home::empty();
    let (cert, key) = (home.directory().join("cert.pem"), home.directory().join("key.pem"));
    certificate.write(&cert, &key);
    let tls = format!("[server.tls]\ncert = {cert:?}\nkey = {key:?}\n[engine]\n");
    let config = engines_config(&[("ollama", ollama)]).replacen("[engine]\n", &tls, 1);
    std::fs::write(home.config_file(), config).expect("a file");
    home
}

#[tokio::test]
async fn a_server_with_a_certificate_prints_https_and_other_commands_find_it() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url(), &TestCertificate::generate());
    let server = Running::start(&home, &[]).await;
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    assert_eq!(server.summary[3], format!("URL     https://127.0.0.1:{port}"));

    let well = Ran { code: Some(0), stdout: "ok\n".into(), stderr: String::new() };
    assert_eq!(home.run(&["health", "--port", port]).await, well);
    let first = format!("Server  running: chat at https://localhost:{port}, ");
    shows(&home, |stdout| stdout.starts_with(&first)).await;
    let running = home.run(&["ps"]).await;
    assert_eq!(running.code, Some(0), "{}", running.stderr);
    let second = home.run(&["serve", "--port", port]).await;
    let words = format!("error: Hob is already running on https://localhost:{port}. ");
    assert!(second.code == Some(1) && second.stderr.starts_with(&words), "{}", second.stderr);

    drop(ollama);
    let sick = home.run(&["health", "--port", port]).await;
    assert!(sick.code == Some(1) && sick.stderr.contains("its engine does not answer"), "{}", sick.stderr);
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_key_of_another_certificate_stops_the_start_and_the_doctor_says_why() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url(), &TestCertificate::generate());
    let well = home.run(&["doctor"]).await;
    assert_eq!(well.code, Some(0), "{}", well.stdout);
    std::fs::write(home.directory().join("key.pem"), TestCertificate::generate().key_pem).expect("a file");
    let ran = home.run(&["serve", "--port", "0"]).await;
    let words = "error: the certificate of [server.tls] cannot be used: the certificate in ";
    assert!(ran.code == Some(1) && ran.stderr.starts_with(words), "{}", ran.stderr);

    let doctor = home.run(&["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(&doctor.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("a list");
    let https = checks.iter().find(|check| check["name"] == "https").expect("a check");
    let reason = ran.stderr.trim_start_matches("error: ").trim_end();
    assert_eq!(
        (doctor.code, &report["ok"], &https["status"], https["message"].as_str()),
        (Some(1), &json!(false), &json!("bad"), Some(reason))
    );
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_reported_by_the_server_and_the_doctor() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url(), &TestCertificate::expired());
    let mut server = Running::start(&home, &[]).await;
    let words = "the certificate of [server.tls] has expired, so clients refuse it";
    server.says(words).await;
    let doctor = home.run(&["doctor"]).await;
    assert!(doctor.code == Some(1) && doctor.stdout.contains(words), "{}", doctor.stdout);
    let ended = server.terminate().await;
    assert_eq!(ended.stderr.matches(words).count(), 1, "{}", ended.stderr);
}

#[tokio::test]
async fn an_engine_whose_certificate_is_not_accepted_is_not_said_to_be_down() {
    let ollama = fakes::ollama().await;
    let server = Running::start(&home(&ollama.url(), &TestCertificate::expired()), &[]).await;
    let engine = format!("https://{}", server.address());
    let ran = Home::with_engines(&[("vllm", &engine)]).run(&["ask", "q"]).await;
    let stderr = format!(
        "error: cannot reach vllm at {engine}: its certificate has expired, or the clock of this machine is wrong. Check \
         the address and the clock of this machine, renew the engine's certificate, or name its authority in SSL_CERT_FILE; 'hob doctor' checks the engine.\n"
    );
    assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr });
}
