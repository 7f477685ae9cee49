//! Tells the running servers of this home what a command has changed, so that their open pages load it again. Nothing depends on it: a
//! server that does not listen only shows the change later.

/// How a notice begins. Behind it stand the name of a topic and, for documents, their collection.
pub const CHANGED: &str = "changed ";

/// What a command can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedPart<'a> {
    Chats,
    /// Those of one collection.
    Documents(&'a str),
    Keys,
    Models,
    Tasks,
    Channels,
}

impl ChangedPart<'_> {
    /// The line that a server reads.
    fn line(self) -> String {
        match self {
            ChangedPart::Chats => format!("{CHANGED}chats\n"),
            ChangedPart::Documents(collection) => format!("{CHANGED}documents {collection}\n"),
            ChangedPart::Keys => format!("{CHANGED}keys\n"),
            ChangedPart::Models => format!("{CHANGED}models\n"),
            ChangedPart::Tasks => format!("{CHANGED}tasks\n"),
            ChangedPart::Channels => format!("{CHANGED}channels\n"),
        }
    }
}

/// Tells all running servers of this home. Takes no longer than it takes to write a line.
pub fn tell_servers(changed: ChangedPart<'_>) {
    #[cfg(unix)]
    unix::tell(&changed.line());
    #[cfg(not(unix))]
    let _ = changed.line();
}

#[cfg(unix)]
mod unix {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use crate::reload_socket::sockets;
    use crate::settings;

    /// A server that is busy reads the line later, from the buffer of the socket.
    const WRITE_TIMEOUT: Duration = Duration::from_millis(200);

    pub(super) fn tell(line: &str) {
        let Ok(home) = settings::home() else { return };
        for path in sockets(&home).unwrap_or_default() {
            let told = UnixStream::connect(&path).and_then(|mut socket| {
                socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
                socket.write_all(line.as_bytes())
            });
            if let Err(error) = told {
                tracing::debug!(%error, path = %path.display(), "cannot notify a server of a change");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_one_line_with_a_topic() {
        let lines = [ChangedPart::Tasks, ChangedPart::Documents("team")].map(ChangedPart::line);
        assert_eq!(lines, ["changed tasks\n", "changed documents team\n"]);
    }
}
