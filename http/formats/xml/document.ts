/**
 * Reads documents that are not on the hot path: saxes checks them, then xml-js builds them.
 * xml-js alone overflows the stack on deep input and lets names reach prototypes. It therefore only
 * sees text that passed the check, and its result is copied into our own model.
 */
import xmlJs from "xml-js"
import { defaultDocumentLimits } from "../../limits.ts"
import { type Element, failure, type OpenElement, type Result, success,
  type XmlFault } from "./element.ts"
import { checkDeclaration, checkNamespaces, checkOpened, guardedParser,
  usesNamespaces } from "./guarded-parser.ts"

const check = (source: string, depthMax: number): void => {
  let depth = 0
  let nodes = 0
  let prefixed = false
  const parser = guardedParser({
    open: (tag) => {
      depth += 1
      nodes += 1
      if (depth === 1) checkDeclaration(parser.xmlDecl)
      checkOpened(tag.name, tag.attributes, depth, nodes, depthMax)
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

/**
 * The root element of a document. Fails with `Malformed`: the text is not well-formed, has a
 * document type or an undeclared prefix, is too deep or too large, or uses a reserved name.
 */
export const parseText = (
  source: string,
  depthMax = defaultDocumentLimits.xmlDepthMax
): Result<Element, XmlFault> => {
  try {
    check(source, depthMax)
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

/** XML 1.0 §2.11: a line end is one line feed; sax, which xml-js uses, does not normalize. */
const normalize = (source: string): string =>
  source.includes("\r") ? source.replace(/\r\n?/g, "\n") : source

/**
 * The children of a fragment that this service wrote and stored, of any size; a fault in it is a
 * defect.
 */
export const parseFragment = (fragment: string): ReadonlyArray<Element | string> => {
  const stack: Array<OpenElement> = [{ name: "", attributes: {}, children: [] }]
  const parser = guardedParser({
    open: ({ attributes, name }) => {
      const next: OpenElement = { name, attributes, children: [] }
      stack.at(-1)?.children.push(next)
      stack.push(next)
    },
    close: () => void stack.pop(),
    text: (text) => {
      if (stack.length > 1) stack.at(-1)?.children.push(text)
    }
  })
  parser.write(`<fragment>${fragment}</fragment>`).close()
  const root = stack[0]?.children[0]
  if (root === undefined || typeof root === "string") throw new Error("a fragment has no root")
  return root.children
}
