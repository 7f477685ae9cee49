//! Reads the options of a request. Unsupported ones are refused by name.

use hob_core::{
    AnswerWarning, CONTINUE_FINAL_MESSAGE, EngineError, GenerateRequest, REASONING_EFFORT, Unplaced,
    unplaced_field,
};
use serde_json::{Map, Value};

use crate::error::{bad_request, unsupported};
use crate::sampler::SamplingParams;
use crate::stops::StopStrings;

/// The largest useful bias.
const MAX_BIAS: f32 = 1e6;

/// The default temperature, as in llama.cpp's server.
const DEFAULT_TEMPERATURE: f64 = 0.8;

/// How an answer is to be made.
#[derive(Debug, Clone)]
pub(crate) struct AnswerOptions {
    pub(crate) sampling: SamplingParams,
    pub(crate) stops: StopStrings,
    pub(crate) max_tokens: usize,
    pub(crate) answers: usize,
    /// The number of alternatives for each token; `None` for no probabilities.
    pub(crate) logprobs: Option<usize>,
    pub(crate) ignore_eos: bool,
    pub(crate) template_variables: Map<String, Value>,
    /// How much the model should reason, as the caller wrote it.
    pub(crate) effort: Option<String>,
    /// Whether the answer continues the last message.
    pub(crate) continues_last: bool,
    /// Fields that have no effect here.
    pub(crate) warnings: Vec<AnswerWarning>,
}

impl AnswerOptions {
    /// The reasoning effort for the model's template, whose text is `source`. `None` is for a template without variables.
    pub(crate) fn place_effort(&mut self, source: Option<&str>) {
        let Some(effort) = self.effort.take() else { return };
        let level = match effort.as_str() {
            "none" | "minimal" | "low" => "low",
            "xhigh" | "max" => "high",
            level => level,
        };
        let variables =
            [("enable_thinking", Value::from(effort != "none")), (REASONING_EFFORT, level.into())];
        let mut is_placed = false;
        for (name, value) in variables {
            if source.is_some_and(|source| source.contains(name)) {
                self.template_variables.entry(name).or_insert(value);
                is_placed = true;
            }
        }
        if !is_placed {
            self.warnings.push(AnswerWarning::Ignored(REASONING_EFFORT.to_owned()));
        }
    }

    pub(crate) fn read(request: &GenerateRequest, most_answers: usize) -> Result<Self, EngineError> {
        let answers = request.answers() as usize;
        if answers > most_answers {
            return Err(bad_request(format!("'n' is {answers}, but the limit is {most_answers}"), Some("n")));
        }
        let wants = &request.sampling;
        let seed = wants.seed.map_or_else(|| fastrand::u64(..), i64::cast_unsigned);
        let mut sampling =
            SamplingParams::new(request.temperature().unwrap_or(DEFAULT_TEMPERATURE) as f32, seed);
        let set = |field: &mut f32, value: Option<f64>| {
            if let Some(value) = value {
                *field = (value as f32).clamp(-MAX_BIAS, MAX_BIAS);
            }
        };
        set(&mut sampling.top_p, wants.top_p);
        set(&mut sampling.frequency_penalty, wants.frequency_penalty);
        set(&mut sampling.presence_penalty, wants.presence_penalty);

        let mut ask = AnswerOptions {
            sampling,
            stops: StopStrings::new(&wants.stop),
            // Without a limit, the context ends the answer.
            max_tokens: request.max_tokens().map_or(usize::MAX, |most| most as usize),
            answers,
            logprobs: wants.logprobs.then_some(wants.top_logprobs.unwrap_or(0).min(20) as usize),
            ignore_eos: false,
            template_variables: Map::new(),
            effort: None,
            continues_last: false,
            warnings: Vec::new(),
        };
        for (field, value) in &request.extra {
            // vLLM requires this together with the other field.
            if field == "add_generation_prompt"
                && value.as_bool() == Some(false)
                && request.continues_last_message()
            {
                continue;
            }
            ask.take_extra(field, value)?;
        }
        Ok(ask)
    }

