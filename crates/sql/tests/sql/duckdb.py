# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs statements by DuckDB over tables in Parquet; prints a JSON list of rows for each.

    duckdb.py FOLDER STATEMENTS

FOLDER holds TABLE.parquet for each table, STATEMENTS is a file of them, one a line.
"""

import json
import pathlib
import sys

# This file must not be found in place of the module.
HERE = pathlib.Path(__file__).parent
sys.path = [place for place in sys.path if pathlib.Path(place or ".").resolve() != HERE]
import duckdb  # noqa: E402

connection = duckdb.connect()
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.parquet")):
    name = path.stem.replace("%3A", ":").replace('"', '""')
    connection.execute(f"CREATE VIEW \"{name}\" AS SELECT * FROM read_parquet('{path}')")
for statement in pathlib.Path(sys.argv[2]).read_text().splitlines():
    rows = connection.execute(statement).fetchall()
    print(json.dumps([[float(v) if type(v).__name__ == "Decimal" else v for v in row] for row in rows]))
