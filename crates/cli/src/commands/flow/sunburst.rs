// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stacks as a sunburst: programs in the centre, callees around their callers. The width of an arc is the
//! weight of its function and all its callees. After figure 4 of "Hardware-Assisted Instruction Profiling and
//! Latency Detection" (Sharma and Dagenais, 2016).

use std::f64::consts::TAU;
use std::fmt::Write;

use lateralis_model::terminal;
use lateralis_store::places::Function;
use lateralis_store::stacks::Stacks;

use super::flame::{colour, escaped};
use super::stacks::{below, share, title};

/// In pixels.
const SIZE: f64 = 900.0;
const HEAD: f64 = 34.0;
const MARGIN: f64 = 10.0;
/// Radius of the hole in the centre, in rings.
const HOLE_RINGS: f64 = 0.6;
/// Largest number of rings; deeper calls would be as narrow as a line.
const RINGS_MAX: usize = 40;
/// Arcs narrower than this, in pixels along the ring, are not drawn.
const NARROWEST: f64 = 0.5;
/// Approximate width of a letter in the names.
const LETTER: f64 = 6.0;
/// Largest number of arcs; if there are more, the inner rings are drawn.
const ARCS_MAX: usize = 50_000;

struct Arc {
    node: u32,
    ring: usize,
    /// Fraction of a full turn, clockwise from the top.
    begin: f64,
    width: f64,
}

/// Draws the samples of one event, or instructions.
pub fn svg(stacks: &Stacks, functions: &[Function]) -> String {
    let arcs = arcs(stacks);
    let rings = arcs.iter().map(|arc| arc.ring + 1).max().unwrap_or(1);
    let ring_px = (SIZE / 2.0 - MARGIN) / (rings as f64 + HOLE_RINGS);
    let totals = stacks.totals();
    let (middle_x, middle_y) = (SIZE / 2.0, HEAD + SIZE / 2.0);
    let height = SIZE + HEAD;
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {height}\" width=\"{SIZE}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"10\">\n\
         <style>path:hover{{stroke:#1c2731;stroke-width:1.5}}\
         text{{pointer-events:none;fill:#0c1116}}</style>\n\
         <rect width=\"{SIZE}\" height=\"{height}\" fill=\"#ffffff\" pointer-events=\"none\"/>\n\
         <text x=\"{MARGIN}\" y=\"20\" font-size=\"14\">{}</text>\n",
        escaped(&title(stacks)),
    );
    let mut labels = String::new();
    for arc in &arcs {
        let node = &stacks.nodes[arc.node as usize];
        let unknown = Function { name: String::new(), image: String::new() };
        let function = functions.get(node.function as usize).unwrap_or(&unknown);
        let inner = (arc.ring as f64 + HOLE_RINGS) * ring_px;
        let outer = inner + ring_px - 1.0;
        if arc.width * TAU * outer < NARROWEST {
            continue;
        }
        let name = escaped(&function.name);
        let image = if function.image.is_empty() {
            String::new()
        } else {
            format!(" in {}", escaped(&function.image))
        };
        let percent = share(totals[arc.node as usize], stacks.weight);
        let own = share(node.weight, stacks.weight);
        let _ = writeln!(
            text,
            "<path d=\"{}\" fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"0.6\">\
             <title>{name}{image}: {percent:.2} %, {own:.2} % in itself</title></path>",
            path(arc, (inner, outer), (middle_x, middle_y)),
            colour(function),
        );
        label(&mut labels, arc, &function.name, (inner, outer), (middle_x, middle_y));
    }
    text.push_str(&labels);
    text.push_str("</svg>\n");
    text
}

