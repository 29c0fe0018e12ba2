# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks of the serial line (spec/serial.md), for `run serial`.

The sender is small/serial.c: as a program of this machine, whose line is damaged here, and in images in
QEMU. The frames are taken apart by a decoder of its own, from the specification.
"""

import json
import os
import pty
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

PACKET, EVENTS = 3, 13  # kind of a frame; events of a packet of send.c
ports = None


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def content(block):
    """The content of a block of COBS whose checksum is right, or None."""
    plain, at = bytearray(), 0
    while at < len(block):
        code = block[at]
        if code == 0 or at + code > len(block):
            return None
        plain += block[at + 1 : at + code]
        at += code
        if code != 255 and at < len(block):
            plain.append(0)
    good = len(plain) >= 12 and crc32c(plain[:-4]) == int.from_bytes(plain[-4:], "little")
    return bytes(plain) if good and plain[0] == 1 else None


def frames(line):
    """Every frame of a whole line with both its zeros, and its content."""
    found, at = [], 0
    while at < len(line):
        end = line.index(0, at + 1)
        plain = content(line[at + 1 : end])
        if line[at] != 0 or plain is None:
            raise ValueError(f"no frame at {at}")
        found.append((line[at : end + 1], plain))
        at = end + 1
    return found


def values(packets):
    """What the events of these packets have as value."""
    return [packet * EVENTS + i for packet in packets for i in range(EVENTS)]


def recorded(recording):
    """Values of WIDE by each reader, or why there are none."""
    for reader, (text, why) in ports.readings(recording).items():
        if text is None:
            yield reader, None, why
            continue
        found = re.findall(r"name = items:WIDE,.*?value = (\d+)", text)
        yield reader, [int(value) for value in found], ""


def same(what, recording, expected):
    """Both readers list exactly these values in this order."""
    for reader, got, why in recorded(recording):
        if got == expected:
            ports.ok(f"{what}: {len(got)} events, by {reader}")
        else:
            listed = [] if got is None else got
            pairs = zip(listed, expected)
            first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(listed), len(expected)))
            ports.fail(f"{what}, by {reader}", why or f"{len(listed)} of {len(expected)}, at {first}")


def check(what, is_right, why):
    ports.ok(what) if is_right else ports.fail(what, why)


class Folder:
    """Programs and files of these checks."""

    def __init__(self):
        self.path = os.path.join(ports.BUILD, "serial")
        shutil.rmtree(self.path, ignore_errors=True)
        os.makedirs(self.path)

    def __call__(self, name):
        return os.path.join(self.path, name)

    def compile(self, name, flags=(), headers=None):
        sources = [os.path.join(ports.HERE, "host", "send.c")]
        sources += [os.path.join(ports.TRACER, "small", part) for part in ("small.c", "serial.c")]
        include = [headers or ports.BUILD, os.path.join(ports.TRACER, "include"), f"{ports.HERE}/host"]
        # Not relocated: the texts are where the file says.
        base = ["-std=c11", *ports.WARNINGS, "-O1", "-g", "-DLAT_SMALL", "-no-pie", "-fno-pie", *flags]
        compilers = [shutil.which("gcc"), ports.CLANG]
        why = "no compiler"
        for compiler in filter(None, compilers):
            for sanitize in (["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], []):
                command = [compiler, *base, *sanitize, *[f"-I{path}" for path in include], *sources]
                text, why = ports.command([*command, "-o", self(name)])
                if text is not None:
                    return self(name)
        return ports.fail(f"{name}: build", why)

    def send(self, program, *words):
        done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            ports.fail(f"send {words}", f"it ends with {done.returncode}")
        return done.stdout

    def recover(self, name, line, *arguments):
        """The recording of a line that was saved, and what `lat recover` says."""
        saved, output = self(name + ".line"), self(name)
        with open(saved, "wb") as file:
            file.write(line)
        return output, answer_of([ports.LAT, "recover", saved, "-o", output, "--json", *arguments])


def answer_of(command, **options):
    """What a command says as JSON; its error where it says nothing."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=ports.LIMIT_SECONDS, **options
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"error": done.stderr.decode("utf-8", "replace")}
    return {**answer, "exit": done.returncode}


