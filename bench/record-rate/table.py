# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes RESULTS.md from raw.csv and machine.txt; every number is computed here."""

import csv
import platform
import statistics
import subprocess
from collections import defaultdict

TITLES = {
    "nobody": "nobody reads (rings overwritten)",
    "memory": "recorded to memory",
    "disk": "recorded to the disk",
    "live": "recorded, one live client",
    "live, two": "recorded, two live clients",
    "live, one stuck": "recorded, two live clients and one that is stuck",
    "lttng": "LTTng-UST, recorded to the disk",
}


def machine(root):
    def said(*words):
        try:
            return subprocess.run(words, capture_output=True, text=True).stdout.strip()
        except OSError:
            return "none"
    cpu = next((line.split(": ", 1)[1] for line in open("/proc/cpuinfo", encoding="utf-8").read()
                .splitlines() if line.startswith("model name")), platform.machine())
    lines = {
        "cpu": f"{cpu}, {said('nproc')} CPUs",
        "kernel": platform.release(),
        "compiler": said("cc", "--version").splitlines()[0],
        "lttng-ust": said("pkg-config", "--modversion", "lttng-ust") or "none",
        "commit": said("git", "-C", str(root), "rev-parse", "--short", "HEAD"),
    }
    return "".join(f"{name}: {value}\n" for name, value in lines.items())


def lines_of(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|--:" * (len(head) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def rates(rows):
    tried = {}
    for row in rows:
        tried.setdefault((row["way"], int(row["rate_asked"])), []).append(row)
    best = {}
    for (way, asked), attempts in tried.items():
        rated = [(float(row["written"]) / float(row["seconds"]), row) for row in attempts]
        good = [(rate, row) for rate, row in rated if rate >= 0.95 * asked
                and row["lost"] == "0" and row["client_dropped"] == "0"]
        # As `run` has it: a first one that failed is made good by two others.
        if len(good) == len(attempts) or len(good) == 2:
            rate, row = good[0]
            if way not in best or rate > best[way][0]:
                best[way] = rate, int(row["bytes"]) / float(row["seconds"])
    peer = best.get("lttng", (0, 0))[0]
    for way, (rate, size) in best.items():
        ratio = f"{rate / peer:.1f}" if peer else ""
        yield [TITLES[way], f"{rate / 1e6:.1f}", f"{size / 1e6:.0f}", ratio]


def costs(rows):
    by_way = defaultdict(list)
    for row in rows:
        by_way[row["way"]].append(float(row["ns_median"]))
    alone = by_way["nobody"]
    for way, values in by_way.items():
        yield [TITLES[way], f"{statistics.median(values):.1f}", f"{min(values):.1f}",
               f"{statistics.median(values) / statistics.median(alone):.2f}",
               f"{min(values) / min(alone):.2f}", str(len(values))]


def results(here):
    with open(here / "raw.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    part = defaultdict(list)
    for row in rows:
        part[row["part"]].append(row)
    text = ["<!-- Made by bench/record-rate/run from raw.csv: change neither by hand. -->",
            "# Recording rate", "",
            "How it is measured, and what to distrust: [README.md](README.md).", ""]
    text += [f"* {line}" for line in (here / "machine.txt").read_text().splitlines()]
    loads = [float(row["load"]) for row in rows if row["load"]]
    text += [f"* load average while measuring: {min(loads):.1f} to {max(loads):.1f}", "",
             "## Highest steady rate without loss", ""]
    text += lines_of(["", "million events/s", "MB/s", "to LTTng-UST"], rates(part["rate"]))
    text += ["The machine:", ""]
    text += lines_of(["", "MB/s"], [[row["way"], f"{int(row['bytes']) / 1e6:.0f}"]
                                    for row in part["reference"]])
    asked = int(part["cost"][0]["rate_asked"])
    text += ["## What an event costs in the program meanwhile", "",
             f"At {asked / 1e6:.2f} million events/s; ns an event, of each recording the median of its "
             "bursts. Columns: median and minimum of the recordings, ratios of both to nobody "
             "reading.", ""]
    text += lines_of(["", "median", "minimum", "ratio of medians", "ratio of minima",
                      "recordings"], costs(part["cost"]))
    lost = sum(int(row["lost"]) for row in part["cost"])
    text += [f"Lost in these: {lost} events. In all {len(rows)} rows written = recorded + lost."]
    return "\n".join(text) + "\n"
