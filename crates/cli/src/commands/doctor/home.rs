//! Hob's directory: is it writable, and is there free space.

use std::path::Path;

use super::report::{CheckStatus, DoctorCheck};
use crate::output::number::memory;

const NAME: &str = "home";

/// With less than this a model of ordinary size does not fit.
const LITTLE: u64 = 1 << 30;

/// Checks the directory `home`. Creates nothing.
pub fn check(home: &Path) -> DoctorCheck {
    let shown = home.display();
    if home.is_relative() {
        let here = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        return DoctorCheck::new(
            NAME,
            CheckStatus::Warning,
            format!("{shown} is a relative path, which depends on the current directory"),
        )
        .advise(format!("export HOB_HOME='{}'", here.display()));
    }
    // A missing directory is created in the nearest existing parent.
    let Some(place) = home.ancestors().find(|place| place.symlink_metadata().is_ok()) else {
        return DoctorCheck::new(NAME, CheckStatus::Warning, format!("{shown} cannot be created"))
            .advise("Set HOB_HOME to a directory that you own");
    };
    if !place.is_dir() {
        return DoctorCheck::new(
            NAME,
            CheckStatus::Warning,
            format!("{} is not a directory", place.display()),
        )
        .advise("Move it away, or set HOB_HOME to a directory that you own");
    }
    if let Err(reason) = writable(place) {
        let message = format!("{} is not writable ({reason}), so Hob cannot save anything", place.display());
        return DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(format!(
            "Take ownership with 'chown -R \"$USER\" {shown}', or set HOB_HOME to another directory"
        ));
    }
    let is_new = if place == home { "" } else { ", not created yet" };
    match free_bytes(place) {
        Some(free) if free < LITTLE => DoctorCheck::new(
            NAME,
            CheckStatus::Warning,
            format!("{shown}: only {} free on its disk", memory(free)),
        )
        .advise(
            "Free some space: 'hob model list' shows the size of each model, 'hob model rm NAME' deletes one",
        ),
        Some(free) => {
            DoctorCheck::new(NAME, CheckStatus::Good, format!("{shown}{is_new}, {} free", memory(free)))
        }
        None => DoctorCheck::new(NAME, CheckStatus::Good, format!("{shown}{is_new}")),
    }
}

/// Whether files can be created in `directory`, or a missing one where it will be. Creates nothing.
pub fn can_write(directory: &Path) -> bool {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let place = directory.ancestors().find(|place| place.symlink_metadata().is_ok());
    place.is_some_and(|place| place.is_dir() && writable(place).is_ok())
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

/// The free space on the disk of a directory, if the system reports it.
#[cfg(unix)]
fn free_bytes(directory: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(directory).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}