def served(listener, parts, keep=None):
    """Sends each part to a client of its own."""

    def serve():
        for part in parts:
            client, _ = listener.accept()
            with client:
                client.sendall(part)
                if keep is not None:
                    keep.wait(ports.LIMIT_SECONDS)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def run(module):
    global ports
    ports = module
    if not ports.CLANG:
        return ports.skip("the serial line", "no clang here")
    folder = Folder()
    send = folder.compile("send")
    if send is None:
        return None
    for part in (damaged_line, other_lines, runs, names, devices):
        try:
            part(folder, send)
        except ValueError as error:
            ports.fail(f"{part.__name__}: a line of the sender", f"{error}")
    for machine in (ports.CORTEX_M3, ports.CORTEX_M33):
        if ports.can_run(machine, "a line of its own"):
            line_of_its_own(machine)
    others = [one for one in ports.SINGLE if one.folder != "cortex-m"]
    for machine in others:
        if ports.can_run(machine, "a line with text"):
            line_with_text(machine)
    # QEMU has none for x86-64.
    for machine in ports.SINGLE:
        if machine.folder != "x86-64" and ports.can_run(machine, "files by semihosting"):
            semihosting(machine)
    return None


def damaged_line(folder, send):
    """10,000 packets, 1 in 100 with a changed byte, 1 in 100 dropped, one reconnect in a packet."""
    what = "10,000 packets over TCP"
    whole = frames(folder.send(send, "stream", 10000, 1, 5))
    sequences = [int.from_bytes(plain[4:8], "little") for _, plain in whole]
    check(f"{what}: the sender's frames, by another decoder", sequences == [*range(len(whole))], "gaps")
    numbers, line, cut = random.Random(5), [], None
    packet, kept = 0, []
    for frame, plain in whole:
        if plain[1] != PACKET:
            line.append(frame)
            continue
        changed = bytearray(frame)
        if packet % 100 == 37:
            changed[numbers.randrange(len(frame))] ^= numbers.randrange(1, 256)
        if packet == 5050:
            cut = sum(map(len, line)) + len(frame) // 2
        elif packet % 100 not in (37, 73):
            kept.append(packet)
        if packet % 100 != 73:
            line.append(bytes(changed))
        packet += 1
    line = b"".join(line)
    listener = socket.create_server(("127.0.0.1", 0))
    served(listener, [line[:cut], line[cut:]])
    address = f"tcp:127.0.0.1:{listener.getsockname()[1]}"
    recording = folder("tcp")
    answer = answer_of([ports.LAT, "record", "--serial", address, "-o", recording, "--json"])
    counts = answer.get("line", {})
    wanted = {"sent": len(whole), "before": 0, "received": len(whole) - 201, "damaged": 101, "lost": 100}
    wanted["unusable"] = 0
    check(f"{what}: frames {wanted}", counts.get("frames") == wanted, f"{answer}")
    check(
        f"{what}: packets received + missing = sent, over 2 connections",
        counts.get("packets") == {"received": 9799, "missing": 201, "unnamed": 0}
        and counts.get("connections") == 2,
        f"{counts}",
    )
    same(what, recording, values(kept))
    # The same bytes, saved: the same recording.
    recording, answer = folder.recover("saved", line)
    frames_of = answer.get("line", {}).get("frames", {})
    # Nothing was cut here.
    wanted = {**wanted, "received": len(whole) - 200, "damaged": 100}
    check("the same, saved: frames", frames_of == wanted, f"{answer}")
    same("the same, saved", recording, values(sorted([*kept, 5050])))


