/** The beginnings of texts that are too long, and texts that show nothing. */

/** Characters that have two UTF-16 units: a cut between them leaves half of one. */
const halfAtEnd = /[\uD800-\uDBFF]$/

/** At most so many UTF-16 units of a text, and no half of a character. */
export const beginningOf = (text: string, charsMax: number): string =>
  text.length <= charsMax ? text : text.slice(0, charsMax).replace(halfAtEnd, "")

/** Whether a person sees nothing of a text: it has spaces, controls and format characters only. */
export const isBlank = (text: string): boolean => !/[^\s\p{Z}\p{Cc}\p{Cf}]/u.test(text)
