# SPDX-License-Identifier: Apache-2.0 OR MIT
import os
from collections.abc import Iterable, Iterator
from typing import Any, Optional, Union

import duckdb as _duckdb
import pandas as _pandas
import polars as _polars
import pyarrow as _pyarrow

from . import _lateralis
from ._lateralis import Error as Error

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

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

_Time = Union[int, str, None]
_Texts = Union[str, int, Iterable[Union[str, int]], None]

class NoSuchTable(Error, KeyError): ...
class NotRecorded(Error, KeyError): ...
class TraceWarning(UserWarning): ...
class LossWarning(TraceWarning): ...

def open(
    paths: Union[_Path, Iterable[_Path]],
    *,
    begin: _Time = None,
    end: _Time = None,
    window: Optional[tuple[_Time, _Time]] = None,
) -> Trace: ...

class Trace:
    def __init__(self, core: _lateralis.Trace, paths: list[str]) -> None: ...
    def tables(self) -> list[str]: ...
    def table(
        self,
        name: str,
        *,
        columns: Optional[Iterable[str]] = None,
        cpus: Optional[Iterable[int]] = None,
        limit: Optional[int] = None,
        where: _Texts = None,
    ) -> Table: ...
    def events(
        self,
        name: Optional[str] = None,
        *,
        columns: Optional[Iterable[str]] = None,
        cpus: Optional[Iterable[int]] = None,
        limit: Optional[int] = None,
        where: _Texts = None,
    ) -> Table: ...
    def spans(
        self,
        *,
        columns: Optional[Iterable[str]] = None,
        cpus: Optional[Iterable[int]] = None,
        limit: Optional[int] = None,
    ) -> Table: ...
    def flows(
        self,
        *,
        columns: Optional[Iterable[str]] = None,
        cpus: Optional[Iterable[int]] = None,
        limit: Optional[int] = None,
    ) -> Table: ...
    def states(
        self,
        *,
        columns: Optional[Iterable[str]] = None,
        cpus: Optional[Iterable[int]] = None,
        limit: Optional[int] = None,
    ) -> Table: ...
    def counters(
        self,
        *,
        columns: Optional[Iterable[str]] = None,
        cpus: Optional[Iterable[int]] = None,
        limit: Optional[int] = None,
    ) -> Table: ...
    def losses(
        self,
        *,
        columns: Optional[Iterable[str]] = None,
        cpus: Optional[Iterable[int]] = None,
        limit: Optional[int] = None,
    ) -> Table: ...
    def stats(
        self,
        section: Union[str, Iterable[str], None] = None,
        *,
        where: _Texts = None,
        event: _Texts = None,
        subsystem: _Texts = None,
        cpu: Union[int, Iterable[int], None] = None,
        app: _Texts = None,
        thread: _Texts = None,
        filter: _Texts = None,
        from_: _Time = None,
        until: _Time = None,
    ) -> Stats: ...
    def path(
        self,
        span: Optional[str] = None,
        *,
        number: Optional[int] = None,
        at: _Time = None,
        where: _Texts = None,
        event: _Texts = None,
        subsystem: _Texts = None,
        cpu: Union[int, Iterable[int], None] = None,
        app: _Texts = None,
        thread: _Texts = None,
        filter: _Texts = None,
        from_: _Time = None,
        until: _Time = None,
    ) -> dict[str, Any]: ...
    def diff(
        self,
        others: Union[_Path, Trace, Iterable[Union[_Path, Trace]]],
        *,
        good: Union[_Path, Trace, Iterable[Union[_Path, Trace]]] = (),
        threshold: float = 5,
        noise: float = 2,
        only_worse: bool = False,
        shares: bool = False,
        symfs: Optional[_Path] = None,
        where: _Texts = None,
        event: _Texts = None,
        subsystem: _Texts = None,
        cpu: Union[int, Iterable[int], None] = None,
        app: _Texts = None,
        thread: _Texts = None,
        filter: _Texts = None,
        from_: _Time = None,
        until: _Time = None,
    ) -> dict[str, Any]: ...
    def sql(self, statement: str, *, memory: Optional[str] = None) -> Rows: ...

class Rows:
    name: str
    def __init__(self, name: str, rows: Any) -> None: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def arrow(self) -> _pyarrow.Table: ...
    def polars(self) -> _polars.DataFrame: ...
    def pandas(self) -> _pandas.DataFrame: ...

class Stats:
    document: dict[str, Any]
    def __init__(self, document: dict[str, Any]) -> None: ...
    @property
    def quality(self) -> dict[str, str]: ...
    def sections(self) -> list[str]: ...
    def __getitem__(self, name: str) -> Rows: ...

class Table:
    name: str
    def __init__(self, trace: Trace, name: str, core: _lateralis.Table) -> None: ...
    @property
    def description(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def schema(self) -> _pyarrow.Schema: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def batches(self) -> Iterator[_pyarrow.RecordBatch]: ...
    def arrow(self) -> _pyarrow.Table: ...
    def polars(self) -> _polars.DataFrame: ...
    def pandas(self) -> _pandas.DataFrame: ...
    def duckdb(self, connection: Optional[_duckdb.DuckDBPyConnection] = None) -> _duckdb.DuckDBPyRelation: ...
