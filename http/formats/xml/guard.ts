/**
 * A saxes parser with this service's refusals: no document type, no processing instruction, no
 * reserved or overlong name, bounded depth, nodes and attributes, XML 1.0 in UTF-8 only.
 * Every refusal is thrown as a `Refusal`, because a callback cannot return one.
 */
import { SaxesParser, type SaxesTagPlain, type XMLDecl } from "saxes"
import { xmlAttributesMax, xmlDepthMax, xmlNameCharsMax, xmlNodesMax } from "../../limits.ts"
import { refuseEncoding } from "./decoding.ts"
import { isReservedName } from "./element.ts"

/** Thrown inside a parser's callbacks, caught by the function that drives the parser. */
export class XmlRejected extends Error {
  readonly malformed: boolean
  constructor(detail: string, malformed = true) {
    super(detail)
    this.malformed = malformed
  }
}

const astral = /[\uD800-\uDFFF]/

const checkName = (name: string): void => {
  if (name.length > xmlNameCharsMax) {
    throw new XmlRejected(`a name is longer than ${xmlNameCharsMax} characters`)
  }
  // Names beyond the basic plane are XML that not every reader takes: stored, they spoil listings.
  if (astral.test(name)) throw new XmlRejected("a name holds a character that is not accepted")
  if (isReservedName(name)) throw new XmlRejected(`the name ${name} is not accepted`)
}

/** Checks an opened element's name, attributes and place; `depth` counts the root as 1. */
export const checkOpened = (
  name: string,
  attributes: Readonly<Record<string, unknown>>,
  depth: number,
  nodes: number
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
  if (depth > xmlDepthMax) throw new XmlRejected(`elements are nested deeper than ${xmlDepthMax}`)
  if (nodes > xmlNodesMax) throw new XmlRejected(`the document has more than ${xmlNodesMax} nodes`)
}

/** What a parser reports; positions are UTF-16 indexes into the text it was given. */
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

const refuseDoctype = (): never => {
  throw new XmlRejected("a document type declaration is not accepted")
}

/**
 * A parser that reports to `handlers`. After it threw it must not be used again.
 * Seven handlers and no more: an eighth makes V8 keep the parser, whose handlers are set by
 * computed keys, as a dictionary, and every parse in the process six times slower (measured).
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
  parser.on("doctype", refuseDoctype)
  parser.on("processinginstruction", () => {
    throw new XmlRejected("a processing instruction is not accepted")
  })
  parser.on("opentag", handlers.open)
  parser.on("closetag", handlers.close)
  parser.on("text", handlers.text)
  parser.on("cdata", handlers.text)
  return parser
}

/** To be called for the root element, since the declaration has no handler of its own. */
export const checkDeclaration = (declaration: XMLDecl): void => {
  if (declaration.version !== undefined && declaration.version !== "1.0") {
    throw new XmlRejected("only XML 1.0 is accepted")
  }
  const detail = refuseEncoding(declaration.encoding)
  if (detail !== undefined) throw new XmlRejected(detail)
}

/** Throws a `Refusal` unless every prefix of the document is declared (Namespaces in XML 1.0). */
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
