//! Access control: by passwords, by a token, by a proxy that names the user, or for local visitors
//! only.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use argon2::{Argon2, PasswordHash, PasswordVerifier};
use axum::http::{HeaderMap, header};

/// The rights of a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Visitors who may see all pages.
    Viewer,
    /// Visitors who may see all pages and act.
    Operator,
}

/// A user with a password.
#[derive(Debug, Clone)]
pub struct User {
    /// The name of the user, as recorded in the audit.
    pub name: String,
    /// The user's rights.
    pub role: Role,
    /// The password's hash in the format of argon2: `$argon2id$v=19$…`.
    pub hash: String,
}

/// The way in which the console identifies visitors.
#[derive(Debug, Clone)]
pub enum Access {
    /// Every visitor is an operator. The console then listens only on loopback addresses.
    Anybody,
    /// Visitors log in with a name and a password.
    Passwords(Vec<User>),
    /// A proxy in front of the console puts the user's name into a header. The users in `operators`
    /// are operators; all other users are viewers.
    Proxy {
        /// The name of the header, in lower case.
        header: String,
        /// The names of operators.
        operators: Vec<String>,
    },
}

/// A visitor who was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    pub name: String,
    pub role: Role,
    /// The token that each form has to send.
    pub csrf: String,
    pub notice: Option<super::notice::Notice>,
}

const SESSION: Duration = Duration::from_secs(12 * 3600);
/// The maximum number of sessions of one user. The next login ends the user's oldest session.
const OF_USER: usize = 100;
/// The maximum number of failed logins per address within the time `WITHIN`.
const TRIES: usize = 10;
/// The maximum number of failed logins of all addresses within the time `WITHIN`.
const TRIES_OF_ALL: usize = 100;
const WITHIN: Duration = Duration::from_secs(300);

const COOKIE: &str = "trunkline_console";

/// Returns the name of the session's cookie. Browsers send a cookie to all ports of a host, so the
/// name contains the port that the browser uses. Otherwise consoles on one host would end each
/// other's sessions.
pub fn cookie(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let port = host.and_then(|host| host.rsplit_once(':')?.1.parse::<u16>().ok());
    port.map_or_else(|| COOKIE.to_owned(), |port| format!("{COOKIE}_{port}"))
}

/// Sessions and failed logins.
#[derive(Debug)]
pub struct Guard {
    access: Access,
    token: Option<String>,
    /// The form token of visitors without a session.
    secret: String,
    sessions: Mutex<HashMap<String, (Visitor, Instant)>>,
    failed: Mutex<Vec<(IpAddr, Instant)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Wrong,
    TooOften,
}

impl Guard {
    /// Creates the guard. A client that sends `token`, such as a program that reads the metrics,
    /// has the rights of a viewer.
    pub fn new(access: Access, token: Option<String>) -> Self {
        Self { access, token, secret: secret(), sessions: Mutex::default(), failed: Mutex::default() }
    }

    pub fn has_logins(&self) -> bool {
        matches!(self.access, Access::Passwords(_))
    }

    /// Returns true if every visitor is admitted.
    pub fn is_open(&self) -> bool {
        matches!(self.access, Access::Anybody)
    }

    /// Returns the visitor who sent a request, if the visitor is admitted.
    pub fn visitor(&self, headers: &HeaderMap) -> Option<Visitor> {
        if let Some(visitor) = self.bearer(headers) {
            return Some(visitor);
        }
        match &self.access {
            Access::Anybody => Some(self.plain("local", Role::Operator)),
            Access::Passwords(_) => {
                let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
                let (visitor, begun) = sessions.get(&super::notice::cookie_named(headers, &cookie(headers))?)?;
                (begun.elapsed() < SESSION).then(|| visitor.clone())
            }
            Access::Proxy { header, operators } => {
                // Refuses a header that occurs twice, because the visitor may have sent one of the
                // two values.
                let mut named = headers.get_all(header.as_str()).iter();
                let name = named.next().filter(|_| named.next().is_none())?.to_str().ok()?.trim();
                let role = if operators.iter().any(|is| is == name) { Role::Operator } else { Role::Viewer };
                (!name.is_empty()).then(|| self.plain(name, role))
            }
        }
    }

    fn plain(&self, name: &str, role: Role) -> Visitor {
        Visitor { name: name.to_owned(), role, csrf: self.secret.clone(), notice: None }
    }

    fn bearer(&self, headers: &HeaderMap) -> Option<Visitor> {
        // HTTP ignores the case of the scheme, and allows several spaces after it.
        let (scheme, said) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        let token = self.token.as_deref().filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
        same(said.trim_start_matches(' '), token).then(|| self.plain("token", Role::Viewer))
    }

    /// Returns the id of a new session, for a cookie. Always takes as long as one hash, even if the
    /// user does not exist.
    pub fn log_in(&self, from: IpAddr, name: &str, password: &str) -> Result<String, Refused> {
        let Access::Passwords(users) = &self.access else { return Err(Refused::Wrong) };
        self.count(from)?;
        let user = users.iter().find(|user| user.name == name);
        let hash = user.or(users.first()).map_or("", |user| &user.hash);
        let fits = PasswordHash::new(hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
        let Some(user) = user.filter(|_| fits) else { return Err(Refused::Wrong) };
        self.forgive(from);
        let (id, csrf) = (secret(), secret());
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, (_, begun)| begun.elapsed() < SESSION);
        let of_user = sessions.iter().filter(|(_, (visitor, _))| visitor.name == user.name);
        if of_user.clone().count() >= OF_USER
            && let Some(oldest) = of_user.min_by_key(|(_, (_, begun))| *begun).map(|(id, _)| id.clone())
        {
            sessions.remove(&oldest);
        }
        sessions.insert(
            id.clone(),
            (Visitor { name: user.name.clone(), role: user.role, csrf, notice: None }, Instant::now()),
        );
        Ok(id)
    }

