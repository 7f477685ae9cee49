//! Entry for the fuzz target of Anthropic's API.

use hob_core::{GenerateRequest, request_budget};

use super::request::MessagesRequest;
use crate::fuzzing::json::check_parser;

/// The body of `POST /v1/messages` and of `POST /v1/messages/count_tokens`.
pub fn messages(body: &[u8]) -> Option<GenerateRequest> {
    let counted = check_parser(body, MessagesRequest::parse_count);
    let asked = check_parser(body, MessagesRequest::parse)?;
    assert_eq!(Some(&asked), counted.as_ref(), "what is counted is not what is asked");
    assert!(request_budget::check_request(&asked.request).is_ok(), "a request over its budget is accepted");
    Some(asked.request)
}
