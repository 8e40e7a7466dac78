/**
 * Parses XML into elements: the only importer of saxes. It rejects what this service does not
 * accept: document types, processing instructions, reserved or long names, undeclared prefixes, too
 * many levels, nodes or attributes, and anything but XML 1.0 in UTF-8. A callback of saxes cannot
 * return a fault, so each check throws `XmlRejected`.
 */
import { SaxesParser, type SaxesTagPlain, type XMLDecl } from "saxes"
import { defaultDocumentLimits, xmlAttributesMax, xmlNameCharsMax,
  xmlNodesMax } from "../../limits.ts"
import { type Element, failure, isReservedName, type OpenElement, type Result, success,
  type XmlFault } from "./element.ts"

/** The text is not a document that this service accepts; the message is for the client. */
export class XmlRejected extends Error {
  readonly kind: XmlFault["_tag"]
  constructor(detail: string, kind: XmlFault["_tag"] = "Malformed") {
    super(detail)
    this.kind = kind
  }
}

const reject = (detail: string): never => {
  throw new XmlRejected(detail)
}

const surrogate = /[\uD800-\uDFFF]/

const checkName = (name: string): void => {
  if (name.length > xmlNameCharsMax) reject(`a name is longer than ${xmlNameCharsMax} characters`)
  // Not every XML parser accepts names with characters above U+FFFF. Such a name would make a whole
  // listing unreadable.
  if (surrogate.test(name)) reject("a name contains a character above U+FFFF; use another name")
  if (isReservedName(name)) reject(`the name ${name} is reserved; use another name`)
}

/** The namespaces of elements that browsers display or run, and of style sheets (protocol §7). */
const activeNamespaces: ReadonlySet<string> = new Set([
  "http://www.w3.org/1999/xhtml",
  "http://www.w3.org/2000/svg",
  "http://www.w3.org/1998/Math/MathML",
  "http://www.w3.org/1999/XSL/Transform"
])

const rejectActive = (what: string): never => {
  throw new XmlRejected(`remove ${what}: a browser could run it`, "ActiveMarkup")
}

/** Rejects an element that declares one of {@link activeNamespaces}. */
const checkDeclaredNamespaces = ({ attributes }: SaxesTagPlain): void => {
  for (const key in attributes) {
    const isDeclaration = key === "xmlns" || key.startsWith("xmlns:")
    const namespace = attributes[key] ?? ""
    if (isDeclaration && activeNamespaces.has(namespace)) {
      rejectActive(`the namespace ${namespace}`)
    }
  }
}

/** Checks the names of an element; returns whether it has a prefix or declares a namespace. */
const checkNames = ({ attributes, name }: SaxesTagPlain): boolean => {
  checkName(name)
  let usesNamespaces = name.includes(":")
  let count = 0
  for (const key in attributes) {
    checkName(key)
    count += 1
    usesNamespaces ||= key === "xmlns" || key.includes(":")
  }
  if (count > xmlAttributesMax) {
    reject(`an element has more than ${xmlAttributesMax} attributes`)
  }
  return usesNamespaces
}

/** Whether a charset or encoding is UTF-8 or a part of it. */
export const isUtf8Name = (name: string): boolean => /^(?:utf-?8|us-ascii)$/i.test(name)

const checkDeclaration = ({ encoding, version }: XMLDecl): void => {
  if (version !== undefined && version !== "1.0") {
    reject(`the document is XML ${version}; send XML 1.0`)
  }
  if (encoding !== undefined && !isUtf8Name(encoding)) {
    const detail = `the declared encoding ${encoding.slice(0, 40)} is not supported: send UTF-8`
    throw new XmlRejected(detail, "OtherCharset")
  }
}

const saxOptions = {
  xmlns: false,
  position: false,
  forceXMLVersion: true,
  defaultXMLVersion: "1.0"
} as const

/** Rejects a document with an undeclared prefix (Namespaces in XML 1.0). */
const checkNamespaces = (source: string): void => {
  const parser = new SaxesParser({ ...saxOptions, xmlns: true })
  parser.on("error", ({ message }) => reject(message))
  parser.write(source).close()
}

/** The bounds of a builder, and its reports. */
interface BuilderOptions {
  /** Levels of elements; the root is level 1. */
  readonly depthMax: number
  /** Elements and pieces of text together. */
  readonly nodesMax: number
  /** The service wrote and stored it: what is active now may have been accepted before. */
  readonly isStored?: boolean
  /** Called after each start tag; `position` is the offset of its end. */
  readonly onOpen?: (name: string, depth: number, position: number) => void
  /** Called after each end tag, with the complete element. */
  readonly onClose?: (element: OpenElement, depth: number, position: number) => void
}

/** Builds elements from text as it arrives. After it has thrown, it must not be used again. */
class ElementBuilder {
  readonly parser: SaxesParser<typeof saxOptions>
  /** The open elements; the first stands for the document. */
  readonly stack: Array<OpenElement> = [{ name: "", attributes: {}, children: [] }]
  /** Nodes so far; `rowParser` counts those of each row. */
  nodes = 0
  usesNamespaces = false
  private readonly options: BuilderOptions

