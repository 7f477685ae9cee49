//! The control socket of this server: `hob reload` asks it to reload, `hob ask` and `hob chat` send it questions, `hob scheduler run`
//! lets it run a task, and commands that change something tell it what. It is in the home directory, and only the user of the server can
//! open it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hob_keys::AuditActor;
use hob_server::ServerControl;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::control_answers::ControlAnswers;
use crate::reload_socket::ReloadOutcome;

/// A request to reload. Dropping it closes the connection without an answer.
pub struct ReloadRequest {
    /// Who sent it, for the audit log.
    pub actor: AuditActor,
    answer: oneshot::Sender<ReloadOutcome>,
}

impl ReloadRequest {
    pub fn answer(self, outcome: ReloadOutcome) {
        // A client that left does not need it.
        let _ = self.answer.send(outcome);
    }
}

/// The socket. Dropping it removes it. Questions in progress continue.
pub struct ControlSocket {
    requests: mpsc::Receiver<ReloadRequest>,
    clients: ControlClients,
    /// `None` if the socket could not be opened.
    path: Option<PathBuf>,
    _stop: DropGuard,
}

/// The clients that are connected.
#[derive(Clone, Default)]
pub struct ControlClients {
    tasks: TaskTracker,
    cancel: CancellationToken,
    /// How many of them wait for an answer.
    waiting: Arc<AtomicUsize>,
}

impl ControlClients {
    /// Waits for answers in progress, and cuts off those that take longer. Returns how many were cut off.
    pub async fn drain(&self, grace: Duration) -> usize {
        self.tasks.close();
        // If this future is dropped, the answers end too.
        let _cancel = self.cancel.clone().drop_guard();
        match tokio::time::timeout(grace, self.tasks.wait()).await {
            Ok(()) => 0,
            Err(_) => self.waiting.load(Ordering::Relaxed),
        }
    }
}

impl ControlSocket {
    /// Opens the socket of the server with this id. Failures are only logged: SIGHUP reloads too, and the command line answers its questions
    /// itself.
    pub fn open(home: &Path, server: &str, answers: ControlAnswers, control: ServerControl) -> Self {
        let stop = CancellationToken::new();
        let (sender, requests) = mpsc::channel(1);
        let clients = ControlClients::default();
        let services = ControlServices { requests: sender, answers, control, clients: clients.clone() };
        let path = listen(home, server, services, stop.clone());
        ControlSocket { requests, clients, path, _stop: stop.drop_guard() }
    }

    /// The clients that are connected.
    pub fn clients(&self) -> ControlClients {
        self.clients.clone()
    }

