# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The section `rtos_trace` of ../c/ports/run: Embassy's executor on a Cortex-M3 in QEMU, traced by the trait
RtosTrace of the crate rtos-trace."""

import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
TRACER = os.path.join(os.path.dirname(HERE), "c")
TARGET = "thumbv7m-none-eabi"
INTERRUPTS, MAIN, IDLE = 0x10000, 1, 0
AREA_BYTES = 0x90000
SENT, RECEIVED, USED = 1, 2, 3


def build(ports):
    """The image, or None and why not."""
    output = os.path.join(ports.BUILD, "rtos-trace")
    os.makedirs(output, exist_ok=True)
    port = os.path.join(ports.HERE, "cortex-m")
    machine = " ".join(ports.CORTEX_M3.target)
    environment = dict(
        os.environ,
        CARGO_TARGET_DIR=os.path.join(output, "target"),
        LAT_PORT_DIR=port,
        CC_thumbv7m_none_eabi=ports.CLANG,
        AR_thumbv7m_none_eabi=ports.AR,
        CFLAGS_thumbv7m_none_eabi=machine,
    )
    arguments = "build --release --locked --quiet --example executor --target".split()
    text, why = ports.command(["cargo", *arguments, TARGET], cwd=HERE, env=environment, timeout=300)
    if text is None:
        return None, why
    board = os.path.join(output, "board.o")
    include = [os.path.join(TRACER, "include"), os.path.join(ports.HERE, "common"), port]
    text, why = ports.command(
        [ports.CLANG, *ports.CORTEX_M3.target, *ports.FREESTANDING, *ports.SECTIONS, "-Os"]
        + [f"-DAREA_BYTES={AREA_BYTES}u", *(f"-I{one}" for one in include)]
        + ["-c", os.path.join(port, "board.c"), "-o", board]
    )
    if text is None:
        return None, why
    image = os.path.join(output, "executor.elf")
    library = os.path.join(output, "target", TARGET, "release", "examples", "libexecutor.a")
    script = os.path.join(port, ports.CORTEX_M3.script)
    text, why = ports.command([ports.LLD, "--gc-sections", "-T", script, "-o", image, board, library])
    return (image, "") if text is not None else (None, why)


def faults(listed, counts, polls):
    """What is not as the example counted it."""
    wrong = []

    def expect(what, got, wanted):
        if got != wanted:
            wrong.append(f"{what}: {got}, expected {wanted}")

    times = [one[0] for one in listed]
    expect("times go back", times == sorted(times), True)
    names = {one[4]["name"]: one[4]["tid"] for one in listed if one[3] == "THREAD_NAME"}
    expect("names", set(polls) - set(names), set())
    switches = [one[4] for one in listed if one[3] == "sched_switch"]
    expect("first switch", switches[0]["prev_tid"], MAIN)
    broken = [n for n in range(1, len(switches)) if switches[n]["prev_tid"] != switches[n - 1]["next_tid"]]
    expect("switches that do not begin where the last ended", broken, [])
    # No task of it wakes itself while it is polled: each poll is a switch to it.
    to = {name: sum(one["next_tid"] == tid for one in switches) for name, tid in names.items()}
    expect("polls", to, polls)
    expect("idleness", sum(one["next_tid"] == IDLE for one in switches) >= counts["interrupts"], True)
    for marker, task in ((SENT, "producer"), (RECEIVED, "consumer")):
        writers = [one[1] for one in listed if one[3] == "MARKER" and one[4]["marker"] == marker]
        expect(f"markers of {task}", (len(writers), set(writers)), (1000, {names[task]}))
    for name in ("MARKER_BEGIN", "MARKER_END"):
        expect(name, sum(one[3] == name for one in listed), 1000)
    entries = [one for one in listed if one[3] == "irq_handler_entry"]
    expect("interrupts", len(entries), counts["interrupts"])
    expect("their threads", {one[1] for one in entries}, {INTERRUPTS + one[4]["irq"] for one in entries})
    wakes = [one for one in listed if one[3] == "sched_waking" and one[4]["tid"] == names["ticker"]]
    by_interrupts = [one for one in wakes if one[4]["common_flags"] == 8]
    expect("wakes by interrupts", len(by_interrupts), counts["interrupts"])
    running = MAIN
    for _, writer, _, name, fields in listed:
        # Of idleness nothing is recorded but its end, and thread 0 cannot record: it is the program.
        if writer not in (running or MAIN, MAIN) and writer < INTERRUPTS:
            wrong.append(f"{name} by {writer}, while {running} runs")
            break
        if name == "sched_switch":
            running = fields["next_tid"]
    return wrong


def section(ports, events):
    what = "Embassy's executor by rtos-trace, cortex-m3"
    if not ports.can_run(ports.CORTEX_M3, what):
        return None
    if not ports.AR or not ports.CARGO:
        return ports.skip(what, "no llvm-ar and cargo here")
    text, why = ports.command([ports.CARGO, "fetch", "--locked", "--target", TARGET], cwd=HERE)
    if text is None:
        return ports.skip(what, f"cargo fetch: {why[-200:]}")
    image, why = build(ports)
    if image is None and ("target may not be installed" in why or "can't find crate for `core`" in why):
        return ports.skip(what, f"rustup target add {TARGET}")
    if image is None:
        return ports.fail(f"{what}: build", why)
    ran, why = ports.run(ports.CORTEX_M3, image)
    if ran is None:
        return ports.fail(f"{what}: run", why)
    counts = dict(re.findall(r"^C (\S+) (\d+)$", "\n".join(ran[0]), re.MULTILINE))
    polls = dict(re.findall(r"^P (\S+) (\d+)$", "\n".join(ran[0]), re.MULTILINE))
    counts, polls = ({one: int(n) for one, n in found.items()} for found in (counts, polls))
    recording, why = ports.recover(image, ran[1], ["--elf", image])
    if recording is None:
        return ports.fail(f"{what}: lat recover", why)
    for reader, (text, why) in ports.readings(recording).items():
        wrong = faults(events(text), counts, polls) if text is not None else [why]
        shown = f"{what}: {sum(polls.values())} polls, {counts.get('interrupts')} interrupts, 1000 items, "
        shown += f"by {reader}"
        ports.fail(f"{what}, by {reader}", "; ".join(wrong)[:1500]) if wrong else ports.ok(shown)
    lost, report = ports.losses(recording)
    clean = sum(lost.values()) == 0 and not report["problems"]
    ports.ok(f"{what}: nothing lost") if clean else ports.fail(what, f"{lost}, {report['problems']}")
    text, why = ports.command([ports.LAT, "stats", "--json", recording])
    if text is None:
        return ports.fail(f"{what}: lat stats", why)
    report = json.loads(text)
    schedules = {one["thread"]: one["schedules"] for one in report["threads"] if one["thread"] in polls}
    markers = next(one for one in report["spans"] if one["name"] == "marker")
    marked = markers["count"], markers["orphans"], markers["unfinished"]
    right = schedules == polls and marked == (1000, 0, 0)
    shown = f"{what}: lat stats has the tasks and the markers"
    return ports.ok(shown) if right else ports.fail(shown, f"{schedules}, {marked}")
