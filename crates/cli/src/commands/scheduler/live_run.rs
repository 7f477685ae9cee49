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
}

/// Prints the events of a run until its end.
pub(super) async fn show(mut events: TaskRunEvents<'_>, waiting: Spinner) -> Result<ShownRun> {
    // Until the first piece of the answer.
    let mut waiting = Some(waiting);
    let mut answer = AnswerOutput::new(ReasoningDisplay::Hidden);
    let ended = loop {
        match events.next().await {
            Some(Ok(TaskRunEvent::Step(line))) => output::note(line),
            Some(Ok(TaskRunEvent::Text(piece))) => {
                drop(waiting.take());
                // The run continues without a reader of stdout: its result is stored and delivered.
                let _ = answer.write(&piece).await;
            }
            Some(Ok(TaskRunEvent::Ended(run))) => break Ok(*run),
            Some(Err(failure)) => break Err(failure.into()),
            None => break Err(anyhow::anyhow!("the run ended without a result")),
        }
    };
    drop(waiting);
    answer.end().await?;
    Ok(ShownRun { run: ended?, has_answer: answer.has_words() })
}
