#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes the tables of RESULTS.md from the raw files of one run.

    report.py bench/record/DATE > bench/RESULTS.md

Every number is computed here from a file that is named beside it; what is missing is left out.
"""

import contextlib
import io
import csv
import os
import sys
from pathlib import Path

CLOCK = "clock alone (rdtsc)"
csv.field_size_limit(1 << 30)


class Row:
    """All batches of one row, in ticks per event."""

    def __init__(self, fields):
        self.name, events, self.expected, self.found, batches = fields
        self.ticks = sorted(int(batch) / int(events) for batch in batches.split())

    def minimum(self):
        return self.ticks[0]

    def median(self):
        return self.ticks[len(self.ticks) // 2]

    def percentile(self, percent):
        return self.ticks[min(len(self.ticks) - 1, len(self.ticks) * percent // 100)]


class Run:
    """One program's rows, by name."""

    def __init__(self, path):
        self.rows = {}
        with open(path, newline="", encoding="utf-8") as file:
            for fields in csv.reader(file):
                if len(fields) == 5 and fields[0] != "row":
                    row = Row(fields)
                    self.rows[row.name] = row
        self.clock = self.rows.get(CLOCK)

    def ratio(self, name):
        """Of medians, to the clock alone in the same run; None if there is no such row."""
        row = self.rows.get(name)
        return row.median() / self.clock.median() if row and self.clock else None

    def ratio_minimum(self, name):
        row = self.rows.get(name)
        return row.minimum() / self.clock.minimum() if row and self.clock else None


def load(folder, name):
    path = folder / f"{name}.csv"
    return Run(path) if path.exists() and path.stat().st_size else None


def table(head, lines):
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join("---" if i == 0 else "--:" for i in range(len(head))) + "|")
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def both(run, name):
    """Median and, in brackets, minimum."""
    if run is None or run.ratio(name) is None:
        return ""
    digits = 3 if run.ratio(name) < 2 else 1
    return f"{run.ratio(name):.{digits}f} ({run.ratio_minimum(name):.{digits}f})"


def section(title, *paragraphs):
    print(f"## {title}\n")
    for paragraph in paragraphs:
        print(f"{paragraph}\n")


OURS = ["disabled", "disabled, patched", "0 u64", "1 u64", "2 u64", "4 u64", "8 u64", "16 u64",
        "u32 (Barrelfish)", "4 u64, patched", "string of 20", "LAT_LOG, u32 and string of 20",
        "log!, u64 and string of 20", "4 u64, ring full: counted as lost"]
REFERENCES = ["empty loop", "empty call", CLOCK, "memcpy of 8 bytes", "memcpy of 40 bytes",
              "memcpy of 72 bytes", "floor, 0 u64", "floor, 4 u64", "floor, 8 u64"]


def own_costs(folder):
    names = ["cost-cpu-overwrite", "cost-cpu-discard", "cost-thread-overwrite",
             "cost-thread-discard", "rust"]
    runs = [load(folder, name) for name in names]
    if not any(runs):
        return
    section("One event",
            "Ratio to the clock alone in the same run: of medians, and of minima in brackets. "
            "`floor` is what a stamped event can not do without (a byte test, the clock, header and "
            "arguments stored, limit and cursor), in a program of one thread without signal "
            "handlers: no tracer can be below it.",
            "Files: " + ", ".join(f"`{name}.csv`" for name in names) + ".")
    table(["", "per CPU, overwrite", "per CPU, discard", "per thread, overwrite",
           "per thread, discard", "Rust, per CPU"],
          [[name] + [both(run, name) for run in runs] for name in REFERENCES + OURS
           if any(run and name in run.rows for run in runs)])
    clocks = [f"{run.clock.median():.1f} ({run.clock.minimum():.1f})" for run in runs if run]
    print("The clock alone, in ticks: " + ", ".join(clocks) + ".\n")


def worst(ratios):
    known = [ratio for ratio in ratios if ratio is not None]
    return max(known) if known else None


def minima_too(runs, names, bar):
    least = worst(run.ratio_minimum(name) for run in runs if run for name in names)
    return "" if least is None else f"{least:.3f}{'' if least <= bar else ' (above)'}"


