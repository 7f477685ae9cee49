//! Every event of the child process, and its failures.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_channels::whatsapp::{
    LinkState, LoginError, LoginStep, WhatsappInstaller, WhatsappLinking, WhatsappProgram, login,
};
use hob_channels::{
    Channel, ChannelError, ChannelMessage, ChannelOptions, ChannelService, ChannelStatus, ChannelStore,
    HandlerResult, LiveReply, MIGRATIONS, MessageHandler, SqliteChannelStore, WhatsappOptions,
};
use hob_core::Ask;
use hob_db::Database;
use hob_testkit::{EngineAsk, ScriptedEngine};
use serde_json::json;
use tokio::time::timeout;

use super::support::{Script, echoing, node};
use crate::rules::rules;
use crate::wait::{WAIT_LIMIT, until};

const ANN: &str = "4915@s.whatsapp.net";

#[tokio::test]
async fn messages_with_the_name_are_answered_and_private_messages_stay_private() {
    let script = Script::new("connected(); message('see you tonight'); message('Hob, what time is it?');");
    let whatsapp = echoing(script.options());
    assert_eq!(whatsapp.connect().await, ChannelStatus::Connected);
    until("an answer", || !script.sent().is_empty()).await;
    whatsapp.close().await;
    assert_eq!(
        script.orders(),
        [
            json!({ "type": "send", "id": "1", "jid": ANN, "text": "Hob: re: what time is it?" }),
            json!({ "type": "disconnect" })
        ]
    );
    assert_eq!(whatsapp.status(), ChannelStatus::Disconnected);
}

#[tokio::test]
async fn a_message_that_comes_while_a_command_sends_is_answered_by_the_next_server() {
    let script = Script::new("connected(); message('Hob, hello');");
    let database = Database::in_memory(&[MIGRATIONS]).unwrap();
    let store: Arc<dyn ChannelStore> = Arc::new(SqliteChannelStore::new(database));
    let whatsapp = Channel::whatsapp_of_command(script.options(), Some(Arc::clone(&store)));
    assert_eq!(whatsapp.connect().await, ChannelStatus::Connected);
    until("the message is saved", || store.unsettled().unwrap().len() == 1).await;
    whatsapp.close().await;
    assert!(script.sent().is_empty());

    let script = Script::new("connected();");
    let options = ChannelOptions {
        whatsapp: Some(script.options()),
        reply_rules: Some(rules()),
        store: Some(store),
        ..ChannelOptions::default()
    };
    let channels = ChannelService::new(options).unwrap();
    let ask: Arc<dyn Ask> = Arc::new(EngineAsk::new(Arc::new(ScriptedEngine::saying(&["hi"]))));
    channels.listen(&ask);
    until("an answer", || !script.sent().is_empty()).await;
    channels.close().await;
}

#[tokio::test]
async fn a_message_that_comes_at_the_end_of_a_command_is_saved() {
    let script = Script::new(
        "connected();
         orders.removeAllListeners('line');
         orders.on('line', () => { message('Hob, hello'); process.stdout.write('', () => process.exit(0)); });",
    );
    let database = Database::in_memory(&[MIGRATIONS]).unwrap();
    let store: Arc<dyn ChannelStore> = Arc::new(SqliteChannelStore::new(database));
    let whatsapp = Channel::whatsapp_of_command(script.options(), Some(Arc::clone(&store)));
    assert_eq!(whatsapp.connect().await, ChannelStatus::Connected);
    whatsapp.close().await;
    assert_eq!(store.unsettled().unwrap().len(), 1);
    assert_eq!(whatsapp.status(), ChannelStatus::Disconnected);
}

/// Says whether a message counts as that of someone else.
struct TellsOrigin;

#[async_trait]
impl MessageHandler for TellsOrigin {
    async fn handle(&self, message: &ChannelMessage, _live: &dyn LiveReply) -> HandlerResult {
        Ok(Some(format!("{}: {:?}", message.content, message.metadata.get("forwarded"))))
    }
}

#[tokio::test]
async fn a_forwarded_message_is_noted_as_such() {
    let script = Script::new("connected(); message('Hob, a'); message('Hob, b', { forwarded: true });");
    let whatsapp = Channel::whatsapp(script.options());
    whatsapp.on_message(Arc::new(TellsOrigin));
    whatsapp.connect().await;
    until("two answers", || script.sent().len() == 2).await;
    whatsapp.close().await;
    assert_eq!(script.sent(), ["Hob: a: None", "Hob: b: Some(Bool(true))"]);
}

