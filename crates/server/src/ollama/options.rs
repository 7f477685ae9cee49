//! The field `options`: how tokens are chosen, and how Ollama would run the model. What chat completions have becomes that; the rest is
//! a hint, which an engine follows or the answer names in a warning.

use hob_core::{GenerateRequest, MaxTokens, Temperature};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use crate::error::{ApiError, ApiResult};
use crate::openai::chat_request::within;
use crate::openai::ignored_fields::IgnoredFields;
use crate::whole_number::{WholeNumber, whole};

/// Ollama's value for a random seed.
const RANDOM_SEED: i64 = -1;

/// The options that are hints, with the values that they take.
const HINTS: [(&str, OptionKind); 22] = [
    ("f16_kv", OptionKind::Switch),
    ("low_vram", OptionKind::Switch),
    ("main_gpu", OptionKind::Whole),
    ("min_p", OptionKind::Number(0.0, 1.0)),
    ("mirostat", OptionKind::Whole),
    ("mirostat_eta", OptionKind::Number(0.0, 1e6)),
    ("mirostat_tau", OptionKind::Number(0.0, 1e6)),
    ("num_batch", OptionKind::Whole),
    ("num_ctx", OptionKind::Whole),
    ("num_gpu", OptionKind::Whole),
    ("num_keep", OptionKind::Whole),
    ("num_thread", OptionKind::Whole),
    ("numa", OptionKind::Switch),
    ("penalize_newline", OptionKind::Switch),
    ("repeat_last_n", OptionKind::Whole),
    ("repeat_penalty", OptionKind::Number(0.01, 100.0)),
    ("tfs_z", OptionKind::Number(0.0, 1e6)),
    ("top_k", OptionKind::Whole),
    ("typical_p", OptionKind::Number(0.0, 1.0)),
    ("use_mlock", OptionKind::Switch),
    ("use_mmap", OptionKind::Switch),
    ("vocab_only", OptionKind::Switch),
];

/// What an option is.
#[derive(Debug, Clone, Copy)]
enum OptionKind {
    Whole,
    Number(f64, f64),
    Switch,
}

impl OptionKind {
    /// The value, if it is of this kind. A whole number may be written with a fraction of zero.
    fn read(self, value: &Value) -> Option<Value> {
        match (self, value) {
            (OptionKind::Whole, Value::Number(number)) => {
                let number = number.as_i64().or_else(|| number.as_f64().and_then(whole))?;
                i32::try_from(number).ok().map(|number| Value::Number(Number::from(number)))
            }
            (OptionKind::Number(least, most), Value::Number(number)) => {
                number.as_f64().filter(|number| (least..=most).contains(number)).map(|_| value.clone())
            }
            (OptionKind::Switch, Value::Bool(_)) => Some(value.clone()),
            _ => None,
        }
    }

    fn expected(self) -> String {
        match self {
            OptionKind::Whole => "a whole number of at most 31 bits".to_owned(),
            OptionKind::Number(least, most) => format!("a number between {least} and {most}"),
            OptionKind::Switch => "true or false".to_owned(),
        }
    }
}

/// The options before they are checked.
#[derive(Deserialize, Default)]
#[serde(expecting = "an object")]
pub(super) struct WireOptions {
    temperature: Option<f64>,
    num_predict: Option<WholeNumber>,
    top_p: Option<f64>,
    seed: Option<WholeNumber>,
    stop: Option<Stop>,
    presence_penalty: Option<f64>,
    frequency_penalty: Option<f64>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum Stop {
    One(String),
    Several(Vec<String>),
}

impl WireOptions {
    /// Writes the options into a request.
    pub(super) fn apply(self, request: &mut GenerateRequest, ignored: &mut IgnoredFields) -> ApiResult<()> {
        let temperature = self.temperature.map(Temperature::new).transpose();
        request.temperature =
            temperature.map_err(|error| ApiError::invalid("options.temperature", error.to_string()))?;
        // Zero and below are Ollama's words for "as long as it takes".
        if let Some(length) = self.num_predict.map(|length| length.0).filter(|length| *length > 0) {
            let longest = MaxTokens::new(length).map_err(|_| {
                let message = format!("options.num_predict must be less than 2^32, got {length}");
                ApiError::invalid("options.num_predict", message)
            })?;
            request.max_tokens = Some(longest);
        }
        let sampling = &mut request.sampling;
        sampling.top_p = within("options.top_p", self.top_p, 0.0..=1.0)?;
        sampling.seed = self.seed.map(|seed| seed.0).filter(|seed| *seed != RANDOM_SEED);
        sampling.presence_penalty = within("options.presence_penalty", self.presence_penalty, -2.0..=2.0)?;
        sampling.frequency_penalty = within("options.frequency_penalty", self.frequency_penalty, -2.0..=2.0)?;
        sampling.stop = match self.stop {
            None => Vec::new(),
            Some(Stop::One(stop)) => vec![stop],
            Some(Stop::Several(stops)) => stops,
        };
        // An answer always begins with nothing, so an empty text would end it there.
        sampling.stop.retain(|stop| !stop.is_empty());
        for (name, value) in self.rest.into_iter().filter(|(_, value)| !value.is_null()) {
            match HINTS.iter().find(|(known, _)| *known == name) {
                None => ignored.note(&format!("options.{name}")),
                Some((_, kind)) => {
                    let value = kind.read(&value).ok_or_else(|| wrong(&name, *kind))?;
                    request.hints.insert(name, value);
                }
            }
        }
        Ok(())
    }

    /// Names every option as one that has no effect.
    pub(super) fn ignore(self, ignored: &mut IgnoredFields) {
        let given = [
            ("temperature", self.temperature.is_some()),
            ("num_predict", self.num_predict.is_some()),
            ("top_p", self.top_p.is_some()),
            ("seed", self.seed.is_some()),
            ("stop", self.stop.is_some()),
            ("presence_penalty", self.presence_penalty.is_some()),
            ("frequency_penalty", self.frequency_penalty.is_some()),
        ];
        for (name, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            ignored.note(&format!("options.{name}"));
        }
        ignored.note_all("options", &self.rest);
    }
}

fn wrong(name: &str, kind: OptionKind) -> ApiError {
    let field = format!("options.{name}");
    let message = format!("{field}: expected {}", kind.expected());
    ApiError::invalid(field, message)
}
