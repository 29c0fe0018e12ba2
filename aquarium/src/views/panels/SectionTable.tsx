// SPDX-License-Identifier: Apache-2.0 OR MIT
// A section as a table, whatever its columns are. A click on a heading sorts it, on the server: that knows all rows.

import { cellText, isNumeric } from "../../logic/cells.ts";
import type { SectionAnswer, SectionColumn } from "../../protocol/types.ts";

export interface Sorting {
  column: string;
  descending: boolean;
}

/** Numbers begin with the largest, texts with the first letter; a second click reverses that. */
function next(column: SectionColumn, now: Sorting | null): Sorting {
  if (now?.column === column.name) return { column: column.name, descending: !now.descending };
  return { column: column.name, descending: isNumeric(column.unit) };
}

export function SectionTable({
  section,
  sorting,
  onSort,
  onTime,
  onRow,
}: {
  section: SectionAnswer;
  sorting: Sorting | null;
  onSort: (sorting: Sorting) => void;
  onTime: (time: number) => void;
  /** What a click on the first cell of a row does. */
  onRow?: { title: string; act: (first: string) => void };
}) {
  // A column in which nothing is known of any row has no place.
  const columns = section.columns.filter((column) => column.values.some((value) => value !== null));
  const rows = Array.from({ length: section.count }, (_, row) => row);
  const sortOf = ({ name }: SectionColumn) =>
    sorting?.column !== name ? undefined : sorting.descending ? "descending" : "ascending";
  return (
    <table aria-label={section.title}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th
              key={column.name}
              class={isNumeric(column.unit) ? "right" : ""}
              aria-sort={sortOf(column)}
              scope="col"
            >
              <button title={`Sort by ${column.title}`} onClick={() => onSort(next(column, sorting))}>
                {column.title}
                {sorting?.column === column.name ? (sorting.descending ? " ↓" : " ↑") : ""}
              </button>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row}>
            {columns.map((column, at) => (
              <td
                key={column.name}
                class={isNumeric(column.unit) ? "right" : "text"}
                title={column.unit === "text" ? String(column.values[row] ?? "") : undefined}
              >
                <Cell column={column} row={row} onTime={onTime} onFirst={at === 0 ? onRow : undefined} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell({
  column,
  row,
  onTime,
  onFirst,
}: {
  column: SectionColumn;
  row: number;
  onTime: (time: number) => void;
  onFirst?: { title: string; act: (first: string) => void };
}) {
  const text = cellText(column, row);
  const value = column.values[row];
  if (column.unit === "time" && typeof value === "number") {
    return (
      <button class="link" title="Go there" onClick={() => onTime(value)}>
        {text}
      </button>
    );
  }
  if (onFirst && typeof value === "string") {
    return (
      <button class="link" title={`${onFirst.title} ${value}`} onClick={() => onFirst.act(value)}>
        {text}
      </button>
    );
  }
  return <>{text}</>;
}
