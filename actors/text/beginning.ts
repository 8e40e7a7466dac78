/** The beginnings of texts that are too long. */

/** Characters that have two UTF-16 units: a cut between them leaves half of one. */
const halfAtEnd = /[\uD800-\uDBFF]$/

/** At most so many UTF-16 units of a text, and no half of a character. */
export const beginningOf = (text: string, charsMax: number): string =>
  text.length <= charsMax ? text : text.slice(0, charsMax).replace(halfAtEnd, "")
