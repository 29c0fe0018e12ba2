#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes RESULTS.md of live.csv, pan.csv and server.csv: bench/view/report.py"""

import csv
import os
import platform
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


def rows_of(name):
    path = HERE / name
    return list(csv.DictReader(path.read_text().splitlines())) if path.is_file() else []


def column(rows, name):
    return [float(row[name]) for row in rows if row[name] != ""]


def share(values, part):
    return sorted(values)[int((len(values) - 1) * part)] if values else float("nan")


def quarters(rows, name):
    """At the begin, and the mean of each quarter."""
    values = column(rows, name)
    parts = [values[len(values) * index // 4:len(values) * (index + 1) // 4] for index in range(4)]
    return [values[0]] + [sum(part) / max(len(part), 1) for part in parts]


def machine(out):
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    print(f"* cpu: {model}, {os.cpu_count()} CPUs; no graphics card", file=out)
    print(f"* kernel: {platform.release()}", file=out)
    chromium = next((path for path in (os.environ.get("CHROMIUM"), shutil.which("chromium")) if path), None)
    if chromium:
        version = subprocess.run([chromium, "--version"], capture_output=True, text=True).stdout
        print(f"* browser: {version.strip()}, without a window", file=out)


def circumstances(rows):
    loads = column(rows, "load")
    nice = sorted({int(float(row["nice"])) for row in rows})
    before = "" if nice == [0] else f", before which what was measured ran (nice {nice[0]})"
    return f"load average {min(loads):.1f} to {max(loads):.1f}{before}"


def live(rows, out):
    # Until the program writes there is nothing to be late.
    counts = [int(row["events"]) + int(row["gone"]) for row in rows]
    busy = [row for row, before, now in zip(rows[1:], counts, counts[1:]) if now - before > 100_000]
    events, lost = counts[-1], sum(int(row["lost"]) for row in rows)
    medians, p99s = column(busy, "age_median_ms"), column(busy, "age_p99_ms")
    print("\n## While it is made\n", file=out)
    rate = events / max(len(busy), 1) / 1e6
    print(f"{events / 1e6:.1f} million events in {len(busy)} s, {rate:.2f} million a second, into a page "
          f"that follows them; {lost} of them lost. Writer,\nrecorder, server and browser share "
          f"{os.cpu_count()} CPUs; {circumstances(busy)}.\n*Age*: how old the newest event was that is "
          "on the screen, at each frame; each second has a median and a p99 of its\nframes.\n", file=out)
    print("| | median second | p99 | worst second |", file=out)
    print("|---|--:|--:|--:|", file=out)
    for name, values in [("age, median of the second, ms", medians), ("age, p99 of the second, ms", p99s),
                         ("frames in a second", column(busy, "frames")),
                         ("longest frame, ms", column(busy, "frame_longest_ms")),
                         ("JS draw of a frame, p95, ms", column(busy, "draw_p95_ms"))]:
        worst = min(values) if name.startswith("frames") else max(values)
        far = share(values, 0.01 if name.startswith("frames") else 0.99)
        print(f"| {name} | {share(values, 0.5):.1f} | {far:.1f} | {worst:.1f} |", file=out)
    soon = sum(age <= 250 for age in p99s)
    print(f"\nIn {soon} of {len(p99s)} seconds 99 % of the frames show what is no older than 250 ms.",
          file=out)
    print("\n| MB | at the begin | 1st quarter | 2nd | 3rd | 4th |", file=out)
    print("|---|--:|--:|--:|--:|--:|", file=out)
    for name, key in [("server, memory that is not of files", "server_mb"),
                      ("page, JavaScript heap after garbage was collected", "heap_kept_mb"),
                      ("page, JavaScript heap as it is", "heap_mb")]:
        values = " | ".join(f"{value:.1f}" for value in quarters(busy, key))
        print(f"| {name} | {values} |", file=out)


def pan(rows, out):
    rounds = sorted({row["round"] for row in rows})
    print("\n## Panning and zooming\n", file=out)
    print(f"300 frames in to a millionth and out again, {len(rounds)} times; {circumstances(rows)}.\n"
          "*Draw*: JavaScript in a frame, from the first callback to the last. Of frames longer than "
          "50 ms the browser tells\nhow much was of scripts.\n", file=out)
    print("| round | frame, median, ms | p99 | longest | longer than 50 ms | of these scripts at most | "
          "draw, p95, ms | longest | pictures | of these most bytes |", file=out)
    print("|--:|" + "--:|" * 9, file=out)
    for number in rounds:
        own = [row for row in rows if row["round"] == number]
        lengths, draws = column(own, "length_ms"), column(own, "draw_ms")
        scripts, sizes = column(own, "long_scripts_ms"), column(own, "view_bytes")
        long = sum(length > 50 for length in lengths)
        print(f"| {number} | {share(lengths, 0.5):.1f} | {share(lengths, 0.99):.1f} | {max(lengths):.1f} | "
              f"{long} | {max(scripts, default=0):.1f} | {share(draws, 0.95):.1f} | {max(draws):.1f} | "
              f"{len(sizes)} | {max(sizes, default=0):,.0f} |", file=out)


def server(rows, out):
    def of(what):
        return [float(row["value"]) for row in rows if row["what"] == what]

    def one(what):
        return of(what)[0]

    print("\n## The server by itself\n", file=out)
    print(f"{one('events') / 1e6:.0f} million events; load average {one('load'):.1f} before. "
          "`bench/view/run` asks for the same 300 pictures, in to a\nmillionth and out again, without a "
          "browser, one after the other; times are those of who asks.\n", file=out)
    print("| answers, ms | count | median | p99 | longest | most bytes |", file=out)
    print("|---|--:|--:|--:|--:|--:|", file=out)
    for name, what in [("view, everything", "view_everything"), ("view, filtered", "view_filtered"),
                       ("overview, everything", "overview_everything"),
                       ("overview, filtered", "overview_filtered")]:
        times, sizes = of(what + "_ms"), of(what + "_bytes")
        most = f"{max(sizes):,.0f}" if sizes else ""
        print(f"| {name} | {len(times)} | {share(times, 0.5):.1f} | {share(times, 0.99):.1f} | "
              f"{max(times):.1f} | {most} |", file=out)
    for name, what in [("filter made", "filter_ms"), ("statistics of everything", "stats_ms")]:
        print(f"| {name} | 1 | {one(what):.1f} | | | |", file=out)
    print(f"\n* the index is made in {one('index_s'):.1f} s ({one('index_cpu_s'):.1f} s of processors, "
          f"{one('index_peak_kib') / 1024:.0f} MB at most): {one('index_bytes') / 1e9:.2f} GB", file=out)
    print(f"* lists are there {one('open_s'):.2f} s after the start, where the index is", file=out)
    print(f"* memory with everything asked: {one('peak_kib') / 1024:.0f} MB at most, "
          f"{one('anonymous_kib') / 1024:.0f} MB of them not of files", file=out)


def main():
    with open(HERE / "RESULTS.md", "w") as out:
        print("<!-- made by bench/view/report.py from live.csv, pan.csv and server.csv; not typed -->",
              file=out)
        print("# The page in a browser\n", file=out)
        print("`lat view` in Chromium, 1600 x 900. `bench/view/live --browser` and `bench/view/pan` measure; "
              "spy.js says how.\n", file=out)
        machine(out)
        if rows := rows_of("live.csv"):
            live(rows, out)
        if rows := rows_of("pan.csv"):
            pan(rows, out)
        if rows := rows_of("server.csv"):
            server(rows, out)


main()
