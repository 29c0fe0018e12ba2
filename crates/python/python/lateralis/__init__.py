# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Traces as tables, wherever Python computes.

    import lateralis
    trace = lateralis.open("demo")
    trace.spans().polars()

A trace is opened, never loaded: a table reads the recording each time it is asked for its rows, batch by
batch, and hands them to pyarrow, Polars, pandas or DuckDB without a copy (Arrow C stream interface).

All times are integers, nanoseconds: since 1970-01-01T00:00:00Z if the clock of the trace knows the time of
day, else since the zero of that clock. Unit and meaning of a column are in the metadata of its field.
A number that may be wrong because events were lost has a column ``quality`` beside it: ``exact``,
``lower_bound`` (what is missing could only increase it) or ``unknown``.
"""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from importlib import import_module

from . import _lateralis
from ._lateralis import Error

__all__ = ["Error", "LossWarning", "NoSuchTable", "Table", "Trace", "TraceWarning", "open"]


class NoSuchTable(Error, KeyError):
    """The trace has no table of this name; the text has those with similar names."""

    # KeyError would show the text in quotes.
    __str__ = Error.__str__


class TraceWarning(UserWarning):
    """Something of a trace cannot be read, or its clocks do not relate; the rest is read."""


class LossWarning(TraceWarning):
    """Events were lost while the trace was recorded; shown once for each trace that is opened."""


def open(paths, *, begin=None, end=None):
    """Opens a recording or a trace of any format that ``lat`` reads; several are read as one.

    ``paths`` is a path or a list of paths. With ``begin`` and ``end``, both included, tables have only rows
    whose ``ts`` is in this time: nanoseconds, as in the tables. Tables without ``ts`` are not affected.

    Of a recording in progress the part is read that is there now; open it again to see more.

    Costs time for the headers of the packets at most; events are read when tables are. Files are mapped into
    memory: one that another program cuts while it is read ends the process.

    Raises :class:`Error` if a path holds no trace or cannot be read, or the time is empty.
    Warns by :class:`LossWarning` if events were lost, by :class:`TraceWarning` if a part cannot be read.
    """
    paths = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
    paths = [os.fsdecode(path) for path in paths]
    if not paths:
        raise Error("nothing to open: no path: give one at least")
    if begin is not None and end is not None and begin > end:
        raise Error(f"no time to read: begin {begin} is after end {end}: exchange them")
    core, remarks = _lateralis.open(paths, begin, end)
    for is_loss, text in remarks:
        warnings.warn(text, LossWarning if is_loss else TraceWarning, stacklevel=2)
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

    def table(self, name, *, columns=None, cpus=None, limit=None):
        """The table with this name, with all of its columns or these, in this order.

        ``cpus`` selects what happened on these CPUs, in tables of events; ``limit`` is the most rows.

        Raises :class:`NoSuchTable` with the nearest names, :class:`Error` if it has no such column.
        """
        columns = None if columns is None else list(columns)
        cpus = None if cpus is None else list(cpus)
        core = self._core.table(name, columns, cpus, limit)
        if core is None:
            near = self._core.nearest(name)
            advice = f"did you mean {', '.join(near)}?" if near else "see tables()"
            raise NoSuchTable(f"no such table: {name}: {advice}")
        return Table(self, name, core)

    def events(self, name=None, **select):
        """Events of a class (``sched_switch``, ``threads:MUTEX_LOCK``), with a column for each field; without
        a name those of all classes, with their fields as JSON. In the order of their stream, not of time.

        Options and errors are those of :meth:`table`.
        """
        if name is None:
            return self.table("events", **select)
        # A class with the name of another table.
        other = f"event:{name}"
        table = self.table(other if other in self.tables() else name, **select)
        if not table._core.is_of_events:
            raise NoSuchTable(f"no such class of events: {name}: the table of this name is table({name!r})")
        return table

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
        pandas, pyarrow = _library("pandas"), _library("pyarrow")

        def pandas_type(of):
            return None if pyarrow.types.is_dictionary(of) else pandas.ArrowDtype(of)

        with self._reading():
            rows = self._reader().read_all()
        return rows.to_pandas(types_mapper=pandas_type)

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


def _library(name):
    try:
        return import_module(name)
    except ImportError as error:
        raise Error(f"cannot import {name}: {error}: pip install {name}") from error
