/**
 * Reading a notification document on the hot path, with one reused parser and no tree.
 * The rules are those of protocol §1.2 (A2) and §1.3 (A5); a rule that is broken is told apart
 * from bad syntax, since the first is answered with 422 and the second with 400.
 */
import type { SaxesTagPlain } from "saxes"
import { recipientsMax } from "../../limits.ts"
import { bare, decodeDocument } from "./decoding.ts"
import { usesNamespaces } from "./document.ts"
import { type Element, element, escapeAttribute, escapeText, failure, type Result, success,
  type XmlFault } from "./element.ts"
import { checkDeclaration, checkNamespaces, checkOpened, guardedParser,
  XmlRejected } from "./guard.ts"
import { attributesText, checkedUri, fieldOf, inlineContent, type NotificationDocument,
  type NotificationField, type ParsedInlineContent, type RuleFault,
  RuleViolation } from "./notification-rules.ts"
import { parsePlainNotification } from "./plain-notification.ts"

/** What the service itself puts in a stored or relayed notification. */
export interface FragmentChanges {
  /** Replaces `item/password`. */
  readonly password?: string | undefined
  /** Replaces `item/url`, after inlined content was published. */
  readonly url?: string | undefined
  /** Replaces `item/from`, when relaying. */
  readonly sender?: string | undefined
}

/**
 * `<item>…</item>` and after it the unknown elements of the root, as they will be served inside a
 * `notification` element: known fields first, unknown elements as they came. `to` is left out.
 */
export const storedFragment = (
  document: NotificationDocument,
  changes?: FragmentChanges
): string => {
  const attributes = document.fieldAttributes
  const password = changes?.password ?? document.password
  const sender = changes?.sender ?? document.sender
  let text = `<item${document.itemAttributes}><description${attributes?.["description"] ?? ""}>` +
    escapeText(document.description) + `</description><url${attributes?.["url"] ?? ""}>` +
    escapeText(changes?.url ?? document.url) + "</url>"
  if (password !== undefined) {
    text += `<password${attributes?.["password"] ?? ""}>${escapeText(password)}</password>`
  }
  if (sender !== undefined) {
    text += `<from${attributes?.["from"] ?? ""}>${escapeText(sender)}</from>`
  }
  if (document.content !== undefined) text += contentFragment(document)
  return `${text}${document.extra}</item>${document.rootExtra}`
}

const contentFragment = (document: NotificationDocument): string => {
  const content = document.content
  if (content === undefined) return ""
  const encoding = content.encoding === undefined ? "" : ` encoding="${content.encoding}"`
  return `<content type="${escapeAttribute(content.type)}"${encoding}` +
    `${document.fieldAttributes?.["content"] ?? ""}>${escapeText(content.text)}</content>`
}

/** A simple notification of the service's own making, as a document (of a form, of JSON). */
export const notificationElement = (fields: {
  readonly to?: ReadonlyArray<string>
  readonly from?: boolean
  readonly description: string
  readonly url: string
  readonly password?: string | undefined
  readonly content?: { readonly type: string; readonly text: string } | undefined
}): Element =>
  element(
    "notification",
    { from: fields.from === true ? "true" : undefined },
    ...(fields.to ?? []).map((uri) => element("to", {}, uri)),
    element(
      "item",
      {},
      element("description", {}, fields.description),
      element("url", {}, fields.url),
      fields.password === undefined ? undefined : element("password", {}, fields.password),
      fields.content === undefined
        ? undefined
        : element("content", { type: fields.content.type }, fields.content.text)
    )
  )

/* The form in which a notification is stored and served: an XML fragment, ready to be joined. */

let source = ""

let depth = 0

let nodes = 0

let extraDepth = 0

let extraStart = 0

let prefixed = false

let itemSeen = false

let inItem = false

let field: NotificationField | undefined

let fieldText = ""

let to: Array<string> = []

let fromAsked = false

let sender: string | undefined

let description: string | undefined

let url: string | undefined

let password: string | undefined

