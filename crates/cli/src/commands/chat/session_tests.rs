use hob_config::AgentName;
use hob_conversations::{AttachmentKind, TurnNumber};
use hob_core::Role;

use super::*;

fn session() -> ChatSession {
    ChatSession::new(ChatSettings::new(AgentChoice::None, Switch::On))
}

fn id(number: &str) -> ChatId {
    ChatId::parse(number).expect("a number")
}

/// The place of a turn in the conversation 7.
fn kept(number: i64) -> SavedTurn {
    SavedTurn { chat: id("7"), number: TurnNumber::new(number) }
}

fn turn(question: &str, answer: &str) -> ChatTurn {
    ChatTurn {
        question: question.into(),
        attachments: Vec::new(),
        answer: answer.into(),
        ending: TurnEnding::Complete,
        model: "m".into(),
    }
}

/// A conversation in which these questions were answered by themselves.
fn with_turns(questions: &[&str]) -> ChatSession {
    let mut session = session();
    for (number, question) in (1..).zip(questions) {
        session.handle_input(question);
        session.answered(format!("re: {question}"), TurnEnding::Complete, "m".into()).expect("to be kept");
        session.kept(kept(number));
    }
    session
}

/// What the model is asked, a word for each message.
fn asked(effect: ChatEffect) -> Vec<String> {
    match effect {
        ChatEffect::Ask(messages) => messages
            .iter()
            .map(|message| format!("{}: {}", Role::from(message.role).as_str(), message.text))
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn said(effect: ChatEffect) -> String {
    match effect {
        ChatEffect::Say(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_question_includes_the_earlier_turns() {
    let mut session = with_turns(&["a"]);
    assert_eq!(asked(session.handle_input("b")), ["user: a", "assistant: re: a", "user: b"]);
    let keep = session.answered("re: b".into(), TurnEnding::Complete, "m".into());
    assert_eq!(keep, Some(SaveTurn { turn: turn("b", "re: b"), place: SaveTarget::EndOf(Some(id("7"))) }));
}

#[test]
fn a_stopped_answer_is_saved_as_far_as_it_came() {
    let mut session = session();
    session.handle_input("a");
    let keep = session.answered("half of".into(), TurnEnding::Stopped, "m".into()).expect("to be kept");
    assert_eq!(keep.turn, ChatTurn { ending: TurnEnding::Stopped, ..turn("a", "half of") });
    assert_eq!(asked(session.handle_input("b")), ["user: a", "assistant: half of", "user: b"]);
}

#[test]
fn a_retry_replaces_the_answer_and_loses_nothing_when_it_fails() {
    let mut session = with_turns(&["a", "b"]);
    assert_eq!(asked(session.handle_input("/retry")), ["user: a", "assistant: re: a", "user: b"]);
    assert_eq!(session.turns().len(), 2, "the old answer stays until there is a new one");
    assert_eq!(asked(session.handle_input("/retry")), ["user: a", "assistant: re: a", "user: b"]);
    let keep = session.answered("better".into(), TurnEnding::Complete, "m".into()).expect("to be kept");
    assert_eq!(keep.place, SaveTarget::InsteadOf(kept(2)));
    assert_eq!(session.turns(), [turn("a", "re: a"), turn("b", "better")]);
}

#[test]
fn a_retry_replaces_only_its_own_saved_turn() {
    let mut session = with_turns(&["a"]);
    let mut answer = |line: &str, answer: &str| {
        session.handle_input(line);
        session.answered(answer.into(), TurnEnding::Complete, "m".into()).expect("to be kept").place
    };
    // The session does not learn that anything was saved, as when the disk is full.
    assert_eq!(answer("/retry", "better"), SaveTarget::InsteadOf(kept(1)));
    assert_eq!(answer("/retry", "best"), SaveTarget::InsteadOf(kept(1)), "the first answer is still there");
    assert_eq!(answer("b", "lost"), SaveTarget::EndOf(Some(id("7"))));
    assert_eq!(
        answer("/retry", "good"),
        SaveTarget::EndOf(Some(id("7"))),
        "the last turn there is another's"
    );
    session.kept(kept(5));
    session.handle_input("/retry");
    let keep = session.answered("better".into(), TurnEnding::Complete, "m".into()).expect("to be kept");
    assert_eq!(keep.place, SaveTarget::InsteadOf(kept(5)));
}

#[test]
fn a_question_that_failed_can_be_asked_again() {
    let mut session = with_turns(&["a"]);
    session.handle_input("b");
    assert_eq!(session.advice(false), "/retry asks again.");
    assert_eq!(asked(session.handle_input("/retry")), ["user: a", "assistant: re: a", "user: b"]);
    assert_eq!(session.answered(" \n".into(), TurnEnding::Stopped, "m".into()), None, "nothing was said");
    assert_eq!(asked(session.handle_input("/retry")).last().map(String::as_str), Some("user: b"));
}

#[test]
fn a_conversation_that_is_too_long_is_never_cut_silently() {
    let mut session = with_turns(&["a", "b"]);
    session.handle_input("c");
    let advice = session.advice(true);
    assert!(advice.contains("With 2 turns before it") && advice.contains("/new"), "{advice}");
    assert_eq!(said(session.handle_input("/new")), "Started a new conversation.");
    assert_eq!(asked(session.handle_input("/retry")), ["user: c"]);
    assert!(session.advice(true).contains("Ask a shorter one"));
}

#[test]
fn a_new_conversation_knows_nothing_of_the_old_one() {
    let mut session = with_turns(&["a"]);
    session.handle_input("/new");
    assert_eq!(asked(session.handle_input("b")), ["user: b"]);
    let keep = session.answered("re: b".into(), TurnEnding::Complete, "m".into()).expect("to be kept");
    assert_eq!(keep.place, SaveTarget::EndOf(None));
    session.handle_input("/new");
    assert_eq!(said(session.handle_input("/retry")), "No question was asked yet.");
}

#[test]
fn a_saved_conversation_continues() {
    let mut session = with_turns(&["x"]);
    assert_eq!(session.handle_input("/resume 9"), ChatEffect::Resume(id("9")));
    let last = SavedTurn { chat: id("9"), number: TurnNumber::new(3) };
    session.resume(Conversation { chat: id("9"), turns: vec![turn("a", "1")], last: Some(last) });
    session.handle_input("/retry");
    let keep = session.answered("1".into(), TurnEnding::Complete, "m".into()).expect("to be kept");
    assert_eq!(keep.place, SaveTarget::InsteadOf(last));
    assert_eq!(asked(session.handle_input("b")), ["user: a", "assistant: 1", "user: b"]);
    let keep = session.answered("2".into(), TurnEnding::Complete, "m".into()).expect("to be kept");
    assert_eq!(keep.place, SaveTarget::EndOf(Some(id("9"))));
}

#[test]
fn files_and_pictures_of_the_page_go_along() {
    let attached = |kind, name: &str, content: &str| SavedAttachment {
        name: name.into(),
        kind,
        content: content.into(),
    };
    let picture = "data:image/png;base64,AAAA";
    let attachments = vec![
        attached(AttachmentKind::Text, "a.txt", "An x."),
        attached(AttachmentKind::Image, "b.png", picture),
    ];
    let failed = ChatTurn { ending: TurnEnding::Failed, ..turn("lost", "") };
    let asked = ChatTurn { attachments: attachments.clone(), ..turn("What is it?", "An x.") };
    let mut session = session();
    session.resume(Conversation { chat: id("9"), turns: vec![failed, asked], last: None });
    let ChatEffect::Ask(messages) = session.handle_input("b") else { panic!("a question") };
    let expected = [
        AskMessage { attachments: attachments.clone(), ..AskMessage::new(AskRole::User, "What is it?") },
        AskMessage::new(AskRole::Assistant, "An x."),
        AskMessage::new(AskRole::User, "b"),
    ];
    assert_eq!(messages, expected);
    session.answered("c".into(), TurnEnding::Complete, "m".into()).expect("to be kept");
    session.resume(Conversation {
        chat: id("9"),
        turns: vec![ChatTurn { attachments: attachments.clone(), ..turn("What is it?", "bad") }],
        last: Some(kept(1)),
    });
    session.handle_input("/retry");
    let keep = session.answered("good".into(), TurnEnding::Complete, "m".into()).expect("to be kept");
    assert_eq!(keep.turn, ChatTurn { attachments, ..turn("What is it?", "good") });
}

#[test]
fn attached_files_go_with_the_next_message_only() {
    let file = SavedAttachment { name: "a.txt".into(), kind: AttachmentKind::Text, content: "An x.".into() };
    let mut session = session();
    assert_eq!(session.handle_input("/attach a.txt"), ChatEffect::Attach("a.txt".into()));
    session.attach(file.clone());
    let with_file = AskMessage { attachments: vec![file.clone()], ..AskMessage::new(AskRole::User, "a") };
    assert_eq!(session.handle_input("a"), ChatEffect::Ask(vec![with_file.clone()]));
    assert_eq!(session.handle_input("/retry"), ChatEffect::Ask(vec![with_file.clone()]));
    let keep = session.answered("re: a".into(), TurnEnding::Complete, "m".into()).expect("to be kept");
    assert_eq!(keep.turn, ChatTurn { attachments: vec![file.clone()], ..turn("a", "re: a") });
    let messages =
        vec![with_file, AskMessage::new(AskRole::Assistant, "re: a"), AskMessage::new(AskRole::User, "b")];
    assert_eq!(session.handle_input("b"), ChatEffect::Ask(messages));
    (0..MOST_FILES).for_each(|_| session.attach(file.clone()));
    assert!(said(session.handle_input("/attach a.txt")).contains("at most 16 files"));
}

#[test]
fn instructions_come_before_the_conversation() {
    let mut session = with_turns(&["a"]);
    assert!(said(session.handle_input("/system")).contains("No instructions"));
    assert_eq!(said(session.handle_input("/system Be brief.")), "Instructions: Be brief.");
    let expected = ["system: Be brief.", "user: a", "assistant: re: a", "user: b"];
    assert_eq!(asked(session.handle_input("b")), expected);
    session.handle_input("/system none");
    assert_eq!(asked(session.handle_input("/retry")), &expected[1..]);
}

#[test]
fn sampling_changes_by_command() {
    let mut session = session();
    let all = "Now: temperature default, max_tokens default, top_p default, seed default.";
    assert_eq!(said(session.handle_input("/set")), all);
    session.handle_input("/set temperature 0.2");
    session.handle_input("/set max_tokens 9");
    session.handle_input("/set top_p 0.5");
    let changed = "Now: temperature 0.2, max_tokens 9, top_p 0.5, seed 7.";
    assert_eq!(said(session.handle_input("/set seed 7")), changed);
    let kept = "Now: temperature default, max_tokens 9, top_p 0.5, seed 7.";
    assert_eq!(said(session.handle_input("/set temperature default")), kept);
}

#[test]
fn the_last_answer_can_be_copied() {
    assert!(said(session().handle_input("/copy")).contains("nothing to copy"));
    assert_eq!(with_turns(&["a", "b"]).handle_input("/copy"), ChatEffect::Copy("re: b".into()));
}

#[test]
fn a_memory_that_the_server_does_not_use_stays_off() {
    let mut session = session();
    session.forbid_memory();
    assert!(said(session.handle_input("/memory on")).contains("--standalone"));
    assert_eq!(session.settings().memory, Switch::Off);
}

#[test]
fn a_deleted_conversation_is_not_continued() {
    let mut session = with_turns(&["a"]);
    assert_eq!(session.handle_input("/forget 9"), ChatEffect::Forget(id("9")));
    session.forgotten(id("9"));
    assert_eq!(session.turns().len(), 1, "it is another one");
    session.forgotten(id("7"));
    assert_eq!(asked(session.handle_input("b")), ["user: b"]);
}

#[test]
fn a_message_has_a_maximum_length() {
    let mut session = session();
    assert!(said(session.handle_input(&"x".repeat(LONGEST_MESSAGE + 1))).contains("longer than 1 MiB"));
    assert_eq!(said(session.handle_input("/retry")), "No question was asked yet.");
}

#[test]
fn settings_change_by_command() {
    let mut session = session();
    assert_eq!(session.handle_input("/model"), ChatEffect::ShowModels);
    assert_eq!(session.handle_input("/model big"), ChatEffect::ChooseModel("big".into()));
    assert_eq!(session.settings().model, None, "not before it is known to be there");
    session.use_model("big".into());
    assert!(said(session.handle_input("/agent orchestrator")).contains("orchestrator answers"));
    assert!(said(session.handle_input("/memory off")).contains("off"));
    let agent = AgentChoice::Agent(AgentName::Orchestrator);
    let changed = ChatSettings { model: Some("big".into()), ..ChatSettings::new(agent, Switch::Off) };
    assert_eq!(session.settings(), &changed);
    session.handle_input("/model default");
    session.handle_input("/agent none");
    assert_eq!(session.settings(), &ChatSettings { model: None, agent: AgentChoice::None, ..changed });
    assert!(said(session.handle_input("/agent")).contains("directly"));
    assert_eq!(said(session.handle_input("/memory")), "Memory is off.");
}

#[test]
fn a_file_is_replaced_only_by_the_conversation_it_has() {
    let mut session = session();
    assert!(said(session.handle_input("/save a.md")).contains("nothing to save"));
    let mut session = with_turns(&["a"]);
    let overwrite = |effect| match effect {
        ChatEffect::Save(save) => (save.file, save.overwrite),
        other => panic!("{other:?}"),
    };
    assert_eq!(overwrite(session.handle_input("/save a.md")), ("a.md".into(), Overwrite::Refuse));
    session.saved("a.md".into());
    assert_eq!(overwrite(session.handle_input("/save a.md")), ("a.md".into(), Overwrite::Force));
    assert_eq!(overwrite(session.handle_input("/save b.md")), ("b.md".into(), Overwrite::Refuse));
}

#[test]
fn other_commands_become_effects() {
    let mut session = session();
    for (line, effect) in [
        ("", ChatEffect::Nothing),
        ("/help", ChatEffect::Help),
        ("/tools", ChatEffect::ShowTools),
        ("/list", ChatEffect::List),
        ("/quit", ChatEffect::Leave),
    ] {
        assert_eq!(session.handle_input(line), effect, "{line}");
    }
    assert!(said(session.handle_input("/nonsense")).contains("Commands: /help"));
}
