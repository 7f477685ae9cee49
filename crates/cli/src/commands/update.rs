//! `hob update`: which version this is, whether there is a newer one, and how to get it. Changes nothing.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use hob_updates::{
    InstallMethod, Installation, LatestRelease, ReleaseAddress, ReleaseVersion, UNKNOWN_ADDRESS, UpdateError,
    latest_release, update_steps,
};
use serde_json::json;

use crate::args::UpdateArgs;
use crate::commands::block_on;
use crate::output::progress::Spinner;
use crate::output::style::STRONG;
use crate::output::table::print_facts;
use crate::output::text::{one_line, printable};
use crate::output::{self, OutputFormat};
use crate::settings;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The time limit for reading the list of the release.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The lines of the notes that are shown.
const MOST_LINES: usize = 40;

pub fn run(args: &UpdateArgs) -> Result<ExitCode> {
    let config = settings::load()?;
    let executable = std::env::current_exe().context("cannot find the path of this program")?;
    let installation = Installation::detect(&executable.canonicalize().unwrap_or(executable));
    let address = config.update.url.as_ref().or(installation.release_url.as_ref());
    let address = address.map(|address| ReleaseAddress::parse(address)).transpose();
    let looked_up = match &address {
        Ok(None) => Ok(None),
        Ok(Some(address)) => {
            let _waiting = Spinner::start("looking for the newest release");
            block_on(async { Ok(latest_release(address, TIMEOUT).await) })?.map(Some)
        }
        Err(error) => Err(error.clone()),
    };
    let report = UpdateReport { installation: &installation, address: address.ok().flatten(), looked_up };
    let format = OutputFormat::from(args.json);
    match format {
        OutputFormat::Json => report.print_json()?,
        OutputFormat::Text => report.print()?,
    }
    match (report.looked_up, format) {
        (Ok(_), _) => Ok(ExitCode::SUCCESS),
        // The object has it.
        (Err(_), OutputFormat::Json) => Ok(ExitCode::FAILURE),
        (Err(error), OutputFormat::Text) => Err(error.into()),
    }
}

struct UpdateReport<'a> {
    installation: &'a Installation,
    address: Option<ReleaseAddress>,
    /// `None` without an address.
    looked_up: Result<Option<LatestRelease>, UpdateError>,
}

impl UpdateReport<'_> {
    fn latest(&self) -> Option<&LatestRelease> {
        self.looked_up.as_ref().ok().and_then(Option::as_ref)
    }

    /// Whether the release is newer than this program; `None` if that is not known.
    fn is_newer(&self) -> Option<bool> {
        let own: ReleaseVersion = VERSION.parse().ok()?;
        Some(self.latest()?.version > own)
    }

    fn steps(&self) -> Vec<String> {
        let release = self.address.as_ref().zip(self.latest());
        update_steps(self.installation, std::env::consts::ARCH, release)
    }

    fn print_json(&self) -> Result<()> {
        let latest = self.latest().map(|latest| {
            json!({ "version": latest.version.to_string(), "date": latest.date, "notes": latest.notes })
        });
        output::json(&json!({
            "version": VERSION,
            "method": self.installation.method.as_str(),
            "program": self.installation.program.display().to_string(),
            "prefix": self.installation.prefix.display().to_string(),
            "release_url": self.address.as_ref().map(ToString::to_string),
            "latest": latest,
            "is_newer": self.is_newer(),
            "commands": self.steps(),
            "error": self.looked_up.as_ref().err().map(ToString::to_string),
        }))?;
        Ok(())
    }

    fn print(&self) -> Result<()> {
        let Installation { method, program, .. } = self.installation;
        let newest = match &self.looked_up {
            Ok(Some(latest)) if latest.date.is_empty() => latest.version.to_string(),
            Ok(Some(latest)) => format!("{} of {}", latest.version, one_line(&latest.date)),
            Ok(None) => "unknown: no release address is configured. Set [update] url.".to_owned(),
            Err(_) => "unknown".to_owned(),
        };
        print_facts(&[
            ("Version", VERSION.to_owned()),
            ("Installed", method.describe().to_owned()),
            ("Program", program.display().to_string()),
            ("Release", self.address.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)),
            ("Newest", newest),
        ])?;
        if self.is_newer() == Some(false) {
            output::line("\nThis is the newest version.")?;
            return Ok(());
        }
        self.print_steps(*method)?;
        if let Some(latest) = self.latest() {
            print_notes(latest)?;
        }
        Ok(())
    }

    fn print_steps(&self, method: InstallMethod) -> Result<()> {
        let introduction = match method {
            InstallMethod::Unknown => {
                "To update, install again in the same way. Or use the install script, which installs to ~/.local/bin and leaves this \
                 program as it is:"
            }
            InstallMethod::Cargo | InstallMethod::Checkout => "To update, run in the checkout:",
            InstallMethod::Container => "To update, load the new image and start a new container:",
            _ => "To update:",
        };
        output::line(format_args!("\n{introduction}"))?;
        let steps = self.steps();
        for step in &steps {
            output::line(format_args!("  {}", printable(step)))?;
        }
        if steps.iter().any(|step| step.contains(UNKNOWN_ADDRESS)) {
            output::line(format_args!(
                "{UNKNOWN_ADDRESS} is where the release is: an https address, or a directory with its files."
            ))?;
        }
        Ok(())
    }
}

/// What is new. The text comes from a server.
fn print_notes(latest: &LatestRelease) -> Result<()> {
    let notes = printable(&latest.notes);
    let mut lines = notes.lines();
    if notes.trim().is_empty() {
        return Ok(());
    }
    output::line(format_args!("\n{STRONG}New in {}{STRONG:#}", latest.version))?;
    for line in lines.by_ref().take(MOST_LINES) {
        output::line(line)?;
    }
    let more = lines.count();
    if more > 0 {
        output::note(format_args!("{more} more lines. 'hob update --json' has all of them."));
    }
    Ok(())
}
