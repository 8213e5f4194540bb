//! Detects a command that does not exist or cannot be executed. Then no attempt is counted, because
//! no message is to blame.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    process::{Command, ExitStatus, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

/// The shell's exit codes: the first for a command that cannot be executed, the second for a
/// command that is not found.
const CODES: [i32; 2] = [126, 127];

/// A detector for a missing command.
///
/// The shell reports a missing command by an exit code, but a script may exit with the same code.
/// The program trusts the code until a command has ended in another way. From then on, it trusts
/// the code only if the first word of the command line is also missing.
#[derive(Debug)]
pub struct Absent {
    exec: String,
    seen: AtomicBool,
    why: OnceLock<String>,
    noted: CancellationToken,
}

impl Absent {
    /// Checks that the command exists, before anything is leased.
    pub fn check(exec: &str) -> Result<Self> {
        if let Some(why) = first_word(exec).and_then(look) {
            return Err(Error::new(why).hint("--exec is a line for sh -c; no message was leased"));
        }
        Ok(Self {
            exec: exec.to_owned(),
            seen: AtomicBool::new(false),
            why: OnceLock::new(),
            noted: CancellationToken::new(),
        })
    }

    /// Records that a command ran.
    pub fn saw(&self) {
        self.seen.store(true, Relaxed);
    }

    /// Returns true if an exit status indicates that the command is missing.
    pub async fn is_said_by(&self, status: ExitStatus) -> bool {
        if !status.code().is_some_and(|code| CODES.contains(&code)) {
            self.saw();
            return false;
        }
        if !self.seen.load(Relaxed) {
            return true;
        }
        let exec = self.exec.clone();
        crate::blocking(move || Ok(first_word(&exec).and_then(look).is_some())).await.unwrap_or(false)
    }

    /// Records that the command is missing, and the reason.
    pub fn note(&self, why: String) {
        let _ = self.why.set(why); // the first reason stays
        self.noted.cancel();
    }

    pub fn is_noted(&self) -> bool {
        self.noted.is_cancelled()
    }

    /// Waits until the command is recorded as missing.
    pub async fn noted(&self) {
        self.noted.cancelled().await;
    }

    /// Fails if the command is recorded as missing.
    pub fn outcome(&self) -> Result<()> {
        let Some(why) = self.why.get() else { return Ok(()) };
        Err(Error::new(format!("the command cannot be run: {why}")).hint(
            "the messages were given back, and no attempt was counted. sh exits with 126 or 127 if a command cannot be executed \
             or is not found; let your own script fail with another code",
        ))
    }
}

/// Returns true if a command that failed to start may start later, for example when more memory is
/// free or fewer processes run.
pub fn may_pass(cause: &io::Error) -> bool {
    use io::ErrorKind::{ArgumentListTooLong, InvalidInput, NotFound, PermissionDenied};
    ![ArgumentListTooLong, InvalidInput, NotFound, PermissionDenied].contains(&cause.kind())
}

/// Returns the command that a line begins with, if it can be determined.
fn first_word(exec: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+-:@%,=".contains(c);
    for word in exec.split_whitespace() {
        let end = word.find([';', '|', '&', '<', '>']).unwrap_or(word.len());
        let (word, cut) = (&word[..end], end < word.len());
        if word.is_empty() || !word.chars().all(plain) {
            return None;
        }
        match word.split_once('=') {
            None => return Some(word),
            Some(("PATH", _)) => return None, // with another PATH, the command may be found elsewhere
            Some(_) if cut => return None,
            Some(_) => {}
        }
    }
    None
}

/// Returns true if a line runs no command, because it has only comments, assignments, redirections,
/// and variables that are not set.
pub fn runs_nothing(exec: &str, variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let expands_to_nothing = |word: &str| {
        let word = word.trim_matches('"');
        let Some(name) = word.strip_prefix('$') else { return word.is_empty() };
        let name = match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(inside) => inside.strip_suffix(":-").or(inside.strip_suffix('-')).unwrap_or(inside),
            None => name,
        };
        // Omits variables that the line itself, or the program for each message, may set.
        let may_be_set = name.starts_with("TRUNKLINE_") || exec.contains(&format!("{name}="));
        is_name(name) && !may_be_set && variable(name).is_none_or(|value| value.trim().is_empty())
    };
    exec.lines().all(|line| {
        let mut words = line.split_whitespace();
        let mut is_quoted = false;
        while let Some(word) = words.next() {
            if word.starts_with('#') && !is_quoted {
                return true;
            }
            is_quoted |= word.contains(['\'', '"']);
            let redirects = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(['<', '>']);
            let is_assignment = word
                .split_once('=')
                .is_some_and(|(name, value)| is_name(name) && !value.contains(['$', '`', ';', '|', '&']));
            match redirects.map(|target| target.trim_start_matches('>')) {
                Some("") => _ = words.next(), // the target is the next word
                Some(target) if !target.contains([';', '|', '&', '(']) => {}
                None if is_assignment || expands_to_nothing(word) => {}
                _ => return false,
            }
        }
        true
    })
}

