//! `hob chat`: a conversation at the terminal, or one message of it that was piped in.

mod answering;
mod archive;
mod command;
mod editor;
mod house;
mod listing;
mod page;
mod piped;
mod save;
mod session;
mod show;
mod talk;
mod terminal;
mod transcript;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use self::archive::Archive;
use self::command::Switch;
use self::house::{House, initial_settings};
use self::session::Session;
use self::talk::Talk;
use crate::args::ChatArgs;
use crate::commands::ask::{Thoughts, default_model, question, tell_of_fallback};
use crate::commands::{block_on, household};
use crate::failure;
use crate::output;
use crate::settings;

pub fn run(args: ChatArgs, thoughts: Thoughts) -> Result<ExitCode> {
    let home = settings::home()?;
    if args.list {
        return block_on(async {
            listing::print(&Archive::open(&home).await?.list().await?)?;
            Ok(ExitCode::SUCCESS)
        });
    }
    let mut config = settings::load()?;
    let recall = if config.memory.context && !args.no_context { Switch::On } else { Switch::Off };
    let mut session = Session::new(initial_settings(&args.answering, recall));
    // Before anything is waited for: a conversation that is not there is known at once.
    let archive = block_on(find_conversation(&args, &home, &mut session))?;
    // Before anything listens for signals, so that Ctrl-C still ends a wait for stdin.
    let message = if io::stdin().is_terminal() { None } else { Some(question::read(Some("-"))?) };
    // From here on the conversation decides, question by question.
    config.memory.context = true;
    let answering = args.answering;
    if let Some(model) = &answering.model {
        config.use_model(model);
    }
    let wishes = household::wishes(answering.engine, answering.offline.into());
    household::work_in(&config, &wishes, async |household, signals| {
        tell_of_fallback(household, &config);
        let default_model = tokio::select! {
            model = default_model(&household.system) => model?,
            stop = signals.next() => return Ok(stop.exit_code()),
        };
        let house = House {
            household,
            default_model,
            only_tools: answering.tools,
            thoughts,
            temperature: answering.temperature,
            max_tokens: answering.max_tokens,
        };
        match message {
            Some(message) => piped::run(message, &house, session, archive.as_ref(), signals).await,
            None => Talk { house: &house, session, archive }.run(&home, signals).await,
        }
    })
}

/// Opens what was kept, and finds the conversation to go on with. Without it one can still talk, unless it was asked for.
async fn find_conversation(args: &ChatArgs, home: &Path, session: &mut Session) -> Result<Option<Archive>> {
    let archive = match Archive::open(home).await {
        Ok(archive) => archive,
        Err(error) if args.go_on || args.resume.is_some() => return Err(error),
        Err(error) => {
            output::warning(format_args!("this conversation is not kept: {}", failure::explain(&error)));
            return Ok(None);
        }
    };
    let wanted = match args.resume {
        Some(chat) => Some(chat),
        None if args.go_on => archive.latest().await?,
        None => None,
    };
    if let Some(chat) = wanted {
        session.resume(archive.conversation(chat).await?);
    } else if args.go_on {
        output::note("There is no conversation to go on with, so this is a new one.");
    }
    Ok(Some(archive))
}
