//! Opens what answers for a command: the running server of this home, or the app in this process. The app is opened with a spinner, and
//! closed after the command, whether it succeeds or fails.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use hob_app::{App, AppOptions};
use hob_config::{Config, EngineName, RouterName};
use hob_core::model::AUTO;
use hob_engines::selection::SelectionReason;

use crate::answers::{AnswerProvider, FoundServer, ServerInfo, ServerLink, find_server};
use crate::args::{AnsweringArgs, NetworkAccess};
use crate::commands::{block_on, memory};
use crate::engine_advice;
use crate::output;
use crate::output::progress::Spinner;
use crate::own_address::with_engine_at_own_address;
use crate::settings;
use crate::signals::{ServerSignal, Signals, StopSignal};
use crate::starter_model;

/// A shorter wait is not reported.
const NOTICEABLE: Duration = Duration::from_millis(250);

/// The options of commands that ask questions: one engine or any, and whether to download a model if there is none.
pub fn open_options(engine: Option<EngineName>, network: NetworkAccess) -> AppOptions {
    let (first_run, offer) = starter_model::first_run(network);
    AppOptions { engine, first_run, offer, reader: memory::reader(), ..AppOptions::default() }
}

/// Which server may answer.
pub struct ServerChoice<'a> {
    pub engine: Option<EngineName>,
    pub model: Option<&'a str>,
    pub router: Option<RouterName>,
    /// Whether this process answers, even if a server is running.
    pub standalone: bool,
}

impl<'a> ServerChoice<'a> {
    /// As the options of `hob ask` and `hob chat` say.
    pub fn of(answering: &'a AnsweringArgs, router: Option<RouterName>) -> Self {
        let AnsweringArgs { engine, model, standalone, .. } = answering;
        ServerChoice { engine: *engine, model: model.as_deref(), router, standalone: *standalone }
    }

    /// Why this server cannot do what the options ask for; `None` if it can.
    fn objection(&self, info: &ServerInfo) -> Option<String> {
        let is_auto = self.router.is_some() || self.model == Some(AUTO);
        match (self.engine, self.router) {
            (Some(engine), _) if engine.to_string() != info.engine => {
                Some(format!("it uses {}, not {engine}", info.engine))
            }
            (Some(engine), _) if is_auto => {
                Some(format!("it may choose a model that {engine} does not have"))
            }
            (_, Some(router)) if router.as_str() != info.router => {
                Some(format!("it uses the {} router, not {}", info.router, router.as_str()))
            }
            _ => None,
        }
    }
}

/// Finds the running server, or opens the app, and runs the work with it. The work handles signals; a signal before that ends the
/// wait.
pub fn with_answers(
    config: &Config,
    choice: &ServerChoice<'_>,
    wishes: &AppOptions,
    work: impl AsyncFnOnce(&AnswerProvider<'_>, &mut Signals) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let home = settings::home()?;
    block_on(async {
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        let server = tokio::select! {
            server = server_that_answers(&home, choice) => server,
            stop = signals.next() => return Ok(stop.exit_code()),
        };
        if let Some(server) = server {
            return work(&AnswerProvider::Server(server), &mut signals).await;
        }
        let config = with_engine_at_own_address(config, wishes.engine);
        let (app, config) = match open(config, &home, wishes, &mut signals).await? {
            Ok(opened) => opened,
            Err(stop) => return Ok(stop.exit_code()),
        };
        note_fallback(&app, &config);
        let outcome = work(&AnswerProvider::InProcess(&app), &mut signals).await;
        let record = app.record.clone();
        let outcome = close(app, &mut signals, outcome).await;
        // The log does not say so for these commands.
        if record.is_losing() {
            output::warning(
                "this call is not recorded, because Hob cannot write to its database. 'hob doctor' shows why.",
            );
        }
        outcome
    })
}

/// The running server, if it can answer. Otherwise one line says why it is not used.
async fn server_that_answers(home: &Path, choice: &ServerChoice<'_>) -> Option<ServerLink> {
    if choice.standalone {
        return None;
    }
    match find_server(home).await {
        FoundServer::None => None,
        FoundServer::Unusable(reason) => {
            output::warning(format_args!(
                "the running server is not used: {reason}. This process answers; restart the server, or use --standalone"
            ));
            None
        }
        FoundServer::Server(mut server) => match choice.objection(&server.info) {
            None => {
                server.engine = choice.engine.map(|engine| engine.to_string());
                Some(server)
            }
            Some(reason) => {
                output::note(format_args!("The running server is not used: {reason}."));
                None
            }
        },
    }
}

/// Notes that another engine than the configured one answers.
fn note_fallback(app: &App, config: &Config) {
    if let SelectionReason::Fallback { instead_of: Some(key) } = &app.because {
        let engine = app.system.engine();
        let reason = engine_advice::passed_over(key, config);
        output::note(format_args!(
            "{reason}; using {}",
            engine_advice::place(engine.key(), engine.address())
        ));
    }
}

/// Opens the app in a process that does not listen, and runs the work with it. The work handles signals; a signal before that ends
/// the wait.
pub fn with_app(
    config: &Config,
    wishes: &AppOptions,
    work: impl AsyncFnOnce(&App, &mut Signals) -> Result<ExitCode>,
) -> Result<ExitCode> {
    with_app_of(with_engine_at_own_address(config, wishes.engine), wishes, work)
}

/// The same with settings as they are, for `hob serve`: an engine at its address would be Hob itself, whatever listens there now.
pub fn with_app_of(
    config: impl Future<Output = Config>,
    wishes: &AppOptions,
    work: impl AsyncFnOnce(&App, &mut Signals) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let home = settings::home()?;
    block_on(async {
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        let app = match open(config, &home, wishes, &mut signals).await? {
            Ok((app, _)) => app,
            Err(stop) => return Ok(stop.exit_code()),
        };
        let outcome = work(&app, &mut signals).await;
        close(app, &mut signals, outcome).await
    })
}

/// The opened app with its settings, or the signal that ended the wait.
async fn open(
    config: impl Future<Output = Config>,
    home: &Path,
    wishes: &AppOptions,
    signals: &mut Signals,
) -> Result<Result<(App, Config), StopSignal>> {
    let _waiting = Spinner::start("looking for an engine");
    let opening = async {
        let config = config.await;
        let app = App::open(&config, home, wishes).await?;
        Ok((app, config))
    };
    tokio::select! {
        opened = opening => opened.map(Ok),
        stop = signals.next() => Ok(Err(stop)),
    }
}

/// Closes the app after its work.
async fn close(app: App, signals: &mut Signals, outcome: Result<ExitCode>) -> Result<ExitCode> {
    // Signals that the work left do not count.
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => {}
            () = std::future::ready(()) => break,
        }
    }
    // A database that does not answer may delay the end.
    tokio::select! {
        () = app.close() => outcome,
        stop = next_stop(signals) => Ok(stop.exit_code()),
    }
}

/// The next signal that stops a server. There is nothing left to reload.
async fn next_stop(signals: &mut Signals) -> StopSignal {
    loop {
        if let ServerSignal::Stop(stop) = signals.next_for_server().await {
            return stop;
        }
    }
}

/// For a graceful stop: reports the wait if it is noticeable, and returns on the second signal, which means stop immediately.
pub async fn second_signal(under_way: &str, grace: Duration, signals: &mut Signals) -> StopSignal {
    tokio::time::sleep(NOTICEABLE).await;
    let grace = grace.as_secs();
    output::note(format_args!(
        "waiting up to {grace} s for {under_way} in progress; press Ctrl-C again to stop immediately"
    ));
    next_stop(signals).await
}
