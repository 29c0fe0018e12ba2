// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Histograms as self-contained SVG images, after figures 8 and 9 of "Hardware-Assisted Instruction Profiling
//! and Latency Detection" (Sharma and Dagenais, 2016).

use std::fmt::Write;

use super::flame::escaped;
use super::numbers::{bins, rank};
use crate::values;

/// In pixels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;
/// Horizontal grid lines.
const LINES: u64 = 5;
/// Approximate number of bars.
const BARS: u64 = 80;
/// Largest number of labels below the bars.
const LABELS: usize = 12;

/// Draws the frequency of each value. `sorted` holds the values, `unit` names what they count, and `shown`
/// formats one value.
pub fn histogram(title: &str, unit: &str, sorted: &[u64], shown: impl Fn(u64) -> String) -> String {
    let (first, step, bins) = bins(sorted, BARS);
    let highest = bins.iter().copied().max().unwrap_or(0).max(1);
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let each = wide / bins.len().max(1) as f64;
    let below = TOP + high;
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\" fill=\"#0c1116\">{}</text>\n\
         <text x=\"{LEFT}\" y=\"36\" fill=\"#63707d\">{} intervals, median {}, 99 % at most {}</text>\n",
        escaped(title),
        values::count(sorted.len() as u64),
        escaped(&shown(rank(sorted, 500))),
        escaped(&shown(rank(sorted, 990))),
    );
    for line in 0..=LINES {
        let count = (highest as f64 * line as f64 / LINES as f64).round();
        let y = below - count / highest as f64 * high;
        let (right, label) = (WIDTH - RIGHT, values::count(count as u64));
        let _ = writeln!(
            text,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#dfe4e9\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#63707d\">{label}</text>",
            LEFT - 6.0,
            y + 4.0,
        );
    }
    let every = bins.len().div_ceil(LABELS).max(1);
    for (place, (number, count)) in (first..).zip(&bins).enumerate() {
        let x = LEFT + place as f64 * each;
        // A value that occurs at all is visible.
        let tall = *count as f64 / highest as f64 * high;
        let tall = if *count > 0 { tall.max(1.0) } else { 0.0 };
        let (begin, end) = (shown(number * step), shown((number + 1).saturating_mul(step)));
        let _ = writeln!(
            text,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{tall:.2}\" fill=\"#4f8fbf\">\
             <title>{} to below {}: {}</title></rect>",
            x + each * 0.06,
            below - tall,
            each * 0.88,
            escaped(&begin),
            escaped(&end),
            values::count(*count),
        );
        if place % every == 0 {
            let _ = writeln!(
                text,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#63707d\">{}</text>",
                below + 16.0,
                escaped(&begin),
            );
        }
    }
    let _ = write!(
        text,
        "<line x1=\"{LEFT}\" y1=\"{below}\" x2=\"{}\" y2=\"{below}\" stroke=\"#63707d\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#0c1116\">{}</text>\n</svg>\n",
        WIDTH - RIGHT,
        LEFT + wide / 2.0,
        HEIGHT - 12.0,
        escaped(unit),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_numbers_are_many() {
        let all = [1, 1, 1, 1, 5, 5];
        let text = histogram("a <b>", "instructions", &all, |of| of.to_string());
        assert!(text.contains("a &lt;b&gt;"));
        assert!(text.contains("<title>1 to below 2: 4</title>"), "{text}");
        assert!(text.contains("<title>5 to below 6: 2</title>"), "{text}");
        let height = |of: &str| {
            let bar = text.lines().find(|line| line.contains(of)).expect("a bar");
            let (_, rest) = bar.split_once("height=\"").expect("its height");
            rest.split_once('"').expect("a number").0.parse::<f64>().expect("a number")
        };
        assert!((height("1 to below 2") - 2.0 * height("5 to below 6")).abs() < 0.02);
        assert!(histogram("none", "", &[], |of| of.to_string()).ends_with("</svg>\n"));
    }
}
