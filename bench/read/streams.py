# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A CTF 1.8 trace of many streams whose events alternate, shaped as LTTng-UST writes them: header with
16-bit id and 32-bit time, thread and process name as context, packets of 64 KiB. Always the same one."""

import random
import struct

METADATA = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
trace {
    major = 1; minor = 8; byte_order = le;
    packet.header := struct { uint32_t magic; uint32_t stream_id; };
};
env { hostname = "made"; domain = "ust"; tracer_name = "lttng-ust"; };
clock { name = monotonic; freq = 1000000000; offset = 1700000000000000000; };
typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := time32_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time64_t;
struct header {
    enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;
    variant <id> {
        struct { time32_t timestamp; } compact;
        struct { uint32_t id; time64_t timestamp; } extended;
    } v;
} align(8);
stream {
    id = 0;
    packet.context := struct {
        time64_t timestamp_begin; time64_t timestamp_end;
        uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num;
        uint64_t events_discarded; uint32_t cpu_id;
    };
    event.header := struct header;
    event.context := struct {
        int32_t _vtid;
        integer { size = 8; align = 8; signed = false; encoding = UTF8; } _procname[17];
    };
};
event { name = "made:alloc"; id = 0; stream_id = 0;
    fields := struct { uint64_t _size; integer { size = 64; align = 8; base = 16; } _ptr; }; };
event { name = "made:free"; id = 1; stream_id = 0;
    fields := struct { integer { size = 64; align = 8; base = 16; } _ptr; }; };
event { name = "made:state"; id = 2; stream_id = 0;
    fields := struct { int32_t _from; int32_t _to; string _reason; }; };
"""
CONTEXT = struct.Struct("<QQQQQQI")
HEADER = struct.Struct("<HIi17s")
PACKET_BYTES = 1 << 16


def write(path, count, events):
    """Writes `events` events in `count` streams below `path`."""
    path.mkdir()
    (path / "metadata").write_text(METADATA)
    rng = random.Random(count)
    files = [open(path / f"channel_{stream}", "wb") for stream in range(count)]
    packets = [[bytearray(), 0, 0] for _ in range(count)]
    reasons = [b"blocked\0", b"preempted\0", b"waits for the disk\0"]

    def close(stream, end):
        content, begin, number = packets[stream]
        bits = (8 + CONTEXT.size + len(content)) * 8
        files[stream].write(struct.pack("<II", 0xC1FC1FC1, 0))
        files[stream].write(CONTEXT.pack(begin, end, bits, bits, number, 0, stream % 64))
        files[stream].write(content)
        packets[stream] = [bytearray(), end, number + 1]

    now = 0
    for number in range(events):
        now += rng.randrange(20, 400)
        stream = rng.randrange(count)
        content = packets[stream][0]
        kind = number % 3
        content += HEADER.pack(kind, now & 0xFFFFFFFF, 1000 + stream, b"worker-%d" % stream)
        if kind == 0:
            content += struct.pack("<QQ", number % 4096, 0x7F0000000000 + number * 16)
        elif kind == 1:
            content += struct.pack("<Q", 0x7F0000000000 + number * 16)
        else:
            content += struct.pack("<ii", number % 7, number % 5) + reasons[number % 3]
        if len(content) > PACKET_BYTES - 256:
            close(stream, now)
    for stream in range(count):
        close(stream, now)
        files[stream].close()
