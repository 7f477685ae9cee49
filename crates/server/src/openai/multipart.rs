//! The parts of a form with a file in it (`multipart/form-data`). Finds the names of the parts and the value of one; the form itself
//! is passed on as it came.

use crate::error::{ApiError, ApiResult};

/// The longest head of a part, and the longest boundary (RFC 2046).
const MAX_HEAD: usize = 8 << 10;
const MAX_BOUNDARY: usize = 70;

/// The most parts of a form.
const MAX_PARTS: usize = 64;

/// A part: its name and its content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FormPart<'a> {
    pub(crate) name: String,
    pub(crate) content: &'a [u8],
}

/// The parts of a form.
pub(crate) fn parts<'a>(content_type: &str, body: &'a [u8]) -> ApiResult<Vec<FormPart<'a>>> {
    let malformed = |reason: &str| ApiError::malformed(format!("the form is not valid: {reason}"));
    let boundary = boundary(content_type).ok_or_else(|| malformed("its content type has no boundary"))?;
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The first boundary begins the body, unless there is text before it.
    let mut rest = match body.strip_prefix(&delimiter[2..]) {
        Some(rest) => rest,
        None => after(body, &delimiter).ok_or_else(|| malformed("its boundary is not in it"))?,
    };
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        if parts.len() == MAX_PARTS {
            return Err(malformed(&format!("it has more than {MAX_PARTS} parts")));
        }
        let line = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
        let part = rest[line..].strip_prefix(b"\r\n").ok_or_else(|| malformed("a boundary ends no line"))?;
        let (head, content) = match part.strip_prefix(b"\r\n") {
            Some(content) => (&[][..], content),
            None => {
                let end = position(&part[..part.len().min(MAX_HEAD)], b"\r\n\r\n")
                    .ok_or_else(|| malformed("a part has no head"))?;
                (&part[..end], &part[end + 4..])
            }
        };
        let end = position(content, &delimiter).ok_or_else(|| malformed("its last part has no end"))?;
        let name = part_name(head).ok_or_else(|| malformed("a part has no name"))?;
        parts.push(FormPart { name, content: &content[..end] });
        rest = &content[end + delimiter.len()..];
    }
    Ok(parts)
}

fn boundary(content_type: &str) -> Option<&str> {
    let (essence, parameters) = content_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    (!boundary.is_empty() && boundary.len() <= MAX_BOUNDARY).then_some(boundary)
}

/// The name in `content-disposition: form-data; name="file"; filename="a.wav"`.
fn part_name(head: &[u8]) -> Option<String> {
    let head = std::str::from_utf8(head).ok()?;
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    parameter(disposition.split_once(';')?.1, "name").map(str::to_owned)
}

/// The value of one of `a=b; c="d"`. A semicolon inside quotes separates nothing.
fn parameter<'a>(parameters: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = parameters;
    loop {
        let (name, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_once(';').unwrap_or((value, "")),
        };
        if name.trim().trim_start_matches(';').trim().eq_ignore_ascii_case(wanted) {
            return Some(value.trim());
        }
        rest = after;
    }
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

fn after<'a>(text: &'a [u8], part: &[u8]) -> Option<&'a [u8]> {
    position(text, part).map(|at| &text[at + part.len()..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPE: &str = "multipart/form-data; charset=utf-8; boundary=\"x y\"";

    fn form(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut body = String::new();
        for (name, content) in parts {
            body += &format!(
                "--x y\r\ncontent-disposition: form-data; filename=\"a;b\"; name=\"{name}\"\r\ncontent-type: x/y\r\n\r\n{content}\r\n"
            );
        }
        (body + "--x y--\r\n").into_bytes()
    }

    fn read(body: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
        let parts = parts(TYPE, body).ok()?;
        Some(parts.into_iter().map(|part| (part.name, part.content.to_vec())).collect())
    }

    #[test]
    fn every_part_is_found_with_its_name() {
        let body = form(&[("model", "whisper-1"), ("file", "RIFF\r\n--x\r\n\0")]);
        let part = |name: &str, content: &str| (name.to_owned(), content.as_bytes().to_vec());
        assert_eq!(read(&body), Some(vec![part("model", "whisper-1"), part("file", "RIFF\r\n--x\r\n\0")]));
        assert_eq!(read(b"preamble\r\n--x y--"), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for body in [
            "",
            "--x y",
            "--x y\r\n",
            "--x y\r\na: b\r\n\r\nno end",
            "--x y\r\n\r\nno name\r\n--x y--",
            "--z--",
        ] {
            assert_eq!(read(body.as_bytes()), None, "{body}");
        }
        for content_type in
            ["multipart/form-data", "application/json; boundary=x", "multipart/form-data; boundary="]
        {
            assert!(parts(content_type, b"--x--").is_err(), "{content_type}");
        }
        assert_eq!(read(&form(&[("a", "b"); MAX_PARTS + 1])), None);
    }

    proptest! {
        #[test]
        fn no_body_is_too_much_for_it(body in prop::collection::vec(prop::sample::select(b"-x y\r\n:;=\"name".to_vec()), 0..80)) {
            let _ = read(&body);
        }
    }
}
