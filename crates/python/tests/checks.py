# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `crates/python/tests/run` checks with one Python: see there."""
import contextlib
import csv
import ctypes
import gc
import importlib.util
import json
import math
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings

import pyarrow
import pyarrow.compute as compute

import lateralis

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRACES = ROOT.parent / "shared" / "data" / "traces"
HARDWARE = ROOT.parent / "shared" / "data" / "pt" / "made" / "fibs" / "perf.data"
KERNEL = TRACES / "ctf1" / "lttng-ref" / "basic-kernel-analysis" / "kernel"
MANY = TRACES / "ctf1" / "tracecompass-EPL2" / "memory"
LAT = os.environ.get("LAT")
BATCH_ROWS = 8192
STRICT = {"strict": True} if sys.version_info >= (3, 10) else {}

passed, failed, skipped = [], [], []


class Skip(Exception):
    """A check cannot be made here."""


def check(function):
    """Runs it at once."""
    name = function.__name__.replace("_", " ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function()
    except Skip as why:
        skipped.append(name)
        print(f"SKIPPED: {name}: {why}", flush=True)
    # A panic that comes through would be a BaseException.
    except BaseException:
        failed.append(name)
        print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
    else:
        passed.append(name)
        print(f"ok {name}", flush=True)
    return function


def need(library):
    if importlib.util.find_spec(library) is None:
        raise Skip(f"no {library} here")
    return importlib.import_module(library)


def have(path):
    if not path.exists():
        raise Skip(f"no {path.relative_to(ROOT.parent)}")
    return path


def lat(*arguments):
    """What `lat` prints; its exit status 1 only says that a trace is damaged."""
    if not LAT:
        raise Skip("LAT names no lat")
    ran = subprocess.run([LAT, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert ran.returncode in (0, 1), ran.stderr.decode()
    return ran.stdout


def raises(kind, function, *words):
    """The text of the exception, which has these words."""
    try:
        function()
    except kind as error:
        assert isinstance(error, Exception)
        text = str(error)
        assert all(word in text for word in words), text
        return text
    raise AssertionError(f"no {kind.__name__}")


def own_threads():
    """Those that read tables."""
    names = [pathlib.Path("/proc/self/task", thread, "comm") for thread in os.listdir("/proc/self/task")]
    return [path for path in names if path.exists() and path.read_text() == "lateralis\n"]


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def nearest_rank(values, percent):
    values = sorted(values)
    return values[math.ceil(len(values) * percent / 100) - 1]


SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="checks-", dir="."))


def demonstration():
    """A recording made here."""
    place = SCRATCH / "demo"
    if not place.exists():
        if not LAT:
            raise Skip("LAT names no lat")
        made = subprocess.run([LAT, "demo", "-o", place], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if made.returncode != 0:
            raise Skip(f"lat demo: {made.stderr.decode()}")
    return place


def real_traces():
    """Traces with spans."""
    found = [KERNEL] if KERNEL.exists() else []
    with contextlib.suppress(Skip):
        found.append(demonstration())
    if not found:
        raise Skip(f"no {KERNEL.relative_to(ROOT.parent)}, and LAT names no lat")
    return found


@check
def events_are_as_many_as_babeltrace2_prints():
    with have(TRACES / "EXPECTED.tsv").open() as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    compared = 0
    for row in rows:
        # One event can be several lines of babeltrace2 only where a text has line feeds.
        if row["bt21_rc"] != "0" or int(row["bt21_lines"]) == 0 or not (TRACES / row["trace"]).exists():
            continue
        events = lateralis.open(TRACES / row["trace"]).events(columns=["ts"]).arrow().num_rows
        assert events == int(row["bt21_lines"]), (row["trace"], events, row["bt21_lines"])
        compared += 1
    assert compared > 100, compared


@check
def tables_are_those_of_lat():
    for trace in real_traces() + [HARDWARE] * HARDWARE.exists():
        listed = json.loads(lat("table", trace, "--json"))["tables"]
        opened = lateralis.open(trace)
        assert opened.tables() == [table["name"] for table in listed]
        for table in listed:
            ours = opened.table(table["name"])
            assert ours.description == table["description"]
            for field, column in zip(ours.schema, table["columns"], **STRICT):
                about = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
                expected = {key: column[key] for key in ["unit", "description"] if column[key]}
                assert (field.name, about) == (column["name"], expected), (table["name"], field)


@check
def rows_are_those_of_lat():
    for trace in real_traces() + [HARDWARE] * HARDWARE.exists():
        opened = lateralis.open(trace)
        classes = opened.table("classes").arrow().to_pylist()
        without_events = {row["class"] for row in classes if not row["count"]}
        tables = [name for name in opened.tables() if name not in without_events]
        assert len(tables) > 20, tables
        for name in tables:
            theirs = pyarrow.ipc.open_stream(lat("table", trace, "--name", name, "--to", "arrows")).read_all()
            ours = opened.table(name).arrow()
            assert ours.schema.equals(theirs.schema, check_metadata=True), name
            assert ours.unify_dictionaries().equals(theirs.unify_dictionaries()), name


def statistics(trace):
    """Of each name of spans: how many are complete, and their median, as `lat stats` has them."""
    spans = json.loads(lat("stats", trace, "--json"))["spans"]
    # Unfinished ones count in its percentiles, with what was seen of them.
    found = {span["name"]: (span["count"], span["median_ns"]) for span in spans if not span["unfinished"]}
    assert found
    return found


def medians(durations_by_name):
    return {name: (len(values), nearest_rank(values, 50)) for name, values in durations_by_name.items()}


def compare_medians(of_spans):
    for trace in real_traces():
        expected = statistics(trace)
        found = medians(of_spans(lateralis.open(trace).spans()))
        assert {name: found[name] for name in expected} == expected, trace


def by_name(rows):
    groups = {}
    for name, duration in rows:
        groups.setdefault(name, []).append(duration)
    return groups


@check
def medians_by_pyarrow_are_those_of_lat_stats():
    def of(spans):
        table = spans.arrow()
        table = table.filter(compute.is_valid(table["duration"]))
        return by_name(zip(table["span"].to_pylist(), table["duration"].to_pylist()))

    compare_medians(of)


@check
def medians_by_polars_are_those_of_lat_stats():
    need("polars")

    def of(spans):
        frame = spans.polars().drop_nulls("duration").select("span", "duration")
        return by_name(frame.rows())

    compare_medians(of)


@check
def medians_by_pandas_are_those_of_lat_stats():
    need("pandas")

    def of(spans):
        frame = spans.pandas()
        assert str(frame["duration"].dtype) == "int64[pyarrow]", frame.dtypes
        assert str(frame["span"].dtype) == "category", frame.dtypes
        frame = frame.dropna(subset=["duration"])
        return {name: [int(value) for value in group]
                for name, group in frame.groupby("span", observed=True)["duration"]}

    compare_medians(of)


@check
def medians_by_duckdb_are_those_of_lat_stats():
    need("duckdb")

    def medians_of(spans):
        relation = spans.duckdb()
        # Again: each query reads anew.
        assert relation.count("*").fetchall() == relation.count("*").fetchall()
        rows = relation.filter("duration IS NOT NULL").aggregate(
            "span::VARCHAR, count(*), quantile_disc(duration, 0.5)").fetchall()
        return {name: (count, median) for name, count, median in rows}

    for trace in real_traces():
        expected = statistics(trace)
        found = medians_of(lateralis.open(trace).spans())
        assert {name: found[name] for name in expected} == expected, trace


@check
def all_libraries_have_the_same_rows():
    need("polars"), need("pandas"), need("duckdb")
    for trace in real_traces():
        opened = lateralis.open(trace)
        for name in ["events", "spans", "states", "classes", "losses"]:
            table = opened.table(name)
            rows = table.arrow().to_pylist()
            assert table.polars().to_dicts() == rows, name
            relation = table.duckdb()
            in_duckdb = [dict(zip(relation.columns, row)) for row in relation.fetchall()]
            assert in_duckdb == rows, name
            frame = table.pandas()
            assert list(frame.columns) == table.columns and len(frame) == len(rows), name
            for column in ["ts", "duration", "count"]:
                if column in frame:
                    ours = pyarrow.array(frame[column]).to_pylist()
                    assert ours == [row[column] for row in rows], (name, column)
            assert sum(batch.num_rows for batch in table.batches()) == len(rows), name
            assert all(batch.num_rows <= BATCH_ROWS for batch in table.batches()), name


class ArrowArray(ctypes.Structure):
    """https://arrow.apache.org/docs/format/CDataInterface.html"""


ArrowArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]


class ArrowArrayStream(ctypes.Structure):
    """https://arrow.apache.org/docs/format/CStreamInterface.html"""


StreamPointer = ctypes.POINTER(ArrowArrayStream)
ArrowArrayStream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, StreamPointer, ctypes.POINTER(ArrowArray))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, StreamPointer)),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]


