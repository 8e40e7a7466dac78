/** A long document of many like elements, read as it arrives: each is told when it is whole. */
import type { Element } from "./element.ts"
import { checkDeclaration, checkOpened, guardedParser, XmlRejected } from "./guard.ts"

/** Takes text as it arrives; throws a `Refusal` when it is not such a document. */
export interface RowParser {
  readonly write: (text: string) => void
  readonly end: () => void
}

interface Open {
  readonly name: string
  readonly attributes: Record<string, string>
  readonly children: Array<Element | string>
}

/** Elements and texts in one row, at the most. */
const rowNodesMax = 1_000

/**
 * Reads `<rootName><rowName/>…</rootName>`. `charsMax` bounds a row, and whatever comes between
 * two tags. Prefixes of names are not looked into.
 */
export const rowParser = (
  rootName: string,
  rowName: string,
  charsMax: number,
  onRow: (row: Element) => void
): RowParser => {
  const stack: Array<Open> = []
  let depth = 0
  let nodes = 0
  let chars = 0
  const parser = guardedParser({
    open: ({ attributes, name }) => {
      depth++
      chars = depth <= 2 ? 0 : chars
      checkOpened(name, attributes, depth, ++nodes)
      if (depth === 1) {
        checkDeclaration(parser.xmlDecl)
        if (name !== rootName) {
          throw new XmlRejected(`the root element must be ${rootName}, not ${name}`)
        }
        return
      }
      if (depth === 2 && name !== rowName) throw new XmlRejected(`${rootName} has ${rowName} only`)
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
        throw new XmlRejected(`${rootName} has no text of its own`)
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