  /**
   * The parser has seven handlers and must not get an eighth: saxes sets handlers by computed keys,
   * and with eight of them V8 turns the parser into a dictionary. Every parse is then six times
   * slower (measured). The declaration is therefore checked at the root element.
   */
  constructor(options: BuilderOptions) {
    this.options = options
    const parser = new SaxesParser(saxOptions)
    parser.on("error", ({ message }) => reject(message))
    parser.on("doctype", () => reject("remove the document type declaration"))
    parser.on("processinginstruction", () => rejectActive("the processing instruction"))
    parser.on("opentag", (tag) => this.open(tag))
    parser.on("closetag", () => this.close())
    const addText = (text: string) => this.addText(text)
    parser.on("text", addText)
    parser.on("cdata", addText)
    this.parser = parser
  }

  private open(tag: SaxesTagPlain): void {
    const { depthMax, isStored, nodesMax, onOpen } = this.options
    const { stack } = this
    const depth = stack.length
    if (depth === 1) checkDeclaration(this.parser.xmlDecl)
    if (checkNames(tag)) {
      this.usesNamespaces = true
      if (isStored !== true) checkDeclaredNamespaces(tag)
    }
    if (depth > depthMax) {
      reject(`elements are nested deeper than ${depthMax} (XML_DEPTH_MAX): nest them less deep`)
    }
    if (++this.nodes > nodesMax) reject(`there are more than ${nodesMax} elements and texts`)
    onOpen?.(tag.name, depth, this.parser.position)
    const element: OpenElement = { name: tag.name, attributes: tag.attributes, children: [] }
    stack[depth - 1]?.children.push(element)
    stack.push(element)
  }

  private close(): void {
    const { parser, stack } = this
    const element = stack.pop()
    if (element !== undefined) this.options.onClose?.(element, stack.length, parser.position)
  }

  private addText(text: string): void {
    this.nodes += 1
    const children = this.stack.at(-1)?.children ?? []
    const last = children.length - 1
    const before = children[last]
    if (typeof before === "string") children[last] = before + text
    else if (text !== "") children.push(text)
  }
}

const rootOf = ({ stack: [document] }: ElementBuilder): Element =>
  document?.children.find((child) => typeof child !== "string") ??
    reject("there is no root element")

const parse = (source: string, options: BuilderOptions): Element => {
  const builder = new ElementBuilder(options)
  builder.parser.write(source).close()
  if (builder.usesNamespaces) checkNamespaces(source)
  return rootOf(builder)
}

/** The root element of a document; fails with `Malformed`, `OtherCharset` or `ActiveMarkup`. */
export const parseText = (
  source: string,
  depthMax = defaultDocumentLimits.xmlDepthMax
): Result<Element, XmlFault> => {
  try {
    return success(parse(source, { depthMax, nodesMax: xmlNodesMax }))
  } catch (error) {
    if (error instanceof XmlRejected) return failure({ _tag: error.kind, detail: error.message })
    throw error
  }
}

/**
 * The root element of a document, and the source text of its children and grandchildren. Throws
 * `XmlRejected`.
 */
export const parseWithSources = (
  source: string,
  depthMax: number
): { readonly root: Element; readonly sources: ReadonlyMap<Element, string> } => {
  const sources = new Map<Element, string>()
  const starts: Array<number> = []
  const root = parse(source, {
    depthMax,
    nodesMax: xmlNodesMax,
    onOpen: (_, depth, position) => {
      if (depth <= 3) starts[depth] = source.lastIndexOf("<", position - 1)
    },
    onClose: (element, depth, position) => {
      if (depth <= 3) sources.set(element, source.slice(starts[depth], position))
    }
  })
  return { root, sources }
}

/**
 * The children of a fragment that this service wrote and stored, of any size; a fault in it is a
 * defect.
 */
export const parseFragment = (fragment: string): ReadonlyArray<Element | string> => {
  const builder = new ElementBuilder({ depthMax: Infinity, nodesMax: Infinity, isStored: true })
  builder.parser.write(`<fragment>${fragment}</fragment>`).close()
  return rootOf(builder).children
}

/** Parses a document of rows in pieces of text of any length; throws `XmlRejected`. */
export interface RowParser {
  readonly write: (text: string) => void
  readonly end: () => void
}

/** Elements and texts in one row. */
const rowNodesMax = 1_000

/**
 * Reads `<rootName><rowName/>…</rootName>` and reports each complete row. `charsMax` bounds a row
 * and the text between two tags, `depthMax` the nesting. The parser does not check whether prefixes
 * of names are declared.
 */
export const rowParser = (
  rootName: string,
  rowName: string,
  { charsMax, depthMax }: { readonly charsMax: number; readonly depthMax: number },
  onRow: (row: Element) => void
): RowParser => {
  /** Characters since the last start or end of a row, counted in whole pieces. */
  let chars = 0
  const builder = new ElementBuilder({
    depthMax,
    nodesMax: rowNodesMax,
    onOpen: (name, depth) => {
      if (depth <= 2) chars = 0
      if (depth === 1 && name !== rootName) {
        reject(`the root element must be ${rootName}, not ${name}`)
      }
      if (depth === 2 && name !== rowName) reject(`${rootName} may only contain ${rowName}`)
    },
    onClose: (element, depth) => {
      if (depth > 2) return
      chars = 0
      builder.nodes = 0
      const root = builder.stack[1] ?? element
      for (const child of root.children.splice(0)) {
        if (typeof child !== "string") onRow(child)
        else if (child.trim() !== "") reject(`${rootName} may not contain text`)
      }
    }
  })
  return {
    write: (text) => {
      chars += text.length
      builder.parser.write(text)
      // Only a part of this piece may belong to the row, so the bound holds for the pieces before.
      if (chars > charsMax + text.length) {
        reject(`a ${rowName} has more than ${charsMax} characters`)
      }
    },
    end: () => void builder.parser.close()
  }
}
