//! `hob serve`: opens the app, prints engine, model and URL, and serves until a signal stops it.

mod address_file;
mod announce;
mod control_answers;
mod control_socket;
mod lan;
mod port_check;
mod reload;
mod settings_in_effect;
mod systemd_notify;

use std::future::ready;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use hob_app::startup::channels::linking;
use hob_app::startup::identity::open_identity;
use hob_app::{App, AppOptions, AskService};
use hob_config::{Config, Environment};
use hob_core::EngineError;
use hob_core::model::{AUTO, DEFAULT_MODEL};
use hob_engines::selection::SelectionReason;
use hob_keys::IdentityService;
use hob_models::PullSpec;
use hob_server::{Server, ServerParts, ServerSettings, raise_open_files, read_certificate};
use hob_tasks::Scheduler;
use tokio_util::sync::CancellationToken;

use self::address_file::AddressEntry;
use self::announce::announce;
use self::control_answers::ControlAnswers;
use self::control_socket::{ControlClients, ControlSocket};
use self::reload::{ReloadedParts, RunningSettings};
use self::settings_in_effect::{apply, overridden, warn_if_open};
use crate::args::ServeArgs;
use crate::commands::{block_on, open_app};
use crate::engine_advice;
use crate::failure;
use crate::output;
use crate::output::number::counted;
use crate::output::table::print_facts;
use crate::output::text::one_line;
use crate::server_urls::{MachineOnNetwork, server_urls};
use crate::settings;
use crate::signals::Signals;
use crate::starter_model;

pub fn run(args: ServeArgs) -> Result<ExitCode> {
    let mut config = settings::load_for_server()?;
    let wishes = open_app::open_options(args.engine, args.offline.into());
    let wishes = AppOptions { waits_for_engine: true, ..wishes };
    apply(args.clone(), &mut config);
    // Before the search for an engine, or a download.
    read_certificate(&config.server.tls)?;
    block_on(port_check::check(&config.server))?;
    open_app::with_app_of(ready(config.clone()), &wishes, async |app, signals| {
        app.watch_database().await?;
        let identity = open_identity(&config.server.identity, &app.keys)?;
        if let Some(identity) = &identity {
            identity.start();
        }
        let served = serve(app, identity.clone(), &config, args, signals).await;
        if let Some(identity) = identity {
            identity.close().await;
        }
        served
    })
}

async fn serve(
    app: &App,
    identity: Option<Arc<IdentityService>>,
    config: &Config,
    args: ServeArgs,
    signals: &mut Signals,
) -> Result<ExitCode> {
    let system = &app.system;
    check_named_model(app, args.model.as_deref()).await?;
    // Before the socket. While the database is away, named keys are refused until they can be read; other failures end the server.
    app.keys.start().await?;
    // After the keys, which may pay for answers to messages.
    app.listen();
    let file = ServerSettings::new(Environment::from_process()).with_options(overridden(&args));
    let file = Arc::new(file);
    let parts = ServerParts {
        system: system.clone(),
        record: app.record.clone(),
        scheduler: Some(app.scheduler.clone()),
        responses: Some(app.responses.clone()),
        chats: Some(app.chats.clone()),
        model_management: Some(app.model_management.clone()),
        embedded: Some(app.embedded.clone()),
        documents: Some(app.documents.clone()),
        linking: Some(Arc::new(linking(config, &settings::home()?))),
        keys: Some(app.keys.clone()),
        identity,
        settings: Some(Arc::clone(&file)),
        readiness: app.readiness.clone(),
        shared_database: app.shared_database(),
    };
    raise_open_files();
    let server = Server::bind(parts, &config.server).await?;
    let home = settings::home()?;
    let _address_entry = AddressEntry::add(&home, server.address());
    let answers = ControlAnswers::new(system.clone(), app.scheduler.clone(), config);
    let control_socket = ControlSocket::open(&home, &address_file::server_id(), answers, server.control());
    let clients = control_socket.clients();
    print_summary(app, config, &args, server.address()).await?;
    if config.scheduler.enabled {
        app.scheduler.start();
    }
    app.watch_documents();
    let shutdown = CancellationToken::new();
    let scheduler = &app.scheduler;
    let grace = config.server.shutdown_grace;
    let longest = config.server.drain_seconds.saturating_add(grace);
    let announcer = announce(&config.server, server.address());
    let reloaded = ReloadedParts {
        system: Arc::clone(system),
        keys: app.keys.clone(),
        file,
        channels: app.channel_opener(),
        sources: app.source_opener(),
    };
    let mut settings = RunningSettings::new(&server, config, args, reloaded);
    let mut running = Box::pin(run_all(server, scheduler, clients, shutdown.clone(), grace));
    systemd_notify::ready();
    app.warm();
    tokio::select! {
        _ = &mut running => return Ok(ExitCode::SUCCESS),
        () = settings.reload_until_stopped(signals, control_socket) => shutdown.cancel(),
    }
    systemd_notify::stopping();
    let goodbye = async {
        if let Some(announcer) = announcer {
            announcer.stop().await;
        }
    };
    let ending = async { tokio::join!(running, goodbye).0 };
    tokio::select! {
        cut_off = ending => {
            if cut_off > 0 {
                let grace = grace.as_secs();
                output::warning(format_args!("{} cut off after {grace} s", counted(cut_off, "answer")));
            }
            Ok(ExitCode::SUCCESS)
        }
        stop = open_app::second_signal("answers", longest, signals) => Ok(stop.exit_code()),
    }
}

