//! Connects to the first host that can be used: after a failover that is another one.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::{Client, Socket};

use super::explain::{explain, explain_connect};
use super::options::PostgresOptions;
use super::query_error::QueryError;
use super::tls::{Tls, TlsStream};
use crate::{DatabaseError, DbResult};

/// A session that holds locks and does nothing is ended by the server, so that a process that hangs does not stop the others.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(60);

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    options: PostgresOptions,
    tls: Tls,
    server: Arc<str>,
}

impl Connector {
    pub(super) fn new(options: PostgresOptions) -> DbResult<Self> {
        let server: Arc<str> = options.server().into();
        let tls = Tls::new(options.tls, &options.roots)
            .map_err(|source| DatabaseError::Tls { server: server.to_string(), source })?;
        Ok(Connector { options, tls, server })
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn options(&self) -> &PostgresOptions {
        &self.options
    }

    /// A client, and the connection that the caller must drive.
    pub(super) async fn connect(&self) -> DbResult<(Client, tokio_postgres::Connection<Socket, TlsStream>)> {
        // The limit of the client library ends with the socket. A server that then says nothing must not hold us either, nor keep us
        // from the next one.
        let limit = self.options.connect_timeout * 2;
        let mut failed = explain(&self.server, QueryError::NoAnswer);
        for login in self.options.logins()? {
            failed = match tokio::time::timeout(limit, login.connect(self.tls.clone())).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => explain_connect(&self.server, error),
                Err(_elapsed) => explain(&self.server, QueryError::NoAnswer),
            };
        }
        Err(failed)
    }

    pub(super) async fn open(&self) -> DbResult<Client> {
        let (client, connection) = self.connect().await?;
        // Ends with its client, or with the server. The client then returns the error.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL ended");
            }
        });
        let settings = format!(
            "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}; SET TimeZone = 'UTC'",
            self.options.statement_timeout.as_millis(),
            IDLE_IN_TRANSACTION.as_millis(),
        );
        // A server that hangs after the login must not hold the caller either.
        match tokio::time::timeout(self.options.connect_timeout, client.batch_execute(&settings)).await {
            Ok(set) => set.map_err(|error| explain_connect(&self.server, error))?,
            Err(_elapsed) => return Err(explain(&self.server, QueryError::NoAnswer)),
        }
        Ok(client)
    }
}
