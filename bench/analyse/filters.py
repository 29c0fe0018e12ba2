# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Filters over columns in memory, on one core, beside DuckDB and Polars.

All are asked how many events are chosen, best of five; the columns are those that
`bench-analyse filters` makes, and are in each engine's own memory before the clock runs.
"""

import shutil
import subprocess

EVENTS_MAX = 10_000_000

# As SQL; `src/filters.rs` has the same in our own words.
QUESTIONS = {
    "one comparison": "arg > 524288",
    "a range": "arg >= 102400 and arg < 204800",
    "three comparisons, one of them": "arg < 1024 or delta > 490 or ratio >= 0.99",
    "three comparisons, all of them": "arg > 524288 and delta < 0 and ratio < 0.5",
    "one of five values": "state in (1, 3, 4, 7, 12)",
    "a window of time": "time >= 1000000 and time < 1500000",
    "two columns": "arg > delta",
    "a text": "name = 'redis-server'",
    "the beginning of a text": "starts_with(name, 'redis')",
    "a script": "arg > 5000 and delta < 3",
    "a script with arithmetic": "arg + 2 * delta > 700000",
}

TABLE = """
import numpy as np, pyarrow as pa, sys, time
columns = {name: np.fromfile(f"{sys.argv[1]}/{name}", kind) for name, kind in
           [("time", "<i8"), ("arg", "<i8"), ("delta", "<i8"), ("ratio", "<f8"), ("state", "<i8")]}
words = open(f"{sys.argv[1]}/words").read().split("\\n")
word = np.fromfile(f"{sys.argv[1]}/word", "<i8").astype(np.int8)
columns["name"] = pa.DictionaryArray.from_arrays(pa.array(word), pa.array(words)).cast(pa.string())
memory = pa.table(columns)
questions = %r
def say(question, work):
    best = None
    for _ in range(5):
        begin = time.perf_counter_ns()
        found = work()
        taken = time.perf_counter_ns() - begin
        best = taken if best is None else min(best, taken)
    print(question, best, found, sep=";")
""" % (QUESTIONS,)

PEERS = {
    "DuckDB": TABLE + """
import duckdb
base = duckdb.connect()
base.execute("set threads = 1")
base.execute("create table events as from memory")
for question, text in questions.items():
    say(question, lambda: base.execute(f"select count(*) from events where {text}").fetchone()[0])
""",
    "Polars": TABLE + """
import polars as pl
events = pl.from_arrow(memory)
for question, text in questions.items():
    one = pl.sql_expr(text)
    say(question, lambda: events.lazy().filter(one).select(pl.len()).collect().item())
""",
}


def measure(maker, folder, events, python, environment, rows):
    """Adds a row for each engine and question; returns how many answers were the same."""
    events = min(events, EVENTS_MAX)
    folder.mkdir()
    commands = {"lat": [maker, "filters", folder, str(events)]}
    if python:
        commands |= {who: [python, "-c", text, folder] for who, text in PEERS.items()}
    answers, compared = {}, 0
    for who, command in commands.items():
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**environment, "POLARS_MAX_THREADS": "1"})
        if done.returncode:
            raise SystemExit(f"FAIL bench-analyse filters: {who}: {done.stderr[-400:]}")
        for line in done.stdout.splitlines():
            question, nanos, count = line.split(";")
            rows.writerow([f"filter: {question}", who, 0, events, nanos, nanos, 0])
            if question not in QUESTIONS:
                continue
            compared += question in answers
            if answers.setdefault(question, count) != count:
                raise SystemExit(f"FAIL bench-analyse filters: {question}: {who} says {count}, "
                                 f"others {answers[question]}")
    shutil.rmtree(folder)
    if set(answers) != set(QUESTIONS):
        raise SystemExit(f"FAIL bench-analyse filters: {set(answers) ^ set(QUESTIONS)} are not asked by all")
    return compared


def report(rows, out):
    """The table of a page; `rows` are those of the raw file by question and who."""
    def row(question, who):
        return next(iter(rows.get(f"filter: {question}", {}).get(who, [])), None)

    def speed(question, who):
        found = row(question, who)
        return f"{1000 * int(found['events']) / int(found['cpu_ns']):,.0f}" if found else "-"

    scan = row("scan", "lat")
    if not scan:
        return
    print("\n## Filters over columns in memory\n", file=out)
    print(f"Million events a second on one core, {int(scan['events']):,} events, best of five; how many are "
          "chosen is counted.\nCopying a column of eight bytes does "
          f"{speed('memcpy', 'lat')} of them, adding it up {speed('scan', 'lat')}.\n", file=out)
    print("| filter | lat | DuckDB | Polars | time / time of adding up |", file=out)
    print("|---|---|---|---|---|", file=out)
    for question, text in QUESTIONS.items():
        found = row(question, "lat")
        if not found:
            continue
        ratio = int(found["cpu_ns"]) / int(scan["cpu_ns"])
        cells = [speed(question, who) for who in ("lat", "DuckDB", "Polars")]
        print(f"| {question}: `{text}` | " + " | ".join(cells) + f" | {ratio:.1f} |", file=out)
