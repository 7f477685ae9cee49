//! `hob chat`: a conversation at the terminal, or one message of it that was piped in.

mod answer_view;
mod answering;
mod clipboard;
pub mod command;
mod editor;
mod interactive;
mod listing;
mod piped;
mod save_file;
pub mod saved_chats;
pub mod session;
mod show;
mod target;
mod terminal;
mod transcript;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::Result;
use hob_app::AppOptions;
use hob_core::model::DEFAULT_MODEL;
use hob_db::Storage;

use self::command::Switch;
use self::interactive::InteractiveChat;
use self::saved_chats::SavedChats;
use self::session::ChatSession;
use self::target::{ChatTarget, initial_settings};
use self::terminal::Terminal;
use crate::args::ChatArgs;
use crate::commands::ask::answer_output::ReasoningDisplay;
use crate::commands::ask::question;
use crate::commands::open_app::ServerChoice;
use crate::commands::{block_on, open_app};
use crate::failure;
use crate::output;
use crate::settings;

pub fn run(args: ChatArgs, reasoning: ReasoningDisplay) -> Result<ExitCode> {
    let home = settings::home()?;
    let mut config = settings::load()?;
    let databases = settings::databases(&config)?;
    if args.list {
        return block_on(async {
            listing::print(&SavedChats::open(databases.hob).await?.list().await?)?;
            Ok(ExitCode::SUCCESS)
        });
    }
    let recall = if config.memory.context && !args.no_context { Switch::On } else { Switch::Off };
    let mut session = ChatSession::new(initial_settings(&args.answering, recall));
    // First, so that a missing conversation fails immediately.
    let saved_chats = block_on(find_conversation(&args, databases.hob.clone(), &mut session))?;
    // Before anything listens for signals, so that Ctrl-C still ends a wait for stdin.
    let message = if io::stdin().is_terminal() { None } else { Some(question::read(&["-".to_owned()])?) };
    // The session switches the memory on and off for each question.
    config.memory.context = true;
    let answering = &args.answering;
    if let Some(model) = &answering.model {
        config.use_model(model);
    }
    let wishes = open_app::open_options(answering.engine, answering.offline.into());
    let wishes = AppOptions { databases: Some(databases), ..wishes };
    let choice = ServerChoice::of(answering, None);
    // Until the end: the line editor may be in the middle of a line while the app closes.
    let terminal = Terminal::take();
    open_app::with_answers(&config, &choice, &wishes, async |source, signals| {
        let model = answering.model.clone().filter(|model| model != DEFAULT_MODEL);
        let default_model = match &model {
            Some(model) => model.clone(),
            None => tokio::select! {
                model = source.default_model() => model?,
                stop = signals.next() => return Ok(stop.exit_code()),
            },
        };
        if !source.can_use_memory() {
            session.forbid_memory();
        }
        let target =
            ChatTarget { source, model, default_model, only_tools: answering.tools.clone(), reasoning };
        match message {
            Some(message) => piped::run(message, &target, session, saved_chats.as_ref(), signals).await,
            None => {
                InteractiveChat { target: &target, session, saved_chats }.run(&home, &terminal, signals).await
            }
        }
    })
}

/// Opens the saved conversations, and loads the one to continue. If that fails, a new chat still works.
async fn find_conversation(
    args: &ChatArgs,
    database: Storage,
    session: &mut ChatSession,
) -> Result<Option<SavedChats>> {
    let saved_chats = match SavedChats::open(database).await {
        Ok(saved_chats) => saved_chats,
        Err(error) if args.go_on || args.resume.is_some() => return Err(error),
        Err(error) => {
            output::warning(format_args!("this conversation is not saved: {}", failure::explain(&error)));
            return Ok(None);
        }
    };
    if let Some(chat) = args.resume {
        session.resume(saved_chats.conversation(chat).await?);
    } else if args.go_on {
        saved_chats.continue_latest(session).await?;
    }
    Ok(Some(saved_chats))
}
