//! `hob doctor`: looks at everything an answer needs, and says what is wrong and what to do.

mod engines;
mod file;
mod machine;
mod model;
mod port;
mod report;

use std::process::ExitCode;

use anyhow::Result;
use hob_config::hardware::detect;
use hob_config::{Config, Environment, Hardware};
use hob_system::{Wishes, choose};

use self::engines::Answering;
use self::report::{Check, Report};
use crate::args::DoctorArgs;
use crate::commands::block_on;
use crate::output::progress::Spinner;
use crate::settings;
use crate::survey::survey;

pub fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let environment = Environment::from_process();
    let (mut checks, config) = file::check(&environment);
    let report = block_on(async {
        let _waiting = Spinner::start("looking around");
        let (hardware, rest) = tokio::join!(detect(), look(config.as_ref()));
        let (can_answer, rest) = rest?;
        checks.extend(machine::check(&hardware));
        checks.extend(rest);
        Ok(Report { can_answer, checks })
    })?;
    if args.json {
        report.print_json()?;
    } else {
        report.print()?;
    }
    Ok(if report.can_answer { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Everything that depends on the configuration. Without one that can be read nothing can be said of the rest.
async fn look(config: Option<&Config>) -> Result<(bool, Vec<Check>)> {
    let Some(config) = config else { return Ok((false, Vec::new())) };
    let engines = hob_system::engines(config, &settings::home()?)?;
    let wishes = Wishes::default();
    let (found, chosen, port) = tokio::join!(
        survey(&engines, config),
        choose(&engines, config, &wishes),
        port::check(&config.server)
    );
    let mut checks: Vec<Check> = found.iter().map(|surveyed| engines::check(surveyed, config)).collect();
    let (answering, check) = engines::check_choice(chosen, &found, config);
    checks.push(check);
    let can_answer = match answering {
        Answering::Nobody => false,
        Answering::Startable => true,
        Answering::Engine(engine, models) => {
            let (has_model, check) = model::check(engine.as_ref(), models, config.default_model());
            checks.push(check);
            has_model
        }
    };
    checks.push(port);
    checks.extend(machine::check_keys(config));
    Ok((can_answer, checks))
}

/// `Hardware` on one line.
fn summary(hardware: &Hardware) -> String {
    let facts: Vec<String> = crate::commands::init::facts(hardware)
        .into_iter()
        .map(|(name, value)| if name == "GPU" && value == "none" { "no GPU".to_owned() } else { value })
        .collect();
    facts.join(" · ")
}