def bars(folder):
    cpu = [load(folder, "cost-cpu-overwrite"), load(folder, "cost-cpu-discard")]
    thread = [load(folder, "cost-thread-overwrite"), load(folder, "cost-thread-discard")]
    few = ["0 u64", "1 u64", "2 u64", "4 u64"]
    lines = []

    def add(what, bar, runs, names):
        value = worst(run.ratio(name) for run in runs if run for name in names)
        if value is not None:
            lines.append([what, f"≤ {bar:.2f}", f"{value:.3f}", minima_too(runs, names, bar),
                          "met" if value <= bar else "**missed**"])

    add("per CPU, 0 to 4 u64", 1.20, cpu, few)
    add("per CPU, 8 u64", 1.40, cpu, ["8 u64"])
    add("per thread, 0 to 4 u64", 1.10, thread, few)
    add("per thread, 8 u64", 1.20, thread, ["8 u64"])
    add("disabled", 0.05, cpu + thread, ["disabled"])
    add("disabled, patched", 0.02, cpu + thread, ["disabled, patched"])
    if not lines:
        return
    section("Against what was asked for",
            "The largest of the rows and of both modes counts. Last column but one: the same of "
            "minima, which a busy machine disturbs less.")
    table(["", "asked", "median", "minimum", ""], lines)


def drained(folder):
    lines = []
    for kind, title in [("cpu", "per CPU"), ("thread", "per thread")]:
        alone, with_recorder = load(folder, f"paced-{kind}"), load(folder, f"drained-{kind}")
        if not alone or not with_recorder:
            continue
        for name in ["0 u64", "1 u64", "2 u64", "4 u64", "8 u64", "16 u64"]:
            before, after = alone.ratio(name), with_recorder.ratio(name)
            if before and after:
                lines.append([f"{title}, {name}", f"{before:.3f}", f"{after:.3f}",
                              f"{after / before:.3f}",
                              "met" if after / before <= 1.25 else "**missed**"])
    if not lines:
        return
    section("While the recorder drains",
            "Batches of 4000 events with a pause of 2 ms ahead of each, so that the recorder can "
            "keep up; the first column with the same pauses and nobody reading. Nothing was lost: "
            "the report counts as many events as were written. Asked: ≤ 1.25.",
            "Files: `paced-*.csv`, `drained-*.csv`.")
    table(["", "alone", "drained", "drained / alone", ""], lines)


def writers(folder):
    lines = []
    for kind, title in [("cpu", "per CPU"), ("thread", "per thread")]:
        run = load(folder, f"writers-{kind}")
        if not run:
            continue
        one = run.rows["4 u64; 1 at once"].median()
        for count in (1, 2, 4, 8):
            row, clock = run.rows[f"4 u64; {count} at once"], run.rows[f"{CLOCK}; {count} at once"]
            time = run.rows[f"4 u64; {count} at once; CPU time ns"].median()
            lines.append([f"{title}, {count}", f"{clock.median():.1f}", f"{row.median():.1f}",
                          f"{row.percentile(95):.1f}", f"{time:.1f}", f"{row.median() / one:.3f}",
                          "met" if row.median() / one <= 1.3 else "**missed**"])
    if not lines:
        return
    section("Several writers at once",
            "Events of 4 u64 in batches of 4096, each thread timing its own; ticks per event. The "
            "CPU time is that of all batches together, preempted or not. Asked: the median no more "
            "than 1.3 times that of one writer.",
            "Files: `writers-*.csv`.")
    table(["rings, writers", "clock alone", "median", "95 %", "CPU time, ns", "to one writer", ""],
          lines)


