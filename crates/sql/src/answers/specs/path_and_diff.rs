// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of what `lat path` and `lat diff` say.

use super::{At, Column, Command, Kind, SPAN, Spec, int, outer_int, outer_text, real, text};

/// All of them.
pub const SPECS: &[Spec] = &[
    Spec {
        name: "path_shares",
        arguments: SPAN,
        gives: "where the time of the slowest spans of a name went, most first",
        command: Command::Path,
        rows: &[&["/spans", "/shares"]],
        columns: &[&[
            Column { name: "path", kind: Kind::Int, at: At::OuterNumber },
            outer_int("span_begin_ns", "/begin_ns"),
            outer_int("span_ns", "/duration_ns"),
            int("tid", "/tid"),
            text("thread", "/thread"),
            text("does", "/does"),
            text("inside", "/in"),
            text("waited_for_by", "/waited_for_by"),
            int("time_ns", "/time_ns"),
            int("segments", "/segments"),
            outer_text("quality", "/quality"),
        ]],
    },
    Spec {
        name: "path_steps",
        arguments: SPAN,
        gives: "the critical path of the slowest spans of a name, step by step",
        command: Command::Path,
        rows: &[&["/spans", "/segments"]],
        columns: &[&[
            Column { name: "path", kind: Kind::Int, at: At::OuterNumber },
            Column { name: "step", kind: Kind::Int, at: At::Number },
            int("begin_ns", "/begin_ns"),
            int("end_ns", "/end_ns"),
            int("tid", "/tid"),
            text("thread", "/thread"),
            int("cpu", "/cpu"),
            text("does", "/does"),
            text("inside", "/in"),
            text("waited_for_by", "/waited_for_by"),
            outer_text("quality", "/quality"),
        ]],
    },
    Spec {
        name: "diff_shifts",
        arguments: "['good', 'bad']",
        gives: "what changed between two recordings, surely or perhaps, most time first",
        command: Command::Diff,
        rows: &[&["/differences"], &["/perhaps"]],
        columns: &[&[
            Column { name: "is_sure", kind: Kind::Bool, at: At::IsFirst },
            text("kind", "/kind"),
            text("name", "/name"),
            text("what", "/what"),
            real("before", "/before"),
            real("after", "/after"),
            real("before_ns", "/before_ns"),
            real("after_ns", "/after_ns"),
            real("ratio", "/ratio"),
            real("ratio_least", "/ratio_least"),
            real("ratio_most", "/ratio_most"),
            real("probability", "/probability"),
            real("explained_ns", "/explained_ns"),
            real("count_before", "/count_before"),
            real("count_after", "/count_after"),
            real("delta", "/delta"),
            text("quality", "/quality"),
        ]],
    },
];
