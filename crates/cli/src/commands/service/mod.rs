//! `hob service`: runs the server under systemd or launchd.

mod definition;
mod files;
mod launchd;
mod listen;
mod manager;
mod systemd;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use hob_config::Environment;

use self::definition::{FileOwner, ServiceContext, ServiceDefinition, ServiceState, VARIABLES};
use self::files::{FileChange, is_removable, remove_file, write_file};
use self::listen::{ListenPlan, ServiceReach};
use crate::args::{ServiceCommand, ServiceScopeArgs};
use crate::commands::block_on;
use crate::named_keys::NamedKeys;
use crate::output;
use crate::output::style::GOOD;
use crate::output::table::print_facts;

pub fn run(command: ServiceCommand) -> Result<ExitCode> {
    match command {
        ServiceCommand::Install(args) => {
            let context = ServiceContext::of_process()?;
            if !args.print {
                check_installable(&context, args.scope)?;
            }
            let reach = if args.lan { ServiceReach::Network } else { ServiceReach::AsConfigured };
            let plan = listen_plan(args.scope, reach)?;
            let service = define(args.scope, ServiceContext { host: plan.flag, ..context })?;
            match args.print {
                true => block_on(print(&service, &plan)),
                false => block_on(install(&service, &plan)),
            }
        }
        ServiceCommand::Uninstall(scope) => {
            check_rights(scope)?;
            block_on(uninstall(&installed(scope)?))
        }
        ServiceCommand::Status(scope) => block_on(status(&installed(scope)?)),
        ServiceCommand::Start(scope) => block_on(start(&installed(scope)?)),
        ServiceCommand::Stop(scope) => block_on(stop(&installed(scope)?)),
    }
}

/// Where the server of the service will listen.
fn listen_plan(scope: ServiceScopeArgs, reach: ServiceReach) -> Result<ListenPlan> {
    if !scope.system {
        return ListenPlan::read(&listen::user_environment()?, reach);
    }
    match (Path::new(systemd::PACKAGE_UNIT).exists(), reach) {
        (true, ServiceReach::Network) => bail!(
            "--lan does not change the unit of the package. Set host under [server] in {}, and run 'systemctl restart hob'.",
            systemd::SYSTEM_CONFIG_PATH
        ),
        (true, ServiceReach::AsConfigured) => ListenPlan::of_package(),
        (false, reach) => ListenPlan::of_machine(reach),
    }
}

/// The service as it is managed. The contents of its files do not matter.
fn installed(scope: ServiceScopeArgs) -> Result<ServiceDefinition> {
    define(scope, ServiceContext::of_process()?)
}

/// The service for this system's service manager.
fn define(scope: ServiceScopeArgs, context: ServiceContext) -> Result<ServiceDefinition> {
    if cfg!(target_os = "macos") {
        if scope.system {
            bail!("--system needs systemd. Use 'hob service install' without it.");
        }
        return Ok(launchd::user_service(&context));
    }
    Ok(if scope.system {
        systemd::system_service(&context, Path::new(systemd::PACKAGE_UNIT).exists())
    } else {
        systemd::user_service(&context)
    })
}

impl ServiceContext {
    fn of_process() -> Result<Self> {
        let environment = Environment::from_process();
        let user_home = environment.home().context("HOME is not set")?.to_owned();
        let config_directory = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let config_directory = config_directory.filter(|path| path.is_absolute());
        let executable = std::env::current_exe().context("cannot find the path of this program")?;
        let mut variables = Vec::new();
        for name in VARIABLES {
            if let Some(path) = std::env::var_os(name).filter(|path| !path.is_empty()) {
                // The service starts in another directory.
                let path = std::path::absolute(path).with_context(|| format!("{name} is no path"))?;
                variables.push((name, plain(&path)?));
            }
        }
        Ok(ServiceContext {
            executable: plain(&stable(executable))?,
            environment: variables,
            hob_home: plain(&std::path::absolute(environment.config_dir()?)?)?,
            config_directory: config_directory.unwrap_or_else(|| user_home.join(".config")),
            user_home,
            user_id: user_id(),
            host: None,
        })
    }
}

/// Homebrew deletes the directory of a version when it installs the next one; its link stays.
fn stable(executable: PathBuf) -> PathBuf {
    let linked = executable.to_str().and_then(|path| {
        let (prefix, _) = path.split_once("/Cellar/hob/")?;
        Some(PathBuf::from(format!("{prefix}/opt/hob/bin/hob")))
    });
    linked.filter(|linked| linked.exists()).unwrap_or(executable)
}

/// A path as text for the file of a service.
fn plain(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) if !text.contains(char::is_control) => Ok(text.to_owned()),
        _ => bail!("the path {} cannot be written to the file of a service", path.display()),
    }
}

#[cfg(unix)]
fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn user_id() -> u32 {
    0
}

fn check_rights(scope: ServiceScopeArgs) -> Result<()> {
    if scope.system && user_id() != 0 {
        bail!("--system needs root. Run it with sudo, and with the full path of hob.");
    }
    Ok(())
}

fn check_installable(context: &ServiceContext, scope: ServiceScopeArgs) -> Result<()> {
    if cfg!(not(feature = "server")) {
        bail!("this build of hob has no server, so there is nothing to run as a service.");
    }
    check_rights(scope)?;
    if scope.system && systemd::is_hidden_from_system(Path::new(&context.executable)) {
        bail!(
            "the service of the machine does not see home directories, and {} is in one. Install Hob with the Debian package, or with \
             'install.sh --prefix /usr/local'.",
            context.executable
        );
    }
    Ok(())
}

