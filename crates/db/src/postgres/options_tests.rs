//! URLs, and what is read from them.

use super::*;

fn options(url: &str) -> PostgresOptions {
    url.parse().expect("a good URL")
}

fn reason(url: &str) -> String {
    url.parse::<PostgresOptions>().expect_err("a bad URL").to_string()
}

#[test]
fn a_url_names_hosts_a_database_and_the_safety_of_the_way() {
    let several = options("postgresql://hob:secret@one:5433,two/state?sslmode=verify-full");
    assert_eq!(several.server(), "one:5433,two:5432/state");
    assert_eq!(several.tls, TlsMode::VerifyFull);
    assert_eq!(several.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    let socket = options("postgres://hob@/state?host=%2Frun%2Fpostgresql&sslmode=require");
    assert_eq!((socket.server().as_str(), socket.tls), ("/run/postgresql/state", TlsMode::Disable));
    let odd = options("postgres://hob:se?cret@one/state?sslmode=disable");
    assert_eq!((odd.config.get_password(), odd.tls), (Some(&b"se?cret"[..]), TlsMode::Disable));
    assert_eq!(options("postgres://hob@one/state").tls, TlsMode::Prefer);
    assert_eq!(options("postgres://hob@one/state?sslmode=require").tls, TlsMode::Require);
    let with_root = options("postgres://hob@one/state?sslmode=require&sslrootcert=/etc/ca%20one.pem");
    assert_eq!(with_root.tls, TlsMode::VerifyCa);
    assert_eq!(with_root.roots, Roots::File("/etc/ca one.pem".into()));
}

#[test]
fn every_host_is_tried_with_the_same_login() {
    let url = "postgres://hob:secret@one:5433,two/state?target_session_attrs=read-write&options=-c%20geqo%3Doff&keepalives=0";
    let several = options(url);
    let expected: Vec<PostgresOptions> =
        ["one:5433", "two:5432"].map(|host| options(&url.replace("one:5433,two", host))).into();
    let expected: Vec<Config> = expected.iter().map(|one| one.login().expect("a login")).collect();
    assert_eq!(several.logins().expect("logins"), expected);
    let addresses = options("postgres://hob@one,two/state?hostaddr=10.0.0.1,10.0.0.2");
    let addresses = addresses.logins().expect("logins");
    assert_eq!(
        addresses.iter().map(Config::get_hostaddrs).collect::<Vec<_>>(),
        [
            ["10.0.0.1".parse::<std::net::IpAddr>().expect("an address")],
            ["10.0.0.2".parse().expect("an address")]
        ]
    );
}

#[test]
fn a_bad_url_is_refused_without_its_password() {
    assert_eq!(
        reason("mysql://hob:secret@one/state"),
        "the URL of the database is not valid: it must start with postgres://"
    );
    assert_eq!(
        reason("postgres://hob@one/state?sslmode=secret"),
        "the URL of the database is not valid: sslmode must be one of disable, prefer, require, verify-ca, verify-full"
    );
    assert_eq!(
        reason("postgres:///state"),
        "the URL of the database is not valid: it names no host. 'host=/directory' after the '?' names a Unix socket"
    );
    let counts = "the URL of the database is not valid: it must name one port for all hosts or one for each host, and as many addresses as hosts";
    assert_eq!(reason("postgres://hob@/x?host=one,two,three&port=1,2"), counts);
    assert_eq!(reason("postgres://hob@one,two/x?hostaddr=10.0.0.1"), counts);
    for url in ["postgres://hob:secret@one:port/x", "postgres://x?y=secret"] {
        assert!(!reason(url).contains("secret"), "{}", reason(url));
    }
    assert!(!format!("{:?}", options("postgres://hob:secret@one/state")).contains("secret"));
}

#[test]
fn the_password_is_read_when_it_is_needed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("password");
    let options = PostgresOptions { password_file: Some(path.clone()), ..options("postgres://hob@one/x") };
    assert_eq!(
        options.login().expect_err("no file").to_string(),
        format!("cannot read the password of the database from {}", path.display())
    );
    for password in ["first", "second"] {
        std::fs::write(&path, format!("{password}\n")).expect("written");
        assert_eq!(options.login().expect("read").get_password(), Some(password.as_bytes()));
    }
}

#[cfg(unix)]
#[test]
fn a_password_file_of_libpq_is_read_by_host_and_user() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pgpass");
    std::fs::write(&path, "# ours\nother:*:*:*:wrong\none:5432:state:hob:a\\:b\\\\c\n*:*:*:*:rest\n")
        .expect("written");
    let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
    let password = |url: &str| {
        let options = PostgresOptions { passfile: Some(path.clone()), ..options(url) };
        options.login().expect("read").get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    mode(0o600);
    assert_eq!(password("postgres://hob@one/state").as_deref(), Some("a:b\\c"));
    assert_eq!(password("postgres://hob@two/state").as_deref(), Some("rest"));
    assert_eq!(password("postgres://hob:own@one/state").as_deref(), Some("own"));
    mode(0o644);
    assert_eq!(password("postgres://hob@one/state"), None, "others can read it");
}
