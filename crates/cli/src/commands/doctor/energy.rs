//! Whether the energy of answers can be measured here. Says nothing on machines without a meter, which are most.

use std::time::Duration;

use hob_config::Config;
use hob_telemetry::energy::{EnergySurvey, survey};

use super::report::{CheckStatus, DoctorCheck};

/// A driver that takes longer is not worth the wait.
const TIMEOUT: Duration = Duration::from_secs(5);

pub async fn check(config: &Config) -> Vec<DoctorCheck> {
    if !config.telemetry.energy {
        return Vec::new();
    }
    look(survey).await
}

async fn look(survey: impl FnOnce() -> EnergySurvey + Send + 'static) -> Vec<DoctorCheck> {
    let (found, looked) = tokio::sync::oneshot::channel();
    // A thread of its own, because the end of the command must not wait for a driver that hangs.
    std::thread::spawn(move || found.send(survey()));
    match tokio::time::timeout(TIMEOUT, looked).await {
        Ok(Ok(survey)) => checks(&survey),
        // It panicked, which has been told of already.
        Ok(Err(_)) => Vec::new(),
        Err(_) => {
            let message = format!("the driver of a meter did not answer within {} s", TIMEOUT.as_secs());
            let advice = "Answers are recorded without their energy. Where 'nvidia-smi' hangs too, restart the machine, or set \
                          [telemetry] energy = false";
            vec![DoctorCheck::new("energy", CheckStatus::Warning, message).advise(advice)]
        }
    }
}

fn checks(survey: &EnergySurvey) -> Vec<DoctorCheck> {
    let meters = survey.meters.join(", ");
    let measured =
        DoctorCheck::new("energy", CheckStatus::Good, format!("of answers is measured by {meters}"));
    let refused = survey.refused.iter().map(|reason| {
        DoctorCheck::new("energy", CheckStatus::Off, reason)
            .advise("Answers are recorded without it. docs/telemetry.md says how to let Hob measure")
    });
    (!meters.is_empty()).then_some(measured).into_iter().chain(refused).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_meter_that_hangs_is_no_machine_without_one() {
        let (release, held) = mpsc::channel::<()>();
        let told = look(move || {
            // Until the test is over.
            let _ = held.recv();
            EnergySurvey::default()
        })
        .await;
        drop(release);
        let [check] = &told[..] else { panic!("{told:?}") };
        assert_eq!(
            (check.status, check.message.as_str()),
            (CheckStatus::Warning, "the driver of a meter did not answer within 5 s")
        );
    }

    #[test]
    fn meters_are_named_and_those_that_refuse_say_why() {
        let survey = EnergySurvey {
            meters: vec!["package-0 (RAPL)".into(), "NVIDIA L40S (NVML)".into()],
            refused: vec!["NVIDIA GTX 1080 does not count its energy".into()],
        };
        let told: Vec<(CheckStatus, String)> =
            checks(&survey).into_iter().map(|check| (check.status, check.message)).collect();
        assert_eq!(
            told,
            [
                (
                    CheckStatus::Good,
                    "of answers is measured by package-0 (RAPL), NVIDIA L40S (NVML)".to_owned()
                ),
                (CheckStatus::Off, "NVIDIA GTX 1080 does not count its energy".to_owned()),
            ]
        );
        assert_eq!(checks(&EnergySurvey::default()), []);
    }
}
