//! `build.rs` puts the SQL files of `sql/` into the library, and no other files.

#[path = "../../build/listing.rs"]
mod listing;

use std::{fs, path::Path};

#[test]
fn files_of_editors_are_not_part_of_the_schema() {
    let folder = std::env::temp_dir().join(format!("trunkline-listing-{}", std::process::id()));
    for part in ["plain", ".git"] {
        fs::create_dir_all(folder.join(part)).expect("a folder can be made");
    }
    let made = [".ack.sql.swp", ".#ack.sql", "._ack.sql", "#ack.sql#", "ack.sql~", "ack.sql.orig", ".DS_Store"];
    for name in made.into_iter().chain(["purge.sql", "ack.sql"]) {
        fs::write(folder.join(name), "").expect("written");
    }
    let (files, folders) = (listing::files(&folder), listing::folders(&folder));
    fs::remove_dir_all(&folder).expect("the folder belongs to the test");
    assert_eq!(files, Ok(["ack.sql", "purge.sql"].map(|name| folder.join(name)).to_vec()));
    assert_eq!(folders, Ok(vec![folder.join("plain")]));
}

#[test]
fn folder_that_cannot_be_listed_is_named() {
    let error = listing::files(Path::new("/nowhere/sql")).expect_err("no such folder");
    assert!(error.starts_with("/nowhere/sql: "), "{error}");
}
