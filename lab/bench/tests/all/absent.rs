//! A row with a missing program reports the reason, and the other rows run.

use std::{os::unix::fs::symlink, path::Path};

use crate::fixture::{Folder, name, run};

/// Links every program in the PATH except this one into a folder.
fn without(program: &str, folder: &Path) {
    let path = std::env::var_os("PATH").expect("a PATH");
    for file in std::env::split_paths(&path).filter_map(|part| part.read_dir().ok()).flatten().flatten() {
        if file.file_name() != program {
            // The first file with a name wins, as in the PATH.
            let _ = symlink(file.path(), folder.join(file.file_name()));
        }
    }
}

#[tokio::test]
async fn missing_runtime_is_reported_in_its_row_only() {
    let programs = Folder::new();
    without("go", &programs.0);
    let rows = run()
        .pattern("^latency/100-a-second/trunkline$")
        .pattern("^latency/100-a-second/river$")
        .env("PATH", programs.0.to_str().expect("a folder with a name that is text"))
        .rows("0.2")
        .await;
    assert_eq!(
        rows.iter().map(name).collect::<Vec<_>>(),
        ["latency/100-a-second/trunkline", "latency/100-a-second/river"]
    );
    assert_eq!(rows[0]["outcome"], "measured", "{}", rows[0]);
    assert_eq!(rows[1]["outcome"]["missing"], "Go (go.dev) is not installed", "{}", rows[1]);
    assert_eq!(rows[1]["rounds"].as_array().map(Vec::len), Some(0), "{}", rows[1]);
}
