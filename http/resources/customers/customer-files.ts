/** Parses files of customers in chunks of any size: CSV (RFC 4180), JSON lines, XML, JSON. */
import { brokenJson, childrenOf, type DocumentParser, failure, type Result, rowParser, success,
  type XmlFault, XmlRejected } from "../../formats/xml/index.ts"
import { columnsMax, rowCharsMax } from "../../limits.ts"
import { type CustomerInput, customerInputIn } from "./customer-input.ts"

export const formats = ["csv", "jsonl", "xml", "json"] as const

export type FileFormat = typeof formats[number]

/** Receives each row in order, or the rule that it breaks. */
export type OnRow = (row: Result<CustomerInput, string>) => void

/** The rest of the file cannot be parsed. */
export class FileBroken extends Error {
  /** Bad syntax (400), or no UTF-8 (415). */
  readonly kind: XmlFault["_tag"]
  constructor(detail: string, kind: XmlFault["_tag"] = "Malformed") {
    super(detail)
    this.kind = kind
  }
}

/** Parses text in chunks; throws FileBroken. */
interface ChunkParser {
  readonly write: (text: string) => void
  readonly end: () => void
}

/** The format that a Content-Type announces, in UTF-8; undefined for another. */
export const formatOf = (contentType: string | undefined): FileFormat | undefined => {
  const [media = "", ...parameters] = (contentType ?? "").toLowerCase().split(";")
  const charset = parameters.map((one) => one.trim()).find((one) => one.startsWith("charset="))
  if (charset !== undefined && !/^charset="?utf-8"?$/.test(charset)) return undefined
  const type = media.trim()
  if (type === "text/csv") return "csv"
  if (/^application\/(x-ndjson|ndjson|jsonl|x-jsonlines|json-lines)$/.test(type)) return "jsonl"
  if (type === "application/json") return "json"
  return type === "application/xml" || /^text\/xml(\+rss)?$/.test(type) || type.endsWith("+xml")
    ? "xml"
    : undefined
}

/** The accepted media types, for a 415. */
export const acceptedFiles = "application/xml, text/csv, application/x-ndjson, application/json"

const tooLong = (): never => {
  throw new FileBroken(`a row has more than ${rowCharsMax} characters`)
}

const quote = 0x22

const comma = 0x2c

const lineFeed = 0x0a

const carriageReturn = 0x0d

/** One record of CSV, and the offset of the next. */
interface CsvRecord {
  readonly cells: ReadonlyArray<string>
  readonly end: number
}

/** The text of the quoted cell at `from`, and the offset of its closing quote. */
const quotedCell = (text: string, from: number): readonly [string, number] | undefined => {
  let cell = ""
  for (let at = from + 1;;) {
    const close = text.indexOf("\"", at)
    // The next character decides whether this quote closes the cell.
    if (close === -1 || close + 1 === text.length) return undefined
    cell += text.slice(at, close)
    if (text.charCodeAt(close + 1) !== quote) return [cell, close]
    cell += "\""
    at = close + 2
  }
}

/** The record at `from`; undefined when the text ends within it. */
const csvRecord = (text: string, from: number): CsvRecord | undefined => {
  const cells: Array<string> = []
  for (let at = from;;) {
    let end = at
    if (text.charCodeAt(at) === quote) {
      const quoted = quotedCell(text, at)
      if (quoted === undefined) return undefined
      cells.push(quoted[0])
      end = quoted[1] + 1
    } else {
      while (end < text.length) {
        const code = text.charCodeAt(end)
        if (code === comma || code === lineFeed || code === carriageReturn) break
        end++
      }
      cells.push(text.slice(at, end))
    }
    if (end >= text.length) return undefined
    const code = text.charCodeAt(end)
    if (code === lineFeed) return { cells, end: end + 1 }
    if (code === carriageReturn) {
      if (end + 1 === text.length) return undefined
      return { cells, end: end + (text.charCodeAt(end + 1) === lineFeed ? 2 : 1) }
    }
    if (code !== comma) throw new FileBroken("text follows a closing quote")
    at = end + 1
    if (cells.length > columnsMax) throw new FileBroken(`more than ${columnsMax} columns`)
  }
}

