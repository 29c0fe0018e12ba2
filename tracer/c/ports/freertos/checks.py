# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The section `freertos` of ../run: the kernel of FreeRTOS in QEMU and as a process of this machine.

The kernel is that of a crate, pinned by its version and hash; its sources stay in the cache of cargo.
FREERTOS_KERNEL=DIR takes another kernel from DIR instead.
"""

import concurrent.futures
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PORTS = os.path.dirname(HERE)
TRACER = os.path.dirname(PORTS)
SPEC = os.path.join(os.path.dirname(os.path.dirname(TRACER)), "spec", "freertos.pleco")

# FreeRTOS-Kernel V11.2.0 as this crate has it (MIT); the hash is that of the index of crates.io.
CRATE, CRATE_VERSION, KERNEL_VERSION = "freertos-next", "0.12.0", "V11.2.0"
CRATE_SHA256 = "b7824fb42660c16e1b3b573eef99c2fe5c5cba6294a631c309084635f6bfcbb0"

# Interrupt n is the thread n + this (lat/rtos_context.h).
INTERRUPTS = 0x10000
IDLE, MAIN = 0, 1
AREA_BYTES = 0x90000
KERNEL = ["tasks", "queue", "list", "timers", "event_groups", "stream_buffer", "portable/MemMang/heap_4"]
# Of the schema, what the example does not do: these kernels never sleep without a tick.
NOT_DONE = ["LOW_POWER_BEGIN", "LOW_POWER_END"]


class Kernel:
    """A port of the kernel: how it is compiled and where it runs."""

    def __init__(self, machine, port, sources, flags=(), include=()):
        self.machine, self.port, self.sources = machine, port, sources
        self.flags, self.include = list(flags), list(include)


def kernels(ports):
    extensions = "portable/GCC/RISC-V/chip_specific_extensions/RISCV_MTIME_CLINT_no_extensions"
    cortex_m = ["cortex-m.c", "../cortex-m/board.c", "libc/libc.c"]
    posix = ports.Machine("linux process", "freertos/posix", "", None, "true", 0, ["-D_GNU_SOURCE"])
    return [
        Kernel(ports.CORTEX_M3, "GCC/ARM_CM3", ["port.c"], ["-DBOARD_FREERTOS"], cortex_m),
        Kernel(
            ports.CORTEX_M33,
            "GCC/ARM_CM33_NTZ/non_secure",
            ["port.c", "portasm.c", "mpu_wrappers_v2_asm.c"],
            ["-DBOARD_FREERTOS"],
            cortex_m,
        ),
        Kernel(
            ports.riscv(64, 1),
            "GCC/RISC-V",
            ["port.c", "portASM.S", extensions],
            [],
            ["riscv.c", "../riscv/board.c", "libc/libc.c"],
        ),
        Kernel(
            posix, "ThirdParty/GCC/Posix", ["port.c", "utils/wait_for_event.c"], [], ["posix/posix.c"]
        ),
    ]


def sources(ports):
    """The folder of the kernel, or None and why not."""
    given = os.environ.get("FREERTOS_KERNEL")
    if given:
        return (given, "") if os.path.isdir(given) else (None, f"FREERTOS_KERNEL: no folder {given}")
    home = os.environ.get("CARGO_HOME", os.path.join(os.path.expanduser("~"), ".cargo"))
    name = f"{CRATE}-{CRATE_VERSION}"
    cached = os.path.join(home, "registry", "cache", "*", name + ".crate")
    unpacked = os.path.join(home, "registry", "src", "*", name, "FreeRTOS-Kernel")
    if not glob.glob(cached) or not glob.glob(unpacked):
        project = os.path.join(ports.BUILD, "freertos-sources")
        os.makedirs(os.path.join(project, "src"), exist_ok=True)
        open(os.path.join(project, "src", "lib.rs"), "w", encoding="ascii").close()
        with open(os.path.join(project, "Cargo.toml"), "w", encoding="ascii") as file:
            file.write('[package]\nname = "sources"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n')
            file.write(f'[dependencies]\n{CRATE} = {{ version = "={CRATE_VERSION}"')
            file.write(", default-features = false }\n")
        try:
            fetched, why = ports.command(["cargo", "fetch"], cwd=project)
        except (OSError, subprocess.TimeoutExpired) as error:
            fetched, why = None, str(error)
        if fetched is None:
            return None, f"no sources: cargo fetch of {name}: {why[-200:]}"
    for path in glob.glob(cached):
        with open(path, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != CRATE_SHA256:
                return None, f"{name}.crate has another hash"
    found = glob.glob(unpacked)
    if not found:
        return None, f"cargo did not unpack {name}"
    with open(os.path.join(found[0], "include", "task.h"), encoding="utf-8") as file:
        if f'"{KERNEL_VERSION}"' not in file.read():
            return None, f"{name} is not FreeRTOS {KERNEL_VERSION}"
    return found[0], ""


def build(ports, kernel, folder, program="example", extra=(), optimise="-Os"):
    """The image, or None and why not."""
    root, machine = folder, kernel.machine
    is_process = machine.script is None
    name = re.sub(r"\W+", "-", "freertos" + machine.name + program + "".join(extra))
    output = os.path.join(ports.BUILD, name)
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    schema = os.path.join(HERE, "example.pleco")
    text, why = ports.command([ports.LAT, "pleco", "gen", "--c", os.path.join(output, "example.h"), schema])
    if text is None:
        return None, why
    port = os.path.join(root, "portable", kernel.port)
    include = [os.path.join(PORTS, machine.folder), HERE, os.path.join(PORTS, "common")]
    include += [output, os.path.join(TRACER, "include")]
    system = [os.path.join(root, "include"), port]
    system += [os.path.join(root, one) for one in kernel.sources if one.startswith("portable/")]
    if not is_process:
        include.append(os.path.join(HERE, "libc"))
    general = [ports.CLANG, *machine.target, *(["-g"] if is_process else ports.FREESTANDING[1:])]
    general += ["-std=gnu11", *ports.SECTIONS, optimise, "-DLAT_SMALL", "-DLAT_RTOS"]
    general.append(f"-DAREA_BYTES={AREA_BYTES}u")
    # Assertions name their files: the size must not depend on where the sources are.
    general += [f"-fmacro-prefix-map={one}=." for one in (TRACER, root, output)]
    general += [*machine.flags, *kernel.flags, *extra] + [f"-I{one}" for one in include]
    # Of the kernel's own code no warnings, but of what its macros become here.
    of_kernel = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-macro-redefined", "-Werror"]
    of_kernel = [*of_kernel, *(f"-I{one}" for one in system)]
    if os.environ.get("FREERTOS_KERNEL"):
        of_kernel.append("-Wno-error")
    ours = [*ports.WARNINGS, *(f"-isystem{one}" for one in system)]
    files = [(os.path.join(root, one + ".c"), of_kernel) for one in KERNEL]
    parts = [os.path.join(port, one) for one in kernel.sources if "/" not in one or is_process]
    # Older kernels have no file for the wrappers of an MPU.
    files += [(one, of_kernel) for one in parts if os.path.exists(one) or "mpu_wrappers" not in one]
    files += [(os.path.join(HERE, one), ours) for one in [program + ".c", *kernel.include]]
    files.append((os.path.join(TRACER, "small", "small.c"), ours))
    objects = []
    for source, flags in files:
        objects.append(os.path.join(output, os.path.basename(source) + ".o"))
        text, why = ports.command([*general, *flags, "-c", source, "-o", objects[-1]])
        if text is None:
            return None, f"{os.path.basename(source)}: {why}"
    image = os.path.join(output, program + ".elf")
    if is_process:
        text, why = ports.command([ports.CLANG, "-o", image, *objects, "-lpthread"])
    else:
        script = os.path.join(PORTS, machine.folder, machine.script)
        text, why = ports.command([ports.LLD, "--gc-sections", "-T", script, "-o", image, *objects])
    return (image, "") if text is not None else (None, why)


def run(ports, kernel, image):
    """What the image prints, and the file with its memory, or None and why not."""
    if kernel.machine.script is not None:
        # Without `sleep=off` a processor that waits for an interrupt waits in the time of the host.
        return ports.run(kernel.machine, image, 0x200000, icount="shift=0,sleep=off")
    dump = os.path.join(os.path.dirname(image), "memory")
    text, why = ports.command([image, dump])
    if text is None:
        return None, why
    lines = text.split("\n")
    return ((lines[:-1], dump), "") if lines[-2:-1] == ["done"] else (None, f"it ends with {lines[-2:]}")


# ---- what the readers say -----------------------------------------------------------------------

LINE = re.compile(r"timestamp = (-?[0-9.]+), .*?\bname = (\w+):(\w+), .*event\.fields = \{(.*)\}$")
FIELD = re.compile(r'(\w+) = (\( .*?\)|"(?:[^"\\]|\\.)*"|[^,]+?)\s*(?:,|$)')


def value(text):
    """A number or a text, as both readers write it; of an enumeration the number."""
    number = re.search(r"container = (-?\w+)", text)
    text = number[1] if number else text.strip()
    return text[1:-1] if text.startswith('"') else int(text, 0)


def events(text):
    """Time, thread, schema, name and fields of each event."""
    listed, thread = [], None
    for line in text.split("\n"):
        found = LINE.match(line)
        if not found:
            continue
        stamp, schema, name, inner = found.groups()
        fields = {field: value(one) for field, one in FIELD.findall(inner.strip())}
        if name == "WRITER":
            thread = fields["tid"]
        else:
            listed.append((float(stamp), thread, schema, name, fields))
    return listed


class Printed:
    """What the example counted and named itself."""

    def __init__(self, lines):
        words = [line.split(" ", 2) for line in lines]
        self.counts = {word[1]: int(word[2]) for word in words if word[0] == "C"}
        self.objects = {word[1]: int(word[2]) for word in words if word[0] == "O"}
        # The thread of a task is its number and 1.
        self.tasks = {int(word[1]) + 1: word[2] for word in words if word[0] == "T"}
        self.thread = {name: number for number, name in self.tasks.items()}


def faults(listed, printed):
    """What is not as the example counted it."""
    wrong = []

    def expect(what, got, wanted):
        if got != wanted:
            wrong.append(f"{what}: {got}, expected {wanted}")

    def of(name, **chosen):
        return [one for one in listed if one[3] == name and all(one[4][k] == v for k, v in chosen.items())]

    count, thing, thread = printed.counts, printed.objects, printed.thread
    times = [one[0] for one in listed]
    expect("times go back", times == sorted(times), True)
    # Must show 2 of the issue: sends, receives, switches.
    sends, receives = of("QUEUE_SEND", queue=thing["items"]), of("QUEUE_RECEIVE", queue=thing["items"])
    expect("sends", (len(sends), count["sent"]), (1000, 1000))
    expect("receives", (len(receives), count["received"]), (1000, 1000))
    # The producer is gone when the example prints its tasks.
    producers = {one[1] for one in sends}
    expect("producers", len(producers) == 1 and not producers & set(thread.values()), True)
    expect("consumers", {one[1] for one in receives}, {thread["consumer"]})
    switches = [one[4] for one in of("sched_switch")]
    expect("switches", len(switches), count["switches"])
    expect("first switch", switches[0]["prev_tid"], MAIN)
    broken = [n for n in range(1, len(switches)) if switches[n]["prev_tid"] != switches[n - 1]["next_tid"]]
    expect("switches that do not begin where the last ended", broken, [])
    expect("last switch", switches[-1]["next_tid"], thread["control"])
    # Who records is who has the processor, or an interrupt; the idle task is thread 0 of switches.
    running, others = MAIN, 0
    idle = thread["IDLE"]
    for _, writer, _, name, fields in listed:
        others += writer not in (running, idle if running == IDLE else running) and writer < INTERRUPTS
        if name == "sched_switch":
            running = fields["next_tid"]
    expect("events of tasks that do not run", others, 0)
    # Items in each queue, counted again.
    inside = {}
    for _, _, _, name, fields in listed:
        if name in ("QUEUE_SEND", "QUEUE_RECEIVE"):
            queue = fields["queue"]
            inside[queue] = inside.get(queue, 0) + (1 if name == "QUEUE_SEND" else -1)
            if fields["items"] != inside[queue]:
                wrong.append(f"items of {queue:#x}: {fields['items']}, counted {inside[queue]}")
                break
    left = [inside[thing[one]] for one in ("items", "from-interrupt", "mailbox")]
    expect("items at the end", left, [0, 0, 0])
    from_interrupt = of("QUEUE_SEND", queue=thing["from-interrupt"])
    expect("sends from interrupts", len(from_interrupt), count["interrupt-sends"])
    expect("interrupts", (count["interrupts"], count["interrupt-items"]), (20, 20))
    expect("their threads", all(one[1] >= INTERRUPTS for one in from_interrupt), True)
    named = {one[4]["tid"] for one in of("THREAD_NAME") if one[4]["name"] == "items"}
    expect("their name", {one[1] for one in from_interrupt}, named)
    entries, exits = of("irq_handler_entry"), of("irq_handler_exit")
    expect("entries and exits of interrupts", len(entries), len(exits))
    of_others = {one[4]["irq"] for one in entries} - {one[1] - INTERRUPTS for one in entries}
    expect("interrupts that record as others", of_others, set())
    ticks = [one[4]["count"] for one in of("TICK")]
    expect("ticks in order", ticks, sorted(ticks))
    expect("each tick", set(ticks), set(range(ticks[-1] + 1)))
    expect("wakes by interrupts, outside of them", [
        one for one in of("sched_waking") if (one[4]["common_flags"] == 8) != (one[1] >= INTERRUPTS)
    ], [])
    # The timer, the notifications, the mutex.
    expect("expiries", len(of("TIMER_EXPIRED", timer=thing["timer"])), count["expiries"])
    expect("semaphore", len(of("SEMAPHORE_TAKE", semaphore=thing["expired"])), count["timed"])
    expect("notified", len(of("NOTIFY_RECEIVE", tid=thread["watcher"])), count["notified"])
    expect("notifications sent", len(of("NOTIFY_SEND")), len(of("NOTIFY_RECEIVE")))
    rounds, mutex = count["rounds"], thing["mutex"]
    expect("rounds", (rounds, count["mediums"]), (5, 5))
    names = {thread["high"]: "high", thread["low"]: "low"}
    about = [(one[3][6:], names.get(one[1])) for one in listed if one[4].get("mutex") == mutex]
    a_round = "TAKE low TAKE_FAILED high WAIT high GIVE low WAITED high TAKE high GIVE high".split()
    a_round = list(zip(a_round[::2], a_round[1::2]))
    expect("what becomes of the mutex", about, a_round * rounds)
    inherits = [(one[4]["tid"], one[4]["prio"]) for one in of("TASK_INHERIT")]
    expect("inheritance", inherits, [(thread["low"], 5)] * rounds)
    returns = [(one[4]["tid"], one[4]["prio"]) for one in of("TASK_DISINHERIT")]
    expect("its end", returns, [(thread["low"], 3)] * rounds)
    # Woken in vain, a task waits on: one wait.
    waits = [one[3] for one in of("SEMAPHORE_WAIT", semaphore=thing["stolen"])]
    waits += [one[3] for one in of("SEMAPHORE_WAITED", semaphore=thing["stolen"])]
    expect("one wait", waits, ["SEMAPHORE_WAIT", "SEMAPHORE_WAITED"])
    woken = of("sched_waking", tid=thread["in-vain"])
    expect("woken twice, and created", len(woken), 3)
    heap = [one[4]["left"] for one in listed if one[3] in ("MALLOC", "FREE")]
    expect("free heap", heap[-1], count["heap-free"])
    # Names, of objects too.
    names = {one[4]["tid"]: one[4]["name"] for one in of("THREAD_NAME")}
    expect("names of tasks", {tid: names.get(tid) for tid in printed.tasks}, printed.tasks)
    named = {one[4]["name"]: one[4]["object"] for one in of("OBJECT_NAME")}
    expect("names of objects", {one: named.get(one) for one in ("items", "mutex")},
           {one: thing[one] for one in ("items", "mutex")})
    # The application's own schema.
    for name in ("PRODUCED", "CONSUMED"):
        own = [one[4]["item"] for one in listed if one[2:4] == ("example", name)]
        expect(name, own, list(range(1000)))
    # Every class of the schema but those that the example cannot come to.
    with open(SPEC, encoding="utf-8") as file:
        declared = set(re.findall(r"^    event (\w+)", file.read(), re.MULTILINE))
    seen = {one[3] for one in listed if one[2] == "freertos"}
    expect("classes", sorted(declared - seen), sorted(NOT_DONE))
    return wrong


def stats_faults(report, printed, listed):
    """What `lat stats --json` has otherwise than the example."""
    wrong = []

    def expect(what, got, wanted):
        if got != wanted:
            wrong.append(f"{what}: {got}, expected {wanted}")

    count, thing = printed.counts, printed.objects
    expect("processors", [one["switches"] for one in report["cpus"]], [count["switches"]])
    expect("missing switches", report["cpus"][0]["missing_switches"], 0)
    expect("losses", (report["losses"], report["damage"]), ([], []))
    channels = {one["channel"]: one for one in report["messages"]}
    for channel in ("item", "token", "notification"):
        never = channels[channel]["never_sent"], channels[channel]["never_received"]
        expect(f"unmatched, {channel}", never, (0, 0))
    # 1000 items, those of interrupts, one command of each start and stop of the timer, one in the mailbox.
    expect("items", channels["item"]["matched"], 1000 + count["interrupt-sends"] + 2 + 1)
    spans = {one["name"]: one for one in report["spans"]}
    unpaired = {one: (span["unfinished"], span["orphans"]) for one, span in spans.items()}
    # Tasks that wait for ever have not returned; nothing else is open.
    expect("spans without an end or a beginning", {k: v for k, v in unpaired.items() if v != (0, 0)}, {})
    key = f"{thing['mutex']:#x}"
    held = {one["key"]: one for one in spans["mutex_held"]["by_key"]}[key]
    expect("holder", (held["count"], held["longest"]["thread"]), (2 * count["rounds"], "low"))
    waits = {one["thread"]: one["count"] for one in spans["mutex_wait"]["by_thread"]}
    expect("waits for it", waits, {"high": count["rounds"]})
    wait = spans["mutex_wait"]["by_key"][0]
    expect("which", (wait["key"], wait["longest"]["thread"]), (key, "high"))
    threads = {one["thread"]: one for one in report["thread_states"]}
    expect("states", threads["producer"]["has_ended"], True)
    expect("the one that was stopped", threads["sleeper"]["stopped_count"], 1)
    expect("waits of the low one", threads["low"]["preempted_count"] >= count["rounds"], True)
    woken = printed.thread["woken"]
    wakes = [one for one in listed if one[3] == "sched_waking" and one[4]["tid"] == woken]
    by_interrupts = sum(one[4]["common_flags"] == 8 for one in wakes)
    pairs = [one for one in report["wakeups"]["pairs"] if one["thread"] == "woken"]
    by = {one["woken_by"]: one["count"] for one in pairs}
    expect("who wakes the interrupt's task", by.get("interrupt", 0), by_interrupts)
    expect("how often", by_interrupts >= count["interrupt-sends"] // 2, True)
    return wrong


def without_uuid(recording):
    """The files of a recording, without the number that each recording has of its own, and without the
    checksums of packets, which are over that too (spec/trace-layout.md)."""
    with open(os.path.join(recording, "report.json"), encoding="utf-8") as file:
        uuid = json.load(file)["trace_uuid"]
    raw = bytes.fromhex(uuid.replace("-", ""))
    # The uuid is at 4, the checksum at 116 of a packet.
    packet = re.compile(re.escape(raw) + b"(.{96}).{4}", re.DOTALL)
    files = {}
    for path in sorted(glob.glob(os.path.join(recording, "ctf", "**"), recursive=True)):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                content = packet.sub(rb"uuid\1crc", file.read())
            content = content.replace(raw, b"uuid").replace(uuid.encode(), b"uuid")
            files[os.path.relpath(path, recording)] = content
    return files


def guarded(ports, kernel, folder, what, checks):
    """A recording that lacks what a check looks for is a failure as well."""
    try:
        checks(ports, kernel, folder, what)
    except (KeyError, IndexError) as error:
        ports.fail(what, f"it lacks {error!r}")


def check(ports, kernel, folder, what):
    image, why = build(ports, kernel, folder)
    if image is None:
        return ports.fail(f"{what}: build", why)
    is_process = kernel.machine.script is None
    texts = ["--schema", SPEC, "--schema", os.path.join(HERE, "example.pleco")]
    texts = texts if is_process else ["--elf", image]
    recordings = []
    for _ in range(1 if is_process else 2):
        ran, why = run(ports, kernel, image)
        if ran is None:
            return ports.fail(f"{what}: run", why)
        recording, why = ports.recover(image, ran[1], texts)
        if recording is None:
            return ports.fail(f"{what}: lat recover", why)
        recordings.append(without_uuid(recording))
        with open(ran[1], "rb") as file:
            recordings[-1]["memory"] = file.read()
    printed = Printed(ran[0])
    for reader, (text, why) in ports.readings(recording).items():
        if text is None:
            ports.fail(f"{what}: {reader}", why)
            continue
        listed = events(text)
        wrong = faults(listed, printed)
        shown = f"{what}: 1000 sends, 1000 receives, {printed.counts['switches']} switches, "
        shown += f"{len(listed)} events are what it counted, by {reader}"
        ports.fail(f"{what}, by {reader}", "; ".join(wrong)[:1500]) if wrong else ports.ok(shown)
    lost, report = ports.losses(recording)
    clean = sum(lost.values()) == 0 and not report["problems"]
    ports.ok(f"{what}: nothing lost") if clean else ports.fail(what, f"{lost}, {report['problems']}")
    text, why = ports.command([ports.LAT, "stats", "--json", recording])
    if text is None:
        ports.fail(f"{what}: lat stats", why)
    else:
        wrong = stats_faults(json.loads(text), printed, listed)
        shown = f"{what}: lat stats has the switches, the messages, the mutex's holder and who waits"
        ports.fail(f"{what}: lat stats", "; ".join(wrong)[:1500]) if wrong else ports.ok(shown)
    if is_process:
        return None
    same = f"{what}: a second run is the same, byte for byte"
    different = [name for name in recordings[0] if recordings[0][name] != recordings[1].get(name)]
    return ports.ok(same) if not different else ports.fail(same, f"{different} are not")


def check_without_texts(ports, kernel, folder, what):
    """An image without the texts of its schemas is read with their files, and only with them."""
    what += ": an image without the texts of its schemas"
    image, why = build(ports, kernel, folder, "example", ["-DLAT_SMALL_WITHOUT_TEXTS"])
    ran, why = run(ports, kernel, image) if image else (None, why)
    if ran is None:
        return ports.fail(what, why)
    recording, why = ports.recover(image, ran[1], ["--elf", image])
    if recording is not None or "its text is not in the image" not in why:
        return ports.fail(what, f"it is read by itself: {why}")
    texts = ["--schema", SPEC, "--schema", os.path.join(HERE, "example.pleco")]
    recording, why = ports.recover(image, ran[1], texts)
    if recording is None:
        return ports.fail(what, why)
    text, why = ports.command([ports.LAT, "print", "--format", "babeltrace", recording])
    wrong = faults(events(text), Printed(ran[0])) if text is not None else [why]
    return ports.fail(what, "; ".join(wrong)[:1500]) if wrong else ports.ok(what)


def check_overwritten(ports, kernel, folder, what):
    """A ring that is overwritten keeps the newest, and tasks that are named again have their names."""
    what += ": a ring that is overwritten"
    image, why = build(ports, kernel, folder, "example", ["-DEXAMPLE_OVERWRITES"])
    ran, why = run(ports, kernel, image) if image else (None, why)
    recording, why = ports.recover(image, ran[1], ["--elf", image]) if ran else (None, why)
    if recording is None:
        return ports.fail(what, why)
    printed = Printed(ran[0])
    text, why = ports.command([ports.LAT, "print", "--format", "babeltrace", recording])
    if text is None:
        return ports.fail(what, why)
    listed = events(text)
    _, report = ports.losses(recording)
    overwritten = sum(stream["lost_packets"] for stream in report["streams"])
    names = {one[4]["tid"]: one[4]["name"] for one in listed if one[3] == "THREAD_NAME"}
    used = [one[4]["item"] for one in listed if one[3] == "CONSUMED"]
    if overwritten == 0 or len(used) == 1000 or used != list(range(1000 - len(used), 1000)):
        return ports.fail(what, f"{overwritten} packets overwritten, items from {used[:1]} on")
    missing = [one for tid, one in printed.tasks.items() if names.get(tid) != one]
    return ports.fail(what, f"no names: {missing}") if missing else ports.ok(what)


def check_names(ports):
    """The macros of V10, where their names and variables are those of V10's functions."""
    what = "FreeRTOS: the trace macros of V10"
    arguments = [ports.CLANG, "-std=gnu11", *ports.WARNINGS, "-Wno-unused-parameter", "-O1", "-DLAT_SMALL"]
    arguments += [f"-I{os.path.join(TRACER, 'include')}", "-c", os.path.join(HERE, "v10.c")]
    text, why = ports.command([*arguments, "-o", os.path.join(ports.BUILD, "v10.o")])
    ports.ok(what) if text is not None else ports.fail(what, why)


