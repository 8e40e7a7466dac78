/** Reads a long document of equal elements as it arrives and reports each complete one. */
import type { Element, OpenElement } from "./element.ts"
import { checkDeclaration, checkOpened, guardedParser, XmlRejected } from "./guarded-parser.ts"

/** Takes text as it arrives; throws `XmlRejected` if it is not such a document. */
export interface RowParser {
  readonly write: (text: string) => void
  readonly end: () => void
}

/** Elements and texts in one row. */
const rowNodesMax = 1_000

/**
 * Reads `<rootName><rowName/>…</rootName>`. `charsMax` bounds a row and the text between two tags,
 * `depthMax` the nesting. Name prefixes are not checked.
 */
export const rowParser = (
  rootName: string,
  rowName: string,
  { charsMax, depthMax }: { readonly charsMax: number; readonly depthMax: number },
  onRow: (row: Element) => void
): RowParser => {
  const stack: Array<OpenElement> = []
  let depth = 0
  let nodes = 0
  let chars = 0
  const parser = guardedParser({
    open: ({ attributes, name }) => {
      depth++
      chars = depth <= 2 ? 0 : chars
      checkOpened(name, attributes, depth, ++nodes, depthMax)
      if (depth === 1) {
        checkDeclaration(parser.xmlDecl)
        if (name === rootName) return
        throw new XmlRejected(`the root element must be ${rootName}, not ${name}`)
      }
      if (depth === 2 && name !== rowName) {
        throw new XmlRejected(`${rootName} may only contain ${rowName}`)
      }
      if (nodes > rowNodesMax) {
        throw new XmlRejected(`a ${rowName} has more than ${rowNodesMax} parts`)
      }
      const own: Record<string, string> = Object.assign(Object.create(null), attributes)
      stack.push({ name, attributes: own, children: [] })
    },
    close: () => {
      depth--
      const closed = stack.pop()
      if (closed === undefined) return
      const parent = stack.at(-1)
      if (parent !== undefined) parent.children.push(closed)
      else {
        onRow(closed)
        nodes = 0
      }
      if (depth < 2) chars = 0
    },
    text: (text) => {
      nodes++
      if (depth >= 2) stack.at(-1)?.children.push(text)
      else if (depth === 1 && text.trim() !== "") {
        throw new XmlRejected(`${rootName} may not contain text`)
      } else nodes = 0
    }
  })
  return {
    write: (text) => {
      chars += text.length
      parser.write(text)
      if (chars > charsMax + text.length) {
        throw new XmlRejected(`a ${rowName} has more than ${charsMax} characters`)
      }
    },
    end: () => void parser.close()
  }
}
