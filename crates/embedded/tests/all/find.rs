use crate::again::{self, Folder, here, words};
use std::os::unix::fs::symlink;
use std::path::Path;
use trunkline_embedded::Binaries;

#[test]
#[ignore = "a part in other tests"]
fn finder() {
    if again::argument().is_some() {
        match Binaries::find() {
            Ok(found) => println!("found {} in {}.", found.version(), found.dir().display()),
            Err(why) => println!("failed: {why}"),
        }
    }
}

#[test]
fn wrong_trunkline_pg_bin_is_an_error_without_fallback() {
    let folder = Folder::new();
    let said = words(again::part("find::finder", &folder.0).env("TRUNKLINE_PG_BIN", &folder.0).spawn().unwrap());
    assert!(said.contains("failed: TRUNKLINE_PG_BIN names no usable PostgreSQL"), "{said}");
    assert!(said.contains(folder.0.to_str().unwrap()), "{said}");
}

#[test]
fn a_right_trunkline_pg_bin_is_used() {
    let here = here();
    let said = words(again::part("find::finder", here.dir()).env("TRUNKLINE_PG_BIN", here.dir()).spawn().unwrap());
    assert!(said.contains(&format!("found {} in {}.", here.version(), here.dir().display())), "{said}");
}

#[test]
fn relative_trunkline_pg_bin_is_used_from_the_current_folder() {
    let here = here();
    let (parent, name) = (here.dir().parent().unwrap(), here.dir().file_name().unwrap());
    let mut part = again::part("find::finder", here.dir());
    let said = words(part.current_dir(parent).env("TRUNKLINE_PG_BIN", name).spawn().unwrap());
    assert!(said.contains(&format!("found {} in {}.", here.version(), here.dir().display())), "{said}");
}

#[test]
fn link_in_path_leads_to_the_folder_of_programs() {
    let (here, folder) = (here(), Folder::new());
    symlink(here.dir().join("postgres"), folder.0.join("postgres")).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.0.display());
    let said = words(again::part("find::finder", &folder.0).env("PATH", path).spawn().unwrap());
    assert!(said.contains(&format!("in {}.", here.dir().canonicalize().unwrap().display())), "{said}");
}

#[test]
fn folder_that_lacks_a_program_is_refused_by_name() {
    let error = Binaries::inspect(Path::new("/nowhere")).unwrap_err();
    assert_eq!(error.to_string(), "the folder /nowhere holds no `postgres`");
}