def peers(folder):
    columns = [("cost-cpu-overwrite", "Lateralis per CPU"),
               ("cost-thread-overwrite", "Lateralis per thread"),
               ("tracy-connected", "Tracy, connected"), ("tracy-nobody", "Tracy, to memory"),
               ("tracy-on-demand-nobody", "Tracy, on demand, nobody there"),
               ("barectf", "barectf"), ("ck", "Concurrency Kit, seed 001"),
               ("lttng-overwrite", "LTTng-UST, overwrite"), ("lttng-discard", "LTTng-UST, discard")]
    columns = [(load(folder, name), title) for name, title in columns]
    columns = [(run, title) for run, title in columns if run]
    names = ["disabled", "disabled in the program (active=false)", "0 u64", "1 u64", "4 u64",
             "8 u64", "u32 (Barrelfish)", "string of 20", "message, literal", "1 u64 (plot)",
             "zone (2 events)", "zone with a value (3 events)"]
    if len(columns) < 3:
        return
    section("Beside other tracers",
            "Ratio of medians to the clock alone in the same program, minima in brackets. Who does "
            "what differs: [BIAS.md](BIAS.md).",
            "Files: one for each column.")
    table([""] + [title for _, title in columns],
          [[name] + [both(run, name) for run, _ in columns] for name in names
           if any(name in run.rows for run, _ in columns)])
    ck = load(folder, "ck")
    if ck:
        lines = []
        for count in (1, 2, 4, 8):
            row = ck.rows.get(f"4 u64; {count} at once")
            if row is None:
                lines.append([str(count), "not finished within 60 s", "", ""])
                continue
            mean = sum(row.ticks) / len(row.ticks)
            lines.append([str(count), f"{row.median():.0f}", f"{mean:.0f}",
                          f"{row.ticks[-1]:.0f}"])
        print("One global ring of Concurrency Kit with several writers, ticks per event; the "
              "longest batches wait for a writer that was preempted:\n")
        table(["writers", "median", "mean", "longest batch"], lines)


def throughput(folder):
    path, rates = folder / "throughput.csv", folder / "machine-rates.csv"
    if not path.exists():
        return
    best = {}
    with open(path, newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            written, seconds = int(line["written"]), float(line["seconds"])
            rate = written / seconds
            if line["lost"] == "0" and rate >= 0.95 * int(line["rate_asked"]):
                if line["target"] not in best or rate > best[line["target"]][0]:
                    best[line["target"]] = (rate, int(line["bytes"]) / seconds,
                                            int(line["recorder_cpu_ns"]) / written)
    section("Throughput of the recorder",
            "One thread writes events of 4 u64 (40 bytes) at a steady rate; the highest rate at "
            "which nothing is lost, with rings of 16 MiB. As many events were recorded as were "
            "written, in every run.",
            "Files: `throughput.csv`, `machine-rates.csv`.")
    table(["to", "million events/s", "MB/s", "recorder's CPU time, ns per event"],
          [[target, f"{events / 1e6:.1f}", f"{size / 1e6:.0f}", f"{cpu:.1f}"]
           for target, (events, size, cpu) in best.items()])
    if rates.exists():
        with open(rates, newline="", encoding="utf-8") as file:
            lines = [[line["what"], line["value"]] for line in csv.DictReader(file)]
        print("The machine, and the writer with nobody reading (overwrite mode):\n")
        table(["", ""], lines)


def verification(folder):
    checked, wrong = 0, []
    for path in sorted(folder.glob("*.csv")):
        for row in Run(path).rows.values() if path.stem not in ("throughput", "machine-rates") \
                else []:
            if row.expected != "-":
                checked += 1
                if row.expected != row.found:
                    wrong.append(f"{path.stem}: {row.name}: {row.found} of {row.expected}")
    section("Verification", f"{checked} rows counted their events in the ring after writing them; "
            f"{len(wrong)} counts were wrong.")
    for line in wrong:
        print(f"* {line}")


def loads(folder):
    path = folder / "load.txt"
    if path.exists():
        values = [float(line.split()[1]) for line in path.read_text().splitlines() if line]
        if values:
            print(f"* load average while measuring: {min(values):.1f} to {max(values):.1f}")


def main():
    if len(sys.argv) != 2:
        print("usage: report.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    print("<!-- Made by bench/report.py from the raw data: change neither by hand. -->")
    print("# What an event costs\n")
    print("How it is measured: [METHODOLOGY.md](METHODOLOGY.md). What may be wrong with it: "
          "[BIAS.md](BIAS.md). Again on your machine: `./x bench`.\n")
    print(f"Raw data: `bench/record/{os.path.basename(folder.resolve())}/`\n")
    machine = folder / "machine.txt"
    if machine.exists():
        for line in machine.read_text(encoding="utf-8").splitlines():
            print(f"* {line}")
        loads(folder)
        print()
    for part in (bars, own_costs, drained, writers, peers, throughput, verification):
        part(folder)
    return 0


def one_line_feed_at_the_end():
    """Runs main; each part ends with an empty line, the page must not."""
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        status = main()
    print(page.getvalue().rstrip("\n"))
    return status


if __name__ == "__main__":
    sys.exit(one_line_feed_at_the_end())
