# SPDX-License-Identifier: Apache-2.0 OR MIT
"""RESULTS.md and boxplot.svg from the raw data of bench/interfaces/run."""

import csv
import statistics

csv.field_size_limit(1 << 24)

# What the systems' own reports say, in cycles of their machines.
BARRELFISH = {"enabled": 40.384, "disabled": 9.950}
COMPOSITE = {  # arguments, writers: native, in a virtual machine with a reader
    (1, 1): ("80 to 85", "150 to 165"),
    (4, 1): ("86 to 98", "164 to 173"),
    (8, 1): ("100 to 103", "183 to 209"),
    (4, 4): ("913 to 923", "716 to 740"),
    (4, 8): ("1837 to 1860", "2808 to 3206"),
}
COMPOSITE_GAPS = {(4, 4): "361 to 390", (4, 8): "380 to 410"}
COMPOSITE_CLOCK = 25
SEL4 = [  # machine, total: min, max, mean, deviation; effective: the same
    ("Sabre (seL4's report)", "18", "18", "18", "0", "4", "4", "4", "0"),
    ("Haswell (seL4's report)", "532", "852", "550.33", "17.19", "208", "212", "208.69", "1.66"),
]


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Sample:
    """Ticks of one event, batch by batch."""

    def __init__(self, values):
        self.values = sorted(values)

    def at(self, share):
        return self.values[min(len(self.values) - 1, int(share * len(self.values)))]

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def least(self):
        return self.values[0]


