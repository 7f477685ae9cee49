//! A small XML reader for feeds and CalDAV: elements with the few namespaces that these use.
//!
//! The depth, the number of elements and the number of namespaces are limited. Entities that a document declares are not resolved,
//! so none can grow.

use std::collections::VecDeque;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesRef, BytesStart, Event};
use thiserror::Error;

const MAX_DEPTH: usize = 64;
const MAX_ELEMENTS: usize = 300_000;
const MAX_ATTRIBUTES: usize = 64;
const MAX_NAMESPACES: usize = 256;

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum XmlError {
    #[error("{0}")]
    Syntax(String),
    #[error("its elements are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    #[error("it has more than {MAX_ELEMENTS} elements")]
    TooManyElements,
    #[error("it declares more than {MAX_NAMESPACES} namespaces")]
    TooManyNamespaces,
    #[error("it ends too early")]
    Incomplete,
}

/// The namespaces that make a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum XmlSpace {
    /// No namespace, or one of RSS.
    Plain,
    Atom,
    /// The full text of an entry in RSS.
    Content,
    DublinCore,
    Dav,
    CalDav,
    Other,
}

impl XmlSpace {
    fn of(address: &str) -> Self {
        match address {
            "" | "http://purl.org/rss/1.0/" | "http://my.netscape.com/rdf/simple/0.9/" => XmlSpace::Plain,
            "http://backend.userland.com/rss2" | "http://backend.userland.com/RSS2" => XmlSpace::Plain,
            "http://www.w3.org/2005/Atom" => XmlSpace::Atom,
            "http://purl.org/rss/1.0/modules/content/" => XmlSpace::Content,
            "http://purl.org/dc/elements/1.1/" | "http://purl.org/dc/terms/" => XmlSpace::DublinCore,
            "DAV:" => XmlSpace::Dav,
            "urn:ietf:params:xml:ns:caldav" => XmlSpace::CalDav,
            _ => XmlSpace::Other,
        }
    }
}

/// An element, with its name without a prefix.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct XmlElement {
    pub space: XmlSpace,
    pub name: String,
    attributes: Vec<(String, String)>,
    nodes: Vec<XmlNode>,
}

#[derive(Debug, PartialEq, Eq)]
enum XmlNode {
    Element(XmlElement),
    Text(String),
}

impl XmlElement {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn elements(&self) -> impl Iterator<Item = &XmlElement> {
        self.nodes.iter().filter_map(|node| match node {
            XmlNode::Element(element) => Some(element),
            XmlNode::Text(_) => None,
        })
    }

    /// The child elements with a name.
    pub fn all<'a>(&'a self, space: XmlSpace, name: &'a str) -> impl Iterator<Item = &'a XmlElement> {
        self.elements().filter(move |element| element.space == space && element.name == name)
    }

    /// The first child element with a name.
    pub fn first(&self, space: XmlSpace, name: &str) -> Option<&XmlElement> {
        self.elements().find(|element| element.space == space && element.name == name)
    }

    /// All text in it, in order. Text in elements inside is included, and separated by spaces.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut waiting: VecDeque<&XmlNode> = self.nodes.iter().collect();
        while let Some(node) = waiting.pop_front() {
            match node {
                XmlNode::Text(piece) => text.push_str(piece),
                XmlNode::Element(element) => {
                    text.push(' ');
                    for inner in element.nodes.iter().rev() {
                        waiting.push_front(inner);
                    }
                }
            }
        }
        text
    }
}

/// A prefix, valid in the elements that are at least this deep.
struct Binding {
    depth: usize,
    /// Empty for the default namespace.
    prefix: String,
    space: XmlSpace,
}

