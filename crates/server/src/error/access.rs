//! Callers that the server refuses: by key, host, origin or role.

use std::time::Duration;

use axum::http::StatusCode;
use hob_core::{CollectionName, LimitKind, LimitReached};
use hob_keys::IdentityRefusal;

use super::{ApiError, TOO_MANY_WRONG_KEYS};

/// Why a caller from elsewhere cannot link an account to WhatsApp.
pub(crate) const LINK_ON_THE_MACHINE: &str = "an account is linked only on the machine that runs Hob. Run 'hob channel login whatsapp' there, or open the channels page there";

const UNKNOWN_SIGNING_KEY: &str = "unknown_signing_key";

impl ApiError {
    /// `has_named` is whether there are named keys.
    pub(crate) fn missing_key(has_named: bool) -> Self {
        Self::key_refused(format!("this server needs a key. {}", advice(has_named)))
    }

    pub(crate) fn wrong_key(has_named: bool) -> Self {
        Self::key_refused(format!("the key of this request is wrong. {}", advice(has_named)))
    }

    /// No key and no token, on a server that accepts tokens.
    pub(crate) fn missing_token(issuer: &str, header: Option<&str>) -> Self {
        let advice = match header {
            Some(header) => format!("Call it through the proxy that sends the header '{header}', or send"),
            None => format!("Send 'authorization: Bearer TOKEN' with a token from {issuer}, or"),
        };
        Self::key_refused(format!(
            "this server needs a token or a key. {advice} a key that 'hob key create' made"
        ))
    }

    /// A proxy must replace the header of a client, not add to it.
    pub(crate) fn several_tokens(header: &str) -> Self {
        Self::key_refused(format!(
            "the request has more than one header '{header}'. Let the proxy replace what clients send in it"
        ))
    }

    /// A token that is not accepted, or whose sender has no rights.
    pub(crate) fn identity_refused(refusal: IdentityRefusal) -> Self {
        let message = refusal.to_string();
        let needs_keys = refusal.needs_keys();
        let error = match refusal {
            IdentityRefusal::Token(_) => {
                ApiError { code: Some("invalid_token"), ..Self::key_refused(message) }
            }
            IdentityRefusal::NoKeys | IdentityRefusal::TooMany => {
                let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
                ApiError { retry_after: Some(5), ..error }
            }
            IdentityRefusal::NoName { .. }
            | IdentityRefusal::NotVerified { .. }
            | IdentityRefusal::NoRule { .. }
            | IdentityRefusal::Blocked { .. } => {
                Self::new(StatusCode::FORBIDDEN, "permission_error", message).coded("identity_not_allowed")
            }
        };
        if needs_keys { ApiError { code: Some(UNKNOWN_SIGNING_KEY), ..error } } else { error }
    }

    /// Whether a token could be checked with newer keys of its provider.
    pub(crate) fn needs_signing_keys(&self) -> bool {
        self.code == Some(UNKNOWN_SIGNING_KEY)
    }

    /// The secret is right, but the key is not valid any more.
    pub(crate) fn invalid_key(name: &str, why: &str) -> Self {
        Self::key_refused(format!("the key '{name}' is {why}. Ask the owner of this server for another"))
    }

    /// The key of a request was made invalid while the request waited.
    pub(crate) fn key_not_valid(message: String) -> Self {
        Self::key_refused(message)
    }

