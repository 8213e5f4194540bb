//! Writes the rows for storage, one per line, so that a rerun of one row changes only one line.

use serde_json::Value;

use crate::{
    Failure,
    results::{Results, Row},
};

pub fn json(results: &Results) -> Result<String, Failure> {
    let rows: Vec<String> = results.rows.iter().map(row).collect::<Result<_, _>>()?;
    let runs = match results.runs.is_empty() {
        true => String::new(),
        false => format!("\"runs\":{},\n", serde_json::to_string(&results.runs)?),
    };
    Ok(format!("{{{runs}\"rows\":[\n{}\n]}}\n", rows.join(",\n")))
}

fn row(row: &Row) -> Result<String, Failure> {
    let mut row = row.clone();
    for round in &mut row.rounds {
        // Omits samples without messages: they have no cost per message, and JSON has no
        // representation of infinity or NaN.
        round.series.retain(|sample| {
            [sample.at, sample.sent, sample.received, sample.server_cpu_us].iter().all(|value| value.is_finite())
        });
    }
    let mut value = serde_json::to_value(&row)?;
    shorten(&mut value);
    Ok(serde_json::to_string(&value)?)
}

/// Rounds to six digits, because no figure is more precise.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(values) => values.values_mut().for_each(shorten),
        Value::Number(number) if number.is_f64() => {
            let short = number.as_f64().and_then(|value| format!("{value:.5e}").parse().ok());
            if let Some(short) = short.and_then(serde_json::Number::from_f64) {
                *number = short;
            }
        }
        _ => {}
    }
}