#[tokio::test]
async fn on_its_own_number_it_answers_all_messages_without_a_prefix() {
    let script = Script::new(
        "connected(); message('hello');
         message('to the group', { jid: '1203@g.us' });
         message('@Hob and to you', { jid: '1203@g.us' });",
    );
    let options = WhatsappOptions { assistant_has_own_number: true, ..script.options() };
    let whatsapp = echoing(options);
    whatsapp.connect().await;
    until("two answers", || script.sent().len() == 2).await;
    whatsapp.close().await;
    let mut sent: Vec<(String, String)> = script.orders()[..2]
        .iter()
        .map(|order| (order["jid"].as_str().unwrap().to_owned(), order["text"].as_str().unwrap().to_owned()))
        .collect();
    sent.sort();
    let expected = [("1203@g.us", "re: and to you"), (ANN, "re: hello")];
    assert_eq!(sent, expected.map(|(jid, text)| (jid.to_owned(), text.to_owned())));
}

#[tokio::test]
async fn its_own_messages_are_not_taken_for_the_owners() {
    // What is sent comes back as something the owner wrote, because it is the owner's number.
    let script = Script::new(
        "connected(); message('Hob, go', { from_me: true });
         onSend = ({ id, text }) => { tell({ type: 'sent', id }); message(text, { from_me: true }); message('Hob: end', {}); };",
    );
    let whatsapp = echoing(script.options());
    whatsapp.connect().await;
    until("two answers", || script.sent().len() >= 2).await;
    whatsapp.close().await;
    assert_eq!(script.sent(), ["Hob: re: go", "Hob: re: end"], "no answer to an answer");
}

#[tokio::test]
async fn the_subprocess_reports_its_state() {
    let script = Script::new(
        "connected();
         onSend = ({ text }) => {
           if (text.includes('off')) tell({ type: 'status', status: 'disconnected' });
           if (text.includes('ill')) tell({ type: 'error', message: 'WhatsApp is ill' });
         };",
    );
    let options = WhatsappOptions { confirm_within: Duration::from_millis(100), ..script.options() };
    let whatsapp = Channel::whatsapp(options);
    whatsapp.connect().await;
    let error = whatsapp.send(ANN, "off", None).await.unwrap_err().to_string();
    assert!(error.contains("did not confirm") && error.contains("may have arrived"), "{error}");
    until("it is heard", || whatsapp.status() == ChannelStatus::Disconnected).await;
    let error = whatsapp.send(ANN, "hello", None).await.unwrap_err();
    assert!(
        matches!(&error, ChannelError::Undelivered { reason, .. } if reason.contains("not connected")),
        "{error}"
    );
    whatsapp.close().await;

    assert_eq!(whatsapp.connect().await, ChannelStatus::Connected);
    whatsapp.send(ANN, "ill", None).await.unwrap_err();
    until("it is heard", || whatsapp.status() == ChannelStatus::Error).await;
    assert_eq!(whatsapp.report().problem.as_deref(), Some("WhatsApp is ill"));
    whatsapp.close().await;
}

