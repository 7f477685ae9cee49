//! What tests of several crates share. Knows only the wire: it uses no other crate of ours but `core`.

#![expect(clippy::disallowed_methods, reason = "tests start programs with the environment they were given")]
#![expect(clippy::expect_used, reason = "a test that cannot set itself up should fail loudly")]

mod brief_engine;
mod captured_log;
mod certificate;
mod closing_server;
#[cfg(unix)]
mod commit_proxy;
mod dice;
mod dns_server;
#[cfg(unix)]
mod dovecot;
mod engine_ask;
mod fake_server;
mod faulty_proxy;
mod free_port;
mod gateway;
pub mod gguf;
mod imap_server;
#[cfg(unix)]
mod lasting_models;
mod llama_server;
mod member_grant;
#[cfg(unix)]
pub mod old_database;
mod outside;
#[cfg(unix)]
mod postgres_server;
mod recorded_run;
pub mod repository;
mod scripted_engine;
mod shared_directory;
#[cfg(simulation)]
pub mod simulation;
mod smtp_server;
mod telegram_server;
mod test_process;
mod tied_command;
pub mod tiny_projector;
mod token_issuer;
mod transcript;
pub mod trend;

pub use brief_engine::BriefEngine;
pub use captured_log::CapturedLog;
pub use certificate::TestCertificate;
pub use closing_server::{Closing, ClosingServer};
#[cfg(unix)]
pub use commit_proxy::{CommitLoss, CommitProxy};
pub use dice::Dice;
pub use dns_server::{DnsAnswer, DnsRecord, DnsServer};
#[cfg(unix)]
pub use dovecot::Dovecot;
pub use engine_ask::EngineAsk;
pub use fake_server::{FakeServer, Hold, Recorded, Reply};
pub use faulty_proxy::{ConnectionFault, FaultyProxy};
pub use free_port::free_port;
pub use gateway::{Gateway, GatewayScript};
pub use imap_server::{ImapFault, ImapScript, ImapServer, MAIL_PASSWORD, MAIL_USER};
#[cfg(unix)]
pub use lasting_models::link_model;
pub use llama_server::{LlamaServer, part};
pub use member_grant::member_grant;
#[cfg(unix)]
pub use outside::{Namespace, Outside};
#[cfg(unix)]
pub use postgres_server::{PostgresServer, TestDatabase};
pub use recorded_run::record_run;
pub use scripted_engine::ScriptedEngine;
pub use smtp_server::{SentMail, SmtpFault, SmtpServer};
pub use telegram_server::{TELEGRAM_TOKEN, TelegramServer};
pub use test_process::test_process;
pub use tied_command::tied_command;
pub use token_issuer::{TokenIssuer, shared_secret_token, token_part};
pub use transcript::Transcript;
