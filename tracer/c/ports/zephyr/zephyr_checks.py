# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The section `zephyr` of ../run: the hooks of Zephyr's CONFIG_TRACING_USER compile against its declarations,
as they are restated here, and what a kernel that calls them in Zephyr's order has counted is in the trace."""

import json
import os
import re
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
PORTS = os.path.dirname(HERE)
TRACER = os.path.dirname(PORTS)
SPEC = os.path.join(os.path.dirname(os.path.dirname(TRACER)), "spec", "zephyr.pleco")
AREA_BYTES = 64 * 4096 + 4096
FILES = [os.path.join(HERE, "lateralis_zephyr.c"), os.path.join(TRACER, "small", "small.c")]
INCLUDE = [f"-I{HERE}", f"-I{HERE}/declarations", f"-I{TRACER}/include"]
# What these files need of the kernel.
KERNEL = (
    "k_sched_current_thread_query k_thread_name_get k_thread_foreach k_cycle_get_32 k_cycle_get_64 "
    "arch_curr_cpu arch_irq_lock arch_irq_unlock"
).split()
SMP = "-DCONFIG_SMP -DCONFIG_MP_MAX_NUM_CPUS=4 -DCONFIG_TIMER_HAS_64BIT_CYCLE_COUNTER".split()
ANY_EVENT = re.compile(r"timestamp = (-?[0-9.]+), .*?\bname = zephyr:(\w+), .*event\.fields = \{(.*)\}$")
ANY_THREAD = re.compile(r"timestamp = (-?[0-9.]+), .*?\bname = \w+:WRITER, .*\btid = (\d+)")


def section(ports):
    if not ports.CLANG:
        return ports.skip("Zephyr's hooks", "no clang here")
    for name, target in ports.TARGETS.items():
        for flags in ([], SMP):
            compiles(ports, name, target.split(), flags)
    return replayed(ports)


def compiles(ports, name, target, flags):
    what = f"Zephyr's hooks, {name}, {'4 CPUs' if flags else '1 CPU'}"
    include = ports.command([ports.CLANG, "-print-resource-dir"])[0].strip() + "/include"
    base = [ports.CLANG, *target, *ports.FREESTANDING, *ports.WARNINGS, "-Wmissing-prototypes", "-nostdinc"]
    base += ["-isystem", include, "-Os", "-DLAT_SMALL", *INCLUDE, *flags]
    foreign, own = set(), set()
    for source in FILES:
        compiled = os.path.join(ports.BUILD, "zephyr.o")
        text, why = ports.command([*base, "-c", source, "-o", compiled])
        if text is None:
            return ports.fail(what, why)
        for line in ports.command([ports.NM, compiled])[0].split("\n"):
            words = line.split()
            if len(words) > 1:
                (foreign if words[-2] == "U" else own).add(words[-1])
    needed = {one for one in foreign - own if not one.startswith("_GLOBAL_OFFSET")}
    unknown = needed - set(KERNEL)
    return ports.fail(what, f"they need {sorted(unknown)}") if unknown else ports.ok(what)