#[tokio::test]
async fn a_message_that_whatsapp_refuses_says_why() {
    let script = Script::new(
        "connected(); onSend = ({ id, text }) => tell({ type: 'error', id, message: 'no such number', unsent: text.includes('a') });",
    );
    let whatsapp = Channel::whatsapp(script.options());
    whatsapp.connect().await;
    for (text, expected) in [("a", "no such number"), ("b", "the message may have arrived")] {
        let error = whatsapp.send(ANN, text, None).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(whatsapp.status(), ChannelStatus::Connected, "one message is not the connection");
    let error = whatsapp.send("whatsapp", "hello", Some("Ann")).await.unwrap_err();
    assert!(
        matches!(&error, ChannelError::Invalid { reason } if reason.contains("s.whatsapp.net")),
        "{error}"
    );
    whatsapp.close().await;
}

#[tokio::test]
async fn a_session_that_is_not_linked_says_what_to_do() {
    let script = Script::new("tell({ type: 'qr', data: '2@x' });");
    let whatsapp = Channel::whatsapp(script.options());
    whatsapp.connect().await;
    assert_eq!(whatsapp.status(), ChannelStatus::Disconnected);
    let problem = whatsapp.report().problem.unwrap();
    assert!(problem.contains("hob channel login whatsapp"), "{problem}");
    whatsapp.close().await;
}

#[tokio::test]
async fn noise_is_skipped_and_a_dead_subprocess_is_started_again() {
    let script = Script::new(
        "process.stdout.write('npm WARN something\\n{}\\n');
         const noise = 'x'.repeat(200000) + '\\nno such session\\n';
         if (existsSync(here('seen'))) { connected(); message('Hob, hello'); }
         else { writeFileSync(here('seen'), ''); process.stderr.write(noise, () => process.exit(7)); }",
    );
    let whatsapp = echoing(script.options());
    assert_eq!(whatsapp.connect().await, ChannelStatus::Error);
    let problem = whatsapp.report().problem.unwrap_or_default();
    assert!(problem.contains("exit status: 7") && problem.ends_with(" / no such session"), "{problem}");
    until("started again", || whatsapp.status() == ChannelStatus::Connected).await;
    until("an answer", || !script.sent().is_empty()).await;
    whatsapp.close().await;
    assert_eq!(script.sent(), ["Hob: re: hello"]);
}

#[tokio::test]
async fn a_subprocess_that_does_not_stop_is_killed() {
    let script = Script::new(
        "connected(); process.on('SIGTERM', () => {}); orders.removeAllListeners('close');
         orders.removeAllListeners('line'); setInterval(() => {}, 1000);",
    );
    let whatsapp = Channel::whatsapp(script.options());
    whatsapp.connect().await;
    timeout(WAIT_LIMIT, whatsapp.close()).await.unwrap();
    assert_eq!(whatsapp.status(), ChannelStatus::Disconnected);
}

#[tokio::test]
async fn without_node_or_bridge_it_is_an_error_that_says_what_to_install() {
    let script = Script::new("");
    let no_node = WhatsappProgram { node: "/nowhere/node".into(), ..script.program() };
    let no_bridge = WhatsappProgram { script: "/nowhere/bridge.mjs".into(), ..script.program() };
    for (program, expected) in [(no_node, "needs Node.js 20"), (no_bridge, "hob channel login whatsapp")] {
        let whatsapp = Channel::whatsapp(WhatsappOptions::new(program));
        assert_eq!(whatsapp.connect().await, ChannelStatus::Error);
        let problem = whatsapp.report().problem.unwrap();
        assert!(problem.contains(expected), "{problem}");
        whatsapp.close().await;
    }
}

#[tokio::test]
async fn two_programs_cannot_share_a_session_and_its_files_are_private() {
    let script = Script::new("connected();");
    let first = Channel::whatsapp(script.options());
    assert_eq!(first.connect().await, ChannelStatus::Connected);
    let second = Channel::whatsapp(script.options());
    assert_eq!(second.connect().await, ChannelStatus::Error);
    let problem = second.report().problem.unwrap();
    assert!(problem.contains("another Hob uses the WhatsApp session"), "{problem}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(script.program().auth_dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
    first.close().await;
    until("the first has let go", || second.status() == ChannelStatus::Connected).await;
    second.close().await;
}

#[tokio::test]
async fn linking_shows_the_codes_and_ends_when_one_was_scanned() {
    let script = Script::new(
        "tell({ type: 'status', status: 'disconnected' }); tell({ type: 'qr', data: '2@a' });
         tell({ type: 'qr', data: '2@b' }); connected();",
    );
    let mut steps = Vec::new();
    timeout(WAIT_LIMIT, login(&script.program(), |step| steps.push(step))).await.unwrap().unwrap();
    let scan = |data: &str| LoginStep::Scan { data: data.to_owned() };
    assert_eq!(steps, [LoginStep::Waiting, scan("2@a"), scan("2@b")]);
    assert_eq!(script.orders(), [json!({ "type": "disconnect" })]);
}

#[tokio::test]
async fn linking_that_fails_says_why() {
    let refused = Script::new("tell({ type: 'error', message: 'logged out' });");
    let outcome = timeout(WAIT_LIMIT, login(&refused.program(), |_| {})).await.unwrap();
    assert_eq!(outcome, Err(LoginError::Refused("logged out".into())));
    let dead = Script::new("process.stderr.write('out of luck\\n'); process.exit(9);");
    let outcome = timeout(WAIT_LIMIT, login(&dead.program(), |_| {})).await.unwrap();
    assert!(matches!(&outcome, Err(LoginError::Ended(how)) if how.contains("out of luck")), "{outcome:?}");
    let missing = WhatsappProgram { node: "/nowhere/node".into(), ..dead.program() };
    assert!(login(&missing, |_| {}).await.unwrap_err().to_string().contains("Install it"));
    assert!(node().exists());
}

/// Its packages count as installed.
fn installed(script: &Script) -> WhatsappInstaller {
    let installer = WhatsappInstaller::new(script.directory.path().join("installed"));
    std::fs::create_dir(&installer.directory).unwrap();
    let lock_file = include_str!("../../../../../bridges/whatsapp/package-lock.json");
    std::fs::write(installer.directory.join(".complete"), lock_file).unwrap();
    installer
}

/// Shows a code, and is linked when the file `scanned` is there.
const WAITS_FOR_SCAN: &str = "tell({ type: 'qr', data: '2@code' });
    const waiting = setInterval(() => {
      if (!existsSync(here('scanned'))) return;
      clearInterval(waiting);
      connected();
    }, 10);";

#[tokio::test]
async fn an_account_is_linked_while_the_channel_is_off() {
    let script = Script::new(WAITS_FOR_SCAN);
    let linking = WhatsappLinking::new(script.program(), installed(&script));
    assert_eq!(linking.state(), LinkState::Idle);
    linking.start();
    until("a code", || linking.state() == LinkState::Scan("2@code".into())).await;
    linking.start();
    assert_eq!(linking.state(), LinkState::Scan("2@code".into()), "one attempt at a time");
    linking.cancel();
    assert_eq!(linking.state(), LinkState::Idle);

    linking.start();
    until("a code", || linking.state() == LinkState::Scan("2@code".into())).await;
    std::fs::write(script.directory.path().join("scanned"), "").unwrap();
    until("the scan", || linking.state() == LinkState::Linked).await;
}

#[tokio::test]
async fn the_bridge_of_another_version_is_replaced_before_it_starts() {
    let script = Script::new("");
    let installer = installed(&script);
    std::fs::write(installer.script(), "process.exit(1); // of an older Hob").unwrap();
    let program =
        WhatsappProgram { node: "/nowhere/node".into(), script: installer.script(), ..script.program() };
    let options = WhatsappOptions { installer: Some(installer.clone()), ..WhatsappOptions::new(program) };
    let whatsapp = Channel::whatsapp(options);
    assert_eq!(whatsapp.connect().await, ChannelStatus::Error, "there is no Node.js");
    whatsapp.close().await;
    assert!(installer.is_complete());
}

#[tokio::test]
async fn an_attempt_to_link_that_fails_says_what_to_do() {
    let script = Script::new("");
    let installer = WhatsappInstaller {
        npm: script.directory.path().join("no-npm"),
        ..WhatsappInstaller::new(script.directory.path().join("installed"))
    };
    let linking = WhatsappLinking::new(script.program(), installer);
    linking.start();
    until("the failure", || matches!(linking.state(), LinkState::Failed(_))).await;
    let LinkState::Failed(reason) = linking.state() else { panic!("it failed") };
    assert!(reason.contains("Install it"), "{reason}");
}

#[tokio::test]
async fn a_running_channel_has_the_code_until_it_is_scanned() {
    let script = Script::new(WAITS_FOR_SCAN);
    let options = ChannelOptions { whatsapp: Some(script.options()), ..ChannelOptions::default() };
    let service = ChannelService::new(options).unwrap();
    assert_eq!(service.link_code(), None);
    let ask: Arc<dyn Ask> = Arc::new(EngineAsk::new(Arc::new(ScriptedEngine::saying(&["hi"]))));
    service.listen(&ask);
    until("a code", || service.link_code().as_deref() == Some("2@code")).await;
    std::fs::write(script.directory.path().join("scanned"), "").unwrap();
    until("the scan", || service.link_code().is_none()).await;
    until("the connection", || service.report().status == ChannelStatus::Connected).await;
    service.close().await;
}
