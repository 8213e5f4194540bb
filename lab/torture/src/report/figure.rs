//! A figure: operations a second by outcome, under the faults of that time.

use std::fmt::{Error, Write};

use crate::{
    check::Finding,
    folder::Evidence,
    history::{Micros, Outcome},
};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 100.0;
const HEIGHT: f64 = 160.0;
const ROW: f64 = 15.0;
/// The style of a light and of a dark page, as the reader prefers.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#1f2328}.dim{fill:#59636e;font-size:11px}.title{font-size:16px;font-weight:600}\
.grid{stroke:#d1d9e0}.ok{fill:#54aeff}.failed{fill:#8c959f}.unknown{fill:#cf222e}.fault{fill:#bc4c00}.bad{fill:#cf222e;font-weight:600}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9da7b1}.grid{stroke:#3d444d}.ok{fill:#1f6feb}.unknown,.bad{fill:#ff7b72}}";

/// The operations that ended in one second, by outcome.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    ok: usize,
    failed: usize,
    unknown: usize,
}

pub fn figure(evidence: &Evidence, findings: &[Finding]) -> Result<String, Error> {
    let about = &evidence.about;
    let until = evidence.ops.iter().map(|op| op.began).max().unwrap_or(about.ended).max(about.ended);
    let all = until.saturating_sub(about.began).max(1_000_000);
    let x = |at: Micros| LEFT + (WIDTH - LEFT - 20.0) * at.saturating_sub(about.began).min(all) as f64 / all as f64;
    let mut seconds = vec![Second::default(); (all / 1_000_000 + 1) as usize];
    for op in &evidence.ops {
        let at = if op.ended == Micros::MAX { op.began } else { op.ended };
        let Some(second) = seconds.get_mut((at.saturating_sub(about.began) / 1_000_000) as usize) else { continue };
        match op.outcome {
            Outcome::Ok => second.ok += 1,
            Outcome::Failed => second.failed += 1,
            Outcome::Unknown | Outcome::Dropped => second.unknown += 1,
        }
    }
    let most = seconds.iter().map(|one| one.ok + one.failed + one.unknown).max().unwrap_or_default().max(1) as f64;
    let mut faults: Vec<&str> = evidence.faults.iter().map(|fault| &*fault.fault).collect();
    faults.sort_unstable();
    faults.dedup();
    let (top, rows) = (70.0, 70.0 + HEIGHT + 40.0);
    let height = rows + ROW * faults.len() as f64 + 24.0 + 16.0 * findings.len() as f64;
    let mut svg = String::new();
    write!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">"#
    )?;
    write!(svg, "<style>{STYLE}</style>")?;
    let verdict = if findings.is_empty() { "every promise was kept" } else { "PROMISES WERE BROKEN" };
    let mutant = about.mutant.as_ref().map(|name| format!(", with the defect {name}")).unwrap_or_default();
    write!(svg, r#"<text class="title" x="12" y="26">Seed {}: {verdict}</text>"#, about.seed)?;
    write!(
        svg,
        r#"<text class="dim" x="12" y="46">{} operations in {} s, PostgreSQL {}{}; operations a second: blue ok, grey failed, red unknown or dropped; below, the faults</text>"#,
        evidence.ops.len(),
        about.seconds,
        escaped(&about.server),
        escaped(&mutant)
    )?;
    let y = |count: usize| HEIGHT * count as f64 / most;
    for (at, second) in seconds.iter().enumerate() {
        let (left, right) =
            (x(about.began + at as Micros * 1_000_000), x(about.began + (at as Micros + 1) * 1_000_000));
        let mut base = top + HEIGHT;
        for (class, count) in [("ok", second.ok), ("failed", second.failed), ("unknown", second.unknown)] {
            if count > 0 {
                base -= y(count);
                let (width, high) = ((right - left).max(0.5), y(count));
                write!(
                    svg,
                    r#"<rect class="{class}" x="{left:.1}" y="{base:.1}" width="{width:.1}" height="{high:.1}"/>"#
                )?;
            }
        }
    }
    write!(svg, r#"<text class="dim" x="{}" y="{}" text-anchor="end">{most}</text>"#, LEFT - 6.0, top + 10.0)?;
    write!(svg, r#"<line class="grid" x1="{LEFT}" x2="{}" y1="{1}" y2="{1}"/>"#, WIDTH - 20.0, top + HEIGHT)?;
    let step = [1, 5, 10, 30, 60, 300, 600].into_iter().find(|step| all / 1_000_000 / step <= 12).unwrap_or(1_800);
    for second in (0..=all / 1_000_000).step_by(step as usize) {
        let at = x(about.began + second * 1_000_000);
        write!(
            svg,
            r#"<text class="dim" x="{at:.1}" y="{}" text-anchor="middle">{second} s</text>"#,
            top + HEIGHT + 16.0
        )?;
    }
    for (nr, name) in faults.iter().enumerate() {
        let y = rows + ROW * nr as f64;
        write!(
            svg,
            r#"<text class="dim" x="{}" y="{}" text-anchor="end">{}</text>"#,
            LEFT - 6.0,
            y + 9.0,
            escaped(name)
        )?;
        for fault in evidence.faults.iter().filter(|fault| fault.fault == *name) {
            let width = (x(fault.to) - x(fault.from)).max(2.0);
            write!(
                svg,
                r#"<rect class="fault" x="{:.1}" y="{y}" width="{width:.1}" height="10"><title>{}</title></rect>"#,
                x(fault.from),
                escaped(&fault.detail)
            )?;
        }
    }
    let mut below = rows + ROW * faults.len() as f64 + 20.0;
    for finding in findings {
        write!(
            svg,
            r#"<text class="bad" x="12" y="{below}">{}, {} times</text>"#,
            escaped(finding.rule),
            finding.count
        )?;
        below += 16.0;
    }
    write!(svg, "</svg>")?;
    Ok(svg)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
