//! How a section declares its keys, once, for all users of the list: the reader of the file and the template that `init`
//! writes.

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::DeValue;

/// The settings of one section.
pub(crate) trait Section {
    /// Shows every key to `keys`, in the order in which a person should read them.
    fn keys<K: Keys>(&mut self, keys: &mut K);
}

/// The keys of a section as a table: `field: KIND, "What it is for.";` and, after those, `[inner], "What it is for.";`
/// for sections inside it, then `!key;` for keys that no longer have an effect. A field's name is its key, and all fields must be in
/// the table: one that no file can set does not compile.
macro_rules! keys_of {
    ($section:ident {
        $($field:ident: $kind:ident, $about:literal;)*
        $([$inner:ident], $inner_about:literal;)*
        $(!$removed:ident;)*
    }) => {
        impl crate::settings_schema::Section for $section {
            fn keys<K: crate::settings_schema::Keys>(&mut self, keys: &mut K) {
                let $section { $($field,)* $($inner,)* } = self;
                $(keys.key(stringify!($field), $field, $kind, $about);)*
                $(keys.section(stringify!($inner), $inner, $inner_about);)*
                $(keys.removed(stringify!($removed));)*
            }
        }
    };
}
pub(crate) use keys_of;

/// Visits all keys.
pub(crate) trait Keys {
    /// A section inside this one.
    fn section<S: Section>(&mut self, name: &'static str, section: &mut S, about: &'static str);

    /// One key.
    fn key<T>(&mut self, name: &'static str, field: &mut T, kind: Kind<T>, about: &'static str);

    /// A table whose names are the user's own, and whose values are all of one kind.
    fn table<T>(
        &mut self,
        name: &'static str,
        field: &mut BTreeMap<String, T>,
        kind: Kind<T>,
        about: &'static str,
    );

    /// A former name of a key: still read, no longer written. Comes before the key, which overrides it.
    fn legacy<T>(&mut self, name: &'static str, field: &mut T, kind: Kind<T>);

    /// A key that no longer has an effect: accepted with a warning, whatever its value, and no longer written.
    fn removed(&mut self, name: &'static str);
}

/// What may stand after `key =`, and how it becomes the value that the rest of the program sees.
pub(crate) struct Kind<T> {
    /// Completes "expected …".
    pub expected: &'static str,
    pub read: fn(&Typed<'_>) -> Option<T>,
    /// The value as TOML, in a form that `read` takes.
    pub write: fn(&T) -> String,
    pub exposure: Exposure,
}

/// How an error message shows a bad value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// It is repeated.
    Open,
    /// It is repeated, and the nearest of these names beside it.
    OneOf(&'static [&'static str]),
    Secret,
}

/// A value as it is written in the file.
pub(crate) struct Typed<'a> {
    pub value: &'a DeValue<'a>,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

impl<'a> Typed<'a> {
    pub fn text(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// The elements of a list, in which every one must be a text.
    pub fn texts(&self) -> Option<Vec<&'a str>> {
        self.value.as_array()?.iter().map(|element| element.get_ref().as_str()).collect()
    }

    pub fn integer(&self) -> Option<i64> {
        let integer = self.value.as_integer()?;
        i64::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    /// A number with or without a decimal point.
    pub fn number(&self) -> Option<f64> {
        match self.value.as_float() {
            Some(float) => float.as_str().parse().ok(),
            None => self.integer().map(|integer| integer as f64),
        }
    }
}
