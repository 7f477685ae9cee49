//! The kind of a file, by its first bytes or else by its name.

use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Markdown,
    Html,
    Code,
    /// Records with this field separator.
    Table(u8),
    Json,
    Pdf,
    Docx,
    Xlsx,
    Pptx,
    /// OpenDocument text and presentations.
    Odt,
    /// OpenDocument spreadsheets.
    Ods,
    Mail,
    /// Several messages in one file.
    Mailbox,
    /// Text in it can be read if there is a program for it.
    Picture,
}

impl Kind {
    pub fn of(path: &Path, bytes: &[u8]) -> Kind {
        if bytes.starts_with(b"%PDF-") {
            return Kind::Pdf;
        }
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref().unwrap_or_default() {
            "md" | "markdown" | "mdx" | "mkd" => Kind::Markdown,
            "html" | "htm" | "xhtml" => Kind::Html,
            "csv" => Kind::Table(b','),
            "tsv" => Kind::Table(b'\t'),
            "json" | "jsonl" | "ndjson" | "geojson" | "ipynb" | "webmanifest" => Kind::Json,
            "pdf" => Kind::Pdf,
            "docx" | "docm" | "dotx" => Kind::Docx,
            "xlsx" | "xlsm" | "xltx" => Kind::Xlsx,
            "pptx" | "pptm" | "ppsx" => Kind::Pptx,
            "odt" | "ott" | "odp" | "otp" => Kind::Odt,
            "ods" | "ots" => Kind::Ods,
            "eml" => Kind::Mail,
            "mbox" | "mbx" => Kind::Mailbox,
            "png" | "jpg" | "jpeg" | "webp" | "bmp" => Kind::Picture,
            extension if is_code(extension) => Kind::Code,
            _ => Kind::Plain,
        }
    }
}

/// The kind of an indexed document in a word, by its name.
pub fn document_kind(path: &str) -> &'static str {
    if path.starts_with("note:") {
        return "note";
    }
    match Kind::of(Path::new(path), &[]) {
        Kind::Plain => "text",
        Kind::Markdown => "Markdown",
        Kind::Html => "HTML",
        Kind::Code => "code",
        Kind::Table(_) => "table",
        Kind::Json => "JSON",
        Kind::Pdf => "PDF",
        Kind::Docx => "DOCX",
        Kind::Xlsx => "XLSX",
        Kind::Pptx => "PPTX",
        Kind::Odt => "ODT",
        Kind::Ods => "ODS",
        Kind::Mail => "e-mail",
        Kind::Mailbox => "mailbox",
        Kind::Picture => "picture",
    }
}

/// Languages and formats with meaningful lines and indentation.
fn is_code(extension: &str) -> bool {
    matches!(
        extension,
        "asm"
            | "awk"
            | "bash"
            | "bat"
            | "bzl"
            | "c"
            | "cc"
            | "cfg"
            | "clj"
            | "cmake"
            | "coffee"
            | "conf"
            | "cpp"
            | "cs"
            | "css"
            | "cu"
            | "cxx"
            | "d"
            | "dart"
            | "el"
            | "elm"
            | "erl"
            | "ex"
            | "exs"
            | "f90"
            | "fish"
            | "fs"
            | "glsl"
            | "go"
            | "gradle"
            | "graphql"
            | "groovy"
            | "h"
            | "hcl"
            | "hh"
            | "hpp"
            | "hs"
            | "ini"
            | "java"
            | "jl"
            | "js"
            | "jsx"
            | "kt"
            | "kts"
            | "less"
            | "lisp"
            | "lua"
            | "m"
            | "mjs"
            | "ml"
            | "mli"
            | "mm"
            | "nim"
            | "nix"
            | "pas"
            | "php"
            | "pl"
            | "pm"
            | "properties"
            | "proto"
            | "ps1"
            | "py"
            | "pyi"
            | "r"
            | "rb"
            | "rs"
            | "sass"
            | "scala"
            | "scm"
            | "scss"
            | "sh"
            | "sol"
            | "sql"
            | "svelte"
            | "swift"
            | "tcl"
            | "tf"
            | "toml"
            | "ts"
            | "tsx"
            | "v"
            | "vb"
            | "vhdl"
            | "vim"
            | "vue"
            | "wgsl"
            | "xml"
            | "yaml"
            | "yml"
            | "zig"
            | "zsh"
    )
}
