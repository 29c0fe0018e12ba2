# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reads what liblateralis-preload.so recorded, in two ways, and checks it.

From area files directly (spec/ring-abi.md), so that the library can be tested without a
recorder; and from the text of babeltrace2, so that a recording is judged by a reader that
nobody here wrote. Either way an event is (time, pid, tid, name, {field: value}).
"""

import collections
import glob
import mmap
import re
import struct
import subprocess
import tempfile

Event = collections.namedtuple("Event", "time pid tid name fields")

# ---- area files ---------------------------------------------------------------------

INTERNAL = """
subsystem lateralis {
    event WRITER (pid: u32, tid: u32),
    event THREAD_NAME (pid: u32, tid: u32, name: string),
    event PROCESS (pid: u32, parent_pid: u32, name: string),
    event MARK (text: string),
};
"""
FORMATS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "bool": "B",
           "i8": "b", "i16": "h", "i32": "i", "i64": "q"}
PACKET_HEADER_BYTES = 128
RING_CONTROL_BYTES = 4096


def event_classes(text):
    """[(name, [(field, format or "string")])] in the order of the event numbers."""
    text = re.sub(r'"(\\.|[^"\\])*"', "", text)
    formats = dict(FORMATS)
    for name, container in re.findall(r"enum\s+(\w+)\s*:\s*(\w+)\s*\{", text):
        formats[name] = FORMATS[container]
    classes, subsystem = [], ""
    for word, name, fields in re.findall(r"\b(subsystem|event)\s+(\w+)\s*(?:\(([^)]*)\))?", text):
        if word == "subsystem":
            subsystem = name
            continue
        layout = []
        for field in filter(None, (part.strip() for part in fields.split(","))):
            field_name, field_type = re.match(r"(\w+)\s*:\s*(\w+)", field).groups()
            layout.append((field_name, formats.get(field_type, "string")))
        classes.append((f"{subsystem}:{name}", layout))
    return classes


def decode_record(data, at, layout):
    """(fields, end of the record) for the payload behind the header at `at`."""
    fields, place = {}, at + 8
    for name, kind in layout:
        if kind == "string":
            end = data.find(b"\0", place)
            fields[name] = data[place:end].decode("utf-8", "replace")
            place = end + 1
        else:
            size = struct.calcsize(kind)
            place = at + ((place - at + size - 1) & -size)
            fields[name] = struct.unpack_from("<" + kind, data, place)[0]
            place += size
    return fields, place


class Area:
    """One area file: events of all rings in order of time, and what was lost."""

    def __init__(self, path):
        self.events, self.lost, self.exe = [], 0, ""
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            self._read(data)
        self.events.sort(key=lambda event: event.time)

    def _read(self, data):
        u32 = lambda at: struct.unpack_from("<I", data, at)[0]
        u64 = lambda at: struct.unpack_from("<Q", data, at)[0]
        assert u64(0) == 0x316165724174614C and u32(16) == 1, "not an area of this version"
        classes = dict(enumerate(event_classes(INTERNAL)))
        for slot in range(0x5000, 0x9000, 64):
            if u32(slot) == 2:
                text = data[u64(slot + 16):u64(slot + 16) + u32(slot + 12)].decode()
                classes.update((u32(slot + 4) + i, c) for i, c in enumerate(event_classes(text)))
        self.lost = u64(176) + u64(184)
        self.exe = data[512:768].split(b"\0")[0].decode()
        if u32(112) != 2:
            return
        stride, packet_bytes, packets = u64(88), u64(96), u64(104)
        for ring in range(u32(68)):
            base = u64(80) + ring * stride
            cursor = u64(base)
            self.lost += sum(u64(base + offset) for offset in (32, 40, 48, 56))
            if cursor == 0:
                continue
            current = cursor // packet_bytes
            time, pid, tid = 0, 0, 0
            for sequence in range(max(0, current - packets + 1), current + 1):
                start = base + RING_CONTROL_BYTES + sequence % packets * packet_bytes
                assert u64(start + 56) == sequence, "a packet is not where it should be"
                content = u64(start + 40) // 8
                if sequence == current:
                    content = (cursor & ~7) - (cursor & 7) - sequence * packet_bytes
                at = start + PACKET_HEADER_BYTES
                while at < start + content:
                    header = u64(at)
                    assert header >> 16 >= time, "time goes back in a ring"
                    time = header >> 16
                    name, layout = classes[header & 0xFFFF]
                    fields, end = decode_record(data, at, layout)
                    if name == "lateralis:WRITER":
                        pid, tid = fields["pid"], fields["tid"]
                    self.events.append(Event(time, pid, tid, name, fields))
                    at = start + ((end - start + 7) & -8)
                assert end == start + content, "the last record is not whole"


def areas(folder):
    return [Area(path) for path in sorted(glob.glob(folder + "/*.area"))]


# ---- babeltrace2 ----------------------------------------------------------------------

RING = re.compile(r"area_id = (0x[0-9A-F]+|[0-9]+), cpu_id = ([0-9]+)")
FIELD = re.compile(r'(\w+) = (?:\( (?:"(\w+)"|<unknown>) : container = \d+ \)'
                   r'|"((?:\\.|[^"\\])*)"|(-?[0-9][0-9A-Fx]*))')


def babeltrace_fields(text):
    """{field: number or text} of `{ name = value, ... }`."""
    return {name: int(number, 8 if re.match("-?0[0-9]", number) else 0) if number
            else label or string for name, label, string, number in FIELD.findall(text)}


class Babeltrace:
    """Runs babeltrace2 on a CTF folder; yields (name, (area, CPU), function that gives the
    fields) of each event in its order. Afterwards `errors` and `status` are known."""

    def __init__(self, folder):
        self.folder, self.errors, self.status = folder, "", None

    def __iter__(self):
        with tempfile.TemporaryFile("w+") as errors:
            with subprocess.Popen(["babeltrace2", self.folder], stdout=subprocess.PIPE,
                                  stderr=errors, text=True, errors="replace") as process:
                for line in process.stdout:
                    # [time] (+delta) host subsystem:EVENT: { packet context }, { fields }
                    head, _, rest = line.partition(": { ")
                    context, _, fields = rest.partition(" }")
                    ring = RING.search(context).groups()
                    yield head.rsplit(" ", 1)[1], ring, lambda: babeltrace_fields(fields)
            self.status = process.returncode
            errors.seek(0)
            self.errors = errors.read()


# ---- checks ------------------------------------------------------------------------------

LOCKS = {
    "mutex:MUTEX_LOCK": ("mutex", 1), "mutex:MUTEX_UNLOCK": ("mutex", -1),
    "mutex:MUTEX_UNLOCK_FAILED": ("mutex", 1),
    "mutex:RWLOCK_READ": ("rwlock", 1), "mutex:RWLOCK_WRITE": ("rwlock", 1),
    "mutex:RWLOCK_UNLOCK": ("rwlock", -1),
}
SPANS = {  # without keys: a thread is in at most one of them, nested in signal handlers
    "mutex:MUTEX_WAIT": "mutex:MUTEX_WAITED", "mutex:RWLOCK_WAIT": "mutex:RWLOCK_WAITED",
    "mutex:COND_WAIT": "mutex:COND_WOKEN", "mutex:SEM_WAIT": "mutex:SEM_WAITED",
    "mutex:BARRIER_WAIT": "mutex:BARRIER_PASS", "io:OPEN": "io:OPENED", "io:CLOSE": "io:CLOSED",
    "io:READ": "io:READ_DONE", "io:WRITE": "io:WRITE_DONE", "io:SYNC": "io:SYNC_DONE",
    "io:TRANSFER": "io:TRANSFER_DONE", "io:CONNECT": "io:CONNECTED",
    "io:ACCEPT": "io:ACCEPTED", "io:POLL": "io:POLL_DONE", "thread:CREATE": "thread:CREATED",
    "thread:START": "thread:EXIT", "thread:JOIN": "thread:JOINED",
}
ENDS = {end: begin for begin, end in SPANS.items()}


class Pairing:
    """Feeds on (thread, name, fields) in order of time of the thread and tells what is left."""

    def __init__(self):
        self.held = collections.Counter()      # (thread, lock) -> how often
        self.inside = collections.Counter()    # (thread, span) -> how often
        self.locks = self.unlocks = 0
        self.misattributed = 0                 # records that name another thread than the WRITER
        self.unlocked_unheld = []              # (thread, lock)
        self.ended_unbegun = []                # (thread, span)

    def feed(self, thread, name, fields):
        if name in LOCKS:
            field, step = LOCKS[name]
            key = (fields["thread"], fields[field])
            self.misattributed += fields["thread"] != thread
            self.locks += name == "mutex:MUTEX_LOCK"
            self.unlocks += name == "mutex:MUTEX_UNLOCK"
            if name == "mutex:MUTEX_UNLOCK_FAILED" and key in self.unlocked_unheld:
                self.unlocked_unheld.remove(key)
            elif step < 0 and self.held[key] == 0:
                self.unlocked_unheld.append(key)
            else:
                self.held[key] += step
        elif name in SPANS:
            self.inside[thread, name] += 1
        elif name in ENDS:
            if self.inside[thread, ENDS[name]] == 0:
                self.ended_unbegun.append((thread, name))
            else:
                self.inside[thread, ENDS[name]] -= 1

    def still_held(self):
        return sorted(key for key, count in self.held.items() if count > 0)

    def still_inside(self):
        return sorted(key for key, count in self.inside.items() if count > 0)


# The clock is read without a fence, so a processor reads it up to some hundred instructions
# early: a time stamp may lie before the end of the atomic access that took the lock (up to 810
# ticks of an AMD EPYC at 2.4 GHz, whose rdtsc overtakes it). Holding a lock longer than this
# beside another is no matter of reading early.
EARLY_TICKS = 4096


def two_holders(events):
    """Mutexes that two threads of one process held at the same time, by the time stamps.

    A thread tells that it unlocks while it still holds the mutex, so these stamps have the order
    in which it was held; whoever is next can have read its clock early, but not earlier."""
    locked, unlocked, found = {}, {}, []
    for event in events:
        if event.name not in ("mutex:MUTEX_LOCK", "mutex:MUTEX_UNLOCK"):
            continue
        key = (event.pid, event.fields["mutex"])
        begins = locked.setdefault((key, event.tid), [])
        if event.name == "mutex:MUTEX_LOCK":
            begins.append(event.time)
        elif begins:
            begin = begins.pop()
            if not begins:  # else it is recursive and still held
                if begin < unlocked.get(key, begin) - EARLY_TICKS:
                    found.append(key)
                unlocked[key] = event.time
    # Who never unlocks holds it from behind all others.
    return found + [key for (key, _), begins in locked.items()
                    if begins and begins[0] < unlocked.get(key, 0) - EARLY_TICKS]
