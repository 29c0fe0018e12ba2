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

__all__ = ["Error", "LossWarning", "NoSuchTable", "Table", "Trace", "TraceWarning", "open"]

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

class NoSuchTable(Error, KeyError): ...
class TraceWarning(UserWarning): ...
class LossWarning(TraceWarning): ...

def open(
    paths: Union[_Path, Iterable[_Path]], *, begin: Optional[int] = None, end: Optional[int] = None
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
    ) -> Table: ...
    def events(
        self,
        name: Optional[str] = None,
        *,
        columns: Optional[Iterable[str]] = None,
        cpus: Optional[Iterable[int]] = None,
        limit: Optional[int] = None,
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