    pub fn log_out(&self, headers: &HeaderMap) {
        if let Some(id) = super::notice::cookie_named(headers, &cookie(headers)) {
            self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
    }

    /// Counts an attempt before its password is checked, so that simultaneous attempts are all
    /// counted.
    fn count(&self, from: IpAddr) -> Result<(), Refused> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.retain(|(_, at)| at.elapsed() < WITHIN);
        if failed.len() >= TRIES_OF_ALL || failed.iter().filter(|(of, _)| *of == from).count() >= TRIES {
            return Err(Refused::TooOften);
        }
        failed.push((from, Instant::now()));
        Ok(())
    }

    /// Undoes the count of a successful attempt.
    fn forgive(&self, from: IpAddr) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = failed.iter().rposition(|(of, _)| *of == from) {
            failed.remove(place);
        }
    }
}

/// Compares two secrets in a time that depends only on their lengths.
pub fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Returns 32 random bytes in hexadecimal digits.
fn secret() -> String {
    random::<32>()
}

/// Returns the token of a form that may act once: 16 random bytes in hexadecimal digits.
pub fn token() -> String {
    random::<16>()
}

fn random<const N: usize>() -> String {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).expect("the system's random numbers");
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

/// Hashes a password for [`User::hash`].
///
/// # Errors
/// If the password is shorter than twelve characters.
pub fn hash(password: &str) -> Result<String, String> {
    use argon2::PasswordHasher;
    if password.chars().count() < 12 {
        return Err("the password has fewer than twelve characters".to_owned());
    }
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|cause| cause.to_string())?;
    let salt = argon2::password_hash::SaltString::encode_b64(&bytes).map_err(|cause| cause.to_string())?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt).map_err(|cause| cause.to_string())?;
    Ok(hash.to_string())
}

/// Parses users, one per line: `name:viewer:$argon2id$…` or `name:operator:…`. Skips empty lines
/// and lines that begin with `#`.
///
/// # Errors
/// If a line is invalid, or has the name of an earlier line. The error has its number and the
/// reason. If there are no users.
pub fn users(text: &str) -> Result<Vec<User>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let mut users: Vec<User> = Vec::new();
    for (place, line) in lines {
        let wrong = |why: String| format!("line {}: {why}", place + 1);
        let next = user(line.trim()).map_err(wrong)?;
        if users.iter().any(|earlier| earlier.name == next.name) {
            return Err(wrong(format!("an earlier line also has the name {:?}", next.name)));
        }
        users.push(next);
    }
    if users.is_empty() {
        return Err("it contains no users".to_owned());
    }
    Ok(users)
}

fn user(line: &str) -> Result<User, String> {
    let parts: Vec<&str> = line.splitn(3, ':').collect();
    let [name, role, hash] = parts[..] else { return Err("it is not in the form name:role:hash".to_owned()) };
    if name.trim().is_empty() {
        return Err("the name is empty".to_owned());
    }
    let role = match role {
        "viewer" => Role::Viewer,
        "operator" => Role::Operator,
        _ => return Err("the role is neither viewer nor operator".to_owned()),
    };
    match PasswordHash::new(hash) {
        Ok(is) if is.algorithm.as_str().starts_with("argon2") => {
            Ok(User { name: name.to_owned(), role, hash: hash.to_owned() })
        }
        _ => Err("the hash is not an argon2 hash: `trunkline console --hash-password` prints one".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use argon2::{Algorithm, Params, PasswordHasher, Version, password_hash::SaltString};
    use axum::http::HeaderValue;

    use super::*;

    /// Creates a user whose password is the name, with a hash that takes little time.
    fn user(name: &str) -> User {
        let params = Params::new(8, 1, 1, None).expect("valid");
        let salt = SaltString::from_b64("c29tZSBzYWx0").expect("valid");
        let hash = Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password(name.as_bytes(), &salt);
        User { name: name.to_owned(), role: Role::Viewer, hash: hash.expect("hashed").to_string() }
    }

    #[test]
    fn user_with_many_sessions_loses_the_oldest_and_locks_no_other_out() {
        let guard = Guard::new(Access::Passwords(vec![user("ada"), user("eve")]), None);
        let log_in = |name: &str| guard.log_in([127, 0, 0, 1].into(), name, name);
        let is_known = |session: &str| {
            let cookie = HeaderValue::from_str(&format!("trunkline_console={session}")).expect("a header");
            guard.visitor(&HeaderMap::from_iter([(header::COOKIE, cookie)])).is_some()
        };
        let (eve, first) = (log_in("eve").expect("admitted"), log_in("ada").expect("admitted"));
        let second = log_in("ada").expect("admitted");
        for _ in 2..100 {
            log_in("ada").expect("admitted");
        }
        assert!(is_known(&first) && is_known(&eve));
        let last = log_in("ada").expect("admitted");
        assert!(!is_known(&first) && is_known(&second) && is_known(&last) && is_known(&eve));
        for _ in 0..10_000 {
            log_in("ada").expect("admitted");
        }
        assert!(is_known(&eve) && log_in("eve").is_ok(), "whatever another user does");
    }
}
