/**
 * The URL of a text, relative to `base`; undefined if the text is not one. In Node 20 and 22
 * `URL.canParse` begins to return false for texts with characters such as `ü` after thousands of
 * calls, when V8 has optimized its caller. The linter forbids it.
 */
export const parseUrl = (text: string, base?: string | URL): URL | undefined => {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}