def other_lines(folder, send):
    """What is no stream from its start: late, a flight recorder, what a reset left, several cores."""
    line = folder.send(send, "stream", 1000, 1, 0)
    whole = frames(line)
    late = b"".join(frame for frame, _ in whole[500:])[7:]
    first = sum(plain[1] == PACKET for _, plain in whole[:501])
    recording, answer = folder.recover("late", late)
    counts = answer.get("line", {}).get("frames", {})
    check(
        "a receiver that comes late",
        (counts.get("before"), counts.get("received")) == (501, len(whole) - 501)
        and answer["line"]["packets"]["missing"] == 0,
        f"{answer}",
    )
    same("a receiver that comes late", recording, values(range(first, 1000)))
    for kind in ("overwrite", "left"):
        recording, answer = folder.recover(kind, folder.send(send, kind, 50))
        # Of 51 packets the last 8 are there, of which the last has one event.
        same(f"an area that is sent at the end, {kind}", recording, [*values(range(43, 50)), 650])
        missing = answer.get("line", {}).get("packets", {}).get("missing")
        check(f"an area that is sent at the end, {kind}: 43 packets missing", missing == 43, f"{answer}")
    several = folder.compile("send3", ["-DLAT_PORT_CORES=3u"])
    if several:
        recording, answer = folder.recover("cores", folder.send(several, "stream", 300, 1, 0))
        same("three cores", recording, values(range(300)))
        check("three cores: three streams", len(os.listdir(os.path.join(recording, "ctf"))) == 5, "files")


