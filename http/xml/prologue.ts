/**
 * What stands around the root of nearly every document: the usual declaration before it and white
 * space after it. The parser takes as long for these as for all the rest of a small one.
 */

const usual = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
const lineFeed = 10
const space = 32

const isBlank = (code: number): boolean => code === lineFeed || code === space

/** A document without the usual declaration and without white space at its end. */
export const bare = (text: string): string => {
  const start = text.startsWith(usual) ? usual.length : 0
  let first = start
  let end = text.length
  if (start > 0) { while (isBlank(text.charCodeAt(first))) first++ }
  // A second declaration is for the parser to refuse.
  if (text.startsWith("<?", first)) return text
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--
  return first === 0 && end === text.length ? text : text.slice(first, end)
}
