//! Tests of the precedence of connection strings, services, variables and password files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio_postgres::{
    Config,
    config::{ChannelBinding, Host, SslMode, TargetSessionAttrs},
};

use crate::postgres::target::Target;

struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("trunkline-said-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a folder can be made");
        Self(path)
    }

    fn with(self, name: &str, text: &str) -> Self {
        let file = self.0.join(name);
        fs::write(&file, text).expect("written");
        allow(&file, 0o600);
        self
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Parses a string in an environment that contains only `HOME` and these variables.
    fn read(&self, text: &str, variables: &[(&str, &str)]) -> Result<Target, String> {
        let home = self.0.display().to_string();
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let parsed = Target::parse_in(text, |name| if name == "HOME" { Some(home.clone()) } else { value(name) });
        parsed.map_err(|error| error.to_string())
    }

    fn shown(&self, text: &str, variables: &[(&str, &str)]) -> String {
        match self.read(text, variables) {
            Ok(target) => target.configs().iter().map(shown).collect::<Vec<_>>().join(" | "),
            Err(error) => error.replace(&self.0.display().to_string(), "~"),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn allow(file: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn shown(config: &Config) -> String {
    let host = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    };
    let hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
    let ports: Vec<String> = config.get_ports().iter().map(ToString::to_string).collect();
    let password = config.get_password().map(|text| format!(":{}", String::from_utf8_lossy(text))).unwrap_or_default();
    let (user, database) = (config.get_user().unwrap_or("-"), config.get_dbname().unwrap_or("-"));
    format!("{user}{password}@{}:{}/{database}", hosts.join(","), ports.join(","))
}

#[test]
fn the_string_counts_then_the_service_then_the_variables() {
    let home = Home::new().with(".pg_service.conf", "[s]\nhost=of_service\nport=2\npassword=service\n[t]\nhost=t\n");
    let variables =
        [("PGHOST", "of_variable"), ("PGPORT", "3"), ("PGUSER", "me"), ("PGPASSWORD", "mine"), ("PGDATABASE", "d")];
    for (text, found) in [
        ("", "me:mine@of_variable:3/d"),
        ("dbname=e", "me:mine@of_variable:3/e"),
        ("postgres://", "me:mine@of_variable:3/d"),
        ("postgres:///e", "me:mine@of_variable:3/e"),
        ("postgres://you:yours@h/e", "you:yours@h:3/e"),
        ("postgres://h:4", "me:mine@h:4/d"),
        ("postgres://h,[::1]:4/e", "me:mine@h,::1:5432,4/e"),
        ("postgres://localhost/e?host=/cloudsql/p", "me:mine@/cloudsql/p:3/e"),
        ("postgres://h:4/e?port=5", "me:mine@h:5/e"),
        ("host=a host=b", "me:mine@b:3/d"),
        ("service=s", "me:service@of_service:2/d"),
        ("postgres:///e?service=s&port=1", "me:service@of_service:1/e"),
        ("host=h service=s password=p", "me:p@h:2/d"),
        ("service=t", "me:mine@t:3/d"),
        ("service=''", "me:mine@of_variable:3/d"),
        ("host=h user='' password=''", "-@h:3/d"),
    ] {
        assert_eq!(home.shown(text, &variables), found, "{text}");
    }
    let with_service = [&variables[..], &[("PGSERVICE", "s")]].concat();
    assert_eq!(home.shown("", &with_service), "me:service@of_service:2/d");
    assert_eq!(home.shown("service=t", &with_service), "me:mine@t:3/d");
}

#[test]
fn every_variable_applies_and_empty_ones_count_as_unset() {
    let home = Home::new();
    let variables = [
        ("PGHOST", "h"),
        ("PGHOSTADDR", "10.0.0.1"),
        ("PGAPPNAME", "app"),
        ("PGCONNECT_TIMEOUT", "3"),
        ("PGTARGETSESSIONATTRS", "read-write"),
        ("PGOPTIONS", "-c search_path=a\\ b"),
        ("PGCHANNELBINDING", "require"),
        ("PGPORT", ""),
    ];
    let config = home.read("", &variables).expect("valid").config;
    assert_eq!(config.get_application_name(), Some("app"));
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(3)));
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert_eq!(config.get_options(), Some("-c search_path=a\\ b"));
    assert_eq!(config.get_channel_binding(), ChannelBinding::Require);
    assert_eq!(config.get_hostaddrs().len(), 1);
    assert!(config.get_ports().is_empty());
    let config = home.read("tcp_user_timeout=10000", &variables).expect("valid").config;
    assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(10)), "milliseconds, as in libpq");
    let quiet = "options='' application_name='' target_session_attrs='' connect_timeout='' hostaddr=''";
    let config = home.read(quiet, &variables).expect("valid").config;
    assert_eq!((config.get_options(), config.get_application_name()), (None, Some("trunkline")));
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::Any);
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(10)));
    assert!(config.get_hostaddrs().is_empty());
}

