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

/// A PDF with a page of text, and a scanned page with this picture, in hexadecimal digits.
pub fn scanned_pdf(width: u32, height: u32, grey: &[u8]) -> Vec<u8> {
    use std::fmt::Write as _;

    let mut digits = String::with_capacity(grey.len() * 2 + 1);
    for byte in grey {
        write!(digits, "{byte:02x}").unwrap();
    }
    digits.push('>');
    let text = "BT /F1 12 Tf 72 700 Td (A page with text.) Tj ET";
    let show = "q 500 0 0 400 0 0 cm /I Do Q";
    pdf_of(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [4 0 R 6 0 R] /Count 2 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 7 0 R /Resources << /XObject << /I 8 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{show}\nendstream", show.len()),
        format!(
            "<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceGray /BitsPerComponent 8 \
             /Filter /ASCIIHexDecode /Length {} >>\nstream\n{digits}\nendstream",
            digits.len()
        ),
    ])
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
    archive(&[("docProps/core.xml", CORE), ("word/document.xml", document)])
}

const CORE: &str =
    "<cp:coreProperties xmlns:cp=\"c\" xmlns:dc=\"d\"><dc:title>A &amp; B</dc:title></cp:coreProperties>";

/// A ZIP archive of these files.
pub fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// An XLSX with these rows in its first sheet, `Costs`, and one row in another.
pub fn xlsx(rows: &str) -> Vec<u8> {
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    archive(&[
        ("docProps/core.xml", CORE),
        (
            "xl/workbook.xml",
            "<workbook><sheets><sheet name=\"Costs\" sheetId=\"7\" r:id=\"rId2\"/>\
             <sheet name=\"A &amp; B\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships><Relationship Id=\"rId1\" Type=\"x/worksheet\" Target=\"worksheets/sheet1.xml\"/>\
             <Relationship Id=\"rId2\" Type=\"x/worksheet\" Target=\"/xl/worksheets/sheet2.xml\"/></Relationships>",
        ),
        (
            "xl/sharedStrings.xml",
            "<sst><si><t>what</t></si><si><r><t>eu</t></r><r><t>ro</t></r><rPh><t>no</t></rPh></si>\
             <si><t>boiler &amp; pump</t></si></sst>",
        ),
        (
            "xl/styles.xml",
            "<styleSheet><numFmts><numFmt numFmtId=\"164\" formatCode=\"dd/mm/yyyy\"/></numFmts>\
             <cellStyleXfs><xf numFmtId=\"14\"/></cellStyleXfs>\
             <cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"164\"/></cellXfs></styleSheet>",
        ),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><sheetData><row r=\"4\"><c r=\"B4\" t=\"inlineStr\"><is><t>alone</t></is></c></row></sheetData></worksheet>",
        ),
        ("xl/worksheets/sheet2.xml", &sheet),
    ])
}

/// The rows of a small table: a header, and a row with every kind of value.
pub const XLSX_ROWS: &str = "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"B1\" t=\"s\"><v>1</v></c>\
    <c r=\"D1\" t=\"inlineStr\"><is><t>when</t></is></c></row>\
    <row r=\"3\"><c r=\"A3\" t=\"s\"><v>2</v></c><c r=\"B3\"><f>300+10.5</f><v>310.5</v></c><c r=\"C3\" t=\"b\"><v>1</v></c>\
    <c r=\"D3\" s=\"1\"><v>46100</v></c><c r=\"E3\" t=\"e\"><v>#DIV/0!</v></c></row>";

/// A PPTX with two slides, of which the second file comes first, and notes for it.
pub fn pptx() -> Vec<u8> {
    let slide = |title: &str, text: &str| {
        format!(
            "<p:sld><p:sp><p:nvPr><p:ph type=\"title\"/></p:nvPr><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:sp>\
             <p:sp><p:nvPr><p:ph type=\"sldNum\"/></p:nvPr><a:p><a:r><a:t>7</a:t></a:r></a:p></p:sp>\
             <p:sp><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp>\
             <a:tbl><a:tr><a:tc><a:p><a:r><a:t>a</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>b</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:sld>"
        )
    };
    archive(&[
        ("docProps/core.xml", CORE),
        (
            "ppt/presentation.xml",
            "<p:presentation><p:sldIdLst><p:sldId id=\"257\" r:id=\"rId2\"/><p:sldId id=\"256\" r:id=\"rId1\"/></p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<Relationships><Relationship Id=\"rId1\" Type=\"x/slide\" Target=\"slides/slide1.xml\"/>\
             <Relationship Id=\"rId2\" Type=\"x/slide\" Target=\"slides/slide2.xml\"/></Relationships>",
        ),
        ("ppt/slides/slide1.xml", &slide("Costs", "It costs 310 euro.")),
        ("ppt/slides/slide2.xml", &slide("The boiler", "It leaks &amp; drips.")),
        (
            "ppt/slides/_rels/slide2.xml.rels",
            "<Relationships><Relationship Id=\"rId1\" Type=\"x/notesSlide\" Target=\"../notesSlides/notesSlide1.xml\"/></Relationships>",
        ),
        (
            "ppt/notesSlides/notesSlide1.xml",
            "<p:notes><p:sp><p:nvPr><p:ph type=\"body\"/></p:nvPr><a:p/><a:p><a:r><a:t>Call Ann.</a:t></a:r></a:p></p:sp></p:notes>",
        ),
    ])
}

/// A PPTX with this as its only slide.
pub fn pptx_of(slide: &str) -> Vec<u8> {
    archive(&[
        (
            "ppt/presentation.xml",
            "<p:presentation><p:sldIdLst><p:sldId id=\"256\" r:id=\"rId1\"/></p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<Relationships><Relationship Id=\"rId1\" Type=\"x/slide\" Target=\"slides/slide1.xml\"/></Relationships>",
        ),
        ("ppt/slides/slide1.xml", slide),
    ])
}

/// An OpenDocument file with this as its body.
pub fn odf(body: &str) -> Vec<u8> {
    let content =
        format!("<office:document-content><office:body>{body}</office:body></office:document-content>");
    let meta = "<office:document-meta><dc:title>A &amp; B</dc:title></office:document-meta>";
    archive(&[("meta.xml", meta), ("content.xml", &content)])
}

pub const MAILBOX: &str = "From ann@example.org Mon Mar  2 09:00:00 2026\nFrom: Ann <ann@example.org>\nSubject: The pump\n\
    Date: Mon, 2 Mar 2026 09:00:00 +0100\n\nThe pump hums.\n>From the cellar you hear it.\n\n\
    From bob@example.org Tue Mar  3 09:00:00 2026\nFrom: Bob <bob@example.org>\n\nNo subject here.\n";

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
    // The best compression would take twice the time.
    archive.start_file("x", SimpleFileOptions::default().compression_level(Some(1))).unwrap();
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