/// Writes a name along the radius if the arc is at least as wide as a letter is high, else along the ring.
fn label(
    to: &mut String,
    arc: &Arc,
    name: &str,
    (inner, outer): (f64, f64),
    (middle_x, middle_y): (f64, f64),
) {
    let radius = (inner + outer) / 2.0;
    let along = arc.width * TAU * radius;
    let across = outer - inner;
    let is_along = along > across;
    let (room, high) = if is_along { (along, across) } else { (across, along) };
    let letters = ((room - 4.0) / LETTER).max(0.0) as usize;
    if letters < 3 || high < 9.0 {
        return;
    }
    let shown = terminal::shown(name);
    let mut words: String = shown.chars().take(letters).collect();
    if shown.chars().count() > letters {
        words.pop();
        words.push('…');
    }
    let turn = arc.begin + arc.width / 2.0;
    let angle = turn * TAU;
    let (x, y) = (middle_x + radius * angle.sin(), middle_y - radius * angle.cos());
    // Text is never upside down.
    let degrees = turn * 360.0;
    let upright = match is_along {
        true if (90.0..270.0).contains(&degrees) => degrees + 180.0,
        true => degrees,
        false if degrees < 180.0 => degrees - 90.0,
        false => degrees + 90.0,
    };
    let _ = writeln!(
        to,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" dominant-baseline=\"central\" \
         transform=\"rotate({upright:.1} {x:.1} {y:.1})\">{}</text>",
        escaped(&words),
    );
}

fn path(arc: &Arc, (inner, outer): (f64, f64), (x, y): (f64, f64)) -> String {
    let point = |radius: f64, turn: f64| {
        let angle = turn * TAU;
        format!("{:.2} {:.2}", x + radius * angle.sin(), y - radius * angle.cos())
    };
    // A full turn begins and ends at one point, and SVG draws nothing for it [SVG 2, 9.5.1].
    let width = arc.width.min(0.9999);
    let (begin, end) = (arc.begin, arc.begin + width);
    let is_large = u8::from(width > 0.5);
    format!(
        "M{} A{outer:.2} {outer:.2} 0 {is_large} 1 {} L{} A{inner:.2} {inner:.2} 0 {is_large} 0 {} Z",
        point(outer, begin),
        point(outer, end),
        point(inner, end),
        point(inner, begin),
    )
}

/// Lays out the arcs, programs first.
fn arcs(stacks: &Stacks) -> Vec<Arc> {
    let totals = stacks.totals();
    let (programs, below) = below(stacks, &totals);
    let width = |node: u32| totals[node as usize] as f64 / stacks.weight.max(1) as f64;
    let mut arcs: Vec<Arc> = Vec::new();
    let mut begin = 0.0;
    for node in programs {
        arcs.push(Arc { node, ring: 0, begin, width: width(node) });
        begin += width(node);
    }
    // Half a pixel on the outermost ring.
    let narrowest = NARROWEST / (TAU * SIZE / 2.0);
    let mut next = 0;
    while next < arcs.len() && arcs.len() < ARCS_MAX {
        let Arc { node, ring, begin, .. } = arcs[next];
        let mut begin = begin;
        for called in below.get(&node).into_iter().flatten() {
            let width = width(*called);
            if width >= narrowest && ring + 1 < RINGS_MAX {
                arcs.push(Arc { node: *called, ring: ring + 1, begin, width });
            }
            begin += width;
        }
        next += 1;
    }
    arcs
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_store::stacks::Node;

    #[test]
    fn arcs_stand_around_those_who_called_and_are_as_wide_as_they_weigh() {
        let node = |caller, function, weight| Node { caller, function, samples: 1, weight };
        let nodes = vec![node(0, 0, 10), node(0, 1, 30), node(1, 2, 60), node(0, 3, 0)];
        let stacks =
            Stacks { event: "e".into(), samples: 3, weight: 100, nodes, ..Stacks::default() };
        let all: Vec<(u32, usize, i64, i64)> = arcs(&stacks)
            .iter()
            .map(|arc| {
                let percent = |of: f64| (of * 100.0).round() as i64;
                (arc.node, arc.ring, percent(arc.begin), percent(arc.width))
            })
            .collect();
        assert_eq!(all, [(0, 0, 0, 100), (1, 1, 0, 90), (2, 2, 0, 60)]);
        let function = |name: &str| Function { name: name.to_owned(), image: String::new() };
        let functions = ["main", "a<b>", "x\u{1b}", "never"].map(function);
        let text = svg(&stacks, &functions);
        assert!(text.contains("a&lt;b&gt;: 90.00 %, 30.00 % in itself"), "{text}");
        assert!(!text.contains("never"));
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'));
    }
}
