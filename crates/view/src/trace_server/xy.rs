// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values over time: number of events, CPU utilisation, counters.

use lateralis_lanes::Scale;
use serde_json::{Value, json};

use super::query::Query;
use super::{Asked, Columns, Refusal, outputs};

/// A curve: id of its entry, and name.
type Curve = (u32, String);

fn curves(asked: &Asked<'_>, output: &str) -> Result<Vec<Curve>, Refusal> {
    outputs::is_known(asked, output)?;
    let name = |of: &Value| of["name"].as_str().unwrap_or_default().to_owned();
    Ok(match output {
        "histogram" => vec![(0, "events".to_owned())],
        "counters" => (0..).zip(asked.list("counters")).map(|(id, of)| (id, name(of))).collect(),
        "cpu-usage" => {
            let lanes = (0..).zip(asked.list("lanes"));
            lanes.filter(|(_, lane)| lane["kind"] == "cpu").map(|(id, of)| (id, name(of))).collect()
        }
        _ => return Err(outputs::missing(output)),
    })
}

/// Entries of the curves of an output.
pub fn tree(asked: &Asked<'_>, output: &str) -> Result<Value, Refusal> {
    let entries = curves(asked, output)?.into_iter().map(|(id, name)| {
        json!({ "id": id, "parentId": -1, "labels": [name], "hasData": true, "isDefault": id < 16 })
    });
    let headers = json!([{ "name": "Name", "tooltip": "" }]);
    Ok(json!({ "entries": entries.collect::<Vec<_>>(), "headers": headers, "autoExpandLevel": -1 }))
}

/// Description of an axis.
struct Axis {
    label: &'static str,
    unit: &'static str,
}

/// Values of the curves.
pub fn values(asked: &Asked<'_>, output: &str, query: &Query) -> Result<Value, Refusal> {
    let mut curves = curves(asked, output)?;
    if let Some(items) = &query.items {
        curves.retain(|(id, _)| items.contains(id));
    }
    let (begin, end, px) = (query.begin, query.end.saturating_add(1), query.count);
    let stretch = json!({ "t0": begin, "t1": end, "px": px });
    let with = |name: &str, value: Value| {
        let mut params = stretch.clone();
        params[name] = value;
        params
    };
    let (axis, values): (Axis, Vec<Vec<f64>>) = match output {
        "histogram" => {
            let (_, columns) = asked.columns("overview", stretch)?;
            let counts: Vec<f64> = columns.all("count").collect();
            (Axis { label: "Events", unit: "" }, curves.iter().map(|_| counts.clone()).collect())
        }
        "cpu-usage" => {
            let (told, columns) = asked.columns("utilisation", with("by", "cpu".into()))?;
            let rows = told["rows"].as_array().cloned().unwrap_or_default();
            let shares: Vec<f64> = columns.all("share").collect();
            let of = |id: u32| {
                let row = rows.iter().position(|row| row["id"] == id);
                let part = row.and_then(|row| shares.chunks(px as usize).nth(row));
                let percent = part.map(|part| part.iter().map(|share| share * 100.0).collect());
                percent.unwrap_or_else(|| vec![0.0; px as usize])
            };
            (Axis { label: "CPU usage", unit: "%" }, curves.iter().map(|(id, _)| of(*id)).collect())
        }
        _ => {
            let ids: Vec<u32> = curves.iter().map(|(id, _)| *id).collect();
            let (_, columns) = asked.columns("levels", with("counters", json!(ids)))?;
            let of = |index: usize| extremes(&columns, index * px as usize, px as usize);
            (Axis { label: "Value", unit: "" }, (0..ids.len()).map(of).collect())
        }
    };
    let scale = Scale::new(begin, end, px);
    let times: Vec<i64> = (0..px).map(|p| asked.absolute(scale.pixel(p).0 as f64)).collect();
    let series = curves.iter().zip(values).map(|((id, name), values)| {
        let x = json!({ "label": "Time", "unit": "ns", "dataType": "TIMESTAMP" });
        let y = json!({ "label": axis.label, "unit": axis.unit, "dataType": "NUMBER" });
        json!({
            "seriesId": id, "seriesName": name, "xValues": times, "yValues": values,
            "xValuesDescription": x, "yValuesDescription": y,
            "style": { "values": { "series-type": "line", "series-style": "solid" } },
        })
    });
    Ok(json!({ "title": title(output), "series": series.collect::<Vec<_>>() }))
}

fn title(output: &str) -> &'static str {
    match output {
        "histogram" => "Histogram",
        "cpu-usage" => "CPU Usage",
        _ => "Counters",
    }
}

/// One value per pixel: the minimum or maximum, whichever is further from the last value of the previous
/// pixel, so that peaks stay visible. The protocol cannot express unknown values; they are 0.
fn extremes(columns: &Columns, first: usize, px: usize) -> Vec<f64> {
    let mut before = 0.0;
    let known = |value: f64| if value.is_finite() { value } else { 0.0 };
    (first..first + px)
        .map(|at| {
            let (low, high) = (known(columns.at("low", at)), known(columns.at("high", at)));
            let far = if (high - before).abs() >= (before - low).abs() { high } else { low };
            before = known(columns.at("last", at));
            far
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Numbers;

    #[test]
    fn a_peak_within_a_pixel_is_told() {
        let column = |name, values: &[f64]| (name, Numbers::F64(values.to_vec()));
        let columns = Columns(vec![
            column("low", &[f64::NAN, 1.0, 1.0, -7.0]),
            column("high", &[f64::NAN, 1.0, 9.0, 2.0]),
            column("last", &[f64::NAN, 1.0, 1.0, 2.0]),
        ]);
        assert_eq!(extremes(&columns, 0, 4), [0.0, 1.0, 9.0, -7.0]);
    }
}
