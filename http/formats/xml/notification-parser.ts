/**
 * Reads any notification document with one reused saxes parser and without building a tree
 * (protocol A2, A5). Bad syntax is answered with 400 and a broken rule with 422, so that the two
 * are different faults.
 */
import type { SaxesTagPlain } from "saxes"
import type { DocumentLimits } from "../../limits.ts"
import { withoutProlog } from "./decoding.ts"
import { failure, type Result, success, type XmlFault } from "./element.ts"
import { checkDeclaration, checkNamespaces, checkOpened, guardedParser, usesNamespaces,
  XmlRejected } from "./guarded-parser.ts"
import { attributesText, checkUri, fieldOf, inlineContent, type NotificationDocument,
  type NotificationField, type RuleFault, RuleViolation } from "./notification-document.ts"
import { parsePlainNotification } from "./plain-notification-parser.ts"

/** The document that is being read; `finish` checks that nothing required is missing. */
type Draft =
  & { -readonly [Key in keyof NotificationDocument]: NotificationDocument[Key] | undefined }
  & {
    readonly to: Array<string>
    itemAttributes: string
    fieldAttributes: Record<string, string> | undefined
    extra: string
    rootExtra: string
    from: boolean
  }

const emptyDraft = (): Draft => ({
  to: [],
  from: false,
  sender: undefined,
  description: undefined,
  url: undefined,
  password: undefined,
  content: undefined,
  itemAttributes: "",
  fieldAttributes: undefined,
  extra: "",
  rootExtra: ""
})

const emptyRecord = (): Record<string, string> => Object.create(null)

const isKnown = (name: string): boolean =>
  name === "notification" || name === "item" || name === "to" || fieldOf(name) !== undefined

const nonBlank = /[^ \t\r\n]/

/** Reads notifications one after the other; each service has one. */
export class NotificationParser {
  private readonly limits: DocumentLimits
  private parser = this.newParser()
  private source = ""
  private draft = emptyDraft()
  private depth = 0
  private nodes = 0
  /** The depth of the unknown element that is being skipped; 0 outside of one. */
  private extraDepth = 0
  private extraStart = 0
  private hasPrefixes = false
  private hasItem = false
  private isInItem = false
  private field: NotificationField | undefined
  private fieldText = ""
  private contentType = ""
  private contentEncoding: "base64" | undefined
  private rootNamespaces: Record<string, string> | undefined

  constructor(limits: DocumentLimits) {
    this.limits = limits
  }

  /** Parses text. Fails with `Malformed` (400) or `RuleBroken` (422, naming the rule). */
  parse(text: string): Result<NotificationDocument, XmlFault | RuleFault> {
    const source = withoutProlog(text)
    const plain = parsePlainNotification(source)
    if (plain !== undefined) return success(plain)
    this.reset(source)
    try {
      this.parser.write(source).close()
      return success(this.finish())
    } catch (error) {
      this.parser = this.newParser()
      if (error instanceof RuleViolation) {
        return failure({ _tag: "RuleBroken", rule: error.rule, detail: error.message })
      }
      if (error instanceof XmlRejected) return failure({ _tag: "Malformed", detail: error.message })
      throw error
    } finally {
      this.source = ""
    }
  }

  private newParser() {
    return guardedParser({
      open: (tag) => this.open(tag),
      close: () => this.close(),
      text: (text) => this.text(text)
    })
  }

  private reset(source: string): void {
    this.source = source
    this.draft = emptyDraft()
    this.depth = 0
    this.nodes = 0
    this.extraDepth = 0
    this.hasPrefixes = false
    this.hasItem = false
    this.isInItem = false
    this.field = undefined
    this.rootNamespaces = undefined
  }

  private open(tag: SaxesTagPlain): void {
    this.depth += 1
    this.nodes += 1
    let isHarmless = this.depth <= 3 && isKnown(tag.name)
    for (const _ in tag.attributes) {
      isHarmless = false
      break
    }
    if (!isHarmless) {
      checkOpened(tag.name, tag.attributes, this.depth, this.nodes, this.limits.xmlDepthMax)
      this.hasPrefixes ||= usesNamespaces(tag.name, tag.attributes)
    }
    if (this.extraDepth !== 0) return
    if (this.field !== undefined) {
      throw new RuleViolation("text-only", `${this.field} can only hold text`)
    }
    if (this.depth === 1) return this.openRoot(tag)
    const field = this.isInItem ? fieldOf(tag.name) : tag.name === "to" ? "to" : undefined
    if (field !== undefined) this.openField(field, tag)
    else if (!this.isInItem && tag.name === "item") this.openItem(tag)
    else this.openExtra(tag)
  }

