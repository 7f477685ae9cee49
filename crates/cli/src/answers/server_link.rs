//! The client of a running server: finds the server of this home by its control socket, and sends it questions.
//!
//! The socket is in the home directory and only its user can open it, so it needs no key. The process behind it must belong to the owner of
//! the home.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::events::{AnswerEvent, AnswerEvents, AnswerFailure};
use super::question::AskQuestion;
use super::server_messages::{ServerInfo, ServerRequest};
use super::task_run::{TaskRunEvent, TaskRunEvents, TaskRunRequest};

/// A server that can answer.
#[derive(Debug, Clone)]
pub struct ServerLink {
    socket: PathBuf,
    pub info: ServerInfo,
    /// The engine that must answer; `None` for any.
    pub engine: Option<String>,
}

/// The result of the search for a server.
#[derive(Debug)]
pub enum FoundServer {
    None,
    Server(ServerLink),
    /// A server that cannot answer this program, and the reason.
    Unusable(String),
}

/// Finds the running server of a home.
pub async fn find_server(home: &Path) -> FoundServer {
    transport::find_server(home).await
}

impl ServerLink {
    /// The answer to a question. Dropping it closes the connection, and the server stops the engine's work.
    pub fn answer(&self, question: AskQuestion) -> AnswerEvents<'static> {
        let question = AskQuestion { engine: self.engine.clone(), ..question };
        let is_last = |event: &AnswerEvent| matches!(event, AnswerEvent::Done | AnswerEvent::Whole(_));
        transport::events(self.socket.clone(), ServerRequest::Ask(Box::new(question)), is_last)
    }

    /// A run of a task. Dropping it closes the connection, and the server stops the run.
    pub fn run_task(&self, request: TaskRunRequest) -> TaskRunEvents<'static> {
        let request = TaskRunRequest { engine: self.engine.clone(), ..request };
        let is_last = |event: &TaskRunEvent| matches!(event, TaskRunEvent::Ended(_));
        transport::events(self.socket.clone(), ServerRequest::RunTask(request), is_last)
    }

    /// The result of a request.
    pub async fn request<T: DeserializeOwned>(&self, request: &ServerRequest) -> Result<T, AnswerFailure> {
        transport::request(&self.socket, request).await
    }
}

#[cfg(not(unix))]
use self::other as transport;
#[cfg(unix)]
use self::unix as transport;

/// A system without such sockets has no server to find.
#[cfg(not(unix))]
mod other {
    use std::path::{Path, PathBuf};
    use std::pin::Pin;

    use futures::{Stream, stream};

    use crate::answers::events::AnswerFailure;
    use crate::answers::server_link::FoundServer;
    use crate::answers::server_messages::ServerRequest;

    const NO_SOCKETS: &str = "this system has no control sockets.";

    pub(super) async fn find_server(_: &Path) -> FoundServer {
        FoundServer::None
    }

    pub(super) fn events<T: Send + 'static>(
        _: PathBuf,
        _: ServerRequest,
        _: fn(&T) -> bool,
    ) -> Pin<Box<dyn Stream<Item = Result<T, AnswerFailure>> + Send>> {
        Box::pin(stream::iter([Err(AnswerFailure::new(NO_SOCKETS))]))
    }

    pub(super) async fn request<T>(_: &Path, _: &ServerRequest) -> Result<T, AnswerFailure> {
        Err(AnswerFailure::new(NO_SOCKETS))
    }
}

