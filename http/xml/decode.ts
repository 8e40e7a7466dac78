/** Bytes of a document to text: UTF-8 only, valid UTF-8 only, and no longer than allowed. */

import { documentBytesMax } from "../limits.ts"
import { failure, success } from "./element.ts"
import type { Result, XmlFault } from "./element.ts"

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
