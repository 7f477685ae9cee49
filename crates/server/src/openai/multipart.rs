//! The parts of a form with a file in it (`multipart/form-data`). A form is written anew from the parts that were read, because readers
//! disagree on forms with odd heads: an engine must find the same fields in it as the checks here did.

use hob_core::{FormFile, FormPart, percent_decoded};

use crate::error::{ApiError, ApiResult};

/// The longest head of a part, and the longest boundary (RFC 2046).
const MAX_HEAD: usize = 8 << 10;
const MAX_BOUNDARY: usize = 70;

/// The most parts of a form.
const MAX_PARTS: usize = 64;

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
        let (name, file) = read_head(head).ok_or_else(|| malformed("a part has no name"))?;
        if !is_plain(&name) {
            return Err(malformed("the name of a part may have letters, digits and _ - . [ ]"));
        }
        parts.push(FormPart { name, file, content: &content[..end] });
        rest = &content[end + delimiter.len()..];
    }
    Ok(parts)
}

fn boundary(content_type: &str) -> Option<String> {
    let (essence, rest) = content_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = value_of(&parameters(rest)?, "boundary")?.to_owned();
    (!boundary.is_empty() && boundary.len() <= MAX_BOUNDARY).then_some(boundary)
}

/// The name and the file in a head such as `content-disposition: form-data; name="file"; filename="a.wav"`.
fn read_head(head: &[u8]) -> Option<(String, Option<FormFile>)> {
    let head = std::str::from_utf8(head).ok()?;
    let lines = |wanted: &'static str| {
        head.split("\r\n").filter_map(move |line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case(wanted).then_some(value.trim())
        })
    };
    let mut dispositions = lines("content-disposition");
    let (Some(disposition), None) = (dispositions.next(), dispositions.next()) else { return None };
    let parameters = parameters(disposition.split_once(';')?.1)?;
    let name = value_of(&parameters, "name")?.to_owned();
    let file_name = match (value_of(&parameters, "filename"), value_of(&parameters, "filename*")) {
        (Some(name), _) => Some(without_quotes(name)),
        // A name in another character set does not matter: services use its ending at most.
        (None, Some(extended)) => {
            Some(extended_value(extended).map_or_else(String::new, |name| without_quotes(&name)))
        }
        (None, None) => None,
    };
    let content_type = lines("content-type").next().filter(|kind| is_file_type(kind)).map(str::to_owned);
    Some((name, file_name.map(|name| FormFile { name, content_type })))
}

/// Whether every reader finds this name, whatever it does with quotes, escapes and character sets.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte))
}

/// A form within a form would have fields that are not seen here.
fn is_file_type(content_type: &str) -> bool {
    let lower = content_type.to_ascii_lowercase();
    content_type.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && !["multipart/", "message/"].iter().any(|nested| lower.starts_with(nested))
}

fn without_quotes(name: &str) -> String {
    let plain = |c: char| if c.is_control() || matches!(c, '"' | '\\') { '_' } else { c };
    name.chars().map(plain).collect()
}

/// The text of `utf-8''a%20b` (RFC 5987).
fn extended_value(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_language, text) = rest.split_once('\'')?;
    percent_decoded(text).filter(|_| charset.eq_ignore_ascii_case("utf-8"))
}

fn value_of<'a>(parameters: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
}

/// The parameters `a=b; c="d"`, their names in lower case. A semicolon inside quotes separates nothing. `None` for one that occurs twice:
/// readers disagree on which counts.
fn parameters(text: &str) -> Option<Vec<(String, String)>> {
    const SEPARATORS: [char; 3] = [';', ' ', '\t'];
    let mut found: Vec<(String, String)> = Vec::new();
    let mut rest = text.trim_start_matches(SEPARATORS);
    while let Some((name, value)) = rest.split_once('=') {
        let (value, after) = match value.trim_start().strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (value, after) = value.split_once(';').unwrap_or((value, ""));
                (value.trim().to_owned(), after)
            }
        };
        let name = name.trim().to_ascii_lowercase();
        if value_of(&found, &name).is_some() {
            return None;
        }
        found.push((name, value));
        rest = after.trim_start_matches(SEPARATORS);
    }
    Some(found)
}

/// The text up to the closing quote, and what follows its semicolon.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = quoted.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                let after = quoted[at + 1..].trim_start();
                return (after.is_empty() || after.starts_with(';')).then_some((value, after));
            }
            // Browsers write a backslash as it is, so only these two are escapes.
            '\\' => match chars.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push(c),
            },
            _ => value.push(c),
        }
    }
    None
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

fn after<'a>(text: &'a [u8], part: &[u8]) -> Option<&'a [u8]> {
    position(text, part).map(|at| &text[at + part.len()..])
}

#[cfg(test)]
mod tests {
    use hob_core::MediaForm;
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
            "--x y\r\ncontent-disposition: form-data; name=a; name=b\r\n\r\ntwo names\r\n--x y--",
            "--x y\r\ncontent-disposition: form-data; name=\"a\"b\r\n\r\n\r\n--x y--",
            "--x y\r\ncontent-disposition: form-data; name=\"a\\\"b\"\r\n\r\n\r\n--x y--",
            "--x y\r\ncontent-disposition: form-data; name*=utf-8''a\r\n\r\n\r\n--x y--",
            "--x y\r\ncontent-disposition: x; name=a\r\ncontent-disposition: x; name=b\r\n\r\n\r\n--x y--",
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

    #[test]
    fn a_form_that_is_written_anew_has_the_parts_that_were_read() {
        let part = |disposition: &str, kind: &str| {
            format!(
                "--x y\r\nContent-Disposition: form-data; {disposition}\r\nContent-Type: {kind}\r\n\r\n1\r\n"
            )
        };
        let body = [
            part("name=model; name*=utf-8''other", "text/plain; charset=utf-16"),
            part("name=\"file\"; filename=\"a\\\"; name=\\\"model.wav\"", "audio/wav"),
            part("name=image[]; filename*=utf-8''%C3%A4%22.png", "multipart/mixed; boundary=z"),
        ];
        let body = format!("ignored\r\n{}--x y--\r\n", body.concat());
        let read = parts(TYPE, body.as_bytes()).ok().unwrap();
        let MediaForm::Multipart { content_type, body: written, .. } = MediaForm::multipart(&read) else {
            panic!("a form")
        };
        assert_eq!(parts(&content_type, &written).ok().unwrap(), read);
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap().replace(boundary, "EDGE"),
            "--EDGE\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n1\r\n\
             --EDGE\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a_; name=_model.wav\"\r\n\
             Content-Type: audio/wav\r\n\r\n1\r\n\
             --EDGE\r\nContent-Disposition: form-data; name=\"image[]\"; filename=\"ä_.png\"\r\n\r\n1\r\n\
             --EDGE--\r\n"
        );
    }

    proptest! {
        #[test]
        fn no_body_is_too_much_for_it(body in prop::collection::vec(prop::sample::select(b"-x y\r\n:;=\"name".to_vec()), 0..80)) {
            let _ = read(&body);
        }
    }
}