async fn print(service: &ServiceDefinition, plan: &ListenPlan) -> Result<ExitCode> {
    match service.files.first() {
        Some(file) => output::line(file.text.trim_end())?,
        None => output::note(format_args!("The package has installed {}.", systemd::PACKAGE_UNIT)),
    }
    output::note(format_args!("The server will listen on {}.", plan.shown()));
    warn_if_open(plan).await;
    Ok(ExitCode::SUCCESS)
}

/// Warns if others could use the server without a key.
async fn warn_if_open(plan: &ListenPlan) {
    if !plan.is_open() {
        return;
    }
    match plan.named_keys().await {
        NamedKeys::Some | NamedKeys::NoneValid => {}
        NamedKeys::None if has_key_in_shell() => output::warning(format_args!(
            "HOB_API_KEY is set in this shell, but the service does not see it, so anyone on your network can use the server. {}, or \
             run 'hob key create NAME'.",
            plan.key_advice()
        )),
        NamedKeys::None => output::warning(
            "without a key, anyone on your network can use the server. 'hob key create NAME' creates one.",
        ),
        NamedKeys::Unknown => output::warning(
            "the named keys of the server cannot be read. If there are none, anyone on your network can use the server.",
        ),
    }
}

fn has_key_in_shell() -> bool {
    std::env::var_os("HOB_API_KEY").is_some_and(|key| !key.is_empty())
}

async fn install(service: &ServiceDefinition, plan: &ListenPlan) -> Result<ExitCode> {
    // Before anything is written: without a service manager, this is an error.
    manager::output_of(&service.state).await?;
    let mut is_changed = false;
    let mut created = Vec::new();
    for file in &service.files {
        let change = write_file(file)?;
        match change {
            FileChange::None => output::line(format_args!("  {} is up to date", file.path.display()))?,
            FileChange::Created | FileChange::Replaced => {
                is_changed = true;
                output::line(format_args!("{GOOD}✓{GOOD:#} Wrote {}", file.path.display()))?;
            }
        }
        if let (FileChange::Created, FileOwner::Administrator { after_creation }) = (change, &file.owner) {
            created.extend_from_slice(after_creation);
        }
    }
    manager::run_all(&service.prepare).await?;
    manager::run_all(&created).await?;
    manager::run_all(&service.enable).await?;
    manager::run(if is_changed { &service.restart } else { &service.start }).await?;
    output::line(format_args!("{GOOD}✓{GOOD:#} The service is installed and starts now"))?;
    print_facts(&[
        ("Address", plan.shown()),
        ("Status", "hob service status".to_owned()),
        ("Log", service.log.clone()),
    ])?;
    if plan.flag.is_some() && plan.is_local() {
        output::note("To let other machines of your network in: hob service install --lan");
    }
    warn_if_open(plan).await;
    if let Some(note) = service.note.filter(|_| !is_lingering()) {
        output::note(note);
    }
    Ok(ExitCode::SUCCESS)
}

async fn uninstall(service: &ServiceDefinition) -> Result<ExitCode> {
    if !is_installed(service) {
        output::line("The service is not installed.")?;
        return Ok(ExitCode::SUCCESS);
    }
    // Before the service is stopped: it may be the user's own.
    let mut ours = Vec::new();
    for file in &service.files {
        if is_removable(file)? {
            ours.push(&file.path);
        }
    }
    manager::run_all(&service.disable).await?;
    for path in ours {
        remove_file(path)?;
        output::line(format_args!("{GOOD}✓{GOOD:#} Removed {}", path.display()))?;
    }
    manager::run_all(&service.forget).await?;
    output::line("The service is stopped. Hob's data is not deleted.")?;
    Ok(ExitCode::SUCCESS)
}

async fn status(service: &ServiceDefinition) -> Result<ExitCode> {
    require_installed(service)?;
    let state = (service.read_state)(&manager::output_of(&service.state).await?);
    let file = service.files.first().map_or(Path::new(systemd::PACKAGE_UNIT), |file| file.path.as_path());
    print_facts(&[
        ("State", state.as_str().to_owned()),
        ("File", file.display().to_string()),
        ("Log", service.log.clone()),
    ])?;
    Ok(if state == ServiceState::Running { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn start(service: &ServiceDefinition) -> Result<ExitCode> {
    require_installed(service)?;
    manager::run(&service.start).await?;
    output::line("The service starts. 'hob service status' shows its state.")?;
    Ok(ExitCode::SUCCESS)
}

async fn stop(service: &ServiceDefinition) -> Result<ExitCode> {
    require_installed(service)?;
    manager::run(&service.stop).await?;
    output::line("The service is stopped.")?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the file of the service exists, or a package has installed it.
fn is_installed(service: &ServiceDefinition) -> bool {
    service.files.first().is_none_or(|file| file.path.exists())
}

fn require_installed(service: &ServiceDefinition) -> Result<()> {
    if !is_installed(service) {
        bail!("the service is not installed. Install it with 'hob service install'.");
    }
    Ok(())
}

/// Whether the services of this user run without a session.
fn is_lingering() -> bool {
    let user = std::env::var_os("USER").filter(|user| !user.is_empty());
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_homebrew_is_started_by_its_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("opt/hob/bin/hob");
        let version = directory.path().join("Cellar/hob/0.1.0/bin/hob");
        assert_eq!(stable(version.clone()), version, "the link does not exist");
        std::fs::create_dir_all(link.parent().expect("a directory")).expect("created");
        std::fs::write(&link, "").expect("a file");
        assert_eq!(stable(version), link);
        assert_eq!(stable(PathBuf::from("/usr/bin/hob")), Path::new("/usr/bin/hob"));
    }

    #[test]
    fn a_path_cannot_add_lines_to_the_file() {
        assert_eq!(plain(Path::new("/a b/hob")).expect("text"), "/a b/hob");
        assert!(plain(Path::new("/a\nExecStart=/bin/sh/hob")).is_err());
    }
}
