/** Bytes of a document to text: UTF-8 only, valid UTF-8 only, and no longer than allowed. */
import { documentBytesMax } from "../../limits.ts"
import { failure, type Result, success, type XmlFault } from "./element.ts"

const decoder = new TextDecoder("utf-8", { fatal: true })

const malformed = (detail: string): Result<never, XmlFault> =>
  failure({ _tag: "Malformed", detail })

/** A byte order mark or the zero bytes of `<` that only UTF-16 and UTF-32 begin with. */
const looksWide = (bytes: Uint8Array): boolean => {
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
 * The text of a document body; a byte order mark is dropped.
 * Fails with `TooLarge` beyond 256 KiB, `Malformed` when it is not UTF-8, by charset or by content.
 */
export const decodeDocument = (
  bytes: Uint8Array,
  contentType = ""
): Result<string, XmlFault> => {
  if (bytes.length > documentBytesMax) {
    return failure({ _tag: "TooLarge", detail: `the document exceeds ${documentBytesMax} bytes` })
  }
  const charset = charsetOf(contentType)
  if (charset !== undefined && !isUtf8Name(charset)) {
    return malformed(`the charset ${charset.slice(0, 40)} is not read here: send UTF-8`)
  }
  if (looksWide(bytes)) return malformed("the document is in UTF-16 or UTF-32: send UTF-8")
  try {
    return success(decoder.decode(bytes))
  } catch {
    return malformed("the document is not valid UTF-8")
  }
}

/** A fault when the XML declaration names another encoding than UTF-8. */
export const refuseEncoding = (encoding: string | undefined): string | undefined =>
  encoding === undefined || isUtf8Name(encoding.toLowerCase())
    ? undefined
    : `the declared encoding ${encoding.slice(0, 40)} is not read here: send UTF-8`

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