/// Returns the reason why a command is missing, or `None` if it exists.
fn look(word: &str) -> Option<String> {
    if word.contains('/') {
        return match fs::metadata(word) {
            Err(cause) => Some(format!("the command {word:?} cannot be executed: {cause}")),
            Ok(found) if found.is_dir() => Some(format!("the command {word:?} is a folder")),
            Ok(found) if found.permissions().mode() & 0o111 == 0 => {
                Some(format!("the command {word:?} is not executable (chmod +x makes it so)"))
            }
            Ok(_) => None,
        };
    }
    let mut sh = Command::new("sh");
    sh.args(["-c", "command -v \"$0\"", word]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match sh.status() {
        Ok(status) if status.success() => None,
        Ok(_) => Some(format!("the command {word:?} does not exist: it is in no folder of PATH")),
        Err(cause) => Some(format!("cannot start sh: {cause}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_runs_no_command_is_recognized() {
        let variable = |name: &str| (name == "SET").then(|| "cat".to_owned());
        for nothing in [
            "",
            " ",
            "$HANDLER",
            "\"$HANDLER\"",
            "${HANDLER}",
            "${HANDLER:-}",
            "${HANDLER-}",
            "$A $B",
            "# c",
            "A=1",
            "A=1 B=2 # c",
            ">/tmp/x",
            "> /tmp/x",
            "\n# c\n",
        ] {
            assert!(runs_nothing(nothing, variable), "{nothing:?}");
        }
        for command in [
            "cat",
            "HANDLER=./handler\n$HANDLER",
            "$TRUNKLINE_QUEUE",
            "PREFIX=\"a # b\" ./handler",
            "$SET",
            "${SET:-}",
            "${HANDLER:-cat}",
            "$HANDLER arg",
            "$HANDLER-",
            "A=1 cat",
            "A=$(cat)",
            "A=1; cat",
            "> /tmp/x cat",
            ">/tmp/x; cat",
            "<(cat)",
            "# c\ncat",
            "$(cat)",
            "$1",
            ": nothing",
        ] {
            assert!(!runs_nothing(command, variable), "{command:?}");
        }
    }

    #[test]
    fn the_first_word_is_found_where_it_is_plain() {
        for (exec, word) in [
            ("cat", Some("cat")),
            (" ./send-mail --to x", Some("./send-mail")),
            ("A=1 B=x/y jq -r .to | xargs mail", Some("jq")),
            ("cat;true", Some("cat")),
            ("cat>out", Some("cat")),
            ("if true; then x; fi", Some("if")),
            ("read -r end; exit $end", Some("read")),
            ("PATH=/opt/bin tool", None),
            ("f() { true; }; f", None),
            ("$TOOL x", None),
            ("\"my tool\" x", None),
            ("(cat)", None),
            ("{ cat; }", None),
            ("[ -e x ]", None),
            ("A=\"b c\" tool", None),
            ("A=1", None),
            ("A=1;tool", None),
            ("~/bin/tool", None),
            ("> out tool", None),
        ] {
            assert_eq!(first_word(exec), word, "{exec}");
        }
    }

    #[test]
    fn what_the_shell_knows_is_there() {
        for word in ["cat", "read", "if", "exec", "/bin/sh"] {
            assert_eq!(look(word), None);
        }
        for (word, why) in [
            ("nosuchprogram", "does not exist"),
            ("/etc/passwd", "not executable"),
            ("/etc", "folder"),
            ("./nosuch", "No such file"),
        ] {
            assert!(look(word).is_some_and(|told| told.contains(why)), "{word}");
        }
    }
}