let content: ParsedInlineContent | undefined

let contentType = ""

let contentEncoding: "base64" | undefined

let rootNamespaces: Record<string, string> | undefined

let itemAttributes = ""

let fieldAttributes: Record<string, string> | undefined

let extra = ""

let rootExtra = ""

const reset = (text: string): void => {
  source = text
  depth =
    nodes =
    extraDepth =
    extraStart =
      0
  prefixed =
    itemSeen =
    inItem =
    fromAsked =
      false
  field = undefined
  fieldText =
    contentType =
    itemAttributes =
    extra =
    rootExtra =
      ""
  to = []
  sender =
    description =
    url =
    password =
      undefined
  content = undefined
  contentEncoding = undefined
  rootNamespaces = undefined
  fieldAttributes = undefined
}

const bareRecord = (): Record<string, string> => Object.create(null)

const openRoot = (tag: SaxesTagPlain): void => {
  if (tag.name !== "notification") {
    throw new RuleViolation("root", `the root element is ${tag.name}, not notification`)
  }
  for (const key in tag.attributes) {
    const value = tag.attributes[key] ?? ""
    if (key === "from") fromAsked = value.trim() === "true"
    else if (key === "xmlns" || key.startsWith("xmlns:")) {
      rootNamespaces ??= bareRecord()
      rootNamespaces[key] = value
    }
  }
}

const openItem = (tag: SaxesTagPlain): void => {
  if (itemSeen) throw new RuleViolation("one-item", "there is more than one item")
  itemSeen = inItem = true
  itemAttributes = attributesText(tag.attributes)
  if (rootNamespaces !== undefined) {
    itemAttributes += attributesText(rootNamespaces, Object.keys(tag.attributes))
  }
}

const openContent = (tag: SaxesTagPlain): void => {
  const type = tag.attributes["type"]?.trim()
  if (type === undefined || !/^[^\s/]+\/[^\s/]+/.test(type)) {
    throw new RuleViolation(
      "content-type",
      "item/content needs a type attribute holding a media type"
    )
  }
  const encoding: string | undefined = tag.attributes["encoding"]
  if (encoding !== undefined && encoding !== "base64") {
    throw new RuleViolation("content-encoding", "the encoding of item/content can only be base64")
  }
  contentType = type
  contentEncoding = encoding
}

const taken = (name: NotificationField): boolean => {
  switch (name) {
    case "to":
      return false
    case "from":
      return sender !== undefined
    case "description":
      return description !== undefined
    case "url":
      return url !== undefined
    case "password":
      return password !== undefined
    case "content":
      return content !== undefined
  }
}

const openField = (name: NotificationField, tag: SaxesTagPlain): void => {
  if (taken(name)) throw new RuleViolation("duplicate", `item/${name} is given twice`)
  field = name
  fieldText = ""
  if (name === "content") openContent(tag)
  for (const _ in tag.attributes) {
    const besides = name === "content" ? ["type", "encoding"] : undefined
    const text = attributesText(tag.attributes, besides)
    if (text === "") return
    fieldAttributes ??= bareRecord()
    fieldAttributes[name] = text
    return
  }
}

const isKnown = (name: string): boolean =>
  name === "notification" || name === "item" || name === "to" || fieldOf(name) !== undefined

const opened = (tag: SaxesTagPlain): void => {
  depth += 1
  nodes += 1
  let bare = depth <= 3 && isKnown(tag.name)
  for (const _ in tag.attributes) {
    bare = false
    break
  }
  if (!bare) {
    checkOpened(tag.name, tag.attributes, depth, nodes)
    if (!prefixed) prefixed = usesNamespaces(tag.name, tag.attributes)
  }
  if (extraDepth !== 0) return
  if (field !== undefined) throw new RuleViolation("text-only", `${field} can only hold text`)
  if (depth === 1) {
    checkDeclaration(parser.xmlDecl)
    return openRoot(tag)
  }
  const known = inItem ? fieldOf(tag.name) : tag.name === "to" ? "to" : undefined
  if (known !== undefined) return openField(known, tag)
  if (!inItem && tag.name === "item") return openItem(tag)
  extraDepth = depth
  extraStart = source.lastIndexOf("<", parser.position - 1)
  if (!inItem && rootNamespaces !== undefined) openRootExtra(tag)
}