def section(ports):
    if not ports.CLANG:
        return ports.skip("FreeRTOS", "no clang here")
    check_names(ports)
    folder, why = sources(ports)
    if folder is None:
        return ports.skip(f"FreeRTOS {KERNEL_VERSION}", why)
    able = []
    for kernel in kernels(ports):
        if kernel.machine.script is None or ports.can_run(kernel.machine, "FreeRTOS"):
            able.append(kernel)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wanted = [(check, kernel) for kernel in able]
        wanted += [(check_without_texts, kernel) for kernel in able[:1]]
        wanted += [(check_overwritten, kernel) for kernel in able[:1]]
        work = []
        for checks, kernel in wanted:
            what = f"FreeRTOS, {kernel.machine.name}"
            work.append(pool.submit(guarded, ports, kernel, folder, what, checks))
        for done in work:
            done.result()
    return None


def measure(ports):
    """Instructions of the kernel's calls without the macros, with them and off, and on; code and RAM."""
    machine = ports.CORTEX_M3.name
    if os.environ.get("FREERTOS_KERNEL"):
        return {}
    folder, why = sources(ports)
    if folder is None:
        ports.skip("what FreeRTOS costs", why)
        return {}
    kernel = kernels(ports)[0]
    found, sizes = {}, {}
    for name, flags in (
        ("without trace macros", ["-DEXAMPLE_WITHOUT_TRACE"]),
        ("off", ["-DEXAMPLE_OFF"]),
        ("on", []),
    ):
        image, why = build(ports, kernel, folder, "cost", flags)
        if image is None:
            ports.fail(f"what FreeRTOS costs, {name}: build", why)
            return {}
        log = os.path.join(os.path.dirname(image), "executed")
        ran, why = ports.run(kernel.machine, image, options=[*ports.single_step(kernel.machine), "-D", log])
        if ran is None:
            ports.fail(f"what FreeRTOS costs, {name}: run", why)
            return {}
        names = [line[2:] for line in ran[0] if line.startswith("I ")]
        counts = [count for count, _ in ports.executed(log, image)]
        os.remove(log)
        if len(counts) != len(names):
            ports.fail(f"what FreeRTOS costs, {name}", f"{len(counts)} counts for {names}")
            return {}
        for call, count in list(zip(names, counts))[1:]:
            found[machine, f"FreeRTOS, instructions, {call}, {name}"] = count - counts[0]
        text = ports.command([ports.SIZE, image])[0].split("\n")[1].split()
        sizes[name] = int(text[0]), int(text[1]) + int(text[2])
    header = os.path.join(TRACER, "include", "lat", "freertos_events.h")
    with open(header, encoding="utf-8") as file:
        schema_text = int(re.search(r"^    , (\d+)u\)$", file.read(), re.MULTILINE)[1])
    code, ram = (sizes["on"][part] - sizes["without trace macros"][part] for part in (0, 1))
    found[machine, "FreeRTOS, text of the schema"] = schema_text
    found[machine, "FreeRTOS, code of trace macros and core"] = code - schema_text
    # Without trace macros nothing uses the area, and it is not linked.
    found[machine, "FreeRTOS, RAM beside the area"] = ram - AREA_BYTES
    return found
