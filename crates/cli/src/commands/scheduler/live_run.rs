//! Shows a run of a task in the terminal: the steps on stderr, the answer on stdout.

use anyhow::Result;
use futures::StreamExt;

use crate::answers::{EndedTaskRun, TaskRunEvent, TaskRunEvents};
use crate::commands::ask::answer_output::{AnswerOutput, ReasoningDisplay};
use crate::output;
use crate::output::progress::Spinner;

/// What was shown of a run.
pub(super) struct ShownRun {
    pub run: EndedTaskRun,
    /// Whether the answer was printed.
    pub has_answer: bool,
    /// The line about the sources of a printed answer. The log has it below the answer.
    pub sources: Option<String>,
}

/// Prints the events of a run until its end.
pub(super) async fn show(mut events: TaskRunEvents<'_>, waiting: Spinner) -> Result<ShownRun> {
    // Until the first piece of the answer.
    let mut waiting = Some(waiting);
    let mut answer = AnswerOutput::new(ReasoningDisplay::Hidden);
    let mut printed = String::new();
    let ended = loop {
        match events.next().await {
            Some(Ok(TaskRunEvent::Step(line))) => output::note(line),
            Some(Ok(TaskRunEvent::Text(piece))) => {
                drop(waiting.take());
                // The run continues without a reader of stdout: its result is stored and delivered.
                let _ = answer.write(&piece).await;
                printed.push_str(&piece);
            }
            Some(Ok(TaskRunEvent::Ended(run))) => break Ok(*run),
            Some(Err(failure)) => break Err(failure.into()),
            None => break Err(anyhow::anyhow!("the run ended without a result")),
        }
    };
    drop(waiting);
    answer.end().await?;
    let (run, has_answer) = (ended?, answer.has_words());
    let result = run.result.as_deref().filter(|_| has_answer);
    let sources = result.and_then(|result| sources_below(result, &printed)).map(str::to_owned);
    Ok(ShownRun { run, has_answer, sources })
}

/// The last line of a result that names its sources, unless it was printed as a part of the answer.
fn sources_below<'a>(result: &'a str, printed: &str) -> Option<&'a str> {
    let (_, line) = result.rsplit_once("\n\n")?;
    (line.starts_with("Sources: ") && !printed.trim_end().ends_with(line)).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_that_the_log_has_below_an_answer_are_shown_once() {
        let result = "In March.\n\nSources: house.md";
        assert_eq!(sources_below(result, "In March.\n"), Some("Sources: house.md"));
        assert_eq!(sources_below(result, "In March.\n\nSources: house.md\n"), None);
        assert_eq!(sources_below("In March.\n\nThe end.", "In March."), None);
        assert_eq!(sources_below("In March.", "In March."), None);
    }
}