#[cfg(unix)]
mod unix {
    use std::cmp::Reverse;
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};
    use std::pin::Pin;
    use std::time::Duration;

    use futures::{SinkExt, Stream, StreamExt, stream};
    use serde::de::DeserializeOwned;
    use tokio::net::UnixStream;
    use tokio_util::codec::{Framed, LinesCodec};

    use crate::answers::events::AnswerFailure;
    use crate::answers::server_link::{FoundServer, ServerLink};
    use crate::answers::server_messages::{
        MAX_ANSWER_BYTES, MAX_REQUEST_BYTES, ServerInfo, ServerRequest, ServerVersion, VERSION,
    };
    use crate::reload_socket::{is_abandoned, sockets};

    /// How long a server may take to say what it is.
    const INFO_TIMEOUT: Duration = Duration::from_secs(10);

    type ServerLines = Framed<UnixStream, LinesCodec>;

    type ServerEvents<T> = Pin<Box<dyn Stream<Item = Result<T, AnswerFailure>> + Send>>;

    /// The newest server that can answer; else the reason why another one cannot.
    pub(super) async fn find_server(home: &Path) -> FoundServer {
        let mut sockets = sockets(home).unwrap_or_default();
        sockets.sort_by_key(|path| Reverse(started(path)));
        let mut unusable = FoundServer::None;
        for socket in sockets {
            let reason = match tokio::time::timeout(INFO_TIMEOUT, info(home, &socket)).await {
                Ok(Ok(info)) => return FoundServer::Server(ServerLink { socket, info, engine: None }),
                Ok(Err(Refusal::Abandoned)) => continue,
                Ok(Err(Refusal::Reason(reason))) => reason,
                Err(_) => "it does not answer".to_owned(),
            };
            if matches!(unusable, FoundServer::None) {
                unusable = FoundServer::Unusable(reason);
            }
        }
        unusable
    }

    /// When the server of a socket started, from the name of the socket.
    fn started(socket: &Path) -> u128 {
        let name = socket.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        name.rsplit('-').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or_default()
    }

    /// Why a server cannot be used.
    enum Refusal {
        /// The server no longer runs.
        Abandoned,
        Reason(String),
    }

    impl From<io::Error> for Refusal {
        fn from(error: io::Error) -> Self {
            if is_abandoned(&error) { Refusal::Abandoned } else { Refusal::Reason(error.to_string()) }
        }
    }

    async fn info(home: &Path, socket: &Path) -> Result<ServerInfo, Refusal> {
        let connection = UnixStream::connect(socket).await?;
        if connection.peer_cred()?.uid() != std::fs::metadata(home)?.uid() {
            return Err(Refusal::Reason("it belongs to another user".to_owned()));
        }
        let mut lines = framed(connection);
        let unknown = || Refusal::Reason("it is another version of Hob".to_owned());
        // A server without this request closes the connection.
        let line = line_of(&ServerRequest::Info)?;
        lines.send(line).await.map_err(|_| unknown())?;
        let line = lines.next().await.and_then(Result::ok).ok_or_else(unknown)?;
        let version: ServerVersion = serde_json::from_str(&line).map_err(|_| unknown())?;
        if !version.is_ours() {
            return Err(Refusal::Reason(format!("it is Hob {}, this is {VERSION}", version.version)));
        }
        serde_json::from_str(&line).map_err(|_| unknown())
    }

    pub(super) async fn request<T: DeserializeOwned>(
        socket: &Path,
        request: &ServerRequest,
    ) -> Result<T, AnswerFailure> {
        let mut lines = asked(socket, request).await?;
        next(&mut lines).await
    }

    /// The events that answer a request, until the last one or an error.
    pub(super) fn events<T: DeserializeOwned + Send + 'static>(
        socket: PathBuf,
        request: ServerRequest,
        is_last: fn(&T) -> bool,
    ) -> ServerEvents<T> {
        let begin = async move { asked(&socket, &request).await };
        Box::pin(stream::once(begin).flat_map(move |asked| -> ServerEvents<T> {
            match asked {
                Ok(lines) => read_events(lines, is_last),
                Err(failure) => Box::pin(stream::iter([Err(failure)])),
            }
        }))
    }

    fn read_events<T: DeserializeOwned + Send + 'static>(
        lines: ServerLines,
        is_last: fn(&T) -> bool,
    ) -> ServerEvents<T> {
        Box::pin(stream::unfold(Some((lines, is_last)), async |reading| {
            let (mut lines, is_last) = reading?;
            let event = next::<T>(&mut lines).await;
            let has_ended = match &event {
                Ok(event) => is_last(event),
                Err(_) => true,
            };
            Some((event, (!has_ended).then_some((lines, is_last))))
        }))
    }

    async fn asked(socket: &Path, request: &ServerRequest) -> Result<ServerLines, AnswerFailure> {
        let line = line_of(request).map_err(|error| lost(&error))?;
        if line.len() > MAX_REQUEST_BYTES {
            return Err(AnswerFailure::new(format!(
                "the question is larger than {} MiB, the limit of the running server. Use --standalone to answer without it.",
                MAX_REQUEST_BYTES >> 20
            )));
        }
        let connection = UnixStream::connect(socket).await.map_err(|error| lost(&error))?;
        let mut lines = framed(connection);
        lines.send(line).await.map_err(|error| lost(&error))?;
        Ok(lines)
    }

    fn framed(connection: UnixStream) -> ServerLines {
        Framed::new(connection, LinesCodec::new_with_max_length(MAX_ANSWER_BYTES))
    }

    fn line_of(request: &ServerRequest) -> io::Result<String> {
        serde_json::to_string(request).map_err(io::Error::other)
    }

    /// The next line. The end of the connection is a failure, because the last line is known.
    async fn next<T: DeserializeOwned>(lines: &mut ServerLines) -> Result<T, AnswerFailure> {
        match lines.next().await {
            Some(Ok(line)) => {
                serde_json::from_str::<Result<T, AnswerFailure>>(&line).map_err(|error| lost(&error))?
            }
            Some(Err(error)) => Err(lost(&error)),
            None => Err(lost(&"it ended")),
        }
    }

    fn lost(reason: &dyn std::fmt::Display) -> AnswerFailure {
        AnswerFailure::new(format!(
            "the running server did not complete the answer: {reason}. Try again, or use --standalone to answer without it."
        ))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[tokio::test]
        async fn a_question_that_is_too_large_is_refused_before_it_is_sent() {
            let request = ServerRequest::CheckModel("x".repeat(MAX_REQUEST_BYTES));
            let refused = asked(Path::new("/nowhere/server.sock"), &request).await.expect_err("refused");
            assert_eq!(
                refused.to_string(),
                "the question is larger than 32 MiB, the limit of the running server. Use --standalone to answer without it."
            );
        }

        #[test]
        fn the_newest_server_comes_first() {
            let mut sockets: Vec<PathBuf> =
                ["server.9-100.sock", "server.7-300.sock", "server.8-200.sock"].map(PathBuf::from).into();
            sockets.sort_by_key(|path| Reverse(started(path)));
            let expected = ["server.7-300.sock", "server.8-200.sock", "server.9-100.sock"].map(PathBuf::from);
            assert_eq!(sockets, expected);
        }
    }
}
