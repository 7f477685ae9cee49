//! The arithmetic, and the body that the dashboard reads.

use std::time::UNIX_EPOCH;

use super::*;

/// Compared at a quarter past twelve of 2026-11-15 in UTC, with the prices of the table.
fn compared(served: ServedTotals) -> Savings {
    savings(served, &Prices::standard(), quarter_past_twelve(), &Zone::UTC)
}

fn quarter_past_twelve() -> Moment {
    Moment::of(UNIX_EPOCH + Duration::from_secs(1_794_744_900))
}

fn model(model: &str, tokens: (u64, u64)) -> ServedModel {
    ServedModel {
        model: model.to_owned(),
        engine: "ollama".to_owned(),
        calls: 2,
        prompt_tokens: tokens.0,
        completion_tokens: tokens.1,
        timings: CallTimings::default(),
    }
}

#[test]
fn the_body_is_the_documented_one() {
    let served = ServedTotals {
        since: Some(Moment::of(UNIX_EPOCH + Duration::from_secs(1_794_744_000))),
        models: vec![model("qwen3:8b", (900_000, 90_000)), model("llama3.2", (100_000, 10_000))],
        cloud_cost: Dollars::from_pico(30_000_000),
        recent: vec![CallRecord {
            started: Moment::of(UNIX_EPOCH + Duration::from_secs(1_794_744_060)),
            run: "run-1".to_owned(),
            source: "server".to_owned(),
            engine: "ollama".to_owned(),
            model: "llama3.2".to_owned(),
            agent: None,
            key: None,
            end_user: None,
            request_id: None,
            route: None,
            host: None,
            queued: None,
            streamed: false,
            prompt_tokens: 12,
            completion_tokens: 0,
            cached_tokens: None,
            estimated: true,
            latency: Duration::from_micros(1500),
            first_token: None,
            tokens_per_second: None,
            outcome: CallOutcome::Failed,
            finish_reason: None,
            error: Some("cannot open /home/ann/models/llama3.2".to_owned()),
            cost: None,
            energy: None,
        }],
        ..ServedTotals::default()
    };
    let timing = LatencySummary {
        mean: Duration::from_millis(1250),
        p50: Duration::from_secs(1),
        p95: Duration::from_secs(3),
    };
    let timings = CallTimings { latency: Some(timing), first_token: None };
    let mut body = compared(ServedTotals { timings, ..served });
    // The spans have a test of their own.
    body.over_time.today.truncate(1);
    body.over_time.days.truncate(1);
    insta::assert_json_snapshot!(body, @r#"
    {
      "total_calls": 4,
      "total_prompt_tokens": 1000000,
      "total_completion_tokens": 100000,
      "total_tokens": 1100000,
      "local_cost": 0.00003,
      "since": "2026-11-15T12:00:00.000000Z",
      "prices_as_of": "2026-11-15",
      "per_provider": [
        {
          "provider": "openai",
          "label": "gpt-5.2",
          "input_price": 1.75,
          "output_price": 14.0,
          "input_cost": 1.75,
          "output_cost": 1.4,
          "total_cost": 3.15
        },
        {
          "provider": "anthropic",
          "label": "claude-opus-4.6",
          "input_price": 5.0,
          "output_price": 25.0,
          "input_cost": 5.0,
          "output_cost": 2.5,
          "total_cost": 7.5
        },
        {
          "provider": "google",
          "label": "gemini-3.1-pro",
          "input_price": 2.0,
          "output_price": 12.0,
          "input_cost": 2.0,
          "output_cost": 1.2,
          "total_cost": 3.2
        }
      ],
      "per_model": [
        {
          "model": "qwen3:8b",
          "engine": "ollama",
          "calls": 2,
          "prompt_tokens": 900000,
          "completion_tokens": 90000,
          "total_tokens": 990000,
          "latency": null,
          "first_token": null
        },
        {
          "model": "llama3.2",
          "engine": "ollama",
          "calls": 2,
          "prompt_tokens": 100000,
          "completion_tokens": 10000,
          "total_tokens": 110000,
          "latency": null,
          "first_token": null
        }
      ],
      "latency": {
        "mean": 1.25,
        "p50": 1.0,
        "p95": 3.0
      },
      "first_token": null,
      "over_time": {
        "timezone": "UTC",
        "today": [
          {
            "start": "2026-11-15T00:00:00.000000Z",
            "calls": 0,
            "prompt_tokens": 0,
            "completion_tokens": 0
          }
        ],
        "days": [
          {
            "start": "2026-10-17T00:00:00.000000Z",
            "calls": 0,
            "prompt_tokens": 0,
            "completion_tokens": 0
          }
        ]
      }
    }
    "#);
}

#[test]
fn without_calls_nothing_is_saved() {
    let nothing = compared(ServedTotals::default());
    assert_eq!((nothing.total_calls, nothing.since), (0, None));
    assert!(nothing.per_provider.iter().all(|provider| provider.total_cost == Dollars::ZERO));
    assert_eq!(nothing.per_provider.len(), 3);
}

#[test]
fn a_lifetime_of_tokens_is_added_up_to_the_last_one() {
    // As floating-point numbers, these lose the last token.
    let tokens = 10_000_000_000_000_001;
    let served = ServedTotals { models: vec![model("m", (tokens, tokens))], ..ServedTotals::default() };
    let saved = compared(served).per_provider.remove(0).total_cost;
    assert_eq!(saved.pico(), 157_500_000_000_000_015_750_000);
}
