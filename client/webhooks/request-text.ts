/**
 * A request as a log or a program prints it: header fields as lines, as JSON, or as the variables
 * of CGI, then an empty line and the body. Pure.
 */

/** The header fields of a request, by their names in lower case, and its body as it is. */
export interface RequestText {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

const namePattern = /^[a-z0-9-]+$/

/** Names of fields as CGI, WSGI and PHP have them: HTTP_WEBHOOK_ID. */
const nameOf = (text: string): string =>
  text.toLowerCase().replace(/^http_/, "").replaceAll("_", "-")

const quotes = /^(["'])(.*)\1$/

/** A text without these characters at its end, in linear time, which `/[,}]+$/` does not take. */
export const withoutEnd = (text: string, characters: string): string => {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--
  return text.slice(0, end)
}

/** A text without blanks, quotes and the comma of a printed object around it. */
const bare = (text: string): string => {
  const trimmed = withoutEnd(text.trim().replace(/^[<>{|*]+/, ""), ",} \t").trim()
  return quotes.exec(trimmed)?.[2] ?? trimmed
}

/** The lines of header fields; a printed object on one line has a field after each comma. */
const linesOf = (text: string): ReadonlyArray<string> =>
  text.trimStart().startsWith("{")
    ? text.split(/\n|,\s*(?=["'])/)
    : text.split("\n")

/**
 * The header fields in a text. What is no field is ignored, such as the request line; of two fields
 * of a name the first counts.
 */
export const readHeaderText = (text: string): Readonly<Record<string, string>> => {
  const fields = new Map<string, string>()
  for (const line of linesOf(text)) {
    const [separator = ""] = /[:=]/.exec(line) ?? []
    const at = separator === "" ? -1 : line.indexOf(separator)
    const name = at < 0 ? "" : nameOf(bare(line.slice(0, at)))
    if (namePattern.test(name) && !fields.has(name)) fields.set(name, bare(line.slice(at + 1)))
  }
  return Object.fromEntries(fields)
}

const lineFeed = 10

const carriageReturn = 13

/** Where the body begins: behind the first empty line, which may have the `>` of a log. */
const bodyStart = (bytes: Uint8Array): number | undefined => {
  let start = 0
  while (start < bytes.length) {
    const end = bytes.indexOf(lineFeed, start)
    if (end < 0) return undefined
    const last = bytes[end - 1] === carriageReturn ? end - 1 : end
    const line = new TextDecoder().decode(bytes.subarray(start, Math.min(last, start + 4)))
    if (/^[<>]? ?$/.test(line)) return end + 1
    start = end + 1
  }
  return undefined
}

/** Reads a request: its header fields, an empty line, and the body up to the end. */
export const readRequestText = (bytes: Uint8Array): RequestText => {
  const start = bodyStart(bytes) ?? bytes.length
  const head = new TextDecoder().decode(bytes.subarray(0, start))
  return { headers: readHeaderText(head), body: bytes.subarray(start) }
}
