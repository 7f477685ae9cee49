use hob_core::{Content, ContentPart, Image, Message, ToolDefinition};

use super::*;

fn asking(text: &str) -> GenerateRequest {
    conversation(&[(Role::User, text)])
}

fn conversation(said: &[(Role, &str)]) -> GenerateRequest {
    let messages = said.iter().map(|(role, text)| Message::new(*role, *text)).collect();
    GenerateRequest { messages, ..GenerateRequest::default() }
}

#[test]
fn a_topic_needs_more_than_one_word() {
    for (text, expected) in [
        ("Why is the sky blue?", QuestionTopic::Plain),
        ("Hi!", QuestionTopic::Plain),
        ("", QuestionTopic::Plain),
        ("How long do pythons live?", QuestionTopic::Plain),
        ("Where does the best Java coffee grow?", QuestionTopic::Plain),
        ("My birthday is 12/04/1990 and my number is 555-0199.", QuestionTopic::Plain),
        ("Who was the first prime minister?", QuestionTopic::Plain),
        ("Write a Python function that reverses a list.", QuestionTopic::Code),
        ("What does this do?\n```\nfor x in y: print(x)\n```", QuestionTopic::Code),
        ("fn main() { let x: Vec<u8> = vec![]; println!(\"{x:?}\"); }", QuestionTopic::Code),
        ("There is a bug in main.rs, can you find it?", QuestionTopic::Code),
        ("What is 17 * 23?", QuestionTopic::Maths),
        ("What is 144 / 12?", QuestionTopic::Maths),
        ("Solve the equation for x.", QuestionTopic::Maths),
        ("Evaluate \\frac{1}{2} of it.", QuestionTopic::Maths),
        ("First, compare the two offers, and then tell me which one to take.", QuestionTopic::Steps),
        ("1. Read the notes\n2. Find the dates\nThen tell me why? And who else?", QuestionTopic::Steps),
    ] {
        assert_eq!(topic(&asking(text)), expected, "{text}");
    }
}

#[test]
fn tools_are_a_topic() {
    let tool = ToolDefinition { name: "f".into(), description: None, parameters: None, strict: None };
    let with_tools = GenerateRequest { tools: vec![tool], ..asking("Why is the sky blue?") };
    assert_eq!(topic(&with_tools), QuestionTopic::Tools);
    let used = conversation(&[(Role::User, "What is 2 + 2?"), (Role::Tool, "4")]);
    assert_eq!(topic(&used), QuestionTopic::Tools);
}

#[test]
fn a_follow_up_has_the_topic_of_the_earlier_question() {
    let follow_up = conversation(&[
        (Role::User, "Write a Python function that reverses a list."),
        (Role::Assistant, "def f(l): return l[::-1]"),
        (Role::User, "And the other way round?"),
    ]);
    assert_eq!(topic(&follow_up), QuestionTopic::Code);
}

#[test]
fn the_length_does_not_depend_on_system_messages() {
    let instructions = "Be helpful. ".repeat(2000);
    for (words, expected) in
        [(5, QuestionLength::Short), (200, QuestionLength::Medium), (2000, QuestionLength::Long)]
    {
        let said = "four ".repeat(words);
        let request = conversation(&[(Role::System, &instructions), (Role::User, &said)]);
        assert_eq!(length(&request), expected, "{words} words");
    }
}

#[test]
fn a_language_is_recognised_by_its_script_or_common_words() {
    for (text, expected) in [
        ("What is the capital of France?", QuestionLanguage::English),
        ("naïve café", QuestionLanguage::English),
        ("", QuestionLanguage::English),
        ("Warum ist der Himmel blau?", QuestionLanguage::Other),
        ("Pourquoi le ciel est bleu ?", QuestionLanguage::Other),
        ("为什么天空是蓝色的？", QuestionLanguage::Other),
        ("Почему небо голубое?", QuestionLanguage::Other),
    ] {
        assert_eq!(language(text), expected, "{text}");
    }
}

#[test]
fn the_size_of_a_request_includes_the_answer_and_the_tools() {
    let plain = asking("hi");
    assert_eq!(question_profile(&plain, 10).tokens, 10 + 1024);
    let tool = ToolDefinition {
        name: "look".into(),
        description: Some("up".into()),
        parameters: Some(serde_json::json!({})),
        strict: None,
    };
    let with_tools = GenerateRequest { tools: vec![tool], ..asking("hi") };
    assert_eq!(question_profile(&with_tools, 10).tokens, 10 + 2 + 1024);
}

#[test]
fn images_are_recognised() {
    let picture = ContentPart::Image(Image { url: "data:image/png;base64,AAAA".into(), detail: None });
    let mut request = asking("");
    request.messages[0].content = Content::Parts(vec![ContentPart::Text("What is this?".into()), picture]);
    assert!(question_profile(&request, 1).pictures);
    assert!(!question_profile(&asking("What is this?"), 1).pictures);
}

#[test]
fn a_long_text_is_not_read_completely() {
    let novel = format!("{}\n```code```", "word ".repeat(100_000));
    assert_eq!(topic(&asking(&novel)), QuestionTopic::Plain);
    assert_eq!(length(&asking(&novel)), QuestionLength::Long);
}