/// Prints the engine, the model and the URLs, with `--lan` a key, and a warning if anyone can use the server.
async fn print_summary(app: &App, config: &Config, args: &ServeArgs, address: SocketAddr) -> Result<()> {
    let model = default_model(&app.system).await;
    let trial = starter_model::trial_note(&model);
    let urls = server_urls(&config.server, address.port(), &MachineOnNetwork::detect());
    let network_key = if args.lan { Some(lan::fresh_key(&app.keys).await?) } else { None };
    let agent = app.system.agent().unwrap_or("none (directly to the engine)");
    let mut facts = vec![("Engine", engine_line(app, config)), ("Model", model), ("Agent", agent.to_owned())];
    facts.extend(lan::url_facts(&urls));
    facts.extend(lan::key_fact(&urls, network_key.as_ref()));
    // A closed stdout does not stop the server.
    if let Err(error) = print_facts(&facts) {
        tracing::info!(%error, "cannot print the summary");
    }
    if let Some(trial) = trial {
        output::note(trial);
    }
    if let Some(key) = &network_key {
        lan::print_access(key, &config.server, &urls);
    }
    if !app.keys.snapshot().has_keys() {
        warn_if_open(address, &config.server);
    }
    Ok(())
}

/// Serves until `shutdown`, then waits for answers and tasks in progress. Returns how many answers were cut off.
async fn run_all(
    server: Server,
    scheduler: &Scheduler,
    clients: ControlClients,
    shutdown: CancellationToken,
    grace: Duration,
) -> usize {
    let serving = async {
        let stopped = server.run(shutdown.clone()).await;
        // The server has ended, so the scheduler ends too.
        shutdown.cancel();
        stopped
    };
    let draining = async {
        shutdown.cancelled().await;
        let ((), cut_off) = tokio::join!(scheduler.drain(grace), clients.drain(grace));
        cut_off
    };
    // Tasks that a request started end with the server.
    let (stopped, cut_off) = tokio::join!(serving, draining);
    stopped.cut + cut_off
}

/// Fails if the engine does not have the model of the command line, and Hob cannot download it either. A configured one is only a
/// warning: a service must start, and the model may be added later.
async fn check_named_model(app: &App, named: Option<&str>) -> Result<()> {
    let system = &app.system;
    let Some(model) = named.map(|named| system.meant_by(named)) else { return Ok(()) };
    let is_choice = [DEFAULT_MODEL, AUTO].contains(&model);
    if is_choice || app.is_waiting_for_engine() || model.parse::<PullSpec>().is_ok() {
        return Ok(());
    }
    match system.pool().engine_of(model).await {
        // A pool names all its engines, and some of them may not answer yet.
        Err(error @ EngineError::ModelNotFound { .. }) if system.pool().others().next().is_none() => {
            Err(error.into())
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The default model. A model that the engine does not have is a warning, not an error: it may be added later.
///
/// An engine that does not list its models now may do so later, so the server starts anyway.
async fn default_model(system: &AskService) -> String {
    let model = match system.default_model().await {
        Ok(Some(model)) => model,
        Ok(None) => return "none yet".to_owned(),
        Err(error) => return one_line(&format!("not known yet: {}", failure::explain(&error.into()))),
    };
    if model == AUTO {
        return format!("{AUTO} (chosen for each request by the {} router)", system.router().policy());
    }
    if let Err(EngineError::ModelNotFound { engine, .. }) = system.pool().engine_of(&model).await {
        output::warning(format_args!("{engine} has no model '{model}'; see 'hob model list'"));
    }
    one_line(&model)
}

fn engine_line(app: &App, config: &Config) -> String {
    let engine = app.system.engine();
    let mut place = engine_advice::place(engine.key(), engine.address());
    let others: Vec<&str> = app.system.pool().others().collect();
    if !others.is_empty() {
        place = format!("{place}, also {}", others.join(", "));
    }
    if app.is_waiting_for_engine() {
        return format!("{place} (does not answer yet)");
    }
    match &app.because {
        SelectionReason::Fallback { instead_of: Some(key) } => {
            format!("{place} ({})", engine_advice::passed_over(key, config))
        }
        SelectionReason::Fallback { instead_of: None }
        | SelectionReason::Given
        | SelectionReason::Default => place,
    }
}
