//! Replaces the library's and the server's terms in messages with this program's verbs and options.

/// Phrases of the library and the server, and this program's replacements.
const WORDS: [(&str, &str); 22] = [
    ("create it with Db::create_queue or `", "create it with `"),
    (" or Db::migrate first", " first"),
    ("`trunkline migrate` or Db::migrate created", "`trunkline migrate` created"),
    ("create one with Settings::priorities", "create one with `trunkline queue create NAME --priorities 3`"),
    (
        "create one with Settings::partitions, or leave the key out",
        "create one with `trunkline queue create NAME --partitions 64`, or leave out --key",
    ),
    ("create one with Settings::uniqueness", "create one with `trunkline queue create NAME --uniqueness`"),
    ("enqueue Draft::new(payload).key(\"customer 17\")", "pass one with --key KEY"),
    ("trunkline.create_queue(..., partitions => 64)", "`trunkline queue create NAME --partitions 64`"),
    ("trunkline.create_queue(..., priorities => 4)", "`trunkline queue create NAME --priorities 4`"),
    (
        "Create one that does: trunkline.create_queue(..., uniqueness => true)",
        "Create one that does: `trunkline queue create NAME --uniqueness`",
    ),
    ("trunkline.limit_queue(..., per_second => 100)", "`trunkline queue limit NAME --per-second 100`"),
    ("Pass per_second, for the queue", "Pass --per-second, for the queue"),
    ("Pass one: trunkline.enqueue(..., key => 'customer 17')", "Pass one with --key KEY"),
    ("or pass no key", "or leave out --key"),
    ("select name from trunkline.schedule.", "`trunkline schedule list`."),
    ("trunkline.set_schedule", "`trunkline schedule set`"),
    ("Change settings with trunkline.alter_queue", "Change settings with `trunkline queue alter`"),
    ("select trunkline.create_queue('name', 'jsonb')", "`trunkline queue create NAME --type jsonb`"),
    ("Enqueue through trunkline.enqueue or enqueue_many.", "Enqueue with `trunkline enqueue`."),
    ("Enqueue through trunkline.enqueue or enqueue_many, or", "Enqueue with `trunkline enqueue`, or"),
    ("Run a worker; or lease a partition with trunkline.lease_partition", "Run a worker with `trunkline work`"),
    ("Run a worker;", "Run a worker with `trunkline work`;"),
];

/// Returns the text with the verbs and options of this program.
pub fn own(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// Returns the contents of a folder's sources, including those in subfolders.
    fn texts(folder: impl AsRef<Path>) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let files = fs::read_dir(folder).expect("it is there").map(|file| file.expect("a file").path());
        let is_source = |path: &Path| path.extension().is_some_and(|ending| ending == "rs" || ending == "sql");
        let files = files.filter(|path| path.is_dir() || is_source(path));
        files.map(|path| if path.is_dir() { texts(path) } else { fs::read_to_string(path).expect("text") }).collect()
    }

    #[test]
    fn each_word_is_one_that_is_said_elsewhere() {
        let said = ["src", "src/error", "src/queue", "sql/functions", "sql/queue"]
            .map(texts)
            .concat()
            .replace("\\\"", "\"")
            .replace("''", "'");
        for (theirs, _) in WORDS {
            assert!(said.contains(theirs), "nothing says {theirs:?} any more");
        }
    }
}