  private openRoot(tag: SaxesTagPlain): void {
    checkDeclaration(this.parser.xmlDecl)
    if (tag.name !== "notification") {
      throw new RuleViolation("root", `the root element is ${tag.name}, not notification`)
    }
    for (const key in tag.attributes) {
      const value = tag.attributes[key] ?? ""
      if (key === "from") this.draft.from = value.trim() === "true"
      else if (key === "xmlns" || key.startsWith("xmlns:")) {
        this.rootNamespaces ??= emptyRecord()
        this.rootNamespaces[key] = value
      }
    }
  }

  private openItem(tag: SaxesTagPlain): void {
    if (this.hasItem) throw new RuleViolation("one-item", "there is more than one item")
    this.hasItem = this.isInItem = true
    this.draft.itemAttributes = attributesText(tag.attributes) + this.namespacesMissingIn(tag)
  }

  private openField(name: NotificationField, tag: SaxesTagPlain): void {
    const { draft } = this
    const isDuplicate = name === "from"
      ? draft.sender !== undefined
      : name !== "to" && draft[name] !== undefined
    if (isDuplicate) throw new RuleViolation("duplicate", `item/${name} occurs twice`)
    this.field = name
    this.fieldText = ""
    if (name === "content") this.openContent(tag)
    const text = attributesText(
      tag.attributes,
      name === "content" ? ["type", "encoding"] : undefined
    )
    if (text === "") return
    draft.fieldAttributes ??= emptyRecord()
    draft.fieldAttributes[name] = text
  }

  private openContent({ attributes }: SaxesTagPlain): void {
    const type = attributes["type"]?.trim()
    if (type === undefined || !/^[^\s/]+\/[^\s/]+/.test(type)) {
      throw new RuleViolation(
        "content-type",
        "item/content needs a media type in its type attribute"
      )
    }
    const encoding: string | undefined = attributes["encoding"]
    if (encoding !== undefined && encoding !== "base64") {
      throw new RuleViolation("content-encoding", "the encoding of item/content can only be base64")
    }
    this.contentType = type
    this.contentEncoding = encoding
  }

  /** An unknown element is copied as text; one beside the item also gets the root's namespaces. */
  private openExtra(tag: SaxesTagPlain): void {
    this.extraDepth = this.depth
    this.extraStart = this.source.lastIndexOf("<", this.parser.position - 1)
    if (this.isInItem || this.rootNamespaces === undefined) return
    this.draft.rootExtra += `<${tag.name}${this.namespacesMissingIn(tag)}`
    this.extraStart += 1 + tag.name.length
  }

  private namespacesMissingIn({ attributes }: SaxesTagPlain): string {
    return this.rootNamespaces === undefined
      ? ""
      : attributesText(this.rootNamespaces, Object.keys(attributes))
  }

  private text(text: string): void {
    if (this.field !== undefined) this.fieldText += text
    else if (this.extraDepth === 0 && this.depth !== 0 && nonBlank.test(text)) {
      const parent = this.isInItem ? "item" : "notification"
      throw new RuleViolation("stray-text", `${parent} holds text between its elements`)
    }
  }

  private close(): void {
    if (this.extraDepth === this.depth) {
      const text = this.source.slice(this.extraStart, this.parser.position)
      this.draft[this.isInItem ? "extra" : "rootExtra"] += text
      this.extraDepth = 0
    } else if (this.extraDepth === 0) {
      if (this.field !== undefined) this.closeField(this.field)
      else this.isInItem = false
    }
    this.depth -= 1
  }

  private closeField(name: NotificationField): void {
    const { draft, fieldText } = this
    const trimmed = fieldText.trim()
    switch (name) {
      case "to": {
        const { recipientsMax } = this.limits
        if (draft.to.length === recipientsMax) {
          throw new RuleViolation("recipients", `there are more than ${recipientsMax} to elements`)
        }
        draft.to.push(checkUri(`to number ${draft.to.length + 1}`, trimmed))
        break
      }
      case "url":
        draft.url = trimmed === "" ? "" : checkUri("item/url", trimmed)
        break
      case "from":
        draft.sender = checkUri("item/from", trimmed)
        break
      case "description":
        draft.description = fieldText
        break
      case "password":
        draft.password = trimmed
        break
      case "content":
        draft.content = inlineContent(this.contentType, this.contentEncoding, fieldText)
    }
    this.field = undefined
  }

  private finish(): NotificationDocument {
    const { draft } = this
    const { content, description, url } = draft
    if (!this.hasItem) throw new RuleViolation("item", "item is required")
    if (description === undefined) {
      throw new RuleViolation("description", "item/description is required")
    }
    if (!url && content === undefined) {
      const detail = url === undefined
        ? "item/url is required"
        : "item/url is empty, without content"
      throw new RuleViolation("url", detail)
    }
    if (this.hasPrefixes) checkNamespaces(this.source)
    return { ...draft, description, url: url ?? "" }
  }
}
