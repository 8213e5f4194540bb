//! The pages' templates and their contents.

use askama::Template;
use axum::{
    http::StatusCode,
    response::{Html, IntoResponse, Response},
};

use super::{
    access::{Role, Visitor},
    row::Row,
    site::Site,
    statement,
    verdict::Verdict,
};
use crate::doctor::Finding;

/// The parts that all pages have in common.
#[derive(Debug, Clone)]
pub struct Frame {
    pub title: String,
    pub visitor: Visitor,
    pub has_logins: bool,
    /// The prefix of all paths.
    pub base: String,
    /// The reason why the visitor may not perform actions, if there is one.
    pub barred: Option<&'static str>,
    /// The actions that the console's own role may not perform.
    pub refused: Vec<String>,
    pub problem: Option<String>,
}

impl Frame {
    pub async fn of(site: &Site, visitor: &Visitor) -> Self {
        Self::with(site, visitor, None).await
    }

    /// Returns the frame of a page with actions on this queue.
    pub async fn of_queue(site: &Site, visitor: &Visitor, queue: &str) -> Self {
        Self::with(site, visitor, Some(queue)).await
    }

    async fn with(site: &Site, visitor: &Visitor, queue: Option<&str>) -> Self {
        Self {
            title: site.title.clone(),
            base: site.base.clone(),
            visitor: visitor.clone(),
            has_logins: site.guard.has_logins(),
            barred: site.may_act(visitor).await.err(),
            refused: statement::refused(&site.db, queue).await.unwrap_or_default(), // if this query fails, the database refuses the action itself
            problem: site.pulse.problem(),
        }
    }

    /// Returns true if an action is disabled.
    pub fn bars(&self, verb: &str) -> bool {
        self.barred.is_some() || self.refused.iter().any(|refused| refused == verb)
    }

    pub fn refused_in_words(&self) -> String {
        self.refused.iter().map(|verb| super::phrases::verb(verb)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the frame for a visitor who has not logged in.
    pub fn anonymous(site: &Site) -> Self {
        let visitor = Visitor { name: String::new(), role: Role::Viewer, csrf: String::new(), notice: None };
        let (title, base) = (site.title.clone(), site.base.clone());
        Self { title, base, visitor, has_logins: false, barred: None, refused: Vec::new(), problem: None }
    }
}

/// Renders a page. If that fails, responds with status 500 and no details.
pub fn page(template: &impl Template) -> Response {
    with(StatusCode::OK, template)
}

pub fn with(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[derive(Template)]
#[template(path = "overview.html")]
pub struct Overview {
    pub frame: Frame,
    pub rows: Vec<Row>,
    pub verdict: Verdict,
    pub programs: Vec<(String, i64)>,
}

/// A line of a list of messages or dead letters.
#[derive(Debug, Clone)]
pub struct Item {
    pub id: i64,
    pub state: String,
    pub when: String,
    pub attempt: i32,
    pub error: String,
    pub payload: String,
    pub size: String,
    pub key: String,
}

#[derive(Template)]
#[template(path = "messages.html")]
pub struct Messages {
    pub frame: Frame,
    pub queue: String,
    pub items: Vec<Item>,
    pub next: Option<String>,
    pub key: String,
    pub metadata: String,
    pub state: String,
    pub from: String,
    pub until: String,
}

#[derive(Template)]
#[template(path = "message.html")]
pub struct MessagePage {
    pub frame: Frame,
    pub queue: String,
    pub id: i64,
    pub state: String,
    pub facts: Vec<(&'static str, String)>,
    pub error: String,
    pub payload: Vec<super::json::Piece>,
    pub is_whole: bool,
    pub metadata: String,
    /// The stored payload, for a form that changes it.
    pub raw: String,
}

/// A schedule.
#[derive(Debug, Clone)]
pub struct Plan {
    pub name: String,
    pub queue: String,
    pub expression: String,
    pub next: String,
    pub last: String,
    pub problem: String,
    pub is_paused: bool,
}

#[derive(Template)]
#[template(path = "schedules.html")]
pub struct Schedules {
    pub frame: Frame,
    pub plans: Vec<Plan>,
}

/// A relay in the form that its page shows.
#[derive(Debug, Clone)]
pub struct Relay {
    pub name: String,
    pub queue: String,
    pub way: String,
    pub confirmed: String,
    pub lag: String,
    pub held: String,
    pub refused: String,
    pub seen: String,
    pub problem: String,
    pub is_silent: bool,
}

#[derive(Template)]
#[template(path = "relays.html")]
pub struct Relays {
    pub frame: Frame,
    pub relays: Vec<Relay>,
}

#[derive(Template)]
#[template(path = "doctor.html")]
pub struct DoctorPage {
    pub frame: Frame,
    /// The findings, each with the time since which the problem has existed.
    pub findings: Vec<(Finding, String)>,
    /// The duration of the current examination so far, if one is running.
    pub looks_for: Option<String>,
    /// The time of the findings, and how long the examination took.
    pub at: String,
    /// The reason why there are no findings.
    pub problem: String,
}

#[derive(Template)]
#[template(path = "audit.html")]
pub struct Audit {
    pub frame: Frame,
    pub entries: Vec<[String; 7]>,
    pub next: Option<i64>,
}

#[derive(Template)]
#[template(path = "ask.html")]
pub struct Ask {
    pub frame: Frame,
    pub form: super::form::Form,
    pub head: String,
    pub what: String,
    pub count: Option<String>,
    pub back: String,
    pub button: String,
    pub is_destructive: bool,
    /// True if the form has fields that the visitor typed.
    pub can_change: bool,
}

#[derive(Template)]
#[template(path = "again.html")]
pub struct Again {
    pub frame: Frame,
    pub form: super::form::Form,
    pub typed: Vec<super::form::Typed>,
    pub head: String,
    pub why: String,
    pub back: String,
    pub button: String,
}

#[derive(Template)]
#[template(path = "told.html")]
pub struct Told {
    pub frame: Frame,
    pub head: String,
    pub text: String,
    pub back: String,
}

#[derive(Template)]
#[template(path = "login.html")]
pub struct Login {
    pub frame: Frame,
    pub wrong: Option<&'static str>,
}