def pointers(array):
    """Addresses of the buffers of a C array, itself, its children and its dictionary."""
    found = [array.buffers[index] for index in range(array.n_buffers) if array.buffers[index]]
    for index in range(array.n_children):
        found += pointers(array.children[index].contents)
    return found + (pointers(array.dictionary.contents) if array.dictionary else [])


def addresses(array):
    """Addresses of the buffers of an array of pyarrow."""
    found = [buffer.address for buffer in array.buffers() if buffer is not None]
    return found + (addresses(array.dictionary) if isinstance(array, pyarrow.DictionaryArray) else [])


@check
def pyarrow_has_the_buffers_of_the_stream_and_no_copies():
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for trace in real_traces():
        for name in ["events", "spans"]:
            table = lateralis.open(trace).table(name)
            capsule = table.__arrow_c_stream__()
            stream = ctypes.cast(get_pointer(capsule, b"arrow_array_stream"), StreamPointer)
            compared = 0
            while True:
                array = ArrowArray()
                assert stream.contents.get_next(stream, ctypes.byref(array)) == 0
                if not array.release:
                    break
                expected = set(pointers(array))
                batch = pyarrow.RecordBatch._import_from_c(ctypes.addressof(array), table.schema)
                found = {address for column in batch.columns for address in addresses(column)}
                assert found and found <= expected, name
                compared += len(found)
            assert compared > 10, compared


