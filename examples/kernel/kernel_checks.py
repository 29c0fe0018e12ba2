# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The section `demo` of ../../tracer/c/ports/run: what the kernel counted is in its trace, its messages
arrive, the clocks of its cores are found again, and a core that ends inside a record loses that one alone."""

import json
import os
import re

KERNEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run")
COUNTED = {  # what the kernel prints of each core, in this order: which events those are
    "switches": ["kernel:sched_switch"],
    "wakings": ["kernel:sched_waking"],
    "calls": ["kernel:syscall_entry_"],
    "returns": ["kernel:syscall_exit_"],
    "interrupts": ["kernel:irq_handler_entry", "kernel:irq_handler_exit"],
    "locks": ["mutex:LOCK"],
    "waits": ["mutex:WAIT"],
    "handed": ["mutex:WAITED"],
    "unlocks": ["mutex:UNLOCK"],
}
ANY_EVENT = re.compile(
    r"timestamp = (-?[0-9.]+), .*?\bname = (\w+:\w+), .*cpu_id = (\d+).*event\.fields = \{(.*)\}$"
)


# The name of a machine, the cause of a trap by a watched address there.
MACHINES = [("riscv64", 3), ("x86-64", 1)]


def section(ports):
    machines = dict(zip(["riscv64", "x86-64"], [ports.riscv(64, 4), ports.x86_64(4)]))
    for name, cause in MACHINES:
        if ports.can_run(machines[name], "a kernel with 4 cores"):
            whole(ports, name)
            for calls in (20, 60, 101):
                crash(ports, name, cause, calls)
            interfaces(ports, name)


def run_kernel(ports, machine, name, flags):
    """The kernel's lines by their first letter, and its recording; or None and why not."""
    folder = os.path.join(ports.BUILD, f"{name}-{machine}")
    environment = dict(os.environ, BUILD=folder, LAT=ports.LAT, CLANG=ports.CLANG, LLD=ports.LLD)
    _, why = ports.command([KERNEL, machine, *flags], env=environment, timeout=180)
    recording = os.path.join(folder, "recording")
    if not os.path.isdir(recording):
        return None, why
    lines = {}
    with open(os.path.join(folder, "console"), encoding="ascii") as file:
        for line in file.read().split("\n"):
            if re.match("[A-Z] ", line):
                lines.setdefault(line[0], []).append([int(word) for word in line[2:].split(" ")])
    return (lines, recording), ""


def kernel_events(ports, text):
    """Time, name, CPU and fields of each event."""
    listed = []
    for line in text.split("\n"):
        found = ANY_EVENT.match(line)
        if found:
            fields = {name: value.strip() for name, value in ports.FIELD.findall(found[4].strip())}
            # Exact: 9 digits behind the point are the nanoseconds of the clock.
            seconds, digits = found[1].split(".")
            time_ns = int(seconds) * 10**9 + int(digits.ljust(9, "0"))
            listed.append((time_ns, found[2], int(found[3]), fields))
    return listed


def missing_events(lines, listed):
    """What the kernel has counted and the trace has not, or the other way round: by core and what."""
    differences = {}
    for core, *counts in lines["C"]:
        for (what, names), count in zip(COUNTED.items(), counts):
            for name in names:
                is_prefix = name.endswith("_")
                there = sum(
                    cpu == core and (event.startswith(name) if is_prefix else event == name)
                    for _, event, cpu, _ in listed
                )
                if there != count:
                    differences[core, what, name] = count - there
    for channel, *counts in lines["M"]:
        for name, count in zip(("message:SEND", "message:RECEIVE"), counts):
            there = sum(
                event == name and int(fields["channel"]) == channel for _, event, _, fields in listed
            )
            if there != count:
                differences["channel", channel, name] = count - there
    for core, _, count in lines["X"]:
        there = sum(
            event == "clocks:EXCHANGE" and int(fields["cpu"]) == core for _, event, _, fields in listed
        )
        if there != count:
            differences["exchanges", core, "clocks:EXCHANGE"] = count - there
    return differences


