//! Callers who want to take the server down, or to get more of it than their share.

mod stored_responses;