def runs(folder, send):
    """A reset, and another image, on one line."""
    headers = folder("other")
    os.makedirs(headers)
    with open(os.path.join(ports.HERE, "common", "items.pleco"), encoding="utf-8") as file:
        text = file.read()
    with open(folder("other.pleco"), "w", encoding="utf-8") as file:
        file.write(text.replace("};", '    event EXTRA "one more" (a: u32),\n};'))
    text, why = ports.command(
        [ports.LAT, "pleco", "gen", "--c", os.path.join(headers, "items.h"), folder("other.pleco")]
    )
    other = folder.compile("other-image", headers=headers) if text is not None else None
    if other is None:
        return ports.fail("another image: build", why)
    first = folder.send(send, "stream", 200, 1, 0)
    line = first[: len(first) // 2] + folder.send(send, "stream", 100, 1, 0)
    line += b"booting\r\n" + folder.send(other, "stream", 50, 1, 0)
    recording, answer = folder.recover("reset", line)
    whole = [number for number in range(200) if number < count_whole(first[: len(first) // 2])]
    same("a reset in a packet: before", recording, values(whole))
    same("a reset in a packet: after", recording + "-2", values(range(100)))
    same("another image on the line", recording + "-3", values(range(50)))
    check("each run is a recording", len(answer.get("runs", [])) == 3, f"{answer}")
    return None


def count_whole(line):
    """Packets that are whole in the beginning of a line."""
    return sum(plain[1] == PACKET for _, plain in frames(line[: line.rindex(b"\0\0") + 1]))


def names(folder, send):
    """Names of events that are not sent come from the program or its schema, or nothing is recorded."""
    line = folder.send(send, "stream", 30, 0, 0)
    recording, answer = folder.recover("unnamed", line)
    error = answer.get("error", "")
    check(
        "without names nothing is recorded, and --elf is asked for",
        answer["exit"] == 2 and "--elf" in error and not os.path.exists(recording),
        f"{answer}",
    )
    schema = os.path.join(ports.HERE, "common", "items.pleco")
    for kind, option, path in (("program", "--elf", send), ("schema", "--schema", schema)):
        recording, answer = folder.recover(f"by-{kind}", line, option, path)
        same(f"names by the {kind}", recording, values(range(30)))


def devices(folder, send):
    """A terminal device, a socket of this machine, and Ctrl-C."""
    line = folder.send(send, "stream", 500, 1, 0)
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    recorder = subprocess.Popen(
        [ports.LAT, "record", "--serial", name, "--baud", "921600", "-o", folder("pty"), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # Without it the line is not raw yet, and would be changed.
    until = time.monotonic() + ports.LIMIT_SECONDS
    while time.monotonic() < until and not os.path.isdir(folder("pty")):
        time.sleep(0.01)
    os.close(slave)
    sent = 0
    while sent < len(line):
        sent += os.write(master, line[sent : sent + 1000])
    time.sleep(0.2)
    os.close(master)
    out, err = recorder.communicate(timeout=ports.LIMIT_SECONDS)
    check("a terminal device: the recording ends with it", recorder.returncode == 0, f"{out} {err}")
    same("a terminal device", folder("pty"), values(range(500)))

    with tempfile.TemporaryDirectory() as short:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(short, "line"))
        listener.listen()
        over = threading.Event()
        # Nothing says that it is over: it stays open.
        head = b"".join(frame for frame, plain in frames(line) if plain[1] != 4)
        served(listener, [head], over)
        recorder = subprocess.Popen(
            [ports.LAT, "record", "--serial", f"unix:{short}/line", "-o", folder("unix"), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        while time.monotonic() < until and size_of(folder("unix")) < 500 * 256:
            time.sleep(0.05)
        # A recording that is under way can be read.
        same("while it is recorded", folder("unix"), values(range(500)))
        recorder.send_signal(signal.SIGINT)
        out, _ = recorder.communicate(timeout=ports.LIMIT_SECONDS)
        over.set()
        report = json.loads(out) if out else {}
        check("Ctrl-C ends it well", recorder.returncode == 0 and report.get("totals"), f"{out}")
        same("ended by Ctrl-C", folder("unix"), values(range(500)))


def size_of(recording):
    streams = os.path.join(recording, "ctf")
    names = os.listdir(streams) if os.path.isdir(streams) else []
    return sum(os.path.getsize(os.path.join(streams, name)) for name in names if name.startswith("core"))


def sizes(module, machine):
    """Code and stack of the sender, without lat_port_put; what is not known is left out. The stack is that of
    the deepest calls."""
    folder = os.path.join(module.BUILD, "sender-" + machine.name)
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(module.TRACER, "small", "serial.c")
    include = [os.path.join(module.TRACER, "include"), os.path.join(module.HERE, machine.folder)]
    command = [module.CLANG, *machine.target, *module.FREESTANDING, *module.SECTIONS, *machine.flags]
    command += ["-Os", "-DLAT_SMALL", "-fstack-usage", *[f"-I{path}" for path in include]]
    text, why = module.command([*command, "-c", source, "-o", os.path.join(folder, "serial.o")])
    if text is None:
        module.fail(f"the sender's size, {machine.name}", why)
        return {}
    listed = module.command([module.SIZE, os.path.join(folder, "serial.o")])[0].split("\n")[1].split()
    found = {"code of the serial sender": int(listed[0])}
    usage = {}
    with open(os.path.join(folder, "serial.su"), encoding="ascii") as file:
        for line in file:
            place, size, _ = line.split("\t")
            # A call of x86-64 pushes its return address, which no frame has.
            usage[place.split(":")[-1]] = int(size) + (8 if machine.folder == "x86-64" else 0)
    hello = [("introduce", "put_hello"), ("introduce", "put_texts")]
    status, packet = ("put_status",), ("put_packet",)
    whole = ("lat_serial_end", "lat_serial_send")
    chains = [(*whole, "lat_serial_introduce", *way) for way in [*hello, status]] + [(*whole, *packet)]
    chains += [("lat_serial_send_area", *way) for way in [*hello, status, packet]]
    chains = [(*chain, "put_frame", "put_block") for chain in chains]
    # What was inlined has no stack of its own.
    found["stack of the serial sender"] = max(sum(usage.get(one, 0) for one in way) for way in chains)
    return found


def line_of_its_own(machine):
    """An image that prints on one line and sends frames on another, which is recorded as it runs."""
    what = f"an image with a line of its own, {machine.name}"
    image, why = ports.build(machine, "line")
    if image is None:
        return ports.fail(f"{what}: build", why)
    folder = os.path.dirname(image)
    console, recording = os.path.join(folder, "console"), os.path.join(folder, "recording")
    shutil.rmtree(recording, ignore_errors=True)
    if os.path.exists(console):
        os.remove(console)
    with tempfile.TemporaryDirectory() as short:
        line = os.path.join(short, "line")
        # It waits for the recorder before it starts the machine.
        emulator = subprocess.Popen(
            [*machine.qemu, "-display", "none", "-monitor", "none", "-serial", f"file:{console}"]
            + ["-serial", f"unix:{line},server=on,wait=on", "-icount", "shift=0", "-kernel", image],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until = time.monotonic() + ports.LIMIT_SECONDS
            while time.monotonic() < until and not os.path.exists(line):
                time.sleep(0.02)
            command = [ports.LAT, "record", "--serial", f"unix:{line}", "-o", recording, "--json"]
            recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            text = b""
            while time.monotonic() < until and b"\ndone\n" not in text:
                time.sleep(0.05)
                if os.path.exists(console):
                    with open(console, "rb") as file:
                        text = file.read()
        finally:
            emulator.kill()
            emulator.wait()
        out, err = recorder.communicate(timeout=ports.LIMIT_SECONDS)
    if recorder.returncode != 0:
        return ports.fail(what, f"{out} {err} {text[-100:]}")
    return compare(what, recording, text.decode("ascii"), json.loads(out))


def line_with_text(machine):
    """An image whose lines of text and frames are on one line, which was saved."""
    what = f"an image with text between frames, {machine.name}"
    image, why = ports.build(machine, "line")
    if image is None:
        return ports.fail(f"{what}: build", why)
    ran, why = ports.run(machine, image)
    if ran is None:
        return ports.fail(f"{what}: run", why)
    saved = os.path.join(os.path.dirname(image), "serial")
    text = "\n".join(text_between_frames(saved))
    recording = os.path.join(os.path.dirname(image), "recording")
    shutil.rmtree(recording, ignore_errors=True)
    answer = answer_of([ports.LAT, "recover", saved, "-o", recording, "--json"])
    return compare(what, recording, text, answer)


def semihosting(machine):
    """An image that writes its packets, and its memory, to files of this machine."""
    what = f"files by semihosting, {machine.name}"
    image, why = ports.build(machine, "semihosting")
    if image is None:
        return ports.fail(f"{what}: build", why)
    folder = os.path.dirname(image)
    for name in ("line.bin", "ram.bin"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    ran, why = ports.run(machine, image, options=["-semihosting-config", "enable=on,target=native"])
    if ran is None:
        return ports.fail(f"{what}: run", why)
    lines, _ = ran
    check(f"{what}: all bytes were written", "W 0" in lines, str(lines[-3:]))
    for part, name, least, arguments in (("E", "line.bin", 600, []), ("M", "ram.bin", 20, ["--elf", image])):
        recording = os.path.join(folder, "recording-" + part)
        shutil.rmtree(recording, ignore_errors=True)
        saved = os.path.join(folder, name)
        command = [ports.LAT, "recover", saved, *arguments, "-o", recording, "--json"]
        answer = answer_of(command)
        printed = [line[2:].split(" ", 2) for line in lines if line.startswith(part + " ")]
        expected = ports.by_context((cpu, context, event) for cpu, context, event in printed)
        counts = answer.get("line", {}).get("frames", {})
        is_whole = "totals" in answer and answer["totals"]["lost"]["total"] == 0
        is_whole = is_whole and counts.get("received") == counts.get("sent")
        check(f"{what}: nothing is missing in {name}", is_whole and (part == "M" or counts), f"{answer}")
        for reader, (text, why) in ports.readings(recording).items():
            got = {} if text is None else ports.by_context(one[1:] for one in ports.events(text))
            if got == expected and len(printed) >= least:
                ports.ok(f"{what}: {name} has {len(printed)} events as printed, by {reader}")
            else:
                ports.fail(f"{what}: {name}, {reader}", why or ports.difference(expected, got))
    return None


def text_between_frames(saved):
    """The lines of text of a line that was saved."""
    with open(saved, "rb") as file:
        line = file.read()
    text = b"".join(block for block in line.split(b"\0") if content(block) is None)
    return text.decode("ascii").split("\n")


def compare(what, recording, text, answer):
    """Every event that was printed is in the recording, and nothing is missing."""
    printed = [line[2:].split(" ", 2) for line in text.split("\n") if line.startswith("E ")]
    expected = ports.by_context((cpu, context, event) for cpu, context, event in printed)
    counts = answer.get("line", {}).get("frames", {})
    is_whole = counts.get("received") == counts.get("sent") and answer["totals"]["lost"]["total"] == 0
    check(f"{what}: {counts.get('received')} frames, nothing is missing", is_whole, f"{answer}")
    for reader, (text, why) in ports.readings(recording).items():
        got = {} if text is None else ports.by_context(one[1:] for one in ports.events(text))
        if got == expected and len(printed) > 900:
            ports.ok(f"{what}: {len(printed)} events as printed, by {reader}")
        else:
            ports.fail(f"{what}: {reader}", why or ports.difference(expected, got))