def signed(value):
    """Of 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def clocks_fault(lines, recording, listed):
    """What is wrong with how far the clocks are said to be apart; None if nothing."""
    with open(os.path.join(recording, "report.json"), encoding="utf-8") as file:
        cores = {one["cpu"]: one for one in json.load(file)["clock"]["cores"]}
    for core, skew, _ in lines["X"]:
        found = cores.get(core)
        if found is None:
            return f"core {core}: no offset"
        offset, error = found["offset_ticks"], found["error_ticks"]
        if abs(offset - skew) > error:
            return f"core {core}: {offset} ± {error}, it is {skew}"
        # The same by the events as babeltrace2 reads them: the tightest bounds of all exchanges.
        ticks = [
            [int(fields[name]) for name in ("asked", "received", "sent", "answered")]
            for _, event, _, fields in listed
            if event == "clocks:EXCHANGE" and int(fields["cpu"]) == core
        ]
        least = max(signed(sent - answered) for _, _, sent, answered in ticks)
        most = min(signed(received - asked) for asked, received, _, _ in ticks)
        if not least <= offset <= most or error > (most - least) // 2 + 1:
            return f"core {core}: {offset} ± {error}, exchanges say {least} to {most}"
    return None


def whole(ports, machine):
    what = f"the kernel with 4 cores, {machine}"
    ran, why = run_kernel(ports, machine, "kernel", [])
    if ran is None:
        return ports.fail(f"{what}: run", why)
    lines, recording = ran
    listed = None
    for reader, (text, why) in ports.readings(recording).items():
        if text is None:
            ports.fail(f"{what}: {reader}", why)
            continue
        listed = kernel_events(ports, text)
        differences = missing_events(lines, listed)
        if differences or not listed:
            ports.fail(f"{what}: {reader}", f"counted and not there: {differences}")
        else:
            ports.ok(f"{what}: {len(listed)} events, of each core those that it counted, by {reader}")
        # The clocks are one: what is received was sent before.
        sent = {}
        for stamp, name, _, fields in listed:
            if name == "message:SEND":
                sent[fields["channel"], fields["sequence"]] = stamp
        late = [
            fields
            for stamp, name, _, fields in listed
            if name == "message:RECEIVE"
            and sent.get((fields["channel"], fields["sequence"]), stamp + 1) > stamp
        ]
        if late:
            ports.fail(f"{what}: order by {reader}", f"received before it was sent: {late[:3]}")
        else:
            ports.ok(f"{what}: {len(sent)} messages are received after they were sent, by {reader}")
    if listed is not None:
        why = clocks_fault(lines, recording, listed)
        skews = ", ".join(str(skew) for _, skew, _ in lines["X"])
        if why:
            ports.fail(f"{what}: clocks", why)
        else:
            ports.ok(f"{what}: clocks that are apart by {skews} ticks are found again within the bound")
    text, why = ports.command([ports.LAT, "stats", recording, "--json"])
    why = why if text is None else statistics_fault(lines, json.loads(text))
    ports.ok(f"{what}: lat stats has every one of them") if not why else ports.fail(f"{what}: lat stats", why)
    text, why = ports.command([ports.LAT, "table", recording, "--name", "messages"])
    arrows = [line for line in (text or "").split("\n") if ",message," in line]
    whole = [line for line in arrows if ",complete," in line]
    wanted = sum(sent for _, sent, _ in lines["M"])
    if len(arrows) == len(whole) == wanted:
        ports.ok(f"{what}: {wanted} messages, as many arrows")
    else:
        ports.fail(f"{what}: arrows", f"{wanted} messages, {len(arrows)} rows, {arrows[:2]} {why}")


def statistics_fault(lines, statistics):
    """What `lat stats` says otherwise than the kernel; None if nothing."""
    cores = {core: dict(zip(COUNTED, counts)) for core, *counts in lines["C"]}
    total = {what: sum(counts[what] for counts in cores.values()) for what in COUNTED}
    spans = {span["name"]: span for span in statistics["spans"]}
    calls = sum(span["count"] for name, span in spans.items() if name.startswith("syscall "))
    got = {
        "switches": {cpu["cpu"]: cpu["switches"] for cpu in statistics["cpus"]},
        "returns": calls,
        "interrupts": spans["irq"]["count"],
        "locks": spans["mutex_held"]["count"],
        "waits": spans["mutex_wait"]["count"],
        "open": sum(span["orphans"] + span["unfinished"] for span in spans.values()),
        "messages": [(of["matched"], of["never_sent"], of["never_received"], of["received_before_sent"])
                     for of in statistics["messages"]],
        "applications": sorted(one["application"] for one in statistics["applications"]),
    }
    wanted = {
        "switches": {core: counts["switches"] for core, counts in cores.items()},
        "returns": total["returns"],
        "interrupts": total["interrupts"],
        "locks": total["locks"],
        "waits": total["waits"],
        "open": 0,
        "messages": [(sum(sent for _, sent, _ in lines["M"]), 0, 0, 0)],
        "applications": ["bank (400)", "camera (100)", "filter (200)", "store (300)"],
    }
    return None if got == wanted else f"{got}, counted {wanted}"


INTERFACES = {  # what is recorded by the names of other systems, and what the kernel has counted for it
    "kernel:CSWITCH": "switches",
    "composite:TRACE": "locks",
    "tracepoint:START": "interrupts",
    "tracepoint:STOP": "interrupts",
}


def interfaces(ports, machine):
    """The interfaces of Barrelfish, Composite and seL4 beside the kernel's own events."""
    what = f"the kernel with the interfaces of three systems, {machine}"
    ran, why = run_kernel(ports, machine, "kernel-interfaces", ["interfaces"])
    if ran is None:
        return ports.fail(f"{what}: run", why)
    lines, recording = ran
    for reader, (text, why) in ports.readings(recording).items():
        if text is None:
            ports.fail(f"{what}: {reader}", why)
            continue
        listed = kernel_events(ports, text)
        wrong = missing_events(lines, listed)
        seen = {}
        for _, name, cpu, _ in listed:
            seen[cpu, name] = seen.get((cpu, name), 0) + 1
        for core, *counts in lines["C"]:
            for name, counted in INTERFACES.items():
                count = dict(zip(COUNTED, counts))[counted]
                if seen.get((core, name), 0) != count:
                    wrong[core, name] = count - seen.get((core, name), 0)
        for name, column in (("ump:SEND", 1), ("ump:RECEIVE", 2)):
            count = sum(channel[column] for channel in lines["M"])
            there = sum(number for (_, event), number in seen.items() if event == name)
            if there != count or not count:
                wrong[name] = count - there
        total = sum(number for (_, event), number in seen.items() if event.split(":")[0] != "lateralis")
        if wrong:
            ports.fail(f"{what}: {reader}", f"counted and not there: {wrong}")
        else:
            ports.ok(f"{what}: {total} events, as many of each interface as were counted, by {reader}")
    text, why = ports.command([ports.LAT, "stats", recording, "--json"])
    if text is None:
        return ports.fail(f"{what}: lat stats", why)
    statistics = json.loads(text)
    flows = {of["channel"]: of["matched"] for of in statistics["messages"]}
    spans = {span["name"]: span["count"] for span in statistics["spans"]}
    got = flows.get("ump"), flows.get("message"), spans.get("tracepoint")
    sent = sum(channel[1] for channel in lines["M"])
    interrupts = sum(dict(zip(COUNTED, counts))["interrupts"] for _, *counts in lines["C"])
    if got == (sent, sent, interrupts):
        ports.ok(f"{what}: messages and tracepoints are flows and spans to lat stats")
    else:
        ports.fail(f"{what}: lat stats", f"{got}, counted {sent} messages, {interrupts} interrupts")
    return None