def table(lines, head, rows):
    lines.append("| " + " | ".join(head) + " |")
    lines.append("|" + "|".join("---" if i == 0 else "--:" for i in range(len(head))) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines.append("")


# ---- enabled, disabled -----------------------------------------------------------------------------


def events_of(raw):
    samples = {}
    for run in (1, 2):
        for row in rows_of(raw / f"events-{run}.csv"):
            ticks = [int(word) / int(row["events_per_batch"]) for word in row["batch_ticks"].split()]
            samples.setdefault(row["row"], []).append(Sample(ticks))
    return samples


def events_table(lines, raw):
    samples = events_of(raw)
    clock = [Sample(run.values) for run in samples["clock alone (rdtsc)"]]
    lines += [
        "## Enabled and disabled (Barrelfish, figure 4.1)",
        "",
        "![box plot](boxplot.svg)",
        "",
        "Ticks of one `trace_event`, in batches of 64; 1,000 batches a run, two runs, as in the "
        "original. *Kept* is in the "
        "program as well, for `trace_dump`. Boxes are quartiles, whiskers 5 % and 95 %. The "
        "original, in cycles of its machine: "
        f"{BARRELFISH['enabled']} enabled, {BARRELFISH['disabled']:.2f} disabled.",
        "",
    ]
    rows = []
    for name, runs in samples.items():
        for number, run in enumerate(runs):
            base = clock[number]
            rows.append(
                [f"{name}, run {number + 1}"]
                + [
                    f"{value:.2f}"
                    for value in (run.least, run.at(0.25), run.median, run.at(0.75), run.at(0.95))
                ]
                + [f"{run.median / base.median:.3f} ({run.least / base.least:.3f})"]
            )
    table(
        lines, ["", "minimum", "25 %", "median", "75 %", "95 %", "to the clock: median (minimum)"], rows
    )
    return samples


def boxplot(samples, path):
    """A box for each row and run; cut at the longest whisker."""
    names = ["clock alone (rdtsc)", "enabled, recorded", "enabled, recorded and kept", "disabled"]
    boxes = [(name, number, run) for name in names for number, run in enumerate(samples[name])]
    most = max(run.at(0.95) for _, _, run in boxes) * 1.05
    most = max(most, BARRELFISH["enabled"] * 1.05)
    width, height, left, top = 720, 360, 60, 16
    scale = (height - 70) / most

    def y(ticks):
        return top + (height - 70) - ticks * scale

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    step = next(step for step in (5, 10, 20, 50, 100, 200, 500) if most / step <= 10)
    for tick in range(0, int(most) + 1, step):
        out.append(
            f'<line x1="{left}" x2="{width - 10}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>'
        )
        out.append(f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>')
    for label, value in BARRELFISH.items():
        out.append(
            f'<line x1="{left}" x2="{width - 10}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#b00" '
            'stroke-dasharray="4 3"/>'
        )
        out.append(
            f'<text x="{width - 12}" y="{y(value) - 3:.1f}" text-anchor="end" fill="#b00">'
            f"Barrelfish, {label}: "
            f"{value} cycles of its machine</text>"
        )
    space = (width - left - 20) / len(boxes)
    for index, (name, number, run) in enumerate(boxes):
        middle, half = left + space * (index + 0.5), space * 0.28
        low, first, median, third, high = (y(run.at(share)) for share in (0.05, 0.25, 0.5, 0.75, 0.95))
        out.append(
            f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{high:.1f}" y2="{low:.1f}" stroke="black"/>'
        )
        out.append(
            f'<rect x="{middle - half:.1f}" y="{third:.1f}" width="{2 * half:.1f}" '
            f'height="{max(first - third, 1):.1f}" fill="#9cf" stroke="black"/>'
        )
        out.append(
            f'<line x1="{middle - half:.1f}" x2="{middle + half:.1f}" y1="{median:.1f}" y2="{median:.1f}" '
            'stroke="black" stroke-width="2"/>'
        )
        if number == 0:
            out.append(
                f'<text x="{middle + space / 2:.1f}" y="{height - 24}" text-anchor="middle">{name}</text>'
            )
        out.append(
            f'<text x="{middle:.1f}" y="{height - 40}" text-anchor="middle" fill="#555">'
            f"run {number + 1}</text>"
        )
    out.append(
        f'<text x="{left}" y="{height - 6}" fill="#555">ticks of the time stamp counter for one event</text>'
    )
    path.write_text("\n".join(out) + "\n</svg>\n")


# ---- writers ----------------------------------------------------------------------------------------


def writers_of(path):
    found = {}
    for row in rows_of(path):
        count = int(row["events"])
        key = tuple(int(row[name]) for name in ("arguments", "writers", "kept", "gaps"))
        found[key] = (
            Sample([int(word) / count for word in row["ticks"].split()]),
            Sample([int(word) / count for word in row["cpu_ns"].split()]),
        )
    return found


def ratio(sample, clock):
    return f"{sample.median / clock.median:.2f} ({sample.least / clock.least:.2f})"


WAYS = [  # file, kept, title
    ("writers", 0, "recorded"),
    ("writers", 1, "recorded and kept"),
    ("writers-kept-only", 1, "kept only"),
    ("writers-reader", 1, "recorded and kept, a thread dequeues"),
    ("writers-lat-record", 0, "`lat record` reads"),
    ("writers-lat-record", 1, "kept, `lat record` reads"),
]


def to_its_clock(cycles):
    if not cycles:
        return ""
    low, high = (int(word) for word in cycles.split(" to "))
    return f"{cycles} ({low / COMPOSITE_CLOCK:.1f} to {high / COMPOSITE_CLOCK:.1f})"


def growth():
    """How many times what one writer costs, 8 cost in the original."""
    one, eight = ([int(word) for word in COMPOSITE[4, writers][0].split(" to ")] for writers in (1, 8))
    return f"{eight[0] / one[1]:.0f} to {eight[1] / one[0]:.0f}"


def writers_tables(lines, raw):
    runs = {name: writers_of(raw / f"{name}.csv") for name in {way[0] for way in WAYS}}
    head = [
        "arguments, writers",
        *(title for _, _, title in WAYS),
        "original: native",
        "original: with a reader",
    ]
    lines += [
        "## Arguments and writers (Composite)",
        "",
        "`ENQUEUE_TRACE` in batches of 2,048 events, each thread timing its own: ratio to the clock "
        "alone, of as many threads in the "
        "same run, of medians and in brackets of minima. *Recorded*: into the rings of the tracer, "
        "overwriting the oldest. *Kept*: "
        "in the program as well, for `DEQUEUE_TRACE`, with a second reading of the clock. The "
        "original in cycles; "
        f"its clock alone takes some {COMPOSITE_CLOCK} of them native (in brackets the ratio to it), "
        "some 50 in the virtual machine of the last column.",
        "",
    ]
    for gaps in (0, 1):
        if gaps:
            lines += [
                "### With random gaps",
                "",
                "Four events, then 0 to 4 µs of waiting, which is not counted; a fence on both sides "
                "of the four.",
                "",
            ]
        rows = []
        for writers in (1, 4, 8):
            for arguments in (1, 4, 8):
                cells = []
                for name, kept, _ in WAYS:
                    clock = runs[name][0, writers, 0, gaps][0]
                    cells.append(ratio(runs[name][arguments, writers, kept, gaps][0], clock))
                native, with_reader = COMPOSITE.get((arguments, writers), ("", ""))
                if gaps:
                    native, with_reader = COMPOSITE_GAPS.get((arguments, writers), ""), ""
                rows.append([f"{arguments}, {writers}", *cells, to_its_clock(native), with_reader])
        table(lines, head, rows)
    lines += [
        "### Eight writers to one",
        "",
        "What each event costs with 8 writers, to the same with 1: ticks of the thread that was "
        "running (medians), CPU time of the thread, "
        "instructions by Valgrind (rings of threads; the clock counts as one; the processor's "
        "number, which *kept* needs, is a call there and a load without Valgrind). There are fewer "
        "CPUs than writers, so no more than those write at one "
        "moment; a batch that was interrupted is long in ticks, not in CPU time. "
        f"In the original an event with 4 arguments costs {growth()} times as much with 8 writers as "
        "with one.",
        "",
    ]
    counted = {}
    if (raw / "instructions.csv").exists():
        for row in rows_of(raw / "instructions.csv"):
            counted[tuple(int(row[name]) for name in ("arguments", "writers", "kept"))] = float(
                row["instructions"]
            )
    rows = []
    for arguments in (1, 4, 8):
        for name, kept, title in WAYS:
            one, eight = runs[name][arguments, 1, kept, 0], runs[name][arguments, 8, kept, 0]
            amount = (
                [counted.get((arguments, count, kept)) for count in (1, 8)]
                if name == "writers"
                else [None]
            )
            rows.append(
                [
                    f"{arguments}, {title}",
                    f"{eight[0].median / one[0].median:.3f}",
                    f"{one[1].median:.1f} ns, {eight[1].median:.1f} ns",
                    f"{eight[1].median / one[1].median:.3f}",
                    f"{amount[0]:.1f}, {amount[1]:.1f}" if None not in amount else "",
                ]
            )
    table(
        lines,
        [
            "arguments",
            "ticks, 8 to 1",
            "CPU time of an event, 1 and 8",
            "CPU time, 8 to 1",
            "instructions, 1 and 8",
        ],
        rows,
    )
    clocks = ", ".join(f"{name}: {runs[name][0, 1, 0, 0][0].median:.1f}" for name in sorted(runs))
    lines += [f"The clock alone, in ticks, one thread: {clocks}.", ""]
    if (raw / "recorded.txt").exists():
        words = dict(line.split() for line in (raw / "recorded.txt").read_text().splitlines())
        lines += [
            f"`lat record` read {int(words['recorded']):,} of {int(words['written']):,} events; "
            f"{int(words['lost']):,} were lost "
            "and counted (rings of 16 MiB, batches without a pause).",
            "",
        ]


# ---- nested -----------------------------------------------------------------------------------------


def nested_table(lines, raw):
    lines += [
        "## Nested tracepoints (seL4)",
        "",
        "A pair inside a pair, 740 times, in ticks. *Effective overhead*: the inner duration, what a "
        "pair adds to a measurement. *Total "
        "overhead*: the outer without it, what a pair adds to the program.",
        "",
    ]
    rows = []
    for name, title in (("nested", "log and recorded"), ("nested-log-only", "log only")):
        with open(raw / f"{name}.csv") as file:
            samples = [[int(word) for word in line.split(",")] for line in file]
        total = [outer - inner for outer, inner, _ in samples]
        effective = [inner for _, inner, _ in samples]
        clock = [clock for _, _, clock in samples]
        cells = []
        for values in (total, effective):
            cells += [
                f"{min(values)}",
                f"{max(values)}",
                f"{statistics.mean(values):.2f}",
                f"{statistics.pstdev(values):.2f}",
            ]
        # Of minima there is no ratio: two readings may come out one tick apart.
        middle = statistics.median(clock)
        cells.append(
            f"{statistics.median(total) / middle:.2f}, {statistics.median(effective) / middle:.2f}"
        )
        rows.append([title, *cells])
    rows += [[*row, ""] for row in SEL4]
    table(
        lines,
        [
            "",
            "total: min",
            "max",
            "mean",
            "deviation",
            "effective: min",
            "max",
            "mean",
            "deviation",
            "medians to that of two readings of the clock",
        ],
        rows,
    )
    lines += ["The clock is one reading right after the other.", ""]


def write(raw, folder):
    lines = [
        "<!-- Made by bench/interfaces/run from raw/: change neither by hand. -->",
        "# What the interfaces of other systems cost",
        "",
        "Programs against the original names of Barrelfish, Composite and seL4, recorded through "
        "[tracer/c/compat](../../tracer/c/compat/README.md). How it is measured: "
        "[METHODOLOGY.md](../METHODOLOGY.md); again on your "
        "machine: `bench/interfaces/run`. Figures of the originals are of their own machines.",
        "",
    ]
    lines += [f"* {line}" for line in (raw / "machine.txt").read_text().splitlines()]
    with open(raw / "load.txt") as file:
        loads = [float(word) for line in file for word in line.split()[1:]]
    lines.append(f"* load average while measuring: {min(loads):.1f} to {max(loads):.1f}")
    cpus = int((raw / "machine.txt").read_text().splitlines()[0].split(",")[-1].split()[0])
    if max(loads) > cpus:
        lines.append(
            "* **Made under load**: other programs ran meanwhile. Minima and CPU times say more than "
            "medians."
        )
    lines.append("")
    samples = events_table(lines, raw)
    boxplot(samples, folder / "boxplot.svg")
    writers_tables(lines, raw)
    nested_table(lines, raw)
    (folder / "RESULTS.md").write_text("\n".join(lines).rstrip("\n") + "\n")
