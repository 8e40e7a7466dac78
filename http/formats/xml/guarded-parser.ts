/**
 * A saxes parser that rejects what this service does not accept: document types, processing
 * instructions, reserved or long names, too many levels, nodes or attributes, and anything but
 * XML 1.0 in UTF-8. A callback cannot return a fault, so each check throws `XmlRejected`.
 */
import { SaxesParser, type SaxesTagPlain, type XMLDecl } from "saxes"
import { xmlAttributesMax, xmlNameCharsMax, xmlNodesMax } from "../../limits.ts"
import { encodingFault } from "./decoding.ts"
import { isReservedName } from "./element.ts"

/** A parser's callback throws this; the function that drives the parser catches it. */
export class XmlRejected extends Error {}

const astral = /[\uD800-\uDFFF]/

const checkName = (name: string): void => {
  if (name.length > xmlNameCharsMax) {
    throw new XmlRejected(`a name is longer than ${xmlNameCharsMax} characters`)
  }
  // Not every XML reader accepts names beyond the basic plane: one would break a whole listing.
  if (astral.test(name)) throw new XmlRejected("a name holds a character that is not accepted")
  if (isReservedName(name)) throw new XmlRejected(`the name ${name} is not accepted`)
}

/** Checks an element's name, attributes and position; `depth` counts the root as 1. */
export const checkOpened = (
  name: string,
  attributes: Readonly<Record<string, unknown>>,
  depth: number,
  nodes: number,
  depthMax: number
): void => {
  checkName(name)
  let count = 0
  for (const key in attributes) {
    checkName(key)
    count += 1
  }
  if (count > xmlAttributesMax) {
    throw new XmlRejected(`an element has more than ${xmlAttributesMax} attributes`)
  }
  if (depth > depthMax) throw new XmlRejected(`elements are nested deeper than ${depthMax}`)
  if (nodes > xmlNodesMax) throw new XmlRejected(`the document has more than ${xmlNodesMax} nodes`)
}

/** Receives what the parser reads. */
export interface Handlers {
  readonly open: (tag: SaxesTagPlain) => void
  readonly close: (tag: SaxesTagPlain) => void
  readonly text: (text: string) => void
}

type PlainOptions = {
  xmlns: false
  position: false
  forceXMLVersion: true
  defaultXMLVersion: "1.0"
}

/**
 * A parser that reports to `handlers`. Do not use it again after it threw.
 * It has seven handlers and must not get an eighth: saxes sets handlers by computed keys, and with
 * eight of them V8 turns the parser into a dictionary. Every parse is then six times slower
 * (measured).
 */
export const guardedParser = (handlers: Handlers): SaxesParser<PlainOptions> => {
  const parser = new SaxesParser<PlainOptions>({
    xmlns: false,
    position: false,
    forceXMLVersion: true,
    defaultXMLVersion: "1.0"
  })
  parser.on("error", (error) => {
    throw new XmlRejected(error.message)
  })
  parser.on("doctype", () => {
    throw new XmlRejected("a document type declaration is not accepted")
  })
  parser.on("processinginstruction", () => {
    throw new XmlRejected("a processing instruction is not accepted")
  })
  parser.on("opentag", handlers.open)
  parser.on("closetag", handlers.close)
  parser.on("text", handlers.text)
  parser.on("cdata", handlers.text)
  return parser
}

/**
 * Checks the XML declaration. Call it at the root element: eight handlers would be one too many.
 */
export const checkDeclaration = (declaration: XMLDecl): void => {
  if (declaration.version !== undefined && declaration.version !== "1.0") {
    throw new XmlRejected("only XML 1.0 is accepted")
  }
  const detail = encodingFault(declaration.encoding)
  if (detail !== undefined) throw new XmlRejected(detail)
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

/** Throws `XmlRejected` unless every prefix of the document is declared (Namespaces in XML 1.0). */
export const checkNamespaces = (source: string): void => {
  const parser = new SaxesParser({
    xmlns: true,
    position: false,
    forceXMLVersion: true,
    defaultXMLVersion: "1.0"
  })
  parser.on("error", (error) => {
    throw new XmlRejected(error.message)
  })
  parser.write(source).close()
}
