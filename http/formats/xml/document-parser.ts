/** Reads the documents that clients send, in XML and JSON, within the operator's limits. */
import { isAscii } from "node:buffer"
import type { SealPassword } from "../../../actors/index.ts"
import { type DocumentLimits, formBytesMax, storedFactorMax } from "../../limits.ts"
import { isUtf8Name, parseText, parseWithSources, XmlRejected } from "./document.ts"
import { type Element, failure, type Result, success, type XmlFault } from "./element.ts"
import { fromJson, parseExactJson } from "./json.ts"
import { FragmentTooLarge, type NotificationDocument, readNotificationElement, type RuleFault,
  RuleViolation, storedFragment } from "./notification-document.ts"
import { parsePlainNotification } from "./plain-notification-parser.ts"

const decoder = new TextDecoder("utf-8", { fatal: true })

const malformed = (detail: string): Result<never, XmlFault> =>
  failure({ _tag: "Malformed", detail })

/** Whether the bytes begin with a byte order mark or a `<` of UTF-16 or UTF-32. */
const isWide = (bytes: Uint8Array): boolean => {
  const first = bytes[0]
  const second = bytes[1]
  return (first === 0xfe && second === 0xff) || (first === 0xff && second === 0xfe) ||
    (first === 0x3c && second === 0) || (first === 0 && (second === 0x3c || second === 0))
}

/** Bytes of UTF-8 that one UTF-16 code unit takes at most. */
const bytesOfCharMax = 3

/** The text of bytes that are all ASCII. */
const asciiText = (bytes: Uint8Array): string =>
  (bytes instanceof Buffer ? bytes : Buffer.from(bytes)).toString("latin1")

const charsetPattern = /;\s*charset\s*=\s*"?([^";\s]+)"?/i

const usualDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"

const lineFeed = 10

const space = 32

const isBlank = (code: number): boolean => code === lineFeed || code === space

/**
 * The document without the usual XML declaration and without white space at its end. saxes spends
 * as much time on these as on the rest of a small document, and the plain parser rejects them.
 */
const withoutProlog = (text: string): string => {
  let first = 0
  let end = text.length
  if (text.startsWith(usualDeclaration)) {
    first = usualDeclaration.length
    while (isBlank(text.charCodeAt(first))) first++
  }
  // The parser rejects a second declaration.
  if (text.startsWith("<?", first)) return text
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--
  return first === 0 && end === text.length ? text : text.slice(first, end)
}

/** The detail of a 413 for a document: the limit, its setting, and the size if it is known. */
export const documentTooLarge = (bytesMax: number, sizeBytes?: number): string => {
  const size = sizeBytes === undefined ? "more" : `${sizeBytes}`
  return `a document may have at most ${bytesMax} bytes (DOCUMENT_BYTES_MAX), and this has ` +
    `${size}: publish what is larger as content, and send its URI`
}

/**
 * The parser of one service, with its limits. Too many bytes fail with `TooLarge` (413). A
 * Content-Type or an XML declaration with another charset than UTF-8 fails with `OtherCharset`
 * (415), and markup that a browser would run with `ActiveMarkup` (422). Bytes that are not UTF-8,
 * not well-formed, nested too deep or otherwise not accepted fail with `Malformed` (400).
 */
export class DocumentParser {
  readonly limits: DocumentLimits
  private readonly fragmentBytesMax: number

  constructor(limits: DocumentLimits) {
    const { documentBytesMax } = limits
    if (documentBytesMax < formBytesMax) {
      throw new Error(
        `documentBytesMax is ${documentBytesMax}; forms need ${formBytesMax} or more`
      )
    }
    this.limits = limits
    this.fragmentBytesMax = storedFactorMax * documentBytesMax
  }

