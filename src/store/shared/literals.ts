/** Words of our own as SQL has them, as in `'draft', 'open'`: an index over some of them is found by its very text. */
export function literals(words: readonly string[]): string {
  return words.map(word => `'${word}'`).join(', ')
}
