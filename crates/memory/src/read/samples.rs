//! Small files of each kind, written by hand.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A PDF with a page for each list of lines.
pub fn pdf(pages: &[&[&str]]) -> Vec<u8> {
    let kids = (0..pages.len()).map(|n| format!("{} 0 R", 4 + 2 * n)).collect::<Vec<_>>().join(" ");
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    for (n, lines) in pages.iter().enumerate() {
        let shown = lines.iter().map(|line| match line.is_empty() {
            true => "0 -40 Td\n".to_owned(),
            false => format!("({line}) Tj 0 -14 Td\n"),
        });
        let content = format!("BT /F1 12 Tf 72 700 Td\n{}ET", shown.collect::<String>());
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>",
            5 + 2 * n
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    pdf_of(&objects)
}

/// A PDF of these objects, of which the first is the catalogue.
pub fn pdf_of(objects: &[String]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(file.len());
        file.extend(format!("{number} 0 obj\n{object}\nendobj\n").bytes());
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).bytes());
    places.iter().for_each(|place| file.extend(format!("{place:010} 00000 n \n").bytes()));
    let size = places.len() + 1;
    file.extend(
        format!("trailer\n<< /Size {size} /Root 1 0 R /Info << /Title (The title) >> >>\nstartxref\n{table}\n%%EOF\n").bytes(),
    );
    file
}

/// A DOCX with this between its body tags.
pub fn docx(body: &str) -> Vec<u8> {
    docx_of(&format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">\
         <w:body>{body}</w:body></w:document>"
    ))
}

/// A DOCX with this as its document.
pub fn docx_of(document: &str) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let core =
        "<cp:coreProperties xmlns:cp=\"c\" xmlns:dc=\"d\"><dc:title>A &amp; B</dc:title></cp:coreProperties>";
    for (name, content) in [("docProps/core.xml", core), ("word/document.xml", document)] {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

pub const MAIL: &str = "From: =?utf-8?q?J=C3=B6rg?= <joerg@example.org>\r\nTo: Ann <ann@example.org>\r\nSubject: The boiler\r\n\
    Date: Tue, 3 Mar 2026 09:00:00 +0100\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
    --b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nThe boiler leaks.\r\n\r\nPlease call.\r\n\
    --b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
    <p>It drips =C3=A4 lot<script>x</script></p>\r\n\
    --b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"bill.pdf\"\r\nContent-Transfer-Encoding: base64\r\n\r\n\
    JVBERi0=\r\n--b--\r\n";

/// A PDF whose only page unpacks to so many blanks.
pub fn pdf_bomb(bytes: usize) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("x", SimpleFileOptions::default()).unwrap();
    let blanks = vec![b' '; 1 << 20];
    (0..bytes >> 20).for_each(|_| archive.write_all(&blanks).unwrap());
    let archive = archive.finish().unwrap().into_inner();
    let mut opened = zip::ZipArchive::new(Cursor::new(&archive)).unwrap();
    let mut packed = b"\x78\x9c".to_vec();
    std::io::Read::read_to_end(&mut opened.by_index_raw(0).unwrap(), &mut packed).unwrap();
    let head = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n\
        3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>\nendobj\n";
    let stream = format!("4 0 obj\n<< /Filter /FlateDecode /Length {} >>\nstream\n", packed.len());
    let mut file = head.as_bytes().to_vec();
    file.extend(stream.bytes());
    file.extend(packed);
    file.extend(b"\nendstream\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n");
    file
}