def replayed(ports):
    what = "Zephyr's hooks in the order of its kernel"
    folder = os.path.join(ports.BUILD, "zephyr")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    program, memory = os.path.join(folder, "replay"), os.path.join(folder, "memory")
    words = [*ports.WARNINGS, "-O1", "-g", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    words += ["-std=gnu11", "-DLAT_SMALL", f"-DLAT_ZEPHYR_AREA_BYTES={AREA_BYTES}u", *INCLUDE]
    for chosen in (words, [one for one in words if "sanitize" not in one]):
        text, why = ports.command([ports.CLANG, *chosen, f"{HERE}/replay.c", *FILES, "-o", program])
        if text is not None:
            break
    else:
        return ports.fail(f"{what}: build", why)
    text, why = ports.command([program, memory])
    if text is None:
        return ports.fail(f"{what}: run", why)
    lines = [line.split(" ") for line in text.split("\n")[:-1]]
    counts = {words[1]: int(words[2]) for words in lines if words[0] == "C"}
    threads = {words[2]: int(words[1]) for words in lines if words[0] == "T"}
    not_done = sorted(name for name, count in counts.items() if count == 0)
    if not_done:
        ports.fail(f"{what}: the kernel does everything", f"not {not_done}")
    recording, why = ports.recover(memory, memory, ["--schema", SPEC])
    if recording is None:
        return ports.fail(f"{what}: lat recover", why)
    _, report = ports.losses(recording)
    for reader, (text, why) in ports.readings(recording).items():
        if text is None:
            ports.fail(f"{what}: {reader}", why)
            continue
        wrong = faults(text, counts, threads) + [str(one) for one in report["problems"]]
        total = sum(counts.values())
        ports.fail(f"{what}, by {reader}", "; ".join(wrong)) if wrong else ports.ok(
            f"{what}: {total} events of {len(counts)} kinds as they were counted, by {reader}"
        )
    text, why = ports.command([ports.LAT, "stats", recording, "--json"])
    why = why if text is None else statistics_fault(json.loads(text), counts, threads)
    ports.fail(f"{what}: lat stats", why) if why else ports.ok(f"{what}: lat stats has every one of them")
    return None


def faults(text, counts, threads):
    """What is not as the kernel counted it."""
    wrong, got, times = [], {}, []
    idle = {threads["idle"]}
    writer, running, named = None, None, {}
    for line in text.split("\n"):
        found = ANY_THREAD.match(line)
        if found:
            writer = int(found[2])
        found = ANY_EVENT.match(line)
        if not found:
            continue
        times.append(float(found[1]))
        name, fields = found[2], dict(re.findall(r'(\w+) = ("[^"]*"|\(?[^,}]+)', found[3]))
        got[name] = got.get(name, 0) + 1
        if name == "THREAD_NAME":
            named[fields["name"].strip('"')] = int(fields["tid"])
        if name == "sched_switch":
            before, after = int(fields["prev_tid"]), int(fields["next_tid"])
            if running is not None and before != running:
                wrong.append(f"a switch from {before}, {running} ran")
            if writer not in {before or threads["idle"]}:
                wrong.append(f"a switch from {before} is recorded by {writer}")
            running = after
            if after in idle or before in idle:
                wrong.append("the idle thread has a number in a switch")
        elif running and writer is not None and writer < 0x10000 and writer != 1:
            wrong.append(f"{name} by {writer}")
    if times != sorted(times) or not times:
        wrong.append("times go back")
    if named != threads:
        wrong.append(f"names {named}, not {threads}")
    for name, count in counts.items():
        if got.get(name, 0) != count:
            wrong.append(f"{name}: {got.get(name, 0)}, counted {count}")
    if got.get("irq_handler_exit", 0) != counts["irq_handler_entry"]:
        wrong.append("irq_handler_exit")
    return wrong[:5]


def statistics_fault(statistics, counts, threads):
    """What `lat stats` has otherwise than the kernel; None if nothing."""
    spans = {span["name"]: span for span in statistics["spans"]}
    got = {
        "switches": sum(cpu["switches"] for cpu in statistics["cpus"]),
        "spans": {name: spans[name]["count"] for name in spans},
        "open": sum(span["orphans"] + span["unfinished"] for span in spans.values()),
        "messages": sorted(
            (one["channel"], one["matched"], one["never_sent"], one["received_before_sent"])
            for one in statistics["messages"]
        ),
    }
    wanted = {
        "switches": counts["sched_switch"],
        "spans": {
            "irq": counts["irq_handler_entry"],
            "mutex_held": counts["MUTEX_HOLD"],
            "mutex_lock": counts["MUTEX_WANT"],
            "semaphore_take": counts["SEMAPHORE_WANT"],
            "msgq_put": counts["MSGQ_PUT_WANT"],
            "msgq_get": counts["MSGQ_GET_WANT"],
        },
        "open": 0,
        "messages": [
            ("message", counts["MSGQ_GET"], 0, 0),
            ("token", counts["SEMAPHORE_TAKE"], 0, 0),
        ],
    }
    return None if got == wanted else f"{got}, counted {wanted}"
