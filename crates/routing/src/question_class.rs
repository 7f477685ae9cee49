//! Classes of similar questions.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuestionTopic {
    Plain,
    Code,
    Maths,
    /// Several steps.
    Steps,
    /// The request has tools, or used some.
    Tools,
}

hob_core::named_variants! {
    QuestionTopic {
        Plain => "plain",
        Code => "code",
        Maths => "maths",
        Steps => "steps",
        Tools => "tools",
    }
}

/// The length of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuestionLength {
    Short,
    Medium,
    Long,
}

hob_core::named_variants! {
    QuestionLength {
        Short => "short",
        Medium => "medium",
        Long => "long",
    }
}

/// The language, if it makes a difference for models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuestionLanguage {
    English,
    Other,
}

hob_core::named_variants! {
    QuestionLanguage {
        English => "english",
        Other => "other",
    }
}

/// A class of similar questions, which share their knowledge. Written `code/short/english`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionClass {
    pub topic: QuestionTopic,
    pub length: QuestionLength,
    pub language: QuestionLanguage,
}

impl QuestionClass {
    /// Parses the written form.
    pub fn parse(written: &str) -> Option<Self> {
        let mut parts = written.split('/');
        let (topic, length, language) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        Some(QuestionClass {
            topic: QuestionTopic::parse(topic)?,
            length: QuestionLength::parse(length)?,
            language: QuestionLanguage::parse(language)?,
        })
    }
}

impl fmt::Display for QuestionClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuestionClass { topic, length, language } = self;
        write!(formatter, "{}/{}/{}", topic.as_str(), length.as_str(), language.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_parsed_from_its_written_form() {
        for topic in QuestionTopic::ALL {
            for length in QuestionLength::ALL {
                for language in QuestionLanguage::ALL {
                    let class = QuestionClass { topic, length, language };
                    assert_eq!(QuestionClass::parse(&class.to_string()), Some(class));
                }
            }
        }
        for nonsense in ["", "code", "code/short", "code/short/klingon", "code/short/english/more"] {
            assert_eq!(QuestionClass::parse(nonsense), None, "{nonsense}");
        }
    }
}
