//! Whether this machine can measure the energy of answers. Reports nothing on machines without a meter.

use std::time::Duration;

use hob_config::Config;
use hob_telemetry::energy::{EnergySurvey, survey};

use super::report::{CheckStatus, DoctorCheck};

/// The longest wait for a driver.
const TIMEOUT: Duration = Duration::from_secs(5);

pub async fn check(config: &Config) -> Vec<DoctorCheck> {
    if !config.telemetry.energy {
        return Vec::new();
    }
    look(survey).await
}

async fn look(survey: impl FnOnce() -> EnergySurvey + Send + 'static) -> Vec<DoctorCheck> {
    let (found, looked) = tokio::sync::oneshot::channel();
    // A separate thread, because a driver that hangs must not delay the end of the command.
    std::thread::spawn(move || found.send(survey()));
    match tokio::time::timeout(TIMEOUT, looked).await {
        Ok(Ok(survey)) => checks(&survey),
        // The thread panicked, which was already reported.
        Ok(Err(_)) => Vec::new(),
        Err(_) => {
            let message =
                format!("the driver of an energy meter did not answer within {} s", TIMEOUT.as_secs());
            let advice = "Hob does not record energy. If 'nvidia-smi' hangs too, restart the machine, or set [telemetry] \
                          energy = false";
            vec![DoctorCheck::new("energy", CheckStatus::Warning, message).advise(advice)]
        }
    }
}

fn checks(survey: &EnergySurvey) -> Vec<DoctorCheck> {
    let meters = survey.meters.join(", ");
    let measured = DoctorCheck::new("energy", CheckStatus::Good, format!("measured by {meters}"));
    let refused = survey.refused.iter().map(|reason| {
        DoctorCheck::new("energy", CheckStatus::Off, reason)
            .advise("Hob does not record it. See docs/telemetry.md for how to allow the measurement")
    });
    (!meters.is_empty()).then_some(measured).into_iter().chain(refused).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_meter_that_hangs_is_reported() {
        let (release, held) = mpsc::channel::<()>();
        let checks = look(move || {
            // Until the test is over.
            let _ = held.recv();
            EnergySurvey::default()
        })
        .await;
        drop(release);
        let [check] = &checks[..] else { panic!("{checks:?}") };
        assert_eq!(
            (check.status, check.message.as_str()),
            (CheckStatus::Warning, "the driver of an energy meter did not answer within 5 s")
        );
    }

    #[test]
    fn meters_are_listed_and_refusals_have_a_reason() {
        let survey = EnergySurvey {
            meters: vec!["package-0 (RAPL)".into(), "NVIDIA L40S (NVML)".into()],
            refused: vec!["NVIDIA GTX 1080 does not count its energy".into()],
        };
        let listed: Vec<(CheckStatus, String)> =
            checks(&survey).into_iter().map(|check| (check.status, check.message)).collect();
        assert_eq!(
            listed,
            [
                (CheckStatus::Good, "measured by package-0 (RAPL), NVIDIA L40S (NVML)".to_owned()),
                (CheckStatus::Off, "NVIDIA GTX 1080 does not count its energy".to_owned()),
            ]
        );
        assert_eq!(checks(&EnergySurvey::default()), []);
    }
}