@check
def batches_cost_the_memory_of_a_few_and_threads_end():
    trace = lateralis.open(have(MANY))
    for _ in trace.events().batches():
        pass
    wait_for(lambda: not own_threads())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = sum(batch.num_rows for _ in range(3) for batch in trace.events().batches())
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert rows == 3 * 328056
    # All rows at once are some 60 MB a pass.
    assert grown < 16 << 20, grown
    begun = [trace.events().batches() for _ in range(10)]
    for batches in begun:
        next(batches)
    assert own_threads()
    del begun, batches
    gc.collect()
    wait_for(lambda: not own_threads())


@check
def other_threads_run_while_a_table_is_read():
    trace, counted, over = lateralis.open(have(MANY)), [0], threading.Event()

    def count():
        while not over.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    counts = []
    for table in [trace.events(), trace.spans()]:
        begin = time.monotonic()
        before = counted[0]
        table.arrow()
        counts.append(((counted[0] - before), time.monotonic() - begin))
    over.set()
    thread.join()
    # A busy machine wakes it late; holding the interpreter would give it no turn at all.
    assert counts[0][0] >= 5, counts


@check
def several_threads_read_one_trace():
    trace = lateralis.open(have(KERNEL))
    expected, found = trace.events().arrow(), []
    threads = [threading.Thread(target=lambda: found.append(trace.events().arrow())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(table.equals(expected) for table in found)


@check
def a_window_columns_cpus_and_a_limit_are_kept():
    whole = lateralis.open(have(KERNEL))
    events = whole.events(columns=["ts", "cpu", "class"]).arrow()
    assert events.column_names == ["ts", "cpu", "class"]
    times = sorted(events["ts"].to_pylist())
    begin, end = times[len(times) // 4], times[len(times) // 2]
    part = lateralis.open(KERNEL, begin=begin, end=end)
    inside = compute.and_(compute.greater_equal(events["ts"], begin), compute.less_equal(events["ts"], end))
    expected = sorted(events.filter(inside)["ts"].to_pylist())
    assert sorted(part.events(columns=["ts"]).arrow()["ts"].to_pylist()) == expected
    assert part.table("classes").arrow().num_rows == whole.table("classes").arrow().num_rows
    of_cpu = compute.sum(compute.equal(events["cpu"], 1)).as_py()
    assert of_cpu and whole.events(cpus=[1]).arrow().num_rows == of_cpu
    assert whole.events(limit=9000, columns=["class"]).arrow().equals(events.select(["class"]).slice(0, 9000))
    assert whole.events(limit=0).arrow().num_rows == 0
    switches = whole.events("sched_switch")
    assert switches.arrow().num_rows == events["class"].to_pylist().count("sched_switch") > 0
    assert "next_tid" in switches.columns


@check
def losses_warn_once_for_each_trace():
    lossy = None
    for row in sorted(have(TRACES).glob("**/metadata")):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                trace = lateralis.open(row.parent)
            except lateralis.Error:
                continue
            if trace.losses().arrow().num_rows:
                lossy = row.parent
                break
            assert not any(issubclass(w.category, lateralis.LossWarning) for w in seen), row
    assert lossy is not None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        trace = lateralis.open(lossy)
        trace.events().arrow(), trace.losses().arrow(), list(trace.spans().batches())
    of_losses = [w for w in seen if w.category is lateralis.LossWarning]
    assert len(of_losses) == 1 and of_losses[0].filename == __file__, seen
    assert issubclass(lateralis.LossWarning, UserWarning) and str(lossy) in str(of_losses[0].message)


@check
def a_damaged_trace_warns_and_the_rest_is_read():
    copy = SCRATCH / "damaged"
    shutil.copytree(have(KERNEL), copy)
    [stream] = [path for path in copy.iterdir() if path.name == "chan1_1"]
    os.chmod(stream, 0o644)
    # In the middle of a packet.
    os.truncate(stream, stream.stat().st_size * 3 // 5 + 1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        trace = lateralis.open(copy)
        rows = trace.events().arrow().num_rows
    assert 0 < rows < 134500, rows
    assert trace.table("damage").arrow().num_rows > 0
    assert any(issubclass(w.category, lateralis.TraceWarning) for w in seen), seen
    inside = TRACES / "ctf-babeltrace-CC0" / "1" / "fail" / "valid-events-then-invalid-events" / "trace"
    events = lateralis.open(inside).events()
    for read in [events.arrow, lambda: list(events.batches())]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            read()
        [warning] = seen
        assert warning.category is lateralis.TraceWarning and warning.filename == __file__, warning
        assert str(warning.message).startswith("rows are missing: dummystream: bytes 2..3: "), warning


@check
def bad_names_raise_errors_with_the_nearest():
    trace = lateralis.open(real_traces()[0])
    text = raises(lateralis.Error, lambda: trace.table("span"), "no such table: span: did you mean spans")
    assert not text.startswith("'")
    raises(KeyError, lambda: trace.table("span"))
    raises(lateralis.NoSuchTable, lambda: trace.events("spans"), "no such class of events")
    raises(lateralis.NoSuchTable, lambda: trace.table(""), "no such table")
    raises(lateralis.NoSuchTable, lambda: trace.table("\x00\n"), "no such table")
    raises(lateralis.Error, lambda: trace.spans(columns=["x"]), "no such column: spans: x: it has recording")
    raises(OverflowError, lambda: trace.spans(limit=-1))
    raises(TypeError, lambda: trace.table(None))
    assert trace.spans(columns=[]).columns == []


@check
def what_is_no_trace_raises_an_error():
    empty, folder, noise = SCRATCH / "empty", SCRATCH / "folder", SCRATCH / "noise"
    empty.touch()
    folder.mkdir()
    noise.write_bytes(bytes(range(256)) * 16)
    raises(lateralis.Error, lambda: lateralis.open(empty), "no trace here: ", str(empty), "the file is empty")
    raises(lateralis.Error, lambda: lateralis.open(folder), "no trace here: ", str(folder))
    raises(lateralis.Error, lambda: lateralis.open(noise), str(noise))
    raises(lateralis.Error, lambda: lateralis.open(SCRATCH / "none"), "cannot read: ", "check the name")
    raises(lateralis.Error, lambda: lateralis.open([]), "nothing to open")
    raises(lateralis.Error, lambda: lateralis.open("/dev/zero"), "/dev/zero")
    raises(lateralis.Error, lambda: lateralis.open(empty, begin=2, end=1), "no time to read")
    raises(lateralis.Error, lambda: lateralis.open("a\x00b"), "cannot read: ")
    raises(TypeError, lambda: lateralis.open(3))
    raises(lateralis.Error, lambda: lateralis.open(KERNEL, window=("soon", None)), "no such time: soon: ")
    raises(lateralis.Error, lambda: lateralis.open(KERNEL, window=(1.5, None)), "no such time: begin: 1.5")
    raises(lateralis.Error, lambda: lateralis.open(KERNEL, window="1s"), "no such time: window: ")
    raises(lateralis.Error, lambda: lateralis.open(KERNEL, window=(1, 2), end=3), "leave one of them out")
    if KERNEL.exists():
        raises(lateralis.Error, lambda: lateralis.open(KERNEL, window=("2s", "1s")), "no time to read")
    raises(lateralis.Error, lambda: lateralis.open(folder, begin=1 << 70), "beyond the timeline")


@check
def a_deleted_recording_is_read_to_its_end():
    copy = SCRATCH / "deleted"
    shutil.copytree(have(KERNEL), copy)
    trace = lateralis.open(copy)
    batches = trace.events().batches()
    first = next(batches)
    for path in [copy, *copy.iterdir()]:
        os.chmod(path, 0o755)
    shutil.rmtree(copy)
    rows = first.num_rows + sum(batch.num_rows for batch in batches)
    assert rows == 134500 == trace.events().arrow().num_rows
    raises(lateralis.Error, lambda: lateralis.open(copy), "check the name")


@check
def a_recording_that_grows_has_the_rows_of_when_it_was_opened():
    copy = SCRATCH / "growing"
    shutil.copytree(have(MANY), copy)
    stream = copy / "channel0_0"
    whole = stream.read_bytes()
    os.chmod(copy, 0o755), os.chmod(stream, 0o644)
    # Its packets have one size.
    packets = lateralis.open(copy).table("packets").arrow().to_pylist()
    [number] = [row["stream"] for row in lateralis.open(copy).table("streams").arrow().to_pylist()
                if row["name"].endswith("channel0_0")]
    ends = sorted(row["offset"] + row["bytes"] for row in packets if row["stream"] == number)
    half = ends[len(ends) // 2]
    stream.write_bytes(whole[:half])
    index = copy / "index"
    shutil.rmtree(index, ignore_errors=True)
    trace = lateralis.open(copy)
    expected = trace.events().arrow().num_rows
    batches = trace.events().batches()
    rows = next(batches).num_rows
    with stream.open("ab") as file:
        # A part of a packet, then the rest.
        file.write(whole[half:half + 1000])
        file.flush()
        rows += next(batches).num_rows
        file.write(whole[half + 1000:])
    rows += sum(batch.num_rows for batch in batches)
    assert rows == expected < 328056, (rows, expected)
    assert lateralis.open(copy).events(columns=[]).arrow().num_rows == 328056


@check
def a_live_recording_is_read_while_it_is_made():
    place = SCRATCH / "live"
    if not LAT:
        raise Skip("LAT names no lat")
    demo = subprocess.Popen([LAT, "demo", "--orders", "20000", "-o", place], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    seen = []
    while demo.poll() is None:
        try:
            rows = lateralis.open(place).events(columns=["ts"]).arrow().num_rows
        # Before its first packet there is no trace.
        except lateralis.Error:
            rows = None
        seen.append(rows)
        time.sleep(0.01)
    if demo.returncode != 0:
        raise Skip(f"lat demo ends with {demo.returncode}")
    whole = lateralis.open(place).events(columns=["ts"]).arrow().num_rows
    counts = [rows for rows in seen if rows is not None]
    assert counts == sorted(counts) and whole >= counts[-1], (seen, whole)
    theirs = lat("table", place, "--name", "events", "--column", "ts", "--to", "arrows")
    assert whole == pyarrow.ipc.open_stream(theirs).read_all().num_rows


@check
def a_fork_begins_its_streams_anew():
    trace = lateralis.open(have(KERNEL))
    begun = pyarrow.RecordBatchReader.from_stream(trace.events())
    begun.read_next_batch()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                begun.read_next_batch()
            except Exception as error:
                assert "before a fork" in str(error), error
                assert lateralis.open(KERNEL).events().arrow().num_rows == 134500
                code = 0
        finally:
            os._exit(code)
    until = time.monotonic() + 120
    ended = (0, 0)
    while ended[0] == 0 and time.monotonic() < until:
        ended = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(child, 9)
    assert ended == (child, 0), ended
    assert begun.read_all().num_rows > 0


@check
def the_interpreter_ends_in_the_middle_of_a_stream():
    script = ("import sys, lateralis; b = lateralis.open(sys.argv[1]).events().batches(); next(b); "
              "print('read')")
    ran = subprocess.run([sys.executable, "-c", script, have(MANY)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=120)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "read\n", ""), ran


@check
def two_streams_are_read_in_turns():
    trace = lateralis.open(have(MANY))
    tables = [trace.events(), trace.spans(), trace.states(), trace.events(), trace.spans()]
    streams = [table.batches() for table in tables]
    rows = [0] * len(streams)
    running = list(range(len(streams)))
    while running:
        for number in list(running):
            batch = next(streams[number], None)
            if batch is None:
                running.remove(number)
            else:
                rows[number] += batch.num_rows
    assert rows == [table.arrow().num_rows for table in tables] and rows[0] == 328056


@check
def of_hardware_one_table_at_a_time():
    trace = lateralis.open(have(HARDWARE))
    packets, gaps = trace.table("flow_packets"), trace.table("flow_gaps")
    begun = pyarrow.RecordBatchReader.from_stream(packets)
    begun.read_next_batch()
    raises(lateralis.Error, gaps.arrow, "cannot read two at once: flow_gaps: ", "read that one to its end")
    begun.read_all()
    assert gaps.arrow().num_rows > 0
    begun = pyarrow.RecordBatchReader.from_stream(packets)
    begun.read_next_batch()
    begun.close()
    assert gaps.arrow().num_rows > 0


@check
def several_traces_are_one():
    one, other = lateralis.open(have(KERNEL)), lateralis.open(have(MANY))
    both = lateralis.open([KERNEL, str(MANY)])
    rows = sum(trace.events(columns=[]).arrow().num_rows for trace in [one, other])
    assert both.events(columns=[]).arrow().num_rows == rows
    assert both.table("recordings").arrow()["recording"].to_pylist() == [str(KERNEL), str(MANY)]


def second_demonstration():
    """A recording of the demonstration of another size."""
    place = SCRATCH / "other"
    if not place.exists():
        demonstration()
        command = [LAT, "demo", "--orders", "3000", "-o", place]
        made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if made.returncode != 0:
            raise Skip(f"lat demo: {made.stderr.decode()}")
    return place


def same_rows(ours, theirs):
    """Whether tables have the same rows, in any order."""
    def rows(table):
        return sorted(json.dumps(row, sort_keys=True, default=repr) for row in table.to_pylist())

    assert ours.schema.names == theirs.schema.names
    assert ours.num_rows == theirs.num_rows, (ours.num_rows, theirs.num_rows)
    assert rows(ours) == rows(theirs)


def document(*arguments):
    return json.loads(lat(*arguments, "--json"))


@check
def statistics_are_those_of_lat():
    for trace in real_traces():
        opened = lateralis.open(trace)
        assert opened.stats().document == document("stats", trace)
        sections = ["spans", "thread-states", "losses"]
        theirs = document("stats", trace, "--section", ",".join(sections))
        assert opened.stats(sections).document == theirs
        assert opened.stats("events").document == document("stats", trace, "--section", "events")
        theirs = document("stats", trace, "--from", "10ms", "--until", "20ms")
        assert opened.stats(from_="10ms", until="20ms").document == theirs
        theirs = document("stats", trace, "--where", "$cpu == 0", "--event", "*e*")
        assert opened.stats(where="$cpu == 0", event="*e*").document == theirs
        name = opened.events(columns=["process"], limit=2000).arrow()["process"].drop_null()[-1].as_py()
        theirs = document("stats", trace, "--app", name, "--cpu", "0,1")
        assert opened.stats(app=name, cpu=[0, 1]).document == theirs
        first = opened.stats("events").document["first_ns"] + 1_000_000
        theirs = document("stats", trace, "--from", str(first), "--until", "20ms")
        windowed = lateralis.open(trace, window=(first, None))
        assert windowed.stats(until="20ms").document == theirs


@check
def statistics_are_as_many_as_rows_of_tables():
    for trace in real_traces():
        opened = lateralis.open(trace)
        stats = opened.stats()
        assert set(stats.quality) == {"sums", "values"}, stats.quality
        by_class = compute.value_counts(opened.events(columns=["class"]).arrow()["class"].combine_chunks())
        counts = {row["values"]: row["counts"] for row in by_class.to_pylist()}
        events = stats["events"].arrow()
        ours = dict(zip(events["name"].to_pylist(), events["count"].to_pylist(), **STRICT))
        assert {name: count for name, count in ours.items() if count} == counts
        spans = pyarrow.table(stats["spans"])
        assert set(spans["quality"].to_pylist()) <= {"exact", "lower_bound", "unknown"}
        assert len(stats["spans"]) == spans.num_rows > 0
        rows = opened.spans(columns=["span", "status"]).arrow()
        rows = rows.filter(compute.equal(rows["status"].cast(pyarrow.string()), "complete"))
        complete = compute.value_counts(rows["span"].combine_chunks()).to_pylist()
        complete = {row["values"]: row["counts"] for row in complete}
        expected = {name: count for name, count in zip(*spans.select(["name", "count"]).to_pydict().values())
                    if count}
        assert complete == expected
        assert [json.loads(text) for text in spans["slowest"].to_pylist()] \
            == [row["slowest"] for row in stats.document["spans"]]


@check
def sections_go_to_all_libraries():
    need("polars"), need("pandas")
    for trace in real_traces():
        stats = lateralis.open(trace).stats()
        assert {"spans", "events", "losses"} <= set(stats.sections()), stats.sections()
        for name in stats.sections():
            rows = stats[name]
            table = rows.arrow()
            assert len(rows) == table.num_rows
            if table.num_columns:
                assert len(rows.polars()) == len(rows.pandas()) == len(rows), name
        nanos = stats["spans"].pandas()["max_ns"]
        assert str(nanos.dtype) == "int64[pyarrow]", nanos.dtype


@check
def what_was_not_recorded_is_an_error():
    stats = lateralis.open(have(MANY)).stats("events")
    raises(lateralis.NotRecorded, lambda: stats["threads"], "no rows: threads: ", "events")
    raises(KeyError, lambda: stats["threads"])
    raises(lateralis.NotRecorded, lambda: stats["duration_ns"], "document")
    trace = lateralis.open(have(KERNEL))
    raises(lateralis.Error, lambda: trace.stats("thread"), "no such section: thread: known are ")
    raises(lateralis.Error, lambda: trace.stats(event="nothing"), "no event of the trace matches nothing")
    raises(lateralis.Error, lambda: trace.stats(where="a =="), "cannot understand the expression: a ==")
    raises(lateralis.Error, lambda: trace.stats(from_="soon"), "no such time: soon")
    raises(lateralis.Error, lambda: trace.stats(filter="event.x.y.z"), "the script failed")
    raises(TypeError, lambda: trace.stats(nothing=1))
    raises(lateralis.Error, lambda: trace.path(), "give span or thread")
    raises(lateralis.Error, lambda: trace.path("nothing"), "no such span: nothing: there are ")
    raises(lateralis.Error, lambda: trace.path(thread=999999), "no such thread: 999999")
    raises(lateralis.Error, lambda: trace.path("x", number=1, at=0), "leave one of them out")
    raises(lateralis.Error, lambda: trace.path("x", number=0), "from 1 to 1000")


def warnings_of(function):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function()
    assert all(warning.filename == __file__ for warning in seen), seen
    return [str(warning.message) for warning in seen]


@check
def unknown_fields_and_times_warn():
    trace = lateralis.open(have(KERNEL))
    for read in [lambda: trace.stats("events", where="nothing == 1"),
                 lambda: trace.events("sched_switch", where="nothing == 1")]:
        [text] = warnings_of(read)
        assert "no event of the trace has a field `nothing`" in text, text
    [text] = warnings_of(lambda: trace.stats("events", from_="100s"))
    assert text.startswith("from_ ") and "after its end" in text, text
    [text] = warnings_of(lambda: lateralis.open(KERNEL, window=("100s", None)))
    assert "after its end" in text, text
    assert warnings_of(lambda: trace.stats("events")) == []


@check
def paths_are_those_of_lat():
    for trace in real_traces():
        opened = lateralis.open(trace)
        stats = opened.stats(["spans", "threads"])
        counted = [row for row in stats.document["spans"] if row["count"]]
        name = max(counted, key=lambda row: row["total_ns"])["name"]
        try:
            ours = opened.path(name, number=3)
        except lateralis.Error as error:
            # Spans without a thread have no path, for lat either.
            theirs = subprocess.run([LAT, "path", trace, "--span", name], stderr=subprocess.PIPE, text=True)
            assert theirs.returncode == 2 and str(error) in theirs.stderr, (error, theirs.stderr)
            name = "syscall read"
            ours = opened.path(name, number=3)
        assert ours == document("path", trace, "--span", name, "--slowest", "3")
        assert ours["quality"] in ["exact", "lower_bound", "unknown"]
        for span in ours["spans"]:
            assert span["duration_ns"] == sum(s["end_ns"] - s["begin_ns"] for s in span["segments"])
        begin = ours["spans"][0]["begin_ns"]
        assert opened.path(name, at=begin) == document("path", trace, "--span", name, "--at", str(begin))
        if "threads" in stats.sections():
            thread = str(max(stats.document["threads"], key=lambda row: row["running_ns"])["tid"])
            theirs = document("path", trace, "--thread", thread, "--until", "-1ms")
            assert opened.path(thread=thread, until="-1ms") == theirs
            begin = theirs["spans"][0]["segments"][-1]["begin_ns"]
            theirs = document("path", trace, "--thread", thread, "--at", str(begin))
            assert opened.path(thread=int(thread), at=begin) == theirs


@check
def differences_are_those_of_lat():
    one, other = demonstration(), second_demonstration()
    theirs = document("diff", one, other)
    opened = lateralis.open(one)
    assert opened.diff(other) == opened.diff([lateralis.open(other)]) == theirs
    options = ["--threshold", "50", "--noise", "7", "--only-worse", "--until", "1s"]
    ours = opened.diff(other, threshold=50, noise=7, only_worse=True, until="1s")
    assert ours == document("diff", one, other, *options)
    theirs = document("diff", "--good", one, "--good", one, other, other)
    assert opened.diff([other, str(other)], good=one) == theirs
    raises(lateralis.Error, lambda: opened.diff(SCRATCH / "none"), "cannot read: ", "check the name")
    raises(lateralis.Error, lambda: opened.diff([]), "nothing to compare with")
    raises(lateralis.Error, lambda: lateralis.open(one, window=("1ms", None)).diff(other), "has a window")
    raises(lateralis.Error, lambda: lateralis.open([one, other]).diff(other), "opened as one")
    raises(lateralis.Error, lambda: opened.diff(other, threshold=-1), "no such threshold")


@check
def selected_events_are_those_that_other_libraries_select():
    trace = lateralis.open(have(KERNEL))
    switches = trace.events("sched_switch")
    selected = trace.events("sched_switch", where="prev_state == 1")
    rows = switches.arrow()
    expected = rows.filter(compute.equal(rows["prev_state"], 1))
    assert 0 < expected.num_rows < rows.num_rows
    ours = selected.arrow()
    same_rows(ours, expected)
    times = ours["ts"].to_pylist()
    assert times == sorted(times)
    few = trace.events("sched_switch", where="prev_state == 1", limit=7, columns=["ts", "packet"], cpus=[1])
    ours = few.arrow()
    expected = expected.filter(compute.equal(expected["cpu"], 1)).sort_by("ts").select(["ts", "packet"])
    assert ours.to_pylist() == expected.slice(0, 7).to_pylist()
    windowed = lateralis.open(KERNEL, window=("1s", "2s")).events("sched_switch", where="prev_state == 1")
    printed = lat("print", KERNEL, "--event", "sched_switch", "--where", "prev_state == 1", "--from", "1s",
                  "--until", "2s")
    assert windowed.arrow().num_rows == len(printed.splitlines()) > 10


@check
def selected_events_are_as_many_as_lat_prints():
    traces = [(trace, ["$cpu == 0", "$tid > 100 && $event =~ \"*a*\""]) for trace in real_traces()]
    traces += [(HARDWARE, ["$pid > 0"])] * HARDWARE.exists()
    traces += [(MANY, ["$cpu != 1"])] * MANY.exists()
    for trace, conditions in traces:
        opened = lateralis.open(trace)
        rows = opened.events().arrow()
        name = (rows["process"].drop_null()[-1:].to_pylist() or ["none"])[0]
        for condition in [*conditions, f'$process == "{name}"']:
            ours = opened.events(where=condition).arrow()
            options = ["--event", "*", "--where", condition, "--format", "json"]
            printed = lat("print", trace, *options).splitlines()
            assert ours.num_rows == len(printed), (trace, condition, ours.num_rows, len(printed))
        ours = opened.events(where="$time > 0").arrow()
        same_rows(ours, rows.filter(compute.greater(rows["ts"], 0)))


@check
def wrong_expressions_are_errors():
    trace = lateralis.open(have(KERNEL))
    wrong = "cannot understand the expression: "
    raises(lateralis.Error, lambda: trace.events(where="a =="), f"{wrong}a ==", "column")
    raises(lateralis.Error, lambda: trace.events(where=["cpu > 0", ")"]), f"{wrong})")
    raises(lateralis.Error, lambda: trace.table("spans", where="a"), "where is for tables of events")
    raises(lateralis.NoSuchTable, lambda: trace.events("nothing", where="a"), "no such table: nothing")
    raises(lateralis.NoSuchTable, lambda: trace.events("spans", where="a"), "no such class of events")
    raises(lateralis.Error, lambda: trace.events(where=[1.5]), "no such where: [1.5]")


@check
def windows_are_those_of_lat_table():
    for trace in real_traces():
        first = lateralis.open(trace).events(columns=["ts"]).arrow()["ts"]
        first, last = compute.min(first).as_py(), compute.max(first).as_py()
        day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(first // 1_000_000_000 + 1)) + "Z"
        forms = [("10ms", "50ms"), ("-30ms", None), (first, last - 1000), (None, str(last - 1000)),
                 (f"@{first // 1_000_000_000}.{first % 1_000_000_000 + 1:09}", None), (day, None),
                 (day[11:19] + ".5", "+5s")]
        for begin, end in forms:
            options = [option for name, value in [("--from", begin), ("--until", end)] if value is not None
                       for option in (name, str(value))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                opened = lateralis.open(trace, window=(begin, end))
            for name in ["events", "spans"]:
                written = lat("table", trace, "--name", name, "--to", "arrows", *options)
                theirs = pyarrow.ipc.open_stream(written).read_all()
                ours = opened.table(name).arrow().unify_dictionaries()
                assert ours.equals(theirs.unify_dictionaries()), (trace, begin, end, name)


@check
def of_deleted_files_an_error_names_the_place():
    copy = SCRATCH / "gone"
    shutil.copytree(have(KERNEL), copy)
    trace = lateralis.open(copy)
    whole = trace.stats("events").document
    for path in [copy, *copy.iterdir()]:
        os.chmod(path, 0o755)
    shutil.rmtree(copy)
    assert trace.stats("events").document == whole
    assert trace.events("sched_switch", where="prev_state == 1").arrow().num_rows == 810
    raises(lateralis.Error, lambda: trace.stats("events", from_="1s"), "cannot read: ", str(copy))
    raises(lateralis.Error, lambda: trace.path("syscall read"), "cannot read: ", str(copy))
    table = trace.events(where="$process == \"dd\"")
    raises(lateralis.Error, table.arrow, "cannot read: ", str(copy))
    raises(lateralis.Error, lambda: trace.diff(KERNEL), "cannot read: ", str(copy))


@check
def losses_warn_once_and_are_in_statistics():
    with have(TRACES / "EXPECTED.tsv").open() as lines:
        names = [row["trace"] for row in csv.DictReader(lines, delimiter="\t")]
    for name in names:
        if not (TRACES / name).exists():
            continue
        with contextlib.suppress(lateralis.Error):
            trace = lateralis.open(TRACES / name)
            if trace.losses().arrow().num_rows:
                assert warnings_of(lambda: trace.stats()) == []
                stats = trace.stats()
                assert len(stats["losses"]) > 0 and stats.quality["sums"] != "exact", stats.quality
                qualities = stats["events"].arrow()["quality"].to_pylist()
                for row, quality in zip(stats.document["events"], qualities, **STRICT):
                    marks = set(row["not_exact"].values())
                    expected = "unknown" if "unknown" in marks else "lower_bound" if marks else "exact"
                    assert quality == expected, row
                return
    raise Skip("no trace with losses")


@check
def sql_is_that_of_lat_sql():
    trace = lateralis.open(real_traces()[0])
    path = os.environ["PATH"]
    try:
        os.environ["PATH"] = str(SCRATCH)
        raises(lateralis.Error, lambda: trace.sql("SELECT 1"), "lat-sql is not installed: ", "./x build sql")
        os.environ["PATH"] = path if not LAT else f"{pathlib.Path(LAT).resolve().parent}:{path}"
        windowed = lateralis.open(real_traces()[0], window=("1ms", None))
        raises(lateralis.Error, lambda: windowed.sql("SELECT 1"), "cannot select a time")
        if shutil.which("lat-sql") is None:
            raise Skip("no lat-sql beside lat and on the PATH; that it is missing was checked")
        rows = trace.sql("SELECT class, count(*) AS events FROM events GROUP BY class ORDER BY class").arrow()
        counted = compute.value_counts(trace.events(columns=["class"]).arrow()["class"].combine_chunks())
        expected = {row["values"]: row["counts"] for row in counted.to_pylist()}
        assert dict(zip(rows["class"].to_pylist(), rows["events"].to_pylist())) == expected
        raises(lateralis.Error, lambda: trace.sql("SELEKT 1"), "SELEKT")
    finally:
        os.environ["PATH"] = path


@check
def stubs_are_those_of_the_package():
    need("mypy")
    settings = SCRATCH / "mypy.ini"
    settings.write_text("[mypy]\nignore_missing_imports = True\nfollow_imports = skip\n")
    ran = subprocess.run([sys.executable, "-m", "mypy.stubtest", "lateralis", "--ignore-missing-stub",
                          "--mypy-config-file", settings.resolve()],
                         cwd=SCRATCH, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ran.returncode == 0, ran.stdout


@check
def examples_of_the_documents_run():
    need("polars"), need("pandas"), need("duckdb")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5, len(blocks)
    trace = real_traces()[-1].resolve()
    folder = SCRATCH / "examples"
    folder.mkdir()
    (folder / "demo").symlink_to(trace)
    for block in blocks:
        ran = subprocess.run([sys.executable, "-c", block], cwd=folder, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        assert ran.returncode == 0 and ran.stdout, (block, ran.stderr)


shutil.rmtree(SCRATCH, ignore_errors=True)
print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
sys.exit(1 if failed else 0)
