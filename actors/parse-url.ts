/**
 * The URL of a text, relative to `base`; undefined for none. `URL.canParse` of Node 20 and 22 is
 * false for a text with characters such as `ü` once V8 has optimized its caller, after thousands of
 * calls: no module uses it.
 */
export const parseUrl = (text: string, base?: string | URL): URL | undefined => {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}
