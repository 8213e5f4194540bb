use crate::error::{Error, Result};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

pub(crate) const PORT: u16 = 5432;

/// The name of a file that postgresql.conf includes last. So users of a kept cluster may edit
/// postgresql.conf itself.
pub(crate) const FILE: &str = "trunkline.conf";

/// Returns the text of the file. If a name is set several times, the last value applies. So the
/// socket's settings come last and cannot be overridden.
pub(crate) fn file(settings: &[(String, String)], socket_dir: &Path) -> Result<String> {
    let mut text = String::from("# Written at every start.\n");
    for (name, value) in settings {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(Error::new(format!("`{name}` is not a name of a server setting")));
        }
        line(&mut text, name, value);
    }
    let folder = format!("\"{}\"", socket_dir.to_string_lossy().replace('"', "\"\""));
    line(&mut text, "listen_addresses", "");
    line(&mut text, "port", &PORT.to_string());
    line(&mut text, "unix_socket_directories", &folder);
    Ok(text)
}

/// Checks the variables, because the errors of std's `Command` do not name the invalid variable.
pub(crate) fn environment(variables: &[(OsString, OsString)]) -> Result<()> {
    for (name, value) in variables {
        let (bytes, zero) = (name.as_encoded_bytes(), |text: &OsString| text.as_encoded_bytes().contains(&0));
        if bytes.is_empty() || bytes.contains(&b'=') || zero(name) || zero(value) {
            let shown = name.to_string_lossy();
            return Err(Error::new(format!(
                "the environment variable `{shown}` cannot be set: a name has at least one letter and no `=`, and neither it nor \
                 its value has a zero byte"
            )));
        }
    }
    Ok(())
}

fn line(text: &mut String, name: &str, value: &str) {
    let quoted = value.replace('\\', "\\\\").replace('\'', "''").replace('\n', "\\n");
    let _ = writeln!(text, "{name} = '{quoted}'");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_within_its_quotes() {
        let text = file(&[("a.b".into(), "it's\\\n".into())], Path::new("/s")).unwrap();
        assert!(text.contains("a.b = 'it''s\\\\\\n'\n"), "{text}");
        assert!(text.ends_with("unix_socket_directories = '\"/s\"'\n"), "{text}");
    }

    #[test]
    fn a_name_cannot_carry_a_second_setting() {
        assert!(file(&[("fsync = off\nport".into(), "1".into())], Path::new("/s")).is_err());
    }
}
