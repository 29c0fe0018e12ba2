# SPDX-License-Identifier: Apache-2.0 OR MIT
"""check.py DIR: a recording as babeltrace2 sees it, compared with what we say about it.

Prints what it found, and exits with 1 if something does not hold:
- babeltrace2 reads it without a word on standard error, except that events were lost;
- it finds as many events as report.json counts;
- every MUTEX_LOCK has its MUTEX_UNLOCK by the same thread, or is listed here as held at the end;
- an unlock without a lock happens only in a forked child, which inherits locks, or after losses.
"""

import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../tracer/preload/test"))
import trace_checks

folder = sys.argv[1]
with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
    report = json.load(file)
totals = report["totals"]
lost = totals["lost"]["total"]
problems = []

lines, seen, first_writers, pairing = 0, collections.Counter(), {}, trace_checks.Pairing()
writer = {}  # (area, CPU) -> (pid, tid)
reader = trace_checks.Babeltrace(os.path.join(folder, "ctf"))
for name, ring, fields in reader:
    lines += 1
    seen[name] += 1
    if name == "lateralis:WRITER":
        fields = fields()
        writer[ring] = (fields["pid"], fields["tid"])
        first_writers.setdefault(ring[0], fields["pid"])
    elif name in trace_checks.LOCKS or name in trace_checks.SPANS or name in trace_checks.ENDS:
        pid, tid = writer[ring]
        before = len(pairing.unlocked_unheld)
        pairing.feed(tid, name, fields())
        if len(pairing.unlocked_unheld) > before and pid != first_writers[ring[0]]:
            pairing.unlocked_unheld.pop()  # taken before the fork, by the parent
            seen["unlocked in a forked child"] += 1

errors = reader.errors
if reader.status != 0:
    problems.append(f"babeltrace2 ends with {reader.status}: {errors[:300]}")
if lost == 0 and errors.strip():
    problems.append("babeltrace2 warns: " + errors[:300])
if lost != 0 and "iscarded" not in errors:
    problems.append(f"{lost} events lost, and babeltrace2 does not say so")
ours = totals["events"] + totals["internal_events"]
if lines != ours:
    problems.append(f"babeltrace2 reads {lines} events, report.json has {ours}")
for name, count in report["events"].items():
    if seen[name] != count:
        problems.append(f"babeltrace2 reads {seen[name]} of {name}, report.json has {count}")
held = pairing.still_held()
if pairing.misattributed:
    problems.append(f"{pairing.misattributed} records are another thread's, says the trace")
if lost == 0 and pairing.unlocked_unheld:
    problems.append(f"unlocked, not locked: {pairing.unlocked_unheld[:5]}")
if lost == 0 and pairing.ended_unbegun:
    problems.append(f"ended, not begun: {pairing.ended_unbegun[:5]}")

print(f"      {lines} events, {lost} lost, {len(report['processes'])} processes, "
      f"{pairing.locks} locks, {pairing.unlocks} unlocks, {len(held)} held at the end, "
      f"{seen['unlocked in a forked child']} released by a forked child, "
      f"{sum(pairing.inside.values())} spans unfinished")
for thread, lock in held[:10]:
    print(f"      held at the end: lock {lock:#x} by thread {thread}")
for problem in problems[:20]:
    print("      " + problem)
sys.exit(1 if problems else 0)
