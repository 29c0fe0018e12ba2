# SPDX-License-Identifier: Apache-2.0 OR MIT
"""expect.py NAME FOLDER OUTPUT: what the areas in FOLDER must say about test program NAME,
which printed OUTPUT. Prints each fact that does not hold; exit status 1 if there is one."""

import collections
import re
import sys

import trace_checks

problems = []


def expect(condition, *facts):
    if not condition:
        problems.append(" ".join(str(fact) for fact in facts))


def announced(word):
    return int(re.search(word + r" (\d+)", output)[1])


def locks():
    expect(counts["mutex:MUTEX_LOCK"] == announced("taken"), "locks", counts["mutex:MUTEX_LOCK"],
           "announced", announced("taken"))
    # Two threads end while they hold a robust mutex, twice each the next one gets it.
    held = pairing.still_held()
    expect(len(held) == 2 and len({lock for _, lock in held}) == 1, "still held", held)
    robust = {lock for _, lock in held}
    others = [key for key in trace_checks.two_holders(events) if key[1] not in robust]
    expect(not others, "held by two at once", others)
    expect(not pairing.unlocked_unheld, "unlocked, not held", pairing.unlocked_unheld)
    inside = sorted(name for _, name in pairing.still_inside())
    expect(inside == ["io:READ", "mutex:SEM_WAIT"], "unfinished, beside the cancelled", inside)
    expect(not pairing.ended_unbegun, "ended, not begun", pairing.ended_unbegun)
    expect(counts["mutex:MUTEX_UNLOCK_FAILED"] == 2, "refused", counts["mutex:MUTEX_UNLOCK_FAILED"])
    expect(counts["mutex:RWLOCK_WRITE"] == 400, "writers", counts["mutex:RWLOCK_WRITE"])
    expect(counts["mutex:RWLOCK_READ"] == 3603, "readers", counts["mutex:RWLOCK_READ"])
    expect(counts["mutex:MUTEX_WAIT"] > 0, "nobody ever waited")
    expect(counts["thread:START"] == counts["thread:CREATE"] == counts["thread:EXIT"],
           "threads", counts["thread:CREATE"], counts["thread:START"], counts["thread:EXIT"])


def memory():
    # Beside the churned blocks: strdup and the buffer of standard output.
    expect(counts["malloc:MALLOC"] == announced("churned") + 2, "malloc", counts["malloc:MALLOC"])
    expect(counts["malloc:FAILED"] == 4, "failed", counts["malloc:FAILED"])
    expect(counts["malloc:ALIGNED"] == 5, "aligned", counts["malloc:ALIGNED"])
    live = collections.defaultdict(set)
    first_pid = events[0].pid
    for event in events:
        if not event.name.startswith("malloc:") or event.name == "malloc:FAILED":
            continue
        process, address = event.fields["process"], event.fields["address"]
        expect(process == event.pid, "wrong process", event)
        if process not in live:
            live[process] = set(live[first_pid])  # what a fork inherits
        if event.name in ("malloc:FREE", "malloc:REALLOC_FROM"):
            expect(address in live[process], "given back, not made", event)
            live[process].discard(address)
        else:
            expect(address not in live[process], "made twice", event)
            live[process].add(address)


def files():
    expect(not pairing.still_inside(), "unfinished", pairing.still_inside())
    expect(not pairing.ended_unbegun, "ended, not begun", pairing.ended_unbegun)
    paths = collections.Counter(e.fields["path"] for e in events if e.name == "io:OPENED")
    expect(paths["file"] == 3, "opened `file`", paths["file"])
    expect(paths["none"] == 1 and paths["none/none"] == 1, "paths that are not there", paths)
    expect(max(map(len, paths)) == 255, "longest path", max(map(len, paths)))
    errors = [e.fields["error"] for e in events if e.name == "io:OPENED"]
    expect(errors.count(14) == 2, "EFAULT", errors)
    results = [e.fields["result"] for e in events if e.name == "io:READ_DONE"]
    expect(-14 in results and -4 in results, "results of reading", results)
    expect(sum(e.fields["call"] == 15 for e in events if e.name == "io:READ") == 2, "fread")


def processes():
    closes = [e for e in events if e.name == "io:CLOSE" and e.fields["fd"] == 99]
    expect(len(closes) == 5, "closes of 99, by children of _Fork only", len(closes))
    main = events[0].pid
    expect(all(e.pid != main for e in closes), "a child's event under its parent's name")
    pids = {e.pid for e in events}
    # Per round: the child, its child if that writes, the child of _Fork.
    expect(len(pids) >= 10, "processes", len(pids))
    expect(not pairing.unlocked_unheld, "unlocked, not held", pairing.unlocked_unheld[:5])
    expect(not pairing.still_held(), "still held", pairing.still_held())
    # Left by siglongjmp out of read. Threads of a forked child's parent are not there.
    inside = [name for _, name in pairing.still_inside() if name != "thread:START"]
    expect(inside == ["io:READ"], "unfinished", inside)


def cxx():
    expect(counts["mutex:MUTEX_LOCK"] >= announced("taken at least"), "locks",
           counts["mutex:MUTEX_LOCK"])
    expect(not pairing.still_held() and not pairing.unlocked_unheld, "unpaired")
    expect(counts["mutex:RWLOCK_READ"] == 40, "shared", counts["mutex:RWLOCK_READ"])
    expect(not trace_checks.two_holders(events), "held by two at once")


def loader():
    expect(counts["thread:CREATE"] >= 10, "threads of constructors", counts["thread:CREATE"])
    expect(not pairing.still_held() and not pairing.unlocked_unheld, "unpaired")


name, folder, output = sys.argv[1:]
areas = trace_checks.areas(folder)
# Programs that it executes have areas of their own.
area = next(candidate for candidate in areas if candidate.exe.endswith("/" + name))
events = area.events
counts = collections.Counter(event.name for event in events)
pairing = trace_checks.Pairing()
for event in events:
    pairing.feed(event.tid, event.name, event.fields)
for each in areas:
    expect(each.lost == 0, "lost", each.lost)
expect(pairing.misattributed == 0, "records of other threads", pairing.misattributed)
{"locks": locks, "memory": memory, "files": files, "processes": processes, "cxx": cxx,
 "loader": loader}[name]()
for problem in problems[:20]:
    print("    " + problem)
sys.exit(1 if problems else 0)
