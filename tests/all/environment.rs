//! `PG*` variables apply to settings that the connection string does not set.

use std::{fs, os::unix::fs::PermissionsExt};

use trunkline::{Db, Settings, postgres::Statement};

use crate::fixture::{connect, database};

/// Returns a variable for each part of an address.
fn variables(url: &str) -> Vec<(&'static str, String)> {
    let names = [("host", "PGHOST"), ("port", "PGPORT"), ("user", "PGUSER"), ("dbname", "PGDATABASE")];
    let word =
        |name: &str| url.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned);
    names.into_iter().filter_map(|(name, variable)| Some((variable, word(name)?))).collect()
}

fn lookup(variables: &[(&'static str, String)]) -> impl Fn(&str) -> Option<String> {
    move |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

const WHO: Statement<(), (String, String)> =
    Statement::new("select current_setting('application_name'), current_setting('statement_timeout')");

#[tokio::test]
async fn an_empty_string_leads_to_where_the_variables_say() {
    let url = database().await;
    connect(&url).await.batch_execute("create table here()").await.expect("created");
    let mut said = variables(&url);
    said.extend([("PGAPPNAME", "of the shell".to_owned()), ("PGOPTIONS", "-c statement_timeout=4321".to_owned())]);
    let db = Db::connect_with("", lookup(&said)).await.expect("connected");
    let (name, timeout) = db.run(&WHO, ()).await.expect("asked");
    assert_eq!((name.as_str(), timeout.as_str()), ("of the shell", "4321ms"));
    db.run(&Statement::<(), u64>::new("delete from here"), ()).await.expect("it is that database");
    // Checks that the listening connection uses the variables, too.
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    queue.enqueue(&7).await.expect("enqueued");
    assert_eq!(queue.stats().await.expect("counted").messages, 1);
}

#[tokio::test]
async fn a_service_and_a_password_file_lead_there_as_well() {
    let url = database().await;
    let folder = std::env::temp_dir().join(format!("trunkline-environment-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let service: Vec<String> =
        url.split(' ').take_while(|word| !word.starts_with("options")).map(|word| format!("{word}\n")).collect();
    fs::write(folder.join(".pg_service.conf"), format!("[ours]\n{}", service.concat())).expect("written");
    let passwords = folder.join(".pgpass");
    fs::write(&passwords, "localhost:*:*:*:unasked\n").expect("written");
    fs::set_permissions(&passwords, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let home = [("HOME", folder.display().to_string()), ("PGHOST", "nowhere.invalid".to_owned())];
    let found = Db::connect_with("service=ours", lookup(&home)).await;
    let lost = Db::connect_with("service=theirs", lookup(&home)).await.expect_err("not there").to_string();
    fs::remove_dir_all(&folder).expect("it is ours");
    found.expect("connected").run(&WHO, ()).await.expect("asked");
    assert!(lost.contains(".pg_service.conf has no [theirs]"), "{lost}");
}