  /** The text of a body, without its byte order mark; `contentType` may name its charset. */
  decode(bytes: Uint8Array, contentType = ""): Result<string, XmlFault> {
    const { documentBytesMax } = this.limits
    if (bytes.length > documentBytesMax) {
      const detail = documentTooLarge(documentBytesMax, bytes.length)
      return failure({ _tag: "TooLarge", detail })
    }
    const charset = contentType.includes("=") ? charsetPattern.exec(contentType)?.[1] : undefined
    if (charset !== undefined && !isUtf8Name(charset)) {
      const detail = `the charset ${charset.slice(0, 40)} is not supported: send UTF-8`
      return failure({ _tag: "OtherCharset", detail })
    }
    if (isWide(bytes)) return malformed("the document is in UTF-16 or UTF-32: send UTF-8")
    // Most documents are, and the decoder takes three times as long.
    if (isAscii(bytes)) return success(asciiText(bytes))
    try {
      return success(decoder.decode(bytes))
    } catch {
      return malformed("the document is not valid UTF-8: send UTF-8")
    }
  }

  /** The root element of an XML document. */
  parseXml(bytes: Uint8Array, contentType = ""): Result<Element, XmlFault> {
    const text = this.decode(bytes, contentType)
    return text.ok ? parseText(text.value, this.limits.xmlDepthMax) : text
  }

  /** The root element, named `rootName`, of a document in JSON. */
  parseJson(rootName: string, bytes: Uint8Array, contentType = ""): Result<Element, XmlFault> {
    const text = this.decode(bytes, contentType)
    if (!text.ok) return text
    const value = parseExactJson(text.value)
    return value.ok ? this.fromJson(rootName, value.value) : value
  }

  /** The root element, named `rootName`, of a JSON value. */
  fromJson(rootName: string, value: unknown): Result<Element, XmlFault> {
    return fromJson(rootName, value, this.limits.xmlDepthMax)
  }

  /** A notification document; it may also fail with `RuleBroken` (422). */
  parseNotification(
    bytes: Uint8Array,
    contentType = ""
  ): Result<NotificationDocument, XmlFault | RuleFault> {
    const text = this.decode(bytes, contentType)
    return text.ok ? this.parseNotificationText(text.value) : text
  }

  /** {@link parseNotification} of text that is already decoded. */
  parseNotificationText(text: string): Result<NotificationDocument, XmlFault | RuleFault> {
    const source = withoutProlog(text)
    const plain = parsePlainNotification(source)
    if (plain !== undefined) return success(plain)
    const { recipientsMax, xmlDepthMax } = this.limits
    try {
      const { root, sources } = parseWithSources(source, xmlDepthMax)
      const limits = { recipientsMax, fragmentBytesMax: this.fragmentBytesMax }
      return success(readNotificationElement(root, sources, limits))
    } catch (error) {
      if (error instanceof FragmentTooLarge) return this.fragmentTooLarge()
      if (error instanceof RuleViolation) {
        return failure({ _tag: "RuleBroken", rule: error.rule, detail: error.message })
      }
      if (error instanceof XmlRejected) return failure({ _tag: error.kind, detail: error.message })
      throw error
    }
  }

  /**
   * The notification as it is stored. It may be several times larger than its document; then this
   * fails with `TooLarge`, as the store could refuse it.
   */
  fragmentToStore(document: NotificationDocument, seal: SealPassword): Result<string, XmlFault> {
    const { fragmentBytesMax } = this
    const fragment = storedFragment(document, seal)
    const fits = fragment.length * bytesOfCharMax <= fragmentBytesMax ||
      Buffer.byteLength(fragment) <= fragmentBytesMax
    return fits ? success(fragment) : this.fragmentTooLarge()
  }

  private fragmentTooLarge(): Result<never, XmlFault> {
    const detail = `the notification takes more than ${this.fragmentBytesMax} bytes as it is ` +
      "stored, twice DOCUMENT_BYTES_MAX: characters such as & and < take several bytes there; " +
      "publish the text as content instead"
    return failure({ _tag: "TooLarge", detail })
  }
}