    /// The next request.
    pub async fn next(&mut self) -> ReloadRequest {
        match self.requests.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What clients of the socket can ask for.
#[derive(Clone)]
struct ControlServices {
    requests: mpsc::Sender<ReloadRequest>,
    answers: ControlAnswers,
    /// Tells the open pages what has changed.
    control: ServerControl,
    clients: ControlClients,
}

#[cfg(not(unix))]
fn listen(_: &Path, _: &str, _: ControlServices, _: CancellationToken) -> Option<PathBuf> {
    None
}

#[cfg(unix)]
use unix::listen;

#[cfg(unix)]
mod unix {
    use std::fs::{DirBuilder, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use futures::StreamExt;
    use hob_keys::AuditActor;
    use tokio::io::AsyncWriteExt;
    use tokio::net::unix::OwnedWriteHalf;
    use tokio::net::{UnixListener, UnixStream};
    use tokio::sync::{Semaphore, oneshot};
    use tokio_util::codec::{FramedRead, LinesCodec};
    use tokio_util::sync::CancellationToken;

    use crate::answers::MAX_REQUEST_BYTES;
    use crate::change_notice::CHANGED;
    use crate::commands::serve::control_socket::{ControlServices, ReloadRequest};
    use crate::reload_socket::{RELOAD, is_abandoned, socket_path, sockets};

    /// How long a client may take to send its request.
    const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

    /// The wait after a connection that cannot be accepted.
    const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

    /// Clients at a time. Others wait.
    const MAX_CLIENTS: usize = 64;

    pub(super) fn listen(
        home: &Path,
        server: &str,
        services: ControlServices,
        stop: CancellationToken,
    ) -> Option<PathBuf> {
        remove_abandoned(home);
        let path = socket_path(home, server);
        match bind(home, server, &path) {
            Ok(listener) => {
                // Ends with its token.
                tokio::spawn(stop.run_until_cancelled_owned(accept(listener, services)));
                Some(path)
            }
            Err(error) => {
                tracing::info!(%error, path = %path.display(), "'hob reload' and 'hob ask' cannot reach this server");
                None
            }
        }
    }

    /// The socket, with its mode from the start: it gets it in a directory that only this user can enter, and then its name. The mode of
    /// new files belongs to the whole process, and other threads make files too.
    pub(super) fn bind(home: &Path, server: &str, path: &Path) -> io::Result<UnixListener> {
        // Not longer than the final path, because the length of such paths is limited.
        let closed = home.join(format!(".{server}"));
        DirBuilder::new().mode(0o700).create(&closed)?;
        let hidden = closed.join("s");
        let bound = UnixListener::bind(&hidden).and_then(|listener| {
            std::fs::set_permissions(&hidden, Permissions::from_mode(0o600))?;
            std::fs::rename(&hidden, path)?;
            Ok(listener)
        });
        if bound.is_err() {
            let _ = std::fs::remove_file(&hidden);
        }
        let _ = std::fs::remove_dir(&closed);
        bound
    }

    /// Whether a user may use the socket of a server of user `own`: the same one, or root.
    pub(super) fn may_connect(user: u32, own: u32) -> bool {
        user == own || user == 0
    }

    /// Servers that were killed leave their sockets behind.
    fn remove_abandoned(home: &Path) {
        for path in sockets(home).unwrap_or_default() {
            if std::os::unix::net::UnixStream::connect(&path).is_err_and(|error| is_abandoned(&error)) {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Never ends by itself.
    async fn accept(listener: UnixListener, services: ControlServices) {
        let places = Arc::new(Semaphore::new(MAX_CLIENTS));
        // The semaphore is never closed.
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            match listener.accept().await {
                Ok((client, _)) => {
                    let (services, cancel) = (services.clone(), services.clients.cancel.clone());
                    let tasks = services.clients.tasks.clone();
                    tasks.spawn(cancel.run_until_cancelled_owned(async move {
                        if let Err(error) = serve(client, &services).await {
                            tracing::debug!(%error, "a client of the control socket has left");
                        }
                        drop(place);
                    }));
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection of the control socket");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve(client: UnixStream, services: &ControlServices) -> io::Result<()> {
        // The mode of the socket says the same. Some systems do not look at it.
        let user = client.peer_cred()?.uid();
        if !may_connect(user, rustix::process::geteuid().as_raw()) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (read, mut out) = client.into_split();
        let mut lines = FramedRead::new(read, LinesCodec::new_with_max_length(MAX_REQUEST_BYTES));
        let Some(line) = tokio::time::timeout(CLIENT_TIMEOUT, lines.next()).await? else { return Ok(()) };
        let line = line.map_err(io::Error::other)?;
        if line == RELOAD {
            return reload(user, &mut out, services).await;
        }
        if let Some(changed) = line.strip_prefix(CHANGED) {
            announce(changed, services);
            return Ok(());
        }
        let waiting = &services.clients.waiting;
        waiting.fetch_add(1, Ordering::Relaxed);
        let answered = tokio::select! {
            answered = services.answers.answer(&line, &mut out) => answered,
            // A client sends nothing more. Its end cancels the work.
            _ = lines.next() => Err(io::ErrorKind::ConnectionReset.into()),
        };
        waiting.fetch_sub(1, Ordering::Relaxed);
        answered
    }

    /// A notice names a topic, and for documents also their collection. One that this server does not know is ignored.
    fn announce(notice: &str, services: &ControlServices) {
        let mut words = notice.split_whitespace();
        let topic = words.next().unwrap_or_default();
        if !services.control.announce(topic, words.next()) {
            tracing::debug!("a notice on the control socket names nothing that this server knows");
        }
    }

    async fn reload(user: u32, out: &mut OwnedWriteHalf, services: &ControlServices) -> io::Result<()> {
        let (answer, outcome) = oneshot::channel();
        let request = ReloadRequest { actor: user_at_terminal(user), answer };
        let (Ok(()), Ok(outcome)) = (services.requests.send(request).await, outcome.await) else {
            return Err(io::Error::other("the server stops"));
        };
        let text = serde_json::to_vec(&outcome).map_err(io::Error::other)?;
        tokio::time::timeout(CLIENT_TIMEOUT, out.write_all(&text)).await?
    }

    /// The person at this machine, with the number of the user as the kernel reports it.
    pub(super) fn user_at_terminal(user: u32) -> AuditActor {
        AuditActor { origin: format!("terminal, user {user}"), ..AuditActor::terminal() }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tokio::net::UnixStream;

    use super::unix::{bind, may_connect, user_at_terminal};
    use crate::reload_socket::socket_path;

    #[test]
    fn the_audit_log_names_the_user_who_reloads() {
        let actor = user_at_terminal(1000);
        assert_eq!((actor.name.as_str(), actor.origin.as_str()), ("owner", "terminal, user 1000"));
    }

    #[test]
    fn only_the_user_of_the_server_and_root_may_connect() {
        let allowed =
            [(1000, 1000), (0, 1000), (1001, 1000), (1000, 0)].map(|(user, own)| may_connect(user, own));
        assert_eq!(allowed, [true, true, false, false]);
    }

    #[tokio::test]
    async fn the_socket_is_closed_to_others_and_accepts_under_its_name() {
        let home = tempfile::tempdir().expect("a directory");
        let path = socket_path(home.path(), "1-7");
        let listener = bind(home.path(), "1-7", &path).expect("a socket");
        let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let names: Vec<_> =
            std::fs::read_dir(home.path()).expect("a list").flatten().map(|entry| entry.path()).collect();
        assert_eq!(names, std::slice::from_ref(&path), "nothing else is left");
        let (client, accepted) = tokio::join!(UnixStream::connect(&path), listener.accept());
        let _client = client.expect("connected");
        let (accepted, _) = accepted.expect("accepted");
        let user = accepted.peer_cred().expect("a user").uid();
        assert!(may_connect(user, rustix::process::geteuid().as_raw()));
    }
}
