/**
 * Reading any document that is not on the hot path: checked by saxes, built by xml-js.
 * xml-js alone overflows the stack on deep input and lets names reach prototypes, so that nothing
 * gets to it which the check has not passed, and what it built is copied into our own model.
 */
import xmlJs from "xml-js"
import { decodeDocument } from "./decoding.ts"
import { type Element, failure, type Result, success, type XmlFault } from "./element.ts"
import { checkDeclaration, checkNamespaces, checkOpened, guardedParser } from "./guard.ts"

const check = (source: string): void => {
  let depth = 0
  let nodes = 0
  let prefixed = false
  const parser = guardedParser({
    open: (tag) => {
      depth += 1
      nodes += 1
      if (depth === 1) checkDeclaration(parser.xmlDecl)
      checkOpened(tag.name, tag.attributes, depth, nodes)
      if (!prefixed) prefixed = usesNamespaces(tag.name, tag.attributes)
    },
    close: () => {
      depth -= 1
    },
    text: () => {
      nodes += 1
    }
  })
  parser.write(source).close()
  if (prefixed) checkNamespaces(source)
}

/** Whether an element needs the namespace check: a prefix or any xmlns attribute. */
export const usesNamespaces = (
  name: string,
  attributes: Readonly<Record<string, unknown>>
): boolean => {
  if (name.includes(":")) return true
  for (const key in attributes) {
    if (key === "xmlns" || key.includes(":")) return true
  }
  return false
}

const copy = (built: xmlJs.Element): Element => {
  const attributes: Record<string, string> = Object.create(null)
  for (const [key, value] of Object.entries(built.attributes ?? {})) attributes[key] = String(value)
  const children: Array<Element | string> = []
  for (const child of built.elements ?? []) {
    if (child.type === "element") {
      children.push(copy(child))
      continue
    }
    const text = child.type === "cdata"
      ? child.cdata
      : child.type === "text"
      ? child.text
      : undefined
    if (text === undefined) continue
    const last = children.length - 1
    const before = children[last]
    if (typeof before === "string") children[last] = before + String(text)
    else children.push(String(text))
  }
  return { name: built.name ?? "", attributes, children }
}

/** As `parseDocument`, of text that is already decoded. */
export const parseText = (source: string): Result<Element, XmlFault> => {
  try {
    check(source)
    // xml2js returns one of two shapes; the non-compact one has `elements`.
    const built = xmlJs.xml2js(normalize(source), {
      compact: false,
      captureSpacesBetweenElements: true,
      ignoreComment: true,
      ignoreDeclaration: true
    }) as xmlJs.Element
    const root = built.elements?.find((node) => node.type === "element")
    if (root === undefined) {
      return failure({ _tag: "Malformed", detail: "there is no root element" })
    }
    return success(copy(root))
  } catch (error) {
    if (error instanceof Error) return failure({ _tag: "Malformed", detail: error.message })
    throw error
  }
}

/** XML 1.0 §2.11: line ends are one line feed; sax leaves them as they came. */
const normalize = (source: string): string =>
  source.includes("\r") ? source.replace(/\r\n?/g, "\n") : source

/**
 * The root element of a document body.
 * Fails with `TooLarge` beyond 256 KiB, else `Malformed` with the reason: not UTF-8, not
 * well-formed, a document type, an undeclared prefix, too deep, too many nodes, a reserved name.
 */
export const parseDocument = (
  bytes: Uint8Array,
  contentType = ""
): Result<Element, XmlFault> => {
  const decoded = decodeDocument(bytes, contentType)
  return decoded.ok ? parseText(decoded.value) : decoded
}

/** The children that a fragment of this service's own making consists of; a fault is a defect. */
export const parseFragment = (fragment: string): ReadonlyArray<Element | string> => {
  const parser = parseTrusted(`<fragment>${fragment}</fragment>`)
  return parser.children
}

/** Builds the model from text of this service's own making, of any size; a fault is a defect. */
const parseTrusted = (source: string): Element => {
  interface Open {
    readonly name: string
    readonly attributes: Record<string, string>
    readonly children: Array<Element | string>
  }
  const top: Open = { name: "", attributes: Object.create(null), children: [] }
  const stack: Array<Open> = [top]
  let current = top
  const parser = guardedParser({
    open: (tag) => {
      const next: Open = { name: tag.name, attributes: tag.attributes, children: [] }
      current.children.push(next)
      stack.push(next)
      current = next
    },
    close: () => {
      stack.pop()
      current = stack[stack.length - 1] ?? top
    },
    text: (text) => {
      if (stack.length > 1) current.children.push(text)
    }
  })
  parser.write(source).close()
  const root = top.children[0]
  if (root === undefined || typeof root === "string") throw new Error("a fragment has no root")
  return root
}
