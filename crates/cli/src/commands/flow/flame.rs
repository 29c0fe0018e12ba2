// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stacks as a flame graph, a self-contained SVG image. The width of a bar is the weight of its function and
//! all its callees. Callers are above their callees, with programs in the first row.

use std::fmt::Write;

use lateralis_model::terminal;
use lateralis_store::places::Function;
use lateralis_store::stacks::Stacks;

use super::stacks::{below, share, title};

/// In pixels.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
const MARGIN: f64 = 10.0;
const HEAD: f64 = 34.0;
/// Bars narrower than this, six ten-thousandths of the width, are not drawn: broken chains of single samples
/// would make the image many times higher than wide.
const NARROWEST: f64 = 0.75;
/// Approximate width of a letter in the names.
const LETTER: f64 = 6.6;
/// Largest number of bars. If there are more, the rows nearest to the programs are drawn.
const BARS_MAX: usize = 100_000;

/// Warm colours for programs and libraries, cold ones for the kernel, grey for code without a name.
const PROGRAM: [&str; 6] = ["#f0b07a", "#ecc27c", "#e8a08a", "#f2cf9a", "#e6b48c", "#efc0a8"];
const KERNEL: [&str; 4] = ["#9cc3dc", "#a8cfe0", "#93b8d2", "#b4d4e6"];
const UNKNOWN: &str = "#d8dde3";

struct Bar {
    node: u32,
    depth: usize,
    x: f64,
    width: f64,
}

/// Draws the samples of one event.
pub fn svg(stacks: &Stacks, functions: &[Function]) -> String {
    let bars = bars(stacks);
    let depth = bars.iter().map(|bar| bar.depth).max().unwrap_or(0) + 1;
    let height = HEAD + depth as f64 * ROW + MARGIN;
    let totals = stacks.totals();
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <style>rect:hover{{stroke:#1c2731;stroke-width:1.5}}\
         text{{pointer-events:none;fill:#0c1116}}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\" pointer-events=\"none\"/>\n\
         <text x=\"{MARGIN}\" y=\"20\" font-size=\"14\">{}</text>\n",
        escaped(&title(stacks)),
    );
    for bar in &bars {
        let node = &stacks.nodes[bar.node as usize];
        let unknown = Function { name: String::new(), image: String::new() };
        let function = functions.get(node.function as usize).unwrap_or(&unknown);
        let y = HEAD + bar.depth as f64 * ROW;
        let percent = share(totals[bar.node as usize], stacks.weight);
        let name = escaped(&function.name);
        let image = if function.image.is_empty() {
            String::new()
        } else {
            format!(" in {}", escaped(&function.image))
        };
        let _ = write!(
            text,
            "<g><title>{name}{image}: {percent:.2} %, {:.2} % in itself</title>\
             <rect x=\"{:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{}\" rx=\"1\" fill=\"{}\"/>",
            share(node.weight, stacks.weight),
            bar.x,
            (bar.width - 0.5).max(NARROWEST),
            ROW - 1.0,
            colour(function),
        );
        let letters = ((bar.width - 6.0) / LETTER).max(0.0) as usize;
        if letters >= 3 {
            let shown = terminal::shown(&function.name);
            let mut label: String = shown.chars().take(letters).collect();
            if shown.chars().count() > letters {
                label.pop();
                label.push('…');
            }
            let (x, y) = (bar.x + 3.0, y + ROW - 5.5);
            let _ = write!(text, "<text x=\"{x:.2}\" y=\"{y:.1}\">{}</text>", escaped(&label));
        }
        text.push_str("</g>\n");
    }
    text.push_str("</svg>\n");
    text
}

/// Lays out the bars, programs first. A caller is at least as wide as its callees together.
fn bars(stacks: &Stacks) -> Vec<Bar> {
    let totals = stacks.totals();
    let (programs, below) = below(stacks, &totals);
    let all = WIDTH - 2.0 * MARGIN;
    let width = |node: u32| totals[node as usize] as f64 * all / stacks.weight.max(1) as f64;
    let mut bars: Vec<Bar> = Vec::new();
    let mut x = MARGIN;
    for node in programs {
        bars.push(Bar { node, depth: 0, x, width: width(node) });
        x += width(node);
    }
    let mut next = 0;
    while next < bars.len() && bars.len() < BARS_MAX {
        let Bar { node, depth, x, .. } = bars[next];
        let mut x = x;
        for called in below.get(&node).into_iter().flatten() {
            let width = width(*called);
            if width >= NARROWEST {
                bars.push(Bar { node: *called, depth: depth + 1, x, width });
            }
            x += width;
        }
        next += 1;
    }
    bars
}

pub fn colour(function: &Function) -> &'static str {
    if function.name == "[unknown]" {
        return UNKNOWN;
    }
    // FNV-1a: a name has the same colour in all images.
    let hash = function
        .name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    let is_kernel = function.image == "[kernel]" || function.image.ends_with(".ko");
    let palette: &[&str] = if is_kernel { &KERNEL } else { &PROGRAM };
    palette[hash as usize % palette.len()]
}

/// Escapes text between tags. XML has no control characters, not even as references [XML 1.0, 2.2].
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in terminal::shown(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_store::stacks::Node;

    fn function(name: &str) -> Function {
        Function { name: name.to_owned(), image: String::new() }
    }

    #[test]
    fn bars_hang_on_those_who_called_and_are_as_wide_as_they_weigh() {
        let node = |caller, function, weight| Node { caller, function, samples: 1, weight };
        let nodes = vec![node(0, 0, 10), node(0, 1, 30), node(1, 2, 60), node(1, 3, 0)];
        let stacks =
            Stacks { event: "e".into(), samples: 3, weight: 100, nodes, ..Stacks::default() };
        let all: Vec<(u32, usize, i64, i64)> = bars(&stacks)
            .iter()
            .map(|bar| (bar.node, bar.depth, bar.x.round() as i64, bar.width.round() as i64))
            .collect();
        assert_eq!(all, [(0, 0, 10, 1180), (1, 1, 10, 1062), (2, 2, 10, 708)]);
        let functions = ["main", "a<b>&\"c\"", "x\u{1b}[31m\u{0}", "never"].map(function);
        let text = svg(&stacks, &functions);
        assert!(
            text.contains("a&lt;b&gt;&amp;&quot;c&quot;: 90.00 %, 30.00 % in itself"),
            "{text}"
        );
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text}");
        assert!(!text.contains("never"));
    }
}
