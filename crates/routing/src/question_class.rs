//! Questions that are alike.

use std::fmt;

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    Plain,
    Code,
    Maths,
    /// Several things to do, one after the other.
    Steps,
    /// Tools are at hand, or have been used.
    Tools,
}

impl Topic {
    pub const ALL: [Topic; 5] = [Topic::Plain, Topic::Code, Topic::Maths, Topic::Steps, Topic::Tools];

    pub fn as_str(self) -> &'static str {
        match self {
            Topic::Plain => "plain",
            Topic::Code => "code",
            Topic::Maths => "maths",
            Topic::Steps => "steps",
            Topic::Tools => "tools",
        }
    }
}

/// How much there is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Length {
    Short,
    Medium,
    Long,
}

impl Length {
    pub const ALL: [Length; 3] = [Length::Short, Length::Medium, Length::Long];

    pub fn as_str(self) -> &'static str {
        match self {
            Length::Short => "short",
            Length::Medium => "medium",
            Length::Long => "long",
        }
    }
}

/// The language it is written in, as far as that makes a difference to models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    English,
    Other,
}

impl Language {
    pub const ALL: [Language; 2] = [Language::English, Language::Other];

    pub fn as_str(self) -> &'static str {
        match self {
            Language::English => "english",
            Language::Other => "other",
        }
    }
}

/// Questions that are alike: what is learnt from one holds for the others. Written `code/short/english`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryClass {
    pub topic: Topic,
    pub length: Length,
    pub language: Language,
}

impl QueryClass {
    /// Reads a class as it is written; `None` for anything else.
    pub fn parse(written: &str) -> Option<Self> {
        let mut parts = written.split('/');
        let (topic, length, language) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        Some(QueryClass {
            topic: Topic::ALL.into_iter().find(|known| known.as_str() == topic)?,
            length: Length::ALL.into_iter().find(|known| known.as_str() == length)?,
            language: Language::ALL.into_iter().find(|known| known.as_str() == language)?,
        })
    }
}

impl fmt::Display for QueryClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueryClass { topic, length, language } = self;
        write!(formatter, "{}/{}/{}", topic.as_str(), length.as_str(), language.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_read_as_it_is_written() {
        for topic in Topic::ALL {
            for length in Length::ALL {
                for language in Language::ALL {
                    let class = QueryClass { topic, length, language };
                    assert_eq!(QueryClass::parse(&class.to_string()), Some(class));
                }
            }
        }
        for nonsense in ["", "code", "code/short", "code/short/klingon", "code/short/english/more"] {
            assert_eq!(QueryClass::parse(nonsense), None, "{nonsense}");
        }
    }
}
