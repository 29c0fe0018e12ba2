// SPDX-License-Identifier: Apache-2.0 OR MIT
// Search of names by some of their letters, for the command palette and the search.

/** Quality of a match of letters in order, higher is better; null if they do not match. */
export function score(name: string, letters: string): number | null {
  const text = name.toLowerCase();
  const wanted = letters.toLowerCase().replace(/\s+/g, "");
  if (wanted === "") return 0;
  let points = 0;
  let at = -1;
  for (const letter of wanted) {
    const next = text.indexOf(letter, at + 1);
    if (next < 0) return null;
    const startsWord = next === 0 || /[^a-z0-9]/.test(text[next - 1]);
    points += next === at + 1 ? 5 : startsWord ? 4 : 1;
    at = next;
  }
  // A contiguous match is the most likely intention.
  if (text.includes(wanted)) points += 10;
  if (text.startsWith(wanted)) points += 10;
  return points - text.length / 100;
}

/** The matching items, the best first. */
export function search<T>(things: readonly T[], name: (thing: T) => string, letters: string, most = 50): T[] {
  const found: { thing: T; points: number }[] = [];
  for (const thing of things) {
    const points = score(name(thing), letters);
    if (points !== null) found.push({ thing, points });
  }
  return found
    .sort((a, b) => b.points - a.points)
    .slice(0, most)
    .map((one) => one.thing);
}