#[test]
fn variable_is_refused_like_its_option() {
    let home = Home::new();
    for (variable, setting, value, said) in [
        ("PGGSSENCMODE", "gssencmode", "require", "is not supported: sslmode=require encrypts with TLS"),
        ("PGGSSENCMODE", "gssencmode", "yes", "is not supported: sslmode=require encrypts with TLS"),
        ("PGREQUIREAUTH", "require_auth", "scram-sha-256", "is not supported: channel_binding=require "),
        ("PGREQUIREPEER", "requirepeer", "postgres", "is not supported: sslmode=verify-full "),
        ("PGMINPROTOCOLVERSION", "min_protocol_version", "3.2", "is not supported: this library uses version 3.0"),
        ("PGSSLMINPROTOCOLVERSION", "ssl_min_protocol_version", "TLSv9", "is not known: use TLSv1.2 or TLSv1.3"),
        ("PGSSLMAXPROTOCOLVERSION", "ssl_max_protocol_version", "TLSv1", "leaves no version of TLS"),
        ("PGSSLSNI", "sslsni", "no", "is not known: use 0 or 1"),
        ("PGSSLCERTMODE", "sslcertmode", "require", "is not supported"),
        ("PGSSLNEGOTIATION", "sslnegotiation", "direct", "needs sslmode=require"),
        ("PGSSLNEGOTIATION", "sslnegotiation", "later", "invalid value for option `sslnegotiation`"),
        ("PGCHANNELBINDING", "channel_binding", "always", "invalid value for option `channel_binding`"),
        ("PGTARGETSESSIONATTRS", "target_session_attrs", "primary", "invalid value for option `target_session_attrs`"),
        ("PGLOADBALANCEHOSTS", "load_balance_hosts", "on", "invalid value for option `load_balance_hosts`"),
    ] {
        let by_variable = home.shown("host=h", &[(variable, value)]);
        let by_option = home.shown(&format!("host=h {setting}={value}"), &[]);
        assert!(by_variable.starts_with(variable) && by_variable.contains(said), "{variable}: {by_variable}");
        assert!(by_option.contains(said), "{setting}: {by_option}");
        let replaced = home.shown(&format!("host=h {setting}=''"), &[(variable, value)]);
        assert_eq!(replaced, "-@h:/-", "the string takes precedence over {variable}");
    }
    let service = Home::new().with(".pg_service.conf", "[s]\nhost=h\ngssencmode=disable\n");
    for text in ["service=s", "host=h gssencmode=disable"] {
        assert_eq!(service.shown(text, &[("PGGSSENCMODE", "require")]), "-@h:/-", "{text}");
    }
}

#[test]
fn variable_that_demands_nothing_is_ignored() {
    for variable in [
        ("PGGSSENCMODE", "prefer"),
        ("PGGSSENCMODE", "disable"),
        ("PGMINPROTOCOLVERSION", "3.0"),
        ("PGMAXPROTOCOLVERSION", "latest"),
        ("PGSSLMINPROTOCOLVERSION", "TLSv1.2"),
        ("PGSSLSNI", "1"),
        ("PGREQUIRESSL", "0"),
        ("PGSSLCOMPRESSION", "1"),
        ("PGCLIENTENCODING", "LATIN1"),
        ("PGKRBSRVNAME", "postgres"),
        ("PGGSSDELEGATION", "1"),
        ("PGTZ", "Europe/Berlin"),
        ("PGDATESTYLE", "German"),
        ("PGGEQO", "off"),
    ] {
        assert_eq!(Home::new().shown("host=h", &[variable]), "-@h:/-", "{variable:?}");
    }
}

