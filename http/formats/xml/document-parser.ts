/** Reads the documents that clients send, in XML and JSON, within the operator's limits. */
import { type DocumentLimits, formBytesMax } from "../../limits.ts"
import { decodeDocument } from "./decoding.ts"
import { parseText } from "./document.ts"
import type { Element, Result, XmlFault } from "./element.ts"
import { fromJson, parseExactJson } from "./json.ts"
import type { NotificationDocument, RuleFault } from "./notification-document.ts"
import { NotificationParser } from "./notification-parser.ts"

/**
 * Each service has one. Bytes that are too many fail with `TooLarge` (413). Bytes that are not
 * UTF-8, not well-formed, nested too deep or otherwise not accepted fail with `Malformed` (400).
 */
export class DocumentParser {
  readonly limits: DocumentLimits
  private readonly notifications: NotificationParser

  constructor(limits: DocumentLimits) {
    if (limits.documentBytesMax < formBytesMax) {
      throw new Error(`documentBytesMax must be at least ${formBytesMax}, as a form may be`)
    }
    this.limits = limits
    this.notifications = new NotificationParser(limits)
  }

  /** The text of a body; `contentType` may name its charset. */
  decode(bytes: Uint8Array, contentType = ""): Result<string, XmlFault> {
    return decodeDocument(bytes, contentType, this.limits.documentBytesMax)
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
    return text.ok ? this.notifications.parse(text.value) : text
  }

  /** {@link parseNotification} of text that is already decoded. */
  parseNotificationText(text: string): Result<NotificationDocument, XmlFault | RuleFault> {
    return this.notifications.parse(text)
  }
}