/** An element beside the item gets the root's namespaces, to stand on its own later. */
const openRootExtra = (tag: SaxesTagPlain): void => {
  const missing = attributesText(rootNamespaces ?? {}, Object.keys(tag.attributes))
  const nameEnd = extraStart + 1 + tag.name.length
  rootExtra += `<${tag.name}${missing}`
  extraStart = nameEnd
}

const closeField = (name: NotificationField): void => {
  const trimmed = fieldText.trim()
  switch (name) {
    case "to":
      if (to.length === recipientsMax) {
        throw new RuleViolation("recipients", `there are more than ${recipientsMax} to elements`)
      }
      to.push(checkedUri(`to number ${to.length + 1}`, trimmed))
      break
    case "url":
      url = trimmed === "" ? "" : checkedUri("item/url", trimmed)
      break
    case "from":
      sender = checkedUri("item/from", trimmed)
      break
    case "description":
      description = fieldText
      break
    case "password":
      password = trimmed
      break
    case "content":
      content = inlineContent(contentType, contentEncoding, fieldText)
  }
  field = undefined
}

const closed = (): void => {
  if (extraDepth !== 0) {
    if (extraDepth === depth) {
      const text = source.slice(extraStart, parser.position)
      if (inItem) extra += text
      else rootExtra += text
      extraDepth = 0
    }
  } else if (field !== undefined) closeField(field)
  else if (inItem) inItem = false
  depth -= 1
}

const hasInk = /[^ \t\r\n]/

const textual = (text: string): void => {
  if (field !== undefined) fieldText += text
  else if (extraDepth === 0 && depth !== 0 && hasInk.test(text)) {
    const where = inItem ? "item" : "notification"
    throw new RuleViolation("stray-text", `${where} holds text between its elements`)
  }
}

const newParser = () => guardedParser({ open: opened, close: closed, text: textual })

let parser = newParser()

const finish = (): NotificationDocument => {
  if (!itemSeen) throw new RuleViolation("item", "item is required")
  if (description === undefined) {
    throw new RuleViolation("description", "item/description is required")
  }
  if (url === undefined && content === undefined) {
    throw new RuleViolation("url", "item/url is required")
  }
  if (!url && content === undefined) {
    throw new RuleViolation("url", "item/url is empty, without content")
  }
  if (prefixed) checkNamespaces(source)
  return {
    to,
    from: fromAsked,
    sender,
    description,
    url: url ?? "",
    password,
    content,
    itemAttributes,
    fieldAttributes,
    extra,
    rootExtra
  }
}

/** As `parseNotification`, of text that is already decoded. */
export const parseNotificationText = (
  text: string
): Result<NotificationDocument, XmlFault | RuleFault> => {
  const root = bare(text)
  const plain = parsePlainNotification(root)
  if (plain !== undefined) return success(plain)
  reset(root)
  try {
    parser.write(source).close()
    return success(finish())
  } catch (error) {
    parser = newParser()
    if (error instanceof RuleViolation) {
      return failure({ _tag: "RuleBroken", rule: error.rule, detail: error.message })
    }
    if (error instanceof XmlRejected) return failure({ _tag: "Malformed", detail: error.message })
    throw error
  } finally {
    source = ""
  }
}

/**
 * A notification document of a request body.
 * Fails with `TooLarge` (413), `Malformed` (400) or `RuleBroken` (422, naming the rule).
 */
export const parseNotification = (
  bytes: Uint8Array,
  contentType = ""
): Result<NotificationDocument, XmlFault | RuleFault> => {
  const decoded = decodeDocument(bytes, contentType)
  return decoded.ok ? parseNotificationText(decoded.value) : decoded
}