def crash(ports, machine, watched, calls):
    what = f"a core that ends inside a record, {machine}, after {calls} calls"
    ran, why = run_kernel(ports, machine, "kernel-crash", [f"-DCRASH_AFTER={calls}"])
    if ran is None:
        return ports.fail(f"{what}: run", why)
    lines, recording = ran
    (core, cause, _, _, busy), *_ = lines.get("P", [[0] * 5])
    if (cause, busy) != (watched, 1):
        return ports.fail(what, f"it did not end inside a record: {lines.get('P')}")
    lost, report = ports.losses(recording)
    damaged = sum(stream["damaged_packets"] for stream in report["streams"])
    if damaged or report["problems"] or (lost["total"], lost["contended"]) != (1, 1):
        ports.fail(what, f"damaged {damaged}, lost {lost}, {report['problems']}")
    for reader, (text, why) in ports.readings(recording).items():
        if text is None:
            ports.fail(f"{what}: {reader}", why)
            continue
        listed = kernel_events(ports, text)
        differences = missing_events(lines, listed)
        # The one that was torn: counted by that core, and not recorded.
        torn = [one for one in differences if one[0] in (core, "channel")]
        last = [event for event in listed if event[2] == core][-1]
        if len(torn) != 1 or differences != {torn[0]: 1}:
            ports.fail(f"{what}: {reader}", f"counted and not there: {differences}, last {last}")
        elif not last[1].startswith("kernel:syscall_entry_"):
            ports.fail(f"{what}: {reader}", f"the last event of core {core} is {last}")
        else:
            ports.ok(f"{what}: {len(listed)} events up to the one before the torn one, by {reader}")