    /// A member asked for what only the owner may use.
    pub(crate) fn not_for_members(key: &str, path: &str) -> Self {
        let message =
            format!("{path} is for the owner only, and the key '{key}' is a member's. Use an owner's key");
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// The key does not allow the model or its engine.
    pub(crate) fn model_not_allowed(message: String) -> Self {
        let error = Self::new(StatusCode::FORBIDDEN, "permission_error", message);
        ApiError { param: Some("model".into()), code: Some("model_not_allowed"), ..error }
    }

    /// The key of a member names no collections of documents.
    pub(crate) fn no_collections(key: &str) -> Self {
        let message = format!(
            "the key '{key}' names no collections of documents. Ask the owner of this server to add some"
        );
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// Says the same of a collection that does not exist, so that a caller does not learn which do.
    pub(crate) fn collection_not_allowed(param: &'static str, name: &CollectionName) -> Self {
        let message = format!(
            "this key may not read the collection '{name}'. GET /v1/keys/self lists the collections that it may read"
        );
        let error = Self::new(StatusCode::FORBIDDEN, "permission_error", message);
        ApiError { param: Some(param.into()), code: Some("collection_not_allowed"), ..error }
    }

    /// The key of a member may read its collections, but not add to them.
    pub(crate) fn may_not_add(key: &str) -> Self {
        let message = format!(
            "the key '{key}' may read documents, but not add any: its reach is not 'act'. Ask the owner of this server"
        );
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// An owner's key on another machine names a folder of this one.
    pub(crate) fn folder_from_elsewhere() -> Self {
        let message = "a folder can be added only on the server's machine. Open the documents page there, or run 'hob memory index FOLDER' there";
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    fn key_refused(message: String) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "authentication_error", message).coded("invalid_api_key")
    }

    /// The database of the keys was away since the server started.
    pub(crate) fn keys_unread() -> Self {
        let message =
            "the keys cannot be read now, so requests with a named key are refused. Try again in a moment";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message.to_owned());
        ApiError { code: Some("keys_unknown"), retry_after: Some(5), ..error }
    }

    /// The peer has sent too many wrong keys lately.
    pub(crate) fn too_many_wrong_keys(wait: Duration) -> Self {
        let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
        let message = format!("too many wrong keys from your address. Try again in {seconds} s");
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some(TOO_MANY_WRONG_KEYS), retry_after: Some(seconds), ..error }
    }

    pub(crate) fn foreign_host(host: &str) -> Self {
        let message = format!(
            "the Host header names '{host}', which is neither an IP address, nor localhost, nor a name of this machine. To serve that \
             name, add it to [server] allowed_hosts and set [server] api_key: without a key, anyone who reaches that name can use this \
             server"
        );
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(crate) fn foreign_origin(origin: &str) -> Self {
        let advice = match origin {
            // The origin of a page without an address: a file, or a sandboxed frame.
            "null" => "Serve that page from an address, and add the address to [server] cors_origins",
            _ => {
                "To allow that page, add its address to [server] cors_origins. If it is this server behind a proxy, let the proxy \
                 pass the Host header on"
            }
        };
        let message =
            format!("the Origin header names '{origin}', which is not a page of this server. {advice}");
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(crate) fn owner_only(path: &str) -> Self {
        let message = format!(
            "{path} is for the owner only. Send the request from this machine, or set [server] api_key and send it as a bearer token"
        );
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// The owner may link an account, but not from elsewhere: it downloads and starts a program, and decides whose account Hob uses.
    pub(crate) fn link_on_the_machine() -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_error", LINK_ON_THE_MACHINE).coded("local_only")
    }

    /// The key may not use more now.
    pub(crate) fn limit_reached(limit: LimitReached) -> Self {
        let LimitReached { kind, message, retry_after } = limit;
        let (status, kind, code) = match kind {
            LimitKind::RequestsPerMinute | LimitKind::TokensPerMinute | LimitKind::Parallel => {
                (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "rate_limit_exceeded")
            }
            // OpenAI's clients do not try this one again.
            LimitKind::Budget => (StatusCode::TOO_MANY_REQUESTS, "insufficient_quota", "insufficient_quota"),
            LimitKind::Unknown => (StatusCode::SERVICE_UNAVAILABLE, "server_error", "limits_unknown"),
        };
        let error = Self::new(status, kind, message);
        ApiError { code: Some(code), retry_after: retry_after.map(|wait| wait.as_secs().max(1)), ..error }
    }

    /// Whether the error is about a wrong or missing key.
    pub(crate) fn is_wrong_key(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }
}

fn advice(has_named: bool) -> &'static str {
    match has_named {
        false => "Send 'authorization: Bearer KEY' with the value of [server] api_key",
        true => {
            "Send 'authorization: Bearer KEY' with a key that 'hob key create' made, or with the value of [server] api_key"
        }
    }
}
