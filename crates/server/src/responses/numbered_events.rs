//! Server-sent events with their names in both places and their numbers.

use crate::error::ApiError;
use crate::json::push_json;

/// Numbers the events of a response.
#[derive(Debug, Default)]
pub(super) struct EventNumbers {
    next: u64,
}

impl EventNumbers {
    /// Whether there was an event.
    pub(super) fn have_begun(&self) -> bool {
        self.next > 0
    }

    /// Ends an event with its number.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"sequence_number\":");
        self.end_after_label(out);
    }

    /// The same for an event that ends in the label of the number already.
    pub(super) fn end_after_label(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(itoa::Buffer::new().format(self.next).as_bytes());
        out.extend_from_slice(b"}\n\n");
        self.next += 1;
    }

    /// The event of an error.
    pub(super) fn push_error(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        push_error_event(error, self.next, out);
        self.next += 1;
    }
}

/// Begins an event.
pub(super) fn push_event_head(event: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"\ndata: {\"type\":\"");
    out.extend_from_slice(event.as_bytes());
    out.push(b'"');
}

/// Begins the event that an item has begun or ended, up to the item.
pub(super) fn push_item_head(event: &str, index: usize, out: &mut Vec<u8>) {
    push_event_head(event, out);
    out.extend_from_slice(b",\"output_index\":");
    out.extend_from_slice(itoa::Buffer::new().format(index).as_bytes());
    out.extend_from_slice(b",\"item\":");
}

/// Appends the event `error`, for a stream without a response.
pub(super) fn push_error_event(error: &ApiError, number: u64, out: &mut Vec<u8>) {
    push_event_head("error", out);
    out.extend_from_slice(b",\"code\":");
    push_json(out, &error.code());
    out.extend_from_slice(b",\"message\":");
    push_json(out, error.message());
    out.extend_from_slice(b",\"param\":null,\"sequence_number\":");
    push_json(out, &number);
    out.extend_from_slice(b"}\n\n");
}
