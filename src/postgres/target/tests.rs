//! Tests of the parser for connection strings.

mod said;

use std::time::{Duration, Instant};

use proptest::prelude::*;
use rustls::{ClientConnection, pki_types::ServerName};
use tokio_postgres::config::{Host, SslMode};

use super::{Target, connection_string::ConnectionString, environment::Environment, schema_in, settings_of};

fn nothing(_: &str) -> Option<String> {
    None
}

/// Parses a string. Returns its mode, password and database, or the text of the error.
fn read(text: &str) -> String {
    match Target::parse_in(text, nothing) {
        Ok(Target { config, .. }) => {
            let password = config.get_password().map(String::from_utf8_lossy);
            format!(
                "{:?} {} {}",
                config.get_ssl_mode(),
                password.as_deref().unwrap_or("-"),
                config.get_dbname().unwrap_or("-")
            )
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_option_is_what_libpq_takes_it_for() {
    for (text, said) in [
        ("postgres://h/d?sslmode=require", "Require - d"),
        ("postgresql://h/d?connect_timeout=3&sslmode=require&keepalives=0", "Require - d"),
        ("postgres://h/d", "Prefer - d"),
        ("postgres://u:p?sslmode=disable@h/d?sslmode=require", "Require p?sslmode=disable d"),
        ("postgres://h/d?application_name=a@b&sslmode=require", "Require - d"),
        ("postgres://h/a%40b?sslmode=disable", "Disable - a@b"),
        ("postgres://u:p/w@h/d?sslmode=disable", "Disable p/w d"),
        ("postgres://h/d?ssl%6Dode=requir%65", "Require - d"),
        ("host=h sslmode=require dbname=d", "Require - d"),
        ("host = h\tsslmode = 'require'\n dbname=d", "Require - d"),
        ("host=h sslmode=require password='a sslmode=disable b'", "Require a sslmode=disable b -"),
        ("host=h password=a\\ sslmode\\=disable sslmode=require", "Require a sslmode=disable -"),
        ("host=h password='it\\'s \\\\' dbname=d", "Prefer it's \\ d"),
        ("host=h password=x://y?sslmode=disable sslmode=require", "Require x://y?sslmode=disable -"),
        ("host=h password=a\u{a0}b sslmode=require", "Require a\u{a0}b -"),
        ("host=h requiressl=1", "Require - -"),
        ("host=h requiressl=0", "Prefer - -"),
        ("host=/tmp sslmode=require", "Disable - -"),
        ("host=/tmp sslnegotiation=direct", "Disable - -"),
        (
            "host=h sslmode=disable sslnegotiation=direct",
            "sslnegotiation=direct needs sslmode=require, verify-ca or verify-full",
        ),
        ("postgres://h/d?gssencmode=disable&client_encoding=utf8&sslmode=require", "Require - d"),
        ("host=h gssencmode=prefer krbsrvname=p gsslib=g gssdelegation=0 sslcompression=0 dbname=d", "Prefer - d"),
        ("host=h gssencmode=require", "gssencmode=require is not supported"),
        ("sslmode=require sslmode=disable", "has sslmode twice"),
        ("postgres://h/?sslmode=require&sslmode=disable", "has sslmode twice"),
        ("postgres://u:p%ff@h/d", "the password of the connection string is not UTF-8"),
        ("postgres://[::1/d", "invalid value for option `host`"),
        (
            "postgres://h/d?sslmode=disable%20x=y",
            "sslmode=disable x=y is not known: use disable, allow, prefer, require, verify-ca or verify-full",
        ),
        ("postgres://h/d?user%3Dx%20a=b", "unknown option `user=x a`"),
        ("host=h sslmode='require", "the quotes of sslmode do not end"),
        ("host=h sslmode", "no name or no value"),
        ("host=h =require", "no name or no value"),
        ("postgres://h/d?sslmode", "has no value"),
        ("host=h sslmode=", "sslmode= is not known"),
        ("host=h sslmode=maybe", "use disable, allow, prefer, require, verify-ca or verify-full"),
        ("postgres://h/d?a=%ff", "is not UTF-8"),
    ] {
        let found = read(text);
        assert!(found.ends_with(said) || found.contains(said) && found.len() > said.len() + 9, "{text}: {found}");
    }
}

#[test]
fn part_of_a_password_is_not_quoted_as_an_option() {
    for text in ["postgres://u:p@a?secret@h/d", "postgres://u:p@a?b&secret@h/d", "postgres://h/d?password=secret%ff"] {
        let found = read(text);
        assert!(found.contains("an option of the connection string") && !found.contains("secret"), "{found}");
    }
}

#[test]
fn password_in_a_malformed_string_is_not_shown() {
    for (text, said) in [
        ("postgres://u:p@secret@h/d", "the host has an @; in a user or a password, write @ as %40"),
        ("postgres://u:p@h:secret@h/d", "the host has an @; in a user or a password, write @ as %40"),
        ("postgresql+psycopg://u:secret@h/d?sslmode=require", "a URL begins with postgres:// or postgresql://"),
        ("jdbc:postgresql://h/d?user=u&password=secret", "a URL begins with postgres:// or postgresql://"),
    ] {
        let found = read(text);
        assert!(found.contains(said) && !found.contains("secret"), "{text}: {found}");
    }
}

/// Returns the first message that a client with these settings sends to begin TLS.
fn hello(text: &str) -> Vec<u8> {
    let config = Target::parse_in(&format!("host=h sslmode=require {text}"), nothing).expect(text).tls.config();
    let name = ServerName::try_from("name.example").expect("a name");
    let mut client = ClientConnection::new(config, name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("written");
    hello
}

#[test]
fn client_offers_the_versions_and_the_name_that_it_may() {
    let has = |hello: &[u8], part: &[u8]| hello.windows(part.len()).any(|bytes| bytes == part);
    // The extension with the versions: its number, its length, the length of the list, the list.
    let (both, newer, older) =
        (&[0, 43, 0, 5, 4, 3, 4, 3, 3][..], &[0, 43, 0, 3, 2, 3, 4][..], &[0, 43, 0, 3, 2, 3, 3][..]);
    for (text, versions) in [
        ("", both),
        ("ssl_min_protocol_version=TLSv1 ssl_max_protocol_version=tlsv1.3", both),
        ("ssl_min_protocol_version=TLSv1.3", newer),
        ("ssl_max_protocol_version=TLSv1.2", older),
        ("ssl_min_protocol_version=TLSv1.2 ssl_max_protocol_version=TLSv1.2", older),
    ] {
        assert!(has(&hello(text), versions), "{text}");
    }
    assert!(has(&hello("sslsni=1"), b"name.example") && !has(&hello("sslsni=0"), b"name.example"));
    for (text, said) in [
        ("ssl_min_protocol_version=SSLv3", "ssl_min_protocol_version=SSLv3 is not known: use TLSv1.2 or TLSv1.3"),
        ("ssl_max_protocol_version=TLSv1.1", "leaves no version of TLS: the oldest that is permitted is TLSv1.2"),
        (
            "ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2",
            "ssl_max_protocol_version=TLSv1.2 leaves no version of TLS: the oldest that is permitted is TLSv1.3",
        ),
        ("sslsni=no", "sslsni=no is not known: use 0 or 1"),
    ] {
        assert!(read(&format!("host=h {text}")).ends_with(said), "{text}");
    }
}

#[test]
fn schema_is_found_whatever_other_variables_demand() {
    let demands = |name: &str| match name {
        "PGREQUIREAUTH" => Some("scram-sha-256".to_owned()),
        "TRUNKLINE_SCHEMA" => Some("mine".to_owned()),
        _ => None,
    };
    let environment = Environment(&demands);
    for (text, name) in [("host=h", "mine"), ("host=h schema=other", "other")] {
        let mut options = settings_of(text, environment).expect(text);
        assert_eq!(schema_in(&mut options, environment).expect(text).name(), name, "{text}");
        assert!(Target::parse_in(text, demands).is_err(), "{text}");
    }
}

#[test]
fn tls_is_kept_when_host_looks_like_a_socket() {
    for text in ["host=/tmp hostaddr=10.0.0.1 sslmode=verify-full", "host=h,/tmp hostaddr=10.0.0.1,10.0.0.2"] {
        assert!(read(text).contains("so hostaddr cannot be set: remove one of the two"), "{}", read(text));
    }
    assert_eq!(read("host=h,/tmp sslmode=require"), "Require - -");
    assert_eq!(read("hostaddr=10.0.0.1 sslmode=require"), "Require - -");
}

#[test]
fn tls_from_environment_applies_when_the_string_names_none() {
    let demands = |name: &str| (name == "PGSSLMODE").then(|| "require".to_owned());
    let mode = |text: &str| Target::parse_in(text, demands).expect(text).config.get_ssl_mode();
    assert_eq!(mode("host=h"), SslMode::Require);
    assert_eq!(mode("host=h sslmode=disable"), SslMode::Disable);
    assert_eq!(mode("host=/tmp"), SslMode::Disable, "a socket has no TLS");
    let nonsense = |name: &str| (name == "PGSSLMODE").then(|| "maybe".to_owned());
    assert!(Target::parse_in("host=h", nonsense).is_err());
    let root = |name: &str| (name == "PGSSLROOTCERT").then(|| "/nowhere.pem".to_owned());
    let refused = Target::parse_in("host=h sslmode=verify-full", root).map(drop).expect_err("no file").to_string();
    assert!(refused.contains("/nowhere.pem"), "{refused}");
}

#[test]
fn system_authorities_require_the_full_check_as_in_libpq() {
    assert_eq!(read("host=h sslrootcert=system"), "Require - -");
    assert_eq!(read("host=h sslrootcert=system sslmode=verify-full"), "Require - -");
    for mode in ["disable", "allow", "prefer", "require", "verify-ca"] {
        let found = read(&format!("host=h sslrootcert=system sslmode={mode}"));
        assert_eq!(found, format!("sslmode={mode} is too weak for sslrootcert=system: use verify-full"));
    }
    assert!(read("host=h sslmode=verify-ca").contains("sslrootcert=FILE"), "{}", read("host=h sslmode=verify-ca"));
    assert_eq!(read("host=h sslmode=require sslrootcert='' sslcert='' sslpassword=''"), "Require - -");
}

#[test]
fn variables_name_the_files_of_tls() {
    for (variable, setting, mode) in [
        ("PGSSLCERT", "sslcert", "prefer"),
        ("PGSSLROOTCERT", "sslrootcert", "require"),
        ("PGSSLROOTCERT", "sslrootcert", "verify-ca"),
        ("PGSSLCRLDIR", "sslcrldir", "verify-full"),
    ] {
        let named = |name: &str| (name == variable).then(|| "/nowhere".to_owned());
        let words = format!("host=h sslmode={mode}");
        let refused = Target::parse_in(&words, named).map(drop).expect_err("no file").to_string();
        assert!(refused.contains(&format!("{setting}=/nowhere: ")), "{variable}: {refused}");
        for without in ["host=h sslmode=disable", "host=/tmp"] {
            assert!(Target::parse_in(without, named).is_ok(), "{variable} {without}");
        }
    }
    let always = |name: &str| (name == "PGSSLCERTMODE").then(|| "require".to_owned());
    let refused = Target::parse_in("host=h", always).map(drop).expect_err("unsupported").to_string();
    assert!(refused.starts_with("PGSSLCERTMODE: sslcertmode=require is not supported"), "{refused}");
}

#[test]
fn connect_time_and_answer_size_are_bounded_by_default() {
    let target = |text: &str| Target::parse_in(text, nothing).expect(text);
    let connect = |text: &str| target(text).config.get_connect_timeout().copied();
    assert_eq!(connect("host=h"), Some(Duration::from_secs(10)));
    assert_eq!(connect("postgres://h/?connect_timeout=3"), Some(Duration::from_secs(3)));
    assert_eq!(connect("host=h connect_timeout=0"), None, "no limit, as in libpq");
    assert_eq!(target("host=h").limits.answer, None);
    assert_eq!(target("host=h answer_timeout=0").limits.answer, None);
    assert_eq!(target("host=h answer_timeout=7").limits.answer, Some(Duration::from_secs(7)));
    let longest = target(&format!("host=h answer_timeout={}", u64::MAX)).limits.answer.expect("a limit");
    assert!(longest > connect("host=h").expect("a limit") && Instant::now().checked_add(longest).is_some());
    assert_eq!(target("host=h").limits.answer_bytes, 2 << 30);
    for (text, size) in [("64MB", 64 << 20), ("2048kB", 2 << 20), ("1048576", 1 << 20)] {
        assert_eq!(target(&format!("host=h max_answer={text}")).limits.answer_bytes, size);
    }
    for text in [
        "max_answer=1kB",
        "max_answer=some",
        "max_answer=-1",
        "max_answer=99999999999999999999GB",
        "answer_timeout=soon",
    ] {
        assert!(Target::parse_in(&format!("host=h {text}"), nothing).is_err(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_string_is_read_or_refused(text in ".{0,80}", scheme in prop_oneof![Just(""), Just("postgres://"), Just("host=h ")]) {
        let _ = Target::parse_in(&format!("{scheme}{text}"), nothing);
    }

    #[test]
    fn strings_of_likely_pieces_are_read_or_refused(pieces in proptest::collection::vec(prop_oneof![
        Just("postgres://"), Just("host="), Just("sslmode="), Just("require"), Just("disable"), Just("'"), Just("\\"), Just(" "),
        Just("@"), Just("/"), Just("?"), Just("&"), Just("="), Just("%"), Just("%2F"), Just(","), Just("["), Just("]"), Just(":"),
        Just("hostaddr=10.0.0.1"), Just("port=1"), Just("\u{fc}"),
    ], 0..16)) {
        let _ = Target::parse_in(&pieces.concat(), nothing);
    }

    /// A password may contain any character, and must not change the mode.
    #[test]
    fn no_password_turns_tls_off(password in "[^\\x00]{1,40}") {
        let quoted = password.replace('\\', "\\\\").replace('\'', "\\'");
        let target = Target::parse_in(&format!("password='{quoted}' sslmode=require host=h"), nothing).expect("valid");
        prop_assert_eq!(target.config.get_ssl_mode(), SslMode::Require);
        prop_assert_eq!(target.config.get_password(), Some(password.as_bytes()));
        prop_assert_eq!(target.config.get_hosts(), &[Host::Tcp("h".to_owned())]);
    }

    #[test]
    fn unrelated_settings_pass_unchanged(name in "[ -~]{1,20}", url in any::<bool>()) {
        let escaped = name.bytes().fold(String::new(), |escaped, byte| format!("{escaped}%{byte:02x}"));
        let text = match url {
            true => format!("postgres://h/d?application_name={escaped}&sslmode=disable"),
            false => format!("host=h application_name='{}'", name.replace('\\', "\\\\").replace('\'', "\\'")),
        };
        let mut options = ConnectionString::parse(&text).expect("valid");
        options.take("sslmode").expect("once at most");
        let config = options.config(|_| true).expect("still valid");
        prop_assert_eq!(config.get_application_name(), Some(&*name));
    }
}
