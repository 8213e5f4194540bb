//! Puts the texts of `sql/` into the library, so that no list of them is kept by hand.

use std::{env, error::Error, fmt::Write, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let mut code = String::new();
    for (list, folder) in [("STEPS", "steps"), ("FUNCTIONS", "functions"), ("TEMPLATES", "queue")] {
        let folder = Path::new(&root).join("sql").join(folder);
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut files: Vec<_> =
            fs::read_dir(&folder)?.map(|file| file.map(|file| file.path())).collect::<Result<_, _>>()?;
        files.sort();
        writeln!(code, "const {list}: &[(&str, &str)] = &[")?;
        for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "sql")) {
            let name = file.file_stem().and_then(|name| name.to_str()).ok_or("a file has a name in UTF-8")?;
            let file = file.to_str().ok_or("the folder has a name in UTF-8")?;
            writeln!(code, "    ({name:?}, include_str!({file:?})),")?;
        }
        writeln!(code, "];")?;
    }
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("schema.rs"), code)?)
}
