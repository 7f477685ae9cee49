use hob_core::engine::CLOUD;
use hob_core::{Message, Role};

use super::*;

/// A small PDF that says "Hello PDF".
fn pdf() -> Vec<u8> {
    let content = "BT /F1 24 Tf 20 100 Td (Hello PDF) Tj ET";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        offsets.push(file.len());
        file.extend_from_slice(format!("{number} 0 obj\n{object}\nendobj\n").as_bytes());
    }
    let table = file.len();
    file.extend_from_slice(b"xref\n0 6\n0000000000 65535 f \n");
    for offset in offsets {
        file.extend_from_slice(format!("{offset:010} 00000 n \n").as_bytes());
    }
    file.extend_from_slice(
        format!("trailer << /Size 6 /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n").as_bytes(),
    );
    file
}

fn file(name: &str, data: &str) -> ContentPart {
    ContentPart::Other(json!({ "type": "file", "file": { "filename": name, "file_data": data } }))
}

/// The text that an engine gets in the place of a file.
fn file_of(name: &str, text: &str) -> ContentPart {
    ContentPart::Text(format!("File {name}:\n\n{text}\n\nEnd of file {name}."))
}

fn inline(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(bytes))
}

async fn placed(part: ContentPart, engine: &str) -> Result<ContentPart, String> {
    let message = Message::new(Role::User, Content::Parts(vec![part]));
    let mut request = GenerateRequest { messages: vec![message], ..GenerateRequest::default() };
    DocumentReader::default().place_all(&mut request, engine).await.map_err(|error| match error {
        AskError::Attachment { param, reason } => {
            assert_eq!(param, "messages[0].content[0].file");
            reason
        }
        other => panic!("{other}"),
    })?;
    let Content::Parts(parts) = request.messages.remove(0).content else { panic!("it has parts") };
    Ok(parts.into_iter().next().expect("one part"))
}

#[tokio::test]
async fn a_pdf_is_text_to_engines_that_read_no_files() {
    let part = file("a.pdf", &inline("application/pdf", &pdf()));
    assert_eq!(placed(part.clone(), "vllm").await, Ok(file_of("a.pdf", "Hello PDF")));
    assert_eq!(placed(part.clone(), CLOUD).await, Ok(part));
}

#[tokio::test]
async fn a_text_file_is_text_to_every_engine() {
    for engine in ["embedded", CLOUD] {
        let part = file("notes.txt", &inline("text/plain", "cats purr é".as_bytes()));
        assert_eq!(placed(part, engine).await, Ok(file_of("notes.txt", "cats purr é")));
    }
    let bare = file("notes.txt", &BASE64_STANDARD.encode("cats"));
    assert_eq!(placed(bare, "vllm").await, Ok(file_of("notes.txt", "cats")));
}

#[tokio::test]
async fn what_cannot_be_read_is_left_to_the_engine_or_refused() {
    for data in ["not base64!", &inline("audio/wav", &[0xff, 0xfe, 0x00])] {
        let part = file("x", data);
        assert_eq!(placed(part.clone(), "vllm").await, Ok(part));
    }
    let broken = file("x.pdf", &inline("application/pdf", b"%PDF-1.4 and nothing"));
    assert!(placed(broken, "vllm").await.expect_err("refused").starts_with("the PDF"));
}

#[tokio::test]
async fn the_number_of_files_is_bounded() {
    let parts = vec![file("n", &BASE64_STANDARD.encode("a")); MAX_FILES + 1];
    let message = Message::new(Role::User, Content::Parts(parts));
    let mut request = GenerateRequest { messages: vec![message], ..GenerateRequest::default() };
    let error = DocumentReader::default().place_all(&mut request, "vllm").await.expect_err("refused");
    assert_eq!(error.to_string(), "a request may have at most 16 files");
}
