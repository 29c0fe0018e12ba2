# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Traces as tables, wherever Python computes.

    import lateralis
    trace = lateralis.open("demo")
    trace.spans().polars()
    trace.stats()["spans"].pandas()

A trace is opened, never loaded: a table reads the recording each time it is asked for its rows, batch by
batch, and hands them to pyarrow, Polars, pandas or DuckDB without a copy (Arrow C stream interface).

All times are integers, nanoseconds: since 1970-01-01T00:00:00Z if the clock of the trace knows the time of
day, else since the zero of that clock. Unit and meaning of a column are in the metadata of its field.
A number that may be wrong because events were lost has a column ``quality`` beside it: ``exact``,
``lower_bound`` (what is missing could only increase it) or ``unknown``.
"""

from __future__ import annotations

import json
import operator
import os
import shutil
import subprocess
import warnings
from contextlib import contextmanager
from importlib import import_module

from . import _lateralis
from ._lateralis import Error

__all__ = [
    "Error",
    "LossWarning",
    "NoSuchTable",
    "NotRecorded",
    "Rows",
    "Stats",
    "Table",
    "Trace",
    "TraceWarning",
    "open",
]


class NoSuchTable(Error, KeyError):
    """The trace has no table of this name; the text has those with similar names."""

    # KeyError would show the text in quotes.
    __str__ = Error.__str__


class NotRecorded(Error, KeyError):
    """The trace has no events of this kind, so that there is no number."""

    __str__ = Error.__str__


class TraceWarning(UserWarning):
    """Something of a trace cannot be read, or its clocks do not relate; the rest is read."""


class LossWarning(TraceWarning):
    """Events were lost while the trace was recorded; shown once for each trace that is opened."""


def open(paths, *, begin=None, end=None, window=None):
    """Opens a recording or a trace of any format that ``lat`` reads; several are read as one.

    ``paths`` is a path or a list of paths. With ``window=(from, until)``, both included, tables have only
    rows whose ``ts`` is in this time, and statistics and paths are of this time. Each end is ``None``, an
    ``int`` of nanoseconds as in the tables, or a text in any form that ``lat … --from`` takes: ``"1.5s"``
    after the beginning, ``"-1s"`` before the end, ``"12:34:56.789"`` or ``"2026-11-21T12:34:56Z"`` in UTC,
    ``"@1795224442.047685452"`` seconds since 1970. ``begin`` and ``end`` are the same as two options.
    Tables without ``ts`` are not affected.

    Of a recording in progress the part is read that is there now; open it again to see more.

    Costs time for the headers of the packets at most; events are read when tables are. Files are mapped into
    memory: one that another program cuts while it is read ends the process.

    Raises :class:`Error` if a path holds no trace or cannot be read, or the time is empty.
    Warns by :class:`LossWarning` if events were lost, by :class:`TraceWarning` if a part cannot be read or
    the trace has nothing of the time.
    """
    paths = [paths] if _is_path(paths) else list(paths)
    paths = [os.fsdecode(path) for path in paths]
    if not paths:
        raise Error("nothing to open: no path: give one at least")
    if window is not None:
        if begin is not None or end is not None:
            raise Error("two times to read: window: begin or end is given as well: leave one of them out")
        if isinstance(window, (str, bytes)) or len(window) != 2:
            raise Error(f"no such time: window: {window!r}: give two ends, (from, until)")
        begin, end = window
    if isinstance(begin, int) and isinstance(end, int) and begin > end:
        raise Error(f"no time to read: begin {begin} is after end {end}: exchange them")
    core, remarks = _lateralis.open(paths, _time(begin, "begin"), _time(end, "end"))
    _warn(remarks)
    return Trace(core, paths)


class Trace:
    """Traces opened together; made by :func:`open`.

    May be used by several threads. Methods that give a table cost nothing: rows are read when the
    table is asked for them.
    """

    def __init__(self, core, paths):
        self._core = core
        self._paths = paths

    def __repr__(self):
        return f"<lateralis.Trace {', '.join(self._paths)}: {len(self.tables())} tables>"

    def tables(self):
        """Names of all tables: ``events``, those derived from events, and one for each class of events."""
        return self._core.tables()

    def table(self, name, *, columns=None, cpus=None, limit=None, where=None):
        """The table with this name, with all of its columns or these, in this order.

        In tables of events, ``cpus`` selects what happened on these CPUs, and ``where`` the events for which
        an expression holds, or several do: the language of ``lat print --where``, such as
        ``"bytes > 4k && $process == 'redis'"``. With ``where`` rows are in the order of time.
        ``limit`` is the most rows.

        Raises :class:`NoSuchTable` with the nearest names, :class:`Error` if it has no such column or an
        expression cannot be parsed. Warns by :class:`TraceWarning` of fields that no event has.
        """
        return self._table(name, columns, cpus, limit, where)

    def _table(self, name, columns, cpus, limit, where):
        columns = None if columns is None else list(columns)
        cpus = None if cpus is None else list(cpus)
        select = None if where is None else _select(where=where)
        core = self._core.table(name, columns, cpus, limit, select)
        if core is None:
            near = self._core.nearest(name)
            advice = f"did you mean {', '.join(near)}?" if near else "see tables()"
            raise NoSuchTable(f"no such table: {name}: {advice}")
        if select is not None:
            if not core.is_of_events:
                raise Error(f"cannot select rows: {name}: where is for tables of events: filter the rows")
            _warn([(False, text) for text in self._core.unknown_fields(select)], stacklevel=4)
        return Table(self, name, core)

    def events(self, name=None, *, columns=None, cpus=None, limit=None, where=None):
        """Events of a class (``sched_switch``, ``threads:MUTEX_LOCK``), with a column for each field; without
        a name those of all classes, with their fields as JSON. In the order of their stream, not of time,
        unless ``where`` is given.

        Options and errors are those of :meth:`table`.
        """
        if name is None:
            return self._table("events", columns, cpus, limit, where)
        # A class with the name of another table.
        other = f"event:{name}"
        known = other if other in self.tables() else name
        if where is not None and not self._is_of_events(known):
            where = None
        table = self._table(known, columns, cpus, limit, where)
        if not table._core.is_of_events:
            raise NoSuchTable(f"no such class of events: {name}: the table of this name is table({name!r})")
        return table

    def _is_of_events(self, name):
        core = self._core.table(name, None, None, None, None)
        return core is None or core.is_of_events

    def spans(self, **select):
        """What begins and ends, by schema or convention: a row per span, as it ends.

        ``ts``, ``end_ts``, ``duration`` in ns; ``span`` is its name, ``key`` what distinguishes it from
        others of that name; ``status`` is ``complete``, ``unfinished`` or ``orphan``. Options: see
        :meth:`table`.
        """
        return self.table("spans", **select)

    def flows(self, **select):
        """What is sent and received: a row per message, as it arrives (table ``messages``).

        ``ts``, ``end_ts``, ``latency`` in ns. Options: see :meth:`table`.
        """
        return self.table("messages", **select)

    def states(self, **select):
        """How long state machines are in which state. ``ts``, ``end_ts``, ``duration`` in ns. Options: see
        :meth:`table`."""
        return self.table("states", **select)

    def counters(self, **select):
        """Samples of counters: ``ts`` in ns, ``counter``, ``value``. Options: see :meth:`table`."""
        return self.table("counters", **select)

    def losses(self, **select):
        """Events that were counted and not recorded: a row per stream, cause and time; ``begin_ts`` and
        ``end_ts`` in ns, ``count`` is null if only known to be above 0. Options: see :meth:`table`."""
        return self.table("losses", **select)


    def stats(self, section=None, **select):
        """Statistics, as ``lat stats --json`` has them: counts, durations of spans, what threads and CPUs
        did, losses. ``section`` is a name or a list of names, as ``lat stats --section`` takes them; others
        are not computed. All times are in ns.

        ``select`` selects events: ``where`` (see :meth:`table`), ``event`` and ``subsystem`` (names with
        ``*`` and ``?``), ``cpu``, ``app`` (process ids or names), ``thread`` (thread ids or names),
        ``filter`` (JavaScript), each one or a list, ``from_`` and ``until`` (times as :func:`open` takes
        them).

        Costs a pass over the events.

        Raises :class:`Error` for an unknown section or event, or an expression that cannot be parsed. Warns
        by :class:`TraceWarning` of fields that no event has, or a time that the trace does not have.
        """
        sections = _texts(section, "section")
        text, remarks = self._core.stats(sections, _select(**select))
        _warn(remarks)
        return Stats(json.loads(text))

    def path(self, span=None, *, number=None, at=None, **select):
        """Why spans took as long as they did, as ``lat path --json`` has it: a ``dict`` with the critical
        path of each, from its end back to its beginning. Times are in ns.

        With ``span``, the name of spans: the ``number`` slowest (1), or the one that was open ``at`` a time.
        Without it: what the one ``thread`` did and waited for from ``from_`` to ``until``, or around ``at``.
        ``at`` is a time as :func:`open` takes them; the other options are those of :meth:`stats`.

        Raises :class:`Error` if there is no such span or thread, or nothing of it was recorded.
        """
        options = _select(**select)
        if span is None and len(options["thread"]) != 1:
            raise Error("cannot tell a path: neither a span nor one thread is named: give span or thread")
        if number is not None and at is not None:
            raise Error("cannot tell a path: both number and at are given: leave one of them out")
        number = 1 if number is None else number
        if not 1 <= number <= 1000:
            raise Error(f"cannot tell a path: number {number}: give one from 1 to 1000")
        text, remarks = self._core.path(span, number, _time(at, "at"), options)
        _warn(remarks)
        return json.loads(text)

    def diff(
        self,
        others,
        *,
        good=(),
        threshold=5,
        noise=2,
        only_worse=False,
        shares=False,
        symfs=None,
        **select,
    ):
        """What changed between this recording and others, as ``lat diff --json`` has it: a ``dict``.

        This recording, and those of ``good``, are of the good program, ``others`` of the other one: paths or
        :class:`Trace`, one or a list. ``threshold``: shifts by fewer percent are no difference; ``noise``: by
        how many percent even what always takes the same time varies; ``only_worse``: only what is slower,
        longer or more often in ``others``; ``shares``: of samples, compare the share of each function, not
        its number; ``symfs``: the folder with the files of functions. Events are selected as by
        :meth:`stats`; ``from_`` and ``until`` are of each recording.

        Costs a pass over each recording.

        Raises :class:`Error` if a recording cannot be read or they have no events in common. Warns by
        :class:`LossWarning` if events of one that is not open were lost.
        """
        sides, known = [], []
        for side in ([self, *_recordings(good)], _recordings(others)):
            paths = []
            for recording in side:
                if not isinstance(recording, Trace):
                    paths.append(os.fsdecode(recording))
                    continue
                if recording._core.has_window():
                    advice = "open it without one and give from_ and until"
                    raise Error(f"cannot compare a part: {recording._paths[0]}: it has a window: {advice}")
                if len(recording._paths) != 1:
                    advice = "open each, and give them as a list"
                    raise Error(f"cannot compare: {', '.join(recording._paths)}: opened as one: {advice}")
                paths += recording._paths
                known += recording._paths
            sides.append(paths)
        if not sides[1]:
            raise Error("nothing to compare with: others: no recording: give one at least")
        for name, percent in (("threshold", threshold), ("noise", noise)):
            if not 0 <= percent <= 10_000:
                raise Error(f"no such {name}: {percent}: give percent, like 5")
        symfs = None if symfs is None else os.fsdecode(symfs)
        percent = (threshold / 100, noise / 100)
        recordings = (*sides, known)
        text, remarks = _lateralis.diff(recordings, percent, only_worse, shares, symfs, _select(**select))
        _warn(remarks)
        return json.loads(text)

    def sql(self, statement, *, memory=None):
        """Rows of a statement of SQL on the tables, by the program ``lat-sql``, as ``lat sql`` does it.
        ``memory`` is what sorting and joining may take, such as ``"2G"``.

        The result is in memory, as the columns that the engine wrote.

        Raises :class:`Error` if ``lat-sql`` is not installed, the statement cannot be run, or the trace was
        opened with a window. Warns by :class:`TraceWarning` if something in the trace is damaged.
        """
        if self._core.has_window():
            advice = "write WHERE ts BETWEEN … AND …"
            raise Error(f"cannot select a time: {self._paths[0]}: opened with a window: {advice}")
        pyarrow = _library("pyarrow")
        program, lat = _engine()
        environment = dict(os.environ, **({} if lat is None else {"LATERALIS_LAT": lat}))
        command = [program, f"--command={statement}", "--format=arrow"]
        command += [] if memory is None else [f"--memory={memory}"]
        try:
            ran = subprocess.run(
                [*command, "--", *self._paths], stdin=subprocess.DEVNULL, capture_output=True, env=environment
            )
        except OSError as error:
            raise Error(f"cannot start: {program}: {error.strerror}") from error
        messages = ran.stderr.decode(errors="replace").strip()
        if ran.returncode not in (0, 1):
            text = messages.removeprefix("error: ") if hasattr(str, "removeprefix") else messages
            raise Error(text or f"the statement failed: {program}: it ended with {ran.returncode}")
        if ran.returncode == 1:
            _warn([(False, messages or f"something is damaged: {self._paths[0]}: see the table `damage`")])
        if not ran.stdout:
            return Rows("sql", pyarrow.table({}))
        return Rows("sql", pyarrow.ipc.open_stream(pyarrow.py_buffer(ran.stdout)).read_all())


class Rows:
    """Rows that are in memory: of a section of statistics, or of a statement of SQL.

    Every library that knows the Arrow PyCapsule interface takes it as it is.
    """

    def __init__(self, name, rows):
        #: Its name.
        self.name = name
        self._rows = rows

    def __repr__(self):
        return f"<lateralis.Rows {self.name}: {len(self)} rows>"

    def __len__(self):
        return len(self._rows)

    def arrow(self):
        """The rows as a ``pyarrow.Table``. Of statistics, lists and objects inside of rows are JSON, and
        ``quality`` is the least of its numbers' qualities; ``not_exact`` has that of each."""
        if isinstance(self._rows, list):
            self._rows = _table_of(self._rows)
        return self._rows

    def __arrow_c_stream__(self, requested_schema=None):
        """A stream of the rows by the Arrow C stream interface."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def polars(self):
        """The rows as a ``polars.DataFrame``."""
        return _library("polars").DataFrame(self)

    def pandas(self):
        """The rows as a ``pandas.DataFrame``, with types as :meth:`Table.pandas` has them."""
        return _to_pandas(self.arrow())


class Stats:
    """Statistics of a trace; made by :meth:`Trace.stats`. ``stats["spans"]`` are :class:`Rows`."""

    def __init__(self, document):
        #: All of it, as ``lat stats --json`` has it.
        self.document = document

    def __repr__(self):
        return f"<lateralis.Stats {self.document['trace']}: {', '.join(self.sections())}>"

    @property
    def quality(self):
        """How far sums and other numbers of the whole can be trusted: ``{"sums": …, "values": …}``, each
        ``exact``, ``lower_bound`` or ``unknown``."""
        return self.document["quality"]

    def sections(self):
        """Names of what has rows; a part of a section is ``wakeups.pairs``."""
        names = []
        for name, member in self.document.items():
            if isinstance(member, list):
                names.append(name)
            elif isinstance(member, dict):
                names += [f"{name}.{part}" for part, rows in member.items() if isinstance(rows, list)]
        return names

    def __getitem__(self, name):
        """The rows of a section.

        Raises :class:`NotRecorded` if the trace has no events of it, or it was not asked for.
        """
        if name not in self.sections():
            known = ", ".join(self.sections())
            if name in self.document:
                raise NotRecorded(f"no rows: {name}: it is in document, not a list: there are {known}")
            advice = f"its events were not recorded, or it was not asked for: there are {known}"
            raise NotRecorded(f"no rows: {name}: {advice}")
        rows = self.document
        for part in name.split("."):
            rows = rows[part]
        return Rows(name, rows)


class Table:
    """A table of a trace, read anew each time that it is asked for rows.

    Every library that knows the Arrow PyCapsule interface takes it as it is:
    ``pyarrow.table(t)``, ``polars.DataFrame(t)``, ``duckdb.from_arrow(t)``.

    Each method raises :class:`Error` if a value does not fit into a column, or the library that it is for is
    not installed. Rows that cannot be read are missing, with a :class:`TraceWarning`; a stream that another
    library took cannot warn, and its errors are those of that library, with our text.

    Of tables ``flow_…`` one at a time is read.
    """

    def __init__(self, trace, name, core):
        self._trace = trace
        self._core = core
        #: Its name.
        self.name = name

    def __repr__(self):
        return f"<lateralis.Table {self.name}: {', '.join(self.columns)}>"

    @property
    def description(self):
        """What its rows are."""
        return self._core.description

    @property
    def columns(self):
        """Names of its columns."""
        return self._core.columns

    @property
    def schema(self):
        """The columns as a ``pyarrow.Schema``; metadata of a field: ``unit`` (``ns``, ``B``) and
        ``description``."""
        return _library("pyarrow").schema(self)

    def __arrow_c_schema__(self):
        """The schema by the Arrow C data interface."""
        return self._core.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema=None):
        """A new stream of all rows by the Arrow C stream interface, in the types of :attr:`schema`."""
        return self._core.__arrow_c_stream__()

    def batches(self):
        """Iterates over ``pyarrow.RecordBatch`` of at most 8192 rows; memory is that of a few batches."""
        with self._reading():
            yield from self._reader()

    def arrow(self):
        """All rows as a ``pyarrow.Table``; its buffers are those that the rows were decoded into."""
        with self._reading():
            return self._reader().read_all()

    def polars(self):
        """All rows as a ``polars.DataFrame``."""
        with self._reading():
            return _library("polars").DataFrame(self)

    def pandas(self):
        """All rows as a ``pandas.DataFrame``. Columns have the types of Arrow (``int64[pyarrow]``), so that
        times keep their nanoseconds beside nulls; words, such as names, are categories."""
        with self._reading():
            rows = self._reader().read_all()
        return _to_pandas(rows)

    def duckdb(self, connection=None):
        """The table as a ``duckdb.DuckDBPyRelation`` of the connection, or of DuckDB's default one.

        Each query reads the rows anew, batch by batch; DuckDB before 2.0 has all rows in memory.
        """
        duckdb = _library("duckdb")
        # Before 2.0 it reads a stream for the first query and fails in the second.
        is_reread = int(duckdb.__version__.split(".")[0]) >= 2
        return (connection or duckdb).from_arrow(self if is_reread else self.arrow())

    def _reader(self):
        return _library("pyarrow").RecordBatchReader.from_stream(self)

    @contextmanager
    def _reading(self):
        """Errors of streams in our words, and a warning of what was damaged."""
        try:
            yield
        except Exception as error:
            failure = self._core.take_failure()
            if failure is None:
                raise
            raise Error(failure) from error
        damage = self._trace._core.take_damage()
        if damage is not None:
            warnings.warn(damage, TraceWarning, stacklevel=4)


def _to_pandas(rows):
    pandas, pyarrow = _library("pandas"), _library("pyarrow")

    def pandas_type(of):
        return None if pyarrow.types.is_dictionary(of) else pandas.ArrowDtype(of)

    return rows.to_pandas(types_mapper=pandas_type)


def _is_path(value):
    return isinstance(value, (str, bytes, os.PathLike))


def _recordings(value):
    return [value] if _is_path(value) or isinstance(value, Trace) else list(value)


def _warn(remarks, stacklevel=3):
    """Warns of them as from the caller of the method that calls this."""
    for is_loss, text in remarks:
        warnings.warn(text, LossWarning if is_loss else TraceWarning, stacklevel=stacklevel)


def _time(value, name):
    """A time as the compiled half reads it: nanoseconds as ``@SECONDS.NNNNNNNNN``, texts as they are."""
    if value is None or isinstance(value, str):
        return value
    try:
        nanos = operator.index(value)
    except TypeError:
        advice = "give nanoseconds as an int, or a text like '1.5s'"
        raise Error(f"no such time: {name}: {value!r}: {advice}") from None
    if abs(nanos) >= 1 << 63:
        raise Error(f"no such time: {name}: {nanos}: it is beyond the timeline")
    seconds, rest = divmod(abs(nanos), 1_000_000_000)
    return f"@{'-' if nanos < 0 else ''}{seconds}.{rest:09}"


def _texts(value, name):
    """One text, or several; numbers are ids."""
    values = [] if value is None else [value] if isinstance(value, (str, int)) else list(value)
    if not all(isinstance(each, (str, int)) for each in values):
        raise Error(f"no such {name}: {value!r}: give a text or a list of texts")
    return [str(each) for each in values]


def _select(
    *,
    where=None,
    event=None,
    subsystem=None,
    cpu=None,
    app=None,
    thread=None,
    filter=None,
    from_=None,
    until=None,
):
    """Options that select events, as the compiled half reads them."""
    cpus = [] if cpu is None else [cpu] if isinstance(cpu, int) else list(cpu)
    return {
        "where": _texts(where, "where"),
        "event": _texts(event, "event"),
        "subsystem": _texts(subsystem, "subsystem"),
        "cpu": cpus,
        "app": _texts(app, "app"),
        "thread": _texts(thread, "thread"),
        "filter": _texts(filter, "filter"),
        "from_": _time(from_, "from_"),
        "until": _time(until, "until"),
    }


def _table_of(rows):
    """Rows of a document as a ``pyarrow.Table``; what rows are made of is JSON."""
    pyarrow = _library("pyarrow")
    names = {}
    for row in rows:
        names.update(dict.fromkeys(row if isinstance(row, dict) else ["text"]))
    columns = {name: [] for name in names}
    qualities = []
    for row in rows:
        row = row if isinstance(row, dict) else {"text": row}
        for name, values in columns.items():
            value = row.get(name)
            values.append(json.dumps(value) if isinstance(value, (dict, list)) else value)
        qualities.append(_least((row.get("not_exact") or {}).values()))
    arrays = {name: _array(pyarrow, values) for name, values in columns.items()}
    if "not_exact" in arrays and "quality" not in arrays:
        arrays["quality"] = pyarrow.array(qualities)
    return pyarrow.table(arrays)


def _least(qualities):
    order = ["exact", "lower_bound", "unknown"]
    return max(qualities, key=order.index, default="exact")


def _array(pyarrow, values):
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        # Numbers of which some have a fraction, or are beyond 63 bits.
        kinds = {type(value) for value in values if value is not None}
        if kinds == {int}:
            return pyarrow.array(values, pyarrow.uint64())
        if kinds == {int, float}:
            return pyarrow.array([None if value is None else float(value) for value in values])
        return pyarrow.array([None if value is None else json.dumps(value) for value in values])


def _engine():
    """The program ``lat-sql``, beside ``lat`` or on the search path, and ``lat``, if there is one."""
    lat = shutil.which("lat")
    beside = None if lat is None else os.path.join(os.path.dirname(os.path.realpath(lat)), "lat-sql")
    program = shutil.which(beside) if beside is not None else None
    program = program or shutil.which("lat-sql")
    if program is None:
        advice = "install the package lateralis-sql, or build it with ./x build sql in the sources"
        raise Error(f"lat-sql is not installed: neither beside lat nor on the PATH: {advice}")
    return program, lat


def _library(name):
    try:
        return import_module(name)
    except ImportError as error:
        raise Error(f"cannot import {name}: {error}: pip install {name}") from error
