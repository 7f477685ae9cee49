//! `hob model pull`: a download by Ollama, with its progress.

mod bars;
mod display;
mod lines;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::{Result, bail};
use futures::StreamExt;
use hob_app::ollama;
use hob_config::Config;
use hob_core::Engine;

use self::bars::LayerBars;
use self::display::PullDisplay;
use self::lines::LayerLines;
use crate::engine_advice;
use crate::missing_model_hint::near_downloads;
use crate::output;
use crate::signals::Signals;

pub async fn run(config: &Config, model: &str) -> Result<ExitCode> {
    let ollama = ollama(config)?;
    if !ollama.health().await {
        let address = ollama.address();
        let similar = match near_downloads(model).as_slice() {
            [] => String::new(),
            near => format!(" Did you mean {}?", near.join(", ")),
        };
        bail!(
            "Unknown model '{model}'.{similar} 'hob model search {model}' looks for it; or start Ollama to pull from its library. Ollama \
             does not answer on {address}. {}.",
            engine_advice::how_to_start(ollama.key(), address)
        );
    }
    let mut signals = Signals::listen()?;
    let mut show: Box<dyn PullDisplay> = if io::stderr().is_terminal() {
        Box::new(LayerBars::default())
    } else {
        Box::new(LayerLines::default())
    };
    let download = async {
        let mut steps = ollama.pull(model).await?;
        while let Some(step) = steps.next().await {
            show.step(&step?);
        }
        anyhow::Ok(())
    };
    let outcome = tokio::select! {
        outcome = download => outcome.map(|()| None),
        stop = signals.next() => Ok(Some(stop)),
    };
    show.clear();
    match outcome? {
        None => {
            output::line(format_args!("{model} is ready. Try it: hob ask -m {model} 'Hello'"))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(stop) => {
            output::note(format_args!("Stopped. 'hob model pull {model}' resumes the download."));
            Ok(stop.exit_code())
        }
    }
}
