//! The program as users run it: real processes, separate home directories, and fake engines on real sockets.

// These tests send signals.
#![allow(clippy::disallowed_methods, reason = "tests start programs with the environment they were given")]
#![cfg(unix)]

#[cfg(test)]
mod agents;
#[cfg(test)]
mod announce;
#[cfg(test)]
mod answers;
#[cfg(test)]
mod ask;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod briefing;
#[cfg(test)]
mod channel;
#[cfg(test)]
mod chat;
#[cfg(test)]
mod chat_commands;
#[cfg(test)]
mod database;
// Only Linux has all of 127.0.0.0/8.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod discovery;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod email;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod fakes;
// The tracer of these tests is for Linux.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod faults;
#[cfg(test)]
mod general;
#[cfg(test)]
mod health;
#[cfg(test)]
mod home;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod http;
#[cfg(test)]
mod https;
#[cfg(test)]
mod init;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod install;
#[cfg(test)]
mod key;
#[cfg(test)]
mod lan;
#[cfg(test)]
mod manifests;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod model;
#[cfg(test)]
mod model_hub;
#[cfg(test)]
mod monitoring;
#[cfg(test)]
mod overview;
#[cfg(test)]
mod packaging;
#[cfg(test)]
mod pool;
#[cfg(test)]
mod postgres;
#[cfg(test)]
mod probes;
#[cfg(test)]
mod real_engine;
#[cfg(test)]
mod recipes;
#[cfg(test)]
mod recommended;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod replicas;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod running;
#[cfg(test)]
mod scheduler;
#[cfg(test)]
mod serve;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod service;
mod sources;
#[cfg(test)]
mod task_runs;
#[cfg(test)]
mod telegram;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod update;