/// Reads a document and returns its root.
pub(crate) fn parse(text: &str) -> Result<XmlElement, XmlError> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    // Many feeds contain a bare '&'.
    config.allow_dangling_amp = true;
    let mut document = Document { open: Vec::new(), bindings: Vec::new(), count: 0 };
    loop {
        let event = reader.read_event().map_err(|error| XmlError::Syntax(error.to_string()))?;
        match event {
            Event::Start(tag) => document.open(&tag)?,
            Event::End(_) => {
                if let Some(root) = document.close()? {
                    return Ok(root);
                }
            }
            Event::Text(text) => document.text(&text),
            Event::CData(text) => document.text(&text),
            Event::GeneralRef(reference) => document.text(&entity(&reference)),
            Event::Eof => return Err(XmlError::Incomplete),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

struct Document {
    /// The elements that are not closed yet, outermost first.
    open: Vec<XmlElement>,
    bindings: Vec<Binding>,
    count: usize,
}

impl Document {
    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), XmlError> {
        self.count += 1;
        if self.open.len() >= MAX_DEPTH {
            return Err(XmlError::TooDeep);
        }
        if self.count > MAX_ELEMENTS {
            return Err(XmlError::TooManyElements);
        }
        let depth = self.open.len();
        let mut attributes = Vec::new();
        // Without the check for duplicates, whose work grows with the square of the attributes.
        for attribute in tag.attributes().with_checks(false).flatten().take(MAX_ATTRIBUTES) {
            let key: &str = attribute.key.as_ref();
            let value = unescape(&attribute.value).unwrap_or_default();
            if let Some(prefix) = declared_prefix(key) {
                if self.bindings.len() >= MAX_NAMESPACES {
                    return Err(XmlError::TooManyNamespaces);
                }
                self.bindings.push(Binding {
                    depth,
                    prefix: prefix.to_owned(),
                    space: XmlSpace::of(value.trim()),
                });
            } else {
                attributes.push((key.to_owned(), value.into_owned()));
            }
        }
        let name = tag.name();
        let name: &str = name.as_ref();
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let space = self.space(prefix);
        self.open.push(XmlElement { space, name: local.to_owned(), attributes, nodes: Vec::new() });
        Ok(())
    }

    fn space(&self, prefix: &str) -> XmlSpace {
        let bound = self.bindings.iter().rev().find(|binding| binding.prefix == prefix);
        match bound {
            Some(binding) => binding.space,
            None if prefix.is_empty() => XmlSpace::Plain,
            None => XmlSpace::Other,
        }
    }

    /// Closes the innermost element, and returns it if it is the root.
    fn close(&mut self) -> Result<Option<XmlElement>, XmlError> {
        let Some(element) = self.open.pop() else { return Err(XmlError::Incomplete) };
        let depth = self.open.len();
        while self.bindings.last().is_some_and(|binding| binding.depth >= depth) {
            self.bindings.pop();
        }
        match self.open.last_mut() {
            Some(parent) => {
                parent.nodes.push(XmlNode::Element(element));
                Ok(None)
            }
            None => Ok(Some(element)),
        }
    }

    fn text(&mut self, piece: &str) {
        let Some(element) = self.open.last_mut() else { return };
        match element.nodes.last_mut() {
            Some(XmlNode::Text(text)) => text.push_str(piece),
            _ => element.nodes.push(XmlNode::Text(piece.to_owned())),
        }
    }
}

/// The prefix that an attribute declares; empty for the default namespace.
fn declared_prefix(key: &str) -> Option<&str> {
    match key.strip_prefix("xmlns")? {
        "" => Some(""),
        rest => rest.strip_prefix(':'),
    }
}

/// The character of a reference. One that XML does not know is omitted.
fn entity(reference: &BytesRef<'_>) -> String {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return character.to_string();
    }
    let known = match &**reference {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        "nbsp" => " ",
        _ => "",
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_namespace_and_not_by_prefix() {
        let root = parse(
            "<?xml version='1.0'?><d:multistatus xmlns:d='DAV:' xmlns:x='urn:ietf:params:xml:ns:caldav'>\
             <d:response><x:calendar-data a='1 &amp; 2'>one &lt;two&gt; <![CDATA[& three]]></x:calendar-data>\
             </d:response><response xmlns='DAV:'/><response/></d:multistatus>",
        )
        .unwrap();
        assert_eq!((root.space, root.name.as_str()), (XmlSpace::Dav, "multistatus"));
        assert_eq!(root.all(XmlSpace::Dav, "response").count(), 2);
        assert_eq!(root.all(XmlSpace::Plain, "response").count(), 1);
        let data = root.first(XmlSpace::Dav, "response").unwrap();
        let data = data.first(XmlSpace::CalDav, "calendar-data").unwrap();
        assert_eq!(data.attribute("a"), Some("1 & 2"));
        assert_eq!(data.text(), "one <two> & three");
    }

    #[test]
    fn text_stays_in_order() {
        let root = parse("<p>one <b>two <i>three</i></b> four</p>").unwrap();
        assert_eq!(root.text().split_whitespace().collect::<Vec<_>>(), ["one", "two", "three", "four"]);
    }

    #[test]
    fn hostile_documents_are_refused_and_entities_do_not_grow() {
        let deep = "<a>".repeat(100_000);
        assert_eq!(parse(&deep), Err(XmlError::TooDeep));
        let wide = format!("<a>{}</a>", "<b/>".repeat(MAX_ELEMENTS + 1));
        assert_eq!(parse(&wide), Err(XmlError::TooManyElements));
        let spaces: String = (0..1_000).map(|number| format!("<a xmlns:n{number}='x'>")).collect();
        assert!(matches!(parse(&spaces), Err(XmlError::TooDeep | XmlError::TooManyNamespaces)));
        let attributes: String = (0..100_000).map(|number| format!(" a{number}='x'")).collect();
        assert_eq!(parse(&format!("<a{attributes}/>")).unwrap().attributes.len(), MAX_ATTRIBUTES);
        let laughs = "<!DOCTYPE a [<!ENTITY b 'bbbb'><!ENTITY c '&b;&b;'>]><a>x&c;y</a>";
        assert_eq!(parse(laughs).unwrap().text(), "xy");
        for broken in ["", "<a>", "<a></b>", "no markup", "<a", "</a>"] {
            assert!(parse(broken).is_err(), "{broken}");
        }
    }
}
