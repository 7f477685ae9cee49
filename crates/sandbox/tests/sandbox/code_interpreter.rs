//! The tool `code_interpreter`, on every platform.

use std::sync::Arc;

use hob_core::{Reach, Tool};
use hob_sandbox::{CodeInterpreter, Sandbox, SandboxOptions};
use serde_json::{Value, json};

fn interpreter() -> CodeInterpreter {
    CodeInterpreter::new(Arc::new(Sandbox::new(SandboxOptions::default())))
}

#[test]
fn the_code_interpreter_has_its_documented_reach_and_a_closed_schema() {
    let interpreter = interpreter();
    let spec = interpreter.spec();
    assert_eq!((spec.name.as_str(), spec.reach), ("code_interpreter", Reach::Act));
    assert_eq!(spec.parameters["type"], "object");
    assert_eq!(spec.parameters["additionalProperties"], Value::Bool(false));
    assert!(jsonschema::validator_for(&spec.parameters).is_ok());
}

#[test]
fn what_a_program_reads_is_untrusted_even_if_its_directory_appears_later() {
    let home = tempfile::tempdir().unwrap();
    let options = SandboxOptions { allowlist: vec![home.path().join("later")], ..SandboxOptions::default() };
    let interpreter_of = |options| CodeInterpreter::new(Arc::new(Sandbox::new(options)));
    assert!(interpreter_of(options).spec().untrusted_output);
    assert!(!interpreter_of(SandboxOptions::default()).spec().untrusted_output);
}

#[tokio::test]
async fn code_is_not_run_unless_the_sandbox_is_switched_on() {
    let refused = interpreter().call(json!({ "language": "python", "code": "print(1)" })).await;
    assert!(refused.is_err_and(|error| error.0.contains("[sandbox] enabled = true")));
}