const csvParser = (onRow: OnRow): ChunkParser => {
  let rest = ""
  let header: ReadonlyArray<string> | undefined
  const take = (cells: ReadonlyArray<string>): void => {
    if (cells.length === 1 && cells[0] === "") return
    if (header === undefined) {
      header = cells.map((cell) => cell.trim().toLowerCase())
      if (new Set(header).size < header.length) throw new FileBroken("two columns have one name")
      if (!header.includes("id")) throw new FileBroken("the first line must name a column id")
      return
    }
    if (cells.length !== header.length) {
      onRow(failure(`${cells.length} cells in a file of ${header.length} columns`))
      return
    }
    const fields: Record<string, string> = {}
    for (let at = 0; at < header.length; at++) fields[header[at] ?? ""] = cells[at] ?? ""
    onRow(success(fields))
  }
  const write = (text: string): void => {
    const all = rest + text
    let at = 0
    for (let record = csvRecord(all, at); record !== undefined; record = csvRecord(all, at)) {
      take(record.cells)
      at = record.end
    }
    rest = all.slice(at)
    if (rest.length > rowCharsMax) tooLong()
  }
  return {
    write,
    end: () => {
      write("\n")
      if (rest.trim() !== "") throw new FileBroken("a quote is not closed")
      if (header === undefined) throw new FileBroken("the first line must name the columns")
    }
  }
}

const fromValue = (value: unknown): Result<CustomerInput, string> => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return failure("a customer must be an object")
  }
  const fields: Record<string, string> = {}
  for (const [name, one] of Object.entries(value)) {
    if (one === null) continue
    if (typeof one === "object") return failure(`${name.slice(0, 40)} must be one value`)
    fields[name] = String(one)
  }
  return success(fields)
}

const lineParser = (onRow: OnRow): ChunkParser => {
  let rest = ""
  const take = (line: string): void => {
    if (line.trim() === "") return
    try {
      onRow(fromValue(JSON.parse(line)))
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      onRow(failure("the line is not JSON"))
    }
  }
  return {
    write: (text) => {
      const all = rest + text
      let at = 0
      for (let end = all.indexOf("\n"); end !== -1; end = all.indexOf("\n", at)) {
        take(all.slice(at, end))
        at = end + 1
      }
      rest = all.slice(at)
      if (rest.length > rowCharsMax) tooLong()
    },
    end: () => take(rest)
  }
}

const xmlParser = (onRow: OnRow, { limits }: DocumentParser): ChunkParser => {
  const parser = rowParser(
    "customers",
    "customer",
    { charsMax: rowCharsMax, depthMax: limits.xmlDepthMax },
    (row) => onRow(customerInputIn(row))
  )
  const guarded = (parse: () => void): void => {
    try {
      parse()
    } catch (error) {
      throw error instanceof XmlRejected ? new FileBroken(error.message, error.kind) : error
    }
  }
  return {
    write: (text) => guarded(() => parser.write(text)),
    end: () => guarded(() => parser.end())
  }
}

/** JSON is parsed as a whole, within the limits of a document. */
const jsonParser = (onRow: OnRow, documentParser: DocumentParser): ChunkParser => {
  const { documentBytesMax } = documentParser.limits
  let all = ""
  const parsed = (): unknown => {
    try {
      const value: unknown = JSON.parse(all)
      return Array.isArray(value) ? { customer: value } : value
    } catch {
      throw new FileBroken(brokenJson)
    }
  }
  return {
    write: (text) => {
      all += text
      if (all.length > documentBytesMax) {
        throw new FileBroken(`JSON has ${documentBytesMax} bytes at the most; send it as lines`)
      }
    },
    end: () => {
      const root = documentParser.fromJson("customers", parsed())
      if (!root.ok) throw new FileBroken(root.fault.detail, root.fault._tag)
      for (const child of childrenOf(root.value)) {
        if (child.name !== "customer") throw new FileBroken("customers has customer only")
        onRow(customerInputIn(child))
      }
    }
  }
}

const parsers: Readonly<
  Record<FileFormat, (onRow: OnRow, documentParser: DocumentParser) => ChunkParser>
> = {
  csv: csvParser,
  jsonl: lineParser,
  xml: xmlParser,
  json: jsonParser
}

/** Parses the bytes of a file in chunks. Throws FileBroken. */
export class CustomerFileParser {
  private readonly decoder = new TextDecoder("utf-8", { fatal: true })
  private readonly parser: ChunkParser

  constructor(documentParser: DocumentParser, format: FileFormat, onRow: OnRow) {
    this.parser = parsers[format](onRow, documentParser)
  }

  write(bytes: Uint8Array): void {
    this.parser.write(this.decode(bytes))
  }

  end(): void {
    const last = this.decode()
    if (last !== "") this.parser.write(last)
    this.parser.end()
  }

  private decode(bytes?: Uint8Array): string {
    try {
      return bytes === undefined
        ? this.decoder.decode()
        : this.decoder.decode(bytes, { stream: true })
    } catch {
      throw new FileBroken("the file is not UTF-8")
    }
  }
}
