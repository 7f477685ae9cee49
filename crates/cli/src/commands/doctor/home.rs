//! Hob's directory: can it be written, and is there room.

use std::path::Path;

use super::report::{CheckStatus, DoctorCheck};
use crate::output::number::memory;

const NAME: &str = "home";

/// With less than this a model of ordinary size does not fit.
const LITTLE: u64 = 1 << 30;

/// Looks at the directory `home`. Makes nothing.
pub fn check(home: &Path) -> DoctorCheck {
    let shown = home.display();
    if home.is_relative() {
        let here = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        return DoctorCheck::new(
            NAME,
            CheckStatus::Warning,
            format!("{shown} is another directory wherever you are"),
        )
        .advise(format!("export HOB_HOME='{}'", here.display()));
    }
    // What is not there yet is made in the nearest directory that is.
    let Some(place) = home.ancestors().find(|place| place.symlink_metadata().is_ok()) else {
        return DoctorCheck::new(NAME, CheckStatus::Warning, format!("{shown} cannot be made"))
            .advise("Set HOB_HOME to a directory of yours");
    };
    if !place.is_dir() {
        return DoctorCheck::new(NAME, CheckStatus::Warning, format!("{} is no directory", place.display()))
            .advise("Move it away, or set HOB_HOME to a directory of yours");
    }
    if let Err(reason) = writable(place) {
        let message = format!("{} cannot be written ({reason}), so nothing can be kept", place.display());
        return DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(format!(
            "Make it yours with 'chown -R \"$USER\" {shown}', or set HOB_HOME to another directory"
        ));
    }
    let is_new = if place == home { "" } else { ", not there yet" };
    match free_bytes(place) {
        Some(free) if free < LITTLE => DoctorCheck::new(
            NAME,
            CheckStatus::Warning,
            format!("{shown}: only {} are free on its disk", memory(free)),
        )
        .advise("Make room: 'hob model list' shows what models take, 'hob model rm NAME' removes one"),
        Some(free) => {
            DoctorCheck::new(NAME, CheckStatus::Good, format!("{shown}{is_new}, {} free", memory(free)))
        }
        None => DoctorCheck::new(NAME, CheckStatus::Good, format!("{shown}{is_new}")),
    }
}

#[cfg(unix)]
fn writable(directory: &Path) -> Result<(), std::io::Error> {
    use rustix::fs::{Access, access};
    Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(not(unix))]
fn writable(_: &Path) -> Result<(), std::io::Error> {
    Ok(())
}

/// What is left for us on the disk of a directory, where the system says it.
#[cfg(unix)]
fn free_bytes(directory: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(directory).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}
