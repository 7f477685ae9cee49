//! Entry for the fuzz target of the Responses API.

use hob_core::{GenerateRequest, request_budget};
use serde::de::IgnoredAny;

use super::ready_request::NewResponse;
use super::request::CreateRequest;
use crate::fuzzing::json::check_parser;

/// The body of `POST /v1/responses`.
pub fn response(body: &[u8]) -> Option<GenerateRequest> {
    let new = NewResponse { id: "resp_0".to_owned(), created: 0, has_store: true };
    let request = check_parser(body, |body| {
        let mut request = CreateRequest::parse(body)?;
        let input = std::mem::take(&mut request.input);
        let ready = request.complete(&[], input, &new)?;
        if let Some(stored) = &ready.input {
            let is_json = serde_json::from_str::<IgnoredAny>(&stored.json).is_ok();
            assert!(is_json, "what is stored is not JSON");
        }
        Ok(ready.request)
    })?;
    assert!(request_budget::check_request(&request).is_ok(), "a request over its budget is accepted");
    Some(request)
}
