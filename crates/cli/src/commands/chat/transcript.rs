//! A conversation as Markdown.

use std::fmt::Write;

use hob_conversations::{ChatTurn, TurnEnding};

/// The conversation as Markdown.
pub fn transcript(turns: &[ChatTurn]) -> String {
    let mut text = String::new();
    for ChatTurn { question, answer, ending, model, .. } in turns {
        let mark = match ending {
            TurnEnding::Complete => "",
            TurnEnding::Stopped => "\n*(stopped)*\n",
            TurnEnding::Cut => "\n*(the answer was cut)*\n",
            TurnEnding::Failed => "\n*(the answer failed)*\n",
        };
        let (question, answer) = (question.trim(), answer.trim());
        // Writing to a string cannot fail.
        let _ = write!(text, "## You\n\n{question}\n\n## {model}\n\n{answer}\n{mark}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_stopped_is_marked() {
        let turn = |ending| ChatTurn {
            question: "Q?\n".into(),
            attachments: Vec::new(),
            answer: " A".into(),
            ending,
            model: "m".into(),
        };
        assert_eq!(
            transcript(&[turn(TurnEnding::Complete), turn(TurnEnding::Stopped)]),
            "## You\n\nQ?\n\n## m\n\nA\n\n## You\n\nQ?\n\n## m\n\nA\n\n*(stopped)*\n\n"
        );
    }
}