#[test]
fn encryption_is_required_by_the_older_variable_too() {
    let (older, home) = (("PGREQUIRESSL", "1"), Home::new());
    let mode = |text: &str, variables: &[_]| home.read(text, variables).expect(text).config.get_ssl_mode();
    assert_eq!(mode("host=h", &[older]), SslMode::Require);
    assert_eq!(mode("host=h", &[("PGSSLMODE", "disable"), older]), SslMode::Disable);
    assert_eq!(mode("host=h sslmode=prefer", &[older]), SslMode::Prefer);
    assert_eq!(mode("host=h requiressl=0", &[older]), SslMode::Prefer);
    let weak = home.shown("host=h sslrootcert=system", &[older]);
    assert_eq!(weak, "PGREQUIRESSL: sslmode=require is too weak for sslrootcert=system: use verify-full");
}

#[test]
fn settings_of_libpq_alone_are_translated_or_ignored() {
    let home = Home::new().with(".pg_service.conf", "[s]\nkeepalives_count=5\n");
    for (text, retries) in [("service=s", 5), ("keepalives_count=3", 3), ("service=s keepalives_count=3", 3)] {
        let config = home.read(text, &[]).expect("valid").config;
        assert_eq!(config.get_keepalives_retries(), Some(retries), "{text}");
    }
    let config = home.read("host=h fallback_application_name=psql", &[]).expect("valid").config;
    assert_eq!(config.get_application_name(), Some("trunkline"));
}

#[test]
fn socket_folder_or_address_wins_by_its_source() {
    let home = Home::new().with(".pg_service.conf", "[s]\nhost=/run/a\n");
    assert_eq!(home.shown("host=/run/a", &[("PGHOSTADDR", "10.0.0.1")]), "-@/run/a:/-");
    assert_eq!(home.shown("service=s", &[("PGHOSTADDR", "10.0.0.1")]), "-@/run/a:/-");
    assert_eq!(home.shown("hostaddr=10.0.0.1", &[("PGHOST", "/run/a")]), "-@10.0.0.1:/-");
    assert_eq!(home.shown("hostaddr=10.0.0.1 service=s", &[]), "-@10.0.0.1:/-");
    let both = home.shown("", &[("PGHOST", "/run/a"), ("PGHOSTADDR", "10.0.0.1")]);
    assert!(both.ends_with("so hostaddr cannot be set: remove one of the two"), "{both}");
}

#[test]
fn without_a_host_it_is_this_machine() {
    let found = Home::new().read("port=1", &[]).expect("valid").config;
    assert_eq!(found.get_hosts(), [Host::Tcp("localhost".to_owned())], "nothing listens on port 1");
    // An empty name in a list is this machine, or its address.
    assert_eq!(Home::new().shown("host=b,,c port=1", &[]), "-@b,localhost,c:1/-");
    assert_eq!(Home::new().shown("host=,b hostaddr=10.0.0.1,10.0.0.2", &[]), "-@10.0.0.1,b:/-");
}

#[test]
fn invalid_setting_is_named_with_its_place() {
    let home = Home::new().with(".pg_service.conf", "[s]\n\nsslmode=maybe\n[p]\nport=x\n[q]\nfoo=1\n");
    let mode = "sslmode=maybe is not known: use disable, allow, prefer, require, verify-ca or verify-full";
    let port = "is not valid: invalid value for option `port`";
    for (text, variable, said) in [
        ("", ("PGPORT", "x"), format!("PGPORT {port}")),
        ("host=h", ("PGSSLMODE", "maybe"), format!("PGSSLMODE: {mode}")),
        ("service=s", ("PGPORT", "1"), format!("line 3 of ~/.pg_service.conf: {mode}")),
        ("service=p", ("PGPORT", "1"), format!("line 5 of ~/.pg_service.conf {port}")),
        ("service=q", ("PGPORT", "1"), "line 7 of ~/.pg_service.conf: \"foo\" is not a supported setting".to_owned()),
    ] {
        assert_eq!(home.shown(text, &[variable]), said, "{text}");
    }
}