    fn take_extra(&mut self, field: &str, value: &Value) -> Result<(), EngineError> {
        let wrong = |what: &str| bad_request(format!("'{field}' must be {what}, got {value}"), Some(field));
        let sampling = &mut self.sampling;
        match field {
            _ if value.is_null() => {}
            "top_k" => {
                // Some clients write -1 for "all".
                let k = whole(value).ok_or_else(|| wrong("a whole number"))?;
                sampling.top_k = usize::try_from(k).unwrap_or(0);
            }
            "min_p" => {
                sampling.min_p = share(value).ok_or_else(|| wrong("a number between 0 and 1"))?;
            }
            "repeat_penalty" | "repetition_penalty" => {
                sampling.repeat_penalty =
                    penalty(value).ok_or_else(|| wrong("a number between 0.01 and 100"))?;
            }
            "repeat_last_n" => {
                let n = value.as_u64().ok_or_else(|| wrong("a whole number"))?;
                sampling.repeat_last_n = usize::try_from(n).unwrap_or(usize::MAX).min(1 << 20);
            }
            "logit_bias" => {
                sampling.bias = biases(value).ok_or_else(|| wrong("an object of token ids and numbers"))?;
            }
            "ignore_eos" => self.ignore_eos = value.as_bool().ok_or_else(|| wrong("true or false"))?,
            "chat_template_kwargs" => {
                self.template_variables = value.as_object().ok_or_else(|| wrong("an object"))?.clone();
            }
            CONTINUE_FINAL_MESSAGE => {
                self.continues_last = value.as_bool().ok_or_else(|| wrong("true or false"))?;
            }
            REASONING_EFFORT => {
                self.effort = Some(value.as_str().ok_or_else(|| wrong("a string"))?.to_owned());
            }
            _ => match unplaced_field(field, value) {
                Unplaced::LeftOut => {}
                Unplaced::Ignored => self.warnings.push(AnswerWarning::Ignored(field.to_owned())),
                Unplaced::Unsupported => return Err(unsupported(field, None)),
            },
        }
        Ok(())
    }
}

/// An integer, also as `20.0`.
fn whole(value: &Value) -> Option<i64> {
    let written_with_point =
        || value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15).map(|n| n as i64);
    value.as_i64().or_else(written_with_point)
}

fn share(value: &Value) -> Option<f32> {
    let number = value.as_f64()?;
    (0.0..=1.0).contains(&number).then_some(number as f32)
}

/// A factor that keeps scores finite when applied repeatedly.
fn penalty(value: &Value) -> Option<f32> {
    let number = value.as_f64()?;
    (0.01..=100.0).contains(&number).then_some(number as f32)
}

fn biases(value: &Value) -> Option<Vec<(i32, f32)>> {
    value
        .as_object()?
        .iter()
        .map(|(token, bias)| Some((token.parse().ok()?, (bias.as_f64()? as f32).clamp(-MAX_BIAS, MAX_BIAS))))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_extra(extra: Value) -> Result<AnswerOptions, EngineError> {
        let request = GenerateRequest {
            extra: extra.as_object().cloned().unwrap_or_default(),
            ..GenerateRequest::default()
        };
        AnswerOptions::read(&request, 8)
    }

    #[test]
    fn additional_sampling_fields_are_supported() {
        let ask = with_extra(json!({
            "top_k": 5, "min_p": 0.1, "repeat_penalty": 1.2, "repeat_last_n": 10, "logit_bias": {"7": -100}, "user": "me",
        }))
        .expect("understood");
        let expected = SamplingParams {
            top_k: 5,
            min_p: 0.1,
            repeat_penalty: 1.2,
            repeat_last_n: 10,
            bias: vec![(7, -100.0)],
            ..SamplingParams::new(0.7, ask.sampling.seed)
        };
        assert_eq!(ask.sampling, expected);
    }

    #[test]
    fn a_field_that_means_nothing_here_is_refused_by_name() {
        let error = with_extra(json!({"min_tokens": 3})).expect_err("refused");
        assert_eq!(error.to_string(), "embedded does not support 'min_tokens'");
    }

    #[test]
    fn the_effort_goes_to_templates_that_know_it() {
        let placed = |effort: &str, source: Option<&str>| {
            let given = json!({"reasoning_effort": effort, "chat_template_kwargs": {"style": "brief"}});
            let mut ask = with_extra(given).expect("understood");
            ask.place_effort(source);
            (Value::Object(ask.template_variables), ask.warnings)
        };
        let ignored = vec![AnswerWarning::Ignored("reasoning_effort".into())];
        assert_eq!(
            placed("max", Some("{{ reasoning_effort }}")),
            (json!({"style": "brief", "reasoning_effort": "high"}), Vec::new())
        );
        assert_eq!(
            placed("none", Some("{% if enable_thinking %}")),
            (json!({"style": "brief", "enable_thinking": false}), Vec::new())
        );
        assert_eq!(placed("low", Some("{{ messages }}")), (json!({"style": "brief"}), ignored.clone()));
        assert_eq!(placed("low", None), (json!({"style": "brief"}), ignored));
    }

    #[test]
    fn what_the_caller_tells_the_template_wins() {
        let given = json!({"reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": false}});
        let mut ask = with_extra(given).expect("understood");
        ask.place_effort(Some("{% if enable_thinking %}"));
        assert_eq!(Value::Object(ask.template_variables), json!({"enable_thinking": false}));
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_field() {
        for extra in [json!({"min_p": 2}), json!({"top_k": "x"}), json!({"repeat_penalty": 0})] {
            let error = with_extra(extra).expect_err("refused");
            assert!(matches!(error, EngineError::Refused { status: 400, param: Some(_), .. }));
        }
    }
}
