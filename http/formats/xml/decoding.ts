/** Decodes the bytes of a document: only valid UTF-8, and no more bytes than allowed. */
import { failure, type Result, success, type XmlFault } from "./element.ts"

const decoder = new TextDecoder("utf-8", { fatal: true })

const malformed = (detail: string): Result<never, XmlFault> =>
  failure({ _tag: "Malformed", detail })

/**
 * Whether the bytes begin as only UTF-16 and UTF-32 do: with their byte order mark or a wide `<`.
 */
const isWide = (bytes: Uint8Array): boolean => {
  const first = bytes[0]
  const second = bytes[1]
  return (first === 0xfe && second === 0xff) || (first === 0xff && second === 0xfe) ||
    (first === 0x3c && second === 0) || (first === 0 && (second === 0x3c || second === 0))
}

const charsetPattern = /;\s*charset\s*=\s*"?([^";\s]+)"?/i

/** The charset parameter of a Content-Type, lower case. */
export const charsetOf = (contentType: string): string | undefined =>
  contentType.includes("=") ? charsetPattern.exec(contentType)?.[1]?.toLowerCase() : undefined

const isUtf8Name = (charset: string): boolean =>
  charset === "utf-8" || charset === "utf8" || charset === "us-ascii"

/**
 * The text of a document body, without its byte order mark. Fails with `TooLarge` beyond
 * `documentBytesMax`, and with `Malformed` if its charset or its bytes are not UTF-8.
 */
export const decodeDocument = (
  bytes: Uint8Array,
  contentType: string,
  documentBytesMax: number
): Result<string, XmlFault> => {
  if (bytes.length > documentBytesMax) {
    return failure({ _tag: "TooLarge", detail: `the document exceeds ${documentBytesMax} bytes` })
  }
  const charset = charsetOf(contentType)
  if (charset !== undefined && !isUtf8Name(charset)) {
    return malformed(`the charset ${charset.slice(0, 40)} is not supported: send UTF-8`)
  }
  if (isWide(bytes)) return malformed("the document is in UTF-16 or UTF-32: send UTF-8")
  try {
    return success(decoder.decode(bytes))
  } catch {
    return malformed("the document is not valid UTF-8")
  }
}

/** Why the encoding that an XML declaration names is rejected; undefined for UTF-8. */
export const encodingFault = (encoding: string | undefined): string | undefined =>
  encoding === undefined || isUtf8Name(encoding.toLowerCase())
    ? undefined
    : `the declared encoding ${encoding.slice(0, 40)} is not supported: send UTF-8`

const usualDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"

const lineFeed = 10

const space = 32

const isBlank = (code: number): boolean => code === lineFeed || code === space

/**
 * The document without the usual XML declaration and without white space at its end. saxes spends
 * as much time on these as on the rest of a small document.
 */
export const withoutProlog = (text: string): string => {
  const start = text.startsWith(usualDeclaration) ? usualDeclaration.length : 0
  let first = start
  let end = text.length
  if (start > 0) { while (isBlank(text.charCodeAt(first))) first++ }
  // The parser rejects a second declaration.
  if (text.startsWith("<?", first)) return text
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--
  return first === 0 && end === text.length ? text : text.slice(first, end)
}
