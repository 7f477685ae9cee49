//! Messages to the service manager (systemd's `Type=notify`): the server answers requests, the server stops. Without a service
//! manager they do nothing. Knows nothing of what is served.

/// Reports that the server answers requests.
pub fn ready() {
    #[cfg(unix)]
    notify(sd_notify::NotifyState::Ready);
}

/// Reports that the server finishes the answers in progress and accepts no new requests.
pub fn stopping() {
    #[cfg(unix)]
    notify(sd_notify::NotifyState::Stopping);
}

#[cfg(unix)]
fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(&state)) {
        tracing::warn!(
            %error,
            %state,
            "the service manager cannot be notified. Let the service use the socket in $NOTIFY_SOCKET"
        );
    }
}
