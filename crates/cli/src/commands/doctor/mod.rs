//! `hob doctor`: checks everything that an answer needs, and prints problems with their fixes.

mod access;
#[cfg(feature = "server")]
mod certificate;
mod channel;
mod config_file;
mod databases;
mod described_server;
mod energy;
mod engines;
mod executable;
mod features;
mod home;
mod machine;
mod model;
mod network;
mod port;
mod proxy;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::local_models::local_models;
use hob_app::{Databases, choose, default_model, is_default_missed};
use hob_config::hardware::detect;
use hob_config::{Config, Environment, Hardware};
use hob_core::ComputeUnits;

use self::described_server::DescribedServer;
use self::engines::{EngineToAsk, StarterDownload};
use self::report::{CheckStatus, DoctorCheck, DoctorReport};
use crate::args::DoctorArgs;
use crate::commands::block_on;
use crate::engine_status::check_engines;
use crate::named_keys::NamedKeys;
use crate::output::progress::Spinner;
use crate::own_address;
use crate::server_urls::MachineOnNetwork;
use crate::starter_model;

pub fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let environment = Environment::from_process();
    let (mut checks, config) = config_file::check(&environment);
    let is_config_good = checks.iter().all(|check| check.status != CheckStatus::Bad);
    let report = block_on(async {
        let _waiting = Spinner::start("running checks");
        let home = environment.config_dir().ok();
        let (hardware, units, kept, rest) = tokio::join!(
            detect(),
            compute_units(config.as_ref(), home.as_deref()),
            check_home(config.clone(), home.clone()),
            check_rest(config.as_ref(), home.as_deref())
        );
        let (can_answer, rest) = rest?;
        checks.extend(machine::check(&hardware));
        checks.extend(units.iter().flat_map(|units| machine::check_compute(units, &hardware)));
        checks.extend(kept);
        checks.extend(rest);
        Ok(DoctorReport::new(can_answer && is_config_good, checks))
    })?;
    if args.json {
        report.print_json()?;
    } else {
        report.print()?;
    }
    Ok(if report.is_ready() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Hob's directory and its databases, on a thread that may wait for the disk or a server.
async fn check_home(config: Option<Config>, home: Option<PathBuf>) -> Vec<DoctorCheck> {
    let Some(home) = home else { return Vec::new() };
    // The only possible failure is a panic, which was already reported.
    let check = move || [vec![home::check(&home)], databases::check(config.as_ref(), &home)].concat();
    tokio::task::spawn_blocking(check).await.unwrap_or_default()
}

/// What the embedded engine computes with, if this build has it.
async fn compute_units(config: Option<&Config>, home: Option<&Path>) -> Option<ComputeUnits> {
    local_models(config?, home?).compute_units().await
}

/// All checks that depend on the configuration, and whether a question can be answered and a server can start. None if it cannot be
/// read.
async fn check_rest(config: Option<&Config>, home: Option<&Path>) -> Result<(bool, Vec<DoctorCheck>)> {
    let (Some(config), Some(home)) = (config, home) else { return Ok((false, Vec::new())) };
    let mut checks: Vec<DoctorCheck> = machine::check_odd_keys(config).collect();
    let served = own_address::as_served(config, home).await;
    let engines = match hob_app::engines(&served, home) {
        Ok(engines) => engines,
        Err(error) => {
            checks.push(engines::check_unmade(error));
            return Ok((false, checks));
        }
    };
    let (found, chosen, (port, running), sandbox, channels, energy, named) = tokio::join!(
        check_engines(&engines, &served),
        choose(&engines, &served, None),
        port::check(&config.server, home),
        features::sandbox(config),
        channel::check(config, home),
        energy::check(config),
        NamedKeys::look_up(config, home),
    );
    // A database that cannot be used is reported elsewhere.
    let is_default_missed =
        Databases::open(config, home).map_or(true, |databases| is_default_missed(config, &databases.hob));
    // Hob downloads a model only if no engine answers.
    let download = match chosen.is_err() && !is_default_missed {
        true => starter_download(config, home).await,
        false => StarterDownload::NoSource,
    };
    let expectations = engines::EngineExpectations { config: &served, is_default_missed, download };
    checks.extend(found.iter().map(|status| engines::check(status, expectations)));
    checks.extend(engines::check_files(config, home));
    let (answering, check) = engines::check_choice(chosen, &found, expectations);
    checks.push(check);
    let can_answer = match answering {
        EngineToAsk::None => false,
        EngineToAsk::Startable => true,
        EngineToAsk::Engine(engine, models) => {
            let default = default_model(config, home, &engine).await.ok().flatten();
            let (has_model, check) = model::check(engine.as_ref(), models, default.as_deref());
            checks.push(check);
            has_model
        }
    };
    checks.push(port);
    if let Some(running) = &running {
        checks.extend(machine::check_running(config, running).await);
    }
    let certificate = check_certificate(config);
    // `hob serve` would refuse to start, or its clients would refuse to connect.
    let can_serve = certificate.as_ref().is_none_or(|check| check.status != CheckStatus::Bad);
    checks.extend(certificate);
    checks.extend(machine::check_keys(config));
    checks.extend(proxy::check(&found));
    checks.extend(sandbox);
    checks.extend(features::mcp(config));
    checks.extend(features::sources(config));
    checks.extend(channels);
    checks.extend(features::telemetry(config));
    checks.extend(energy);
    // Last, because beginners can ignore it.
    let described = match &running {
        Some(running) => DescribedServer::running(&config.server, running, home),
        None => DescribedServer::upcoming(&config.server),
    };
    checks.push(access::check(&described, named));
    checks.extend(network::check(&described, &MachineOnNetwork::detect()));
    Ok((can_answer && can_serve, checks))
}

/// Whether the first question could download a model.
async fn starter_download(config: &Config, home: &Path) -> StarterDownload {
    if !home::can_write(&home.join("models")) {
        return StarterDownload::NotWritable;
    }
    match starter_model::can_fetch_starter(config, home).await {
        true => StarterDownload::Possible,
        false => StarterDownload::NoSource,
    }
}

#[cfg(feature = "server")]
fn check_certificate(config: &Config) -> Option<DoctorCheck> {
    certificate::check(&config.server.tls)
}

/// This build has no server.
#[cfg(not(feature = "server"))]
fn check_certificate(_: &Config) -> Option<DoctorCheck> {
    None
}

/// `Hardware` on one line.
fn summary(hardware: &Hardware) -> String {
    let facts: Vec<String> = crate::commands::init::facts(hardware)
        .into_iter()
        .map(|(name, value)| if name == "GPU" && value == "none" { "no GPU".to_owned() } else { value })
        .collect();
    facts.join(" · ")
}
