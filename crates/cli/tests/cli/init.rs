//! `hob init`.

use crate::home::{Home, Ran, finish};

async fn init(home: &Home, arguments: &[&str]) -> Ran {
    home.run(&[&["init"], arguments].concat()).await
}

#[tokio::test]
async fn a_new_file_is_written_and_the_machine_described() {
    let home = Home::empty();
    let ran = init(&home, &[]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let path = home.config_file();
    for needle in
        ["Platform  ", "CPU  ", "Memory  ", "GPU  ", "because ", "hob serve", &path.display().to_string()]
    {
        assert!(ran.stdout.contains(needle), "'{needle}' is missing in:\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
    let text = std::fs::read_to_string(path).expect("a file");
    assert!(text.contains("\n[engine]\n"), "{text}");
    let doctor = home.run(&["doctor", "--json"]).await;
    assert!(!doctor.stdout.contains("unknown key"), "{}", doctor.stdout);
}

#[tokio::test]
async fn an_existing_file_is_only_replaced_by_force() {
    let home = Home::with_config("# mine\n");
    let ran = init(&home, &[]).await;
    let stderr = format!(
        "error: {} already exists. To keep its settings, edit it. 'hob init --force' writes a new file in its place, saves a \
         copy of the old one, and its settings no longer apply.\n",
        home.config_file().display()
    );
    assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr });
    assert_eq!(std::fs::read_to_string(home.config_file()).expect("a file"), "# mine\n");

    let forced = init(&home, &["--force"]).await;
    let copy = home.directory().join("config.toml.old-1");
    let saved = format!("✓ Saved the old file as {}\n", copy.display());
    assert!(forced.code == Some(0) && forced.stdout.contains(&saved), "{forced:?}");
    assert_eq!(std::fs::read_to_string(copy).expect("a copy"), "# mine\n");
    assert!(std::fs::read_to_string(home.config_file()).expect("a file").contains("[server]"));
    let log = home.run(&["audit", "export"]).await.stdout;
    assert!(log.contains(r#""origin":"terminal","action":"config.replace""#), "{log}");
}

#[tokio::test]
async fn force_replaces_a_broken_file() {
    let home = Home::with_config("this is no TOML");
    assert_eq!(init(&home, &["--force"]).await.code, Some(0));
    assert!(std::fs::read_to_string(home.config_file()).expect("a file").contains("[server]"));
}

#[tokio::test]
async fn a_path_that_cannot_be_written_is_named() {
    let home = Home::with_config("");
    let mut command = home.hob(&["init"]);
    command.env("HOB_HOME", home.config_file());
    let ran = finish(command).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("config.toml"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_database_that_cannot_be_used_does_not_stop_force() {
    let home = Home::with_config("# mine\n");
    let mut command = home.hob(&["init", "--force"]);
    command.env("HOB_DATABASE_URL", "mysql://db.example.org/hob");
    let ran = finish(command).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: this change is missing in the audit log: "), "{}", ran.stderr);
    assert!(std::fs::read_to_string(home.config_file()).expect("a file").contains("[server]"));
}
