// SPDX-License-Identifier: Apache-2.0 OR MIT
// Position of an error in a script: `LINE:COLUMN` in the error's `where`.

export function place(where: string | undefined): { line: number; column: number } | null {
  const found = /^(\d{1,7}):(\d{1,7})$/.exec(where ?? "");
  return found ? { line: Number(found[1]), column: Number(found[2]) } : null;
}
