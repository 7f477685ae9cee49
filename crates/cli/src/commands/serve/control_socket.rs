//! The socket on which `hob reload` asks this server to reload. It is in the home directory, and only the user of the server can open it.

use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::reload_socket::ReloadOutcome;

/// A request to reload. Dropping it closes the connection without an answer.
pub struct ReloadRequest {
    answer: oneshot::Sender<ReloadOutcome>,
}

impl ReloadRequest {
    pub fn answer(self, outcome: ReloadOutcome) {
        // A client that left does not need it.
        let _ = self.answer.send(outcome);
    }
}

/// The socket. Dropping it removes it.
pub struct ControlSocket {
    requests: mpsc::Receiver<ReloadRequest>,
    /// `None` if the socket could not be opened.
    path: Option<PathBuf>,
    _stop: DropGuard,
}

impl ControlSocket {
    /// Opens the socket of the server with this id. Failures are only logged: SIGHUP reloads too.
    pub fn open(home: &Path, server: &str) -> Self {
        let stop = CancellationToken::new();
        let (sender, requests) = mpsc::channel(1);
        let path = listen(home, server, sender, stop.clone());
        ControlSocket { requests, path, _stop: stop.drop_guard() }
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

#[cfg(not(unix))]
fn listen(_: &Path, _: &str, _: mpsc::Sender<ReloadRequest>, _: CancellationToken) -> Option<PathBuf> {
    None
}

#[cfg(unix)]
use unix::listen;

#[cfg(unix)]
mod unix {
    use std::fs::Permissions;
    use std::io;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{UnixListener, UnixStream};
    use tokio::sync::{mpsc, oneshot};
    use tokio_util::sync::CancellationToken;

    use crate::commands::serve::control_socket::ReloadRequest;
    use crate::reload_socket::{RELOAD, is_abandoned, socket_path, sockets};

    /// How long a client may take to send its request, or to read the answer.
    const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

    pub(super) fn listen(
        home: &Path,
        server: &str,
        requests: mpsc::Sender<ReloadRequest>,
        stop: CancellationToken,
    ) -> Option<PathBuf> {
        remove_abandoned(home);
        let path = socket_path(home, server);
        let open = || -> io::Result<UnixListener> {
            let listener = UnixListener::bind(&path)?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            Ok(listener)
        };
        match open() {
            Ok(listener) => {
                // Ends with its token.
                tokio::spawn(stop.run_until_cancelled_owned(accept(listener, requests)));
                Some(path)
            }
            Err(error) => {
                tracing::info!(%error, path = %path.display(), "'hob reload' cannot reach this server");
                None
            }
        }
    }

    /// Servers that were killed leave their sockets behind.
    fn remove_abandoned(home: &Path) {
        for path in sockets(home).unwrap_or_default() {
            if std::os::unix::net::UnixStream::connect(&path).is_err_and(|error| is_abandoned(&error)) {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Serves one client at a time. Never ends by itself.
    async fn accept(listener: UnixListener, requests: mpsc::Sender<ReloadRequest>) {
        loop {
            match listener.accept().await {
                Ok((client, _)) => {
                    if let Err(error) = serve(client, &requests).await {
                        tracing::debug!(%error, "a client of 'hob reload' has left");
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection of 'hob reload'");
                    tokio::time::sleep(CLIENT_TIMEOUT).await;
                }
            }
        }
    }

    async fn serve(mut client: UnixStream, requests: &mpsc::Sender<ReloadRequest>) -> io::Result<()> {
        let mut asked = [0; RELOAD.len()];
        tokio::time::timeout(CLIENT_TIMEOUT, client.read_exact(&mut asked)).await??;
        if asked[..] != *RELOAD {
            return Err(io::Error::other("it asked for something else"));
        }
        let (answer, outcome) = oneshot::channel();
        let (Ok(()), Ok(outcome)) = (requests.send(ReloadRequest { answer }).await, outcome.await) else {
            return Err(io::Error::other("the server stops"));
        };
        let text = serde_json::to_vec(&outcome).map_err(io::Error::other)?;
        tokio::time::timeout(CLIENT_TIMEOUT, client.write_all(&text)).await?
    }
}