#[test]
fn service_comes_from_the_users_file_before_the_machines_file() {
    let home = Home::new().with(".pg_service.conf", "[a]\nhost=users\n").with("named", "[a]\nhost=named\n");
    let home = home.with("pg_service.conf", "[a]\nhost=machines\n[b]\nhost=machines_b\n");
    let (named, absent, here) = (home.path("named"), home.path("absent"), home.0.display().to_string());
    let folder = ("PGSYSCONFDIR", &*here);
    assert_eq!(home.shown("service=a", &[folder]), "-@users:/-");
    assert_eq!(home.shown("service=b", &[folder]), "-@machines_b:/-");
    assert_eq!(home.shown("service=a", &[folder, ("PGSERVICEFILE", &named)]), "-@named:/-");
    assert_eq!(home.shown("service=b", &[folder, ("PGSERVICEFILE", &named)]), "-@machines_b:/-");
    assert_eq!(home.shown(&format!("service=a servicefile='{named}'"), &[]), "-@named:/-");
    let none = home.shown("service=c", &[folder]);
    let wanted = "the service \"c\" is not defined: ~/.pg_service.conf has no [c], ~/pg_service.conf has no [c]; ";
    assert!(none.starts_with(wanted), "{none}");
    let none = home.shown("service=a", &[("PGSERVICEFILE", &absent)]);
    assert!(none.starts_with("the service file ~/absent cannot be read: "), "{none}");
}

#[test]
fn missing_password_is_looked_up_for_each_host() {
    let file = "a:1:d:me:one\nb:*:*:me:two\nlocalhost:5432:d:me:socket\n/run/x:*:*:*:folder\n10.0.0.1:*:*:*:address\n";
    let home = Home::new().with(".pgpass", file).with("other", "*:*:*:*:any\n");
    for (text, found) in [
        ("host=a port=1", "me:one@a:1/d"),
        ("host=a", "me@a:/d"),
        ("host=a port=1 password=p", "me:p@a:1/d"),
        ("host=a,b port=1,2 target_session_attrs=read-write", "me:one@a:1/d | me:two@b:2/d"),
        ("host=b,b port=1,2", "me:two@b,b:1,2/d"),
        ("host=c,b port=7", "me@c:7/d | me:two@b:7/d"),
        ("host=/tmp", "me:socket@/tmp:/d"),
        ("host=/run/x port=9", "me:folder@/run/x:9/d"),
        ("host=/run/y", "me@/run/y:/d"),
        ("hostaddr=10.0.0.1", "me:address@10.0.0.1:/d"),
        ("host=b hostaddr=10.0.0.1", "me:two@b:/d"),
    ] {
        assert_eq!(home.shown(text, &[("PGUSER", "me"), ("PGDATABASE", "d")]), found, "{text}");
    }
    let other = home.path("other");
    assert_eq!(home.shown("host=z user=me", &[("PGPASSFILE", &other)]), "me:any@z:/-");
    assert_eq!(home.shown(&format!("host=z user=me passfile='{other}'"), &[]), "me:any@z:/-");
    assert_eq!(home.shown("host=z user=me", &[("PGPASSFILE", &other), ("PGPASSWORD", "p")]), "me:p@z:/-");
    assert_eq!(home.shown("host=b user=me", &[("PGPASSFILE", "/nowhere")]), "me@b:/-");
}

#[test]
fn a_password_file_that_others_may_read_is_ignored() {
    let home = Home::new().with(".pgpass", "*:*:*:*:any\n");
    for (mode, found) in [(0o600, "me:any@h:/-"), (0o400, "me:any@h:/-"), (0o640, "me@h:/-"), (0o604, "me@h:/-")] {
        allow(&home.0.join(".pgpass"), mode);
        assert_eq!(home.shown("host=h user=me", &[]), found, "{mode:o}");
    }
    let folder = home.0.display().to_string();
    assert_eq!(home.shown("host=h user=me", &[("PGPASSFILE", &folder)]), "me@h:/-", "a folder is no file");
}
