/** For operators (role `admin`): the audit log of a service, and the check of its chain. */
import { type HttpTransport, type JsonObject, type ListingOptions, listOf, numberOf, optionalNumber,
  optionalText, textOf, withQuery } from "./transport/index.ts"

/** One operation, as the service has recorded it. */
export interface RecordedOperation {
  readonly number: number
  /** RFC 3339. */
  readonly time: string
  /** Undefined for an anonymous client, and for the service itself. */
  readonly account: string | undefined
  /** The client's address; an IPv6 address as its /64. */
  readonly from: string | undefined
  readonly action: string
  /** The path of what was changed. */
  readonly target: string
  readonly outcome: string
  readonly detail: string | undefined
  /** SHA-256 of the stored text, base64url. */
  readonly hash: string
}

/** Which entries to list; `target` is the beginning of a path, `since` a time of RFC 3339. */
export interface AuditFilter {
  readonly account?: string | undefined
  readonly action?: string | undefined
  readonly outcome?: string | undefined
  readonly target?: string | undefined
  readonly since?: string | undefined
}

/** An entry that was noted elsewhere: its number and its hash. */
export interface AuditPoint {
  readonly number: number
  readonly hash: string
}

/** The result of a check. */
export interface AuditCheck {
  /** Entries that were read. */
  readonly entries: number
  /** The last entry of the log when the check began. */
  readonly last: AuditPoint
  /** The first entry that is not as it was recorded; undefined if all are. */
  readonly fault: { readonly number: number; readonly reason: string } | undefined
}

const entryOf = (entry: JsonObject): RecordedOperation => ({
  number: numberOf(entry, "number"),
  time: textOf(entry, "time"),
  account: optionalText(entry, "account"),
  from: optionalText(entry, "from"),
  action: textOf(entry, "action"),
  target: textOf(entry, "target"),
  outcome: textOf(entry, "outcome"),
  detail: optionalText(entry, "detail"),
  hash: textOf(entry, "hash")
})

const sha256 = async (text: string): Promise<string> => {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))
  return btoa(String.fromCharCode(...new Uint8Array(digest)))
    .replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")
}

/** The hash of the previous entry that a stored text contains. */
const previousOf = (text: string): string | undefined => {
  try {
    const entry: unknown = JSON.parse(text)
    return typeof entry === "object" && entry !== null && "previous" in entry &&
        typeof entry.previous === "string"
      ? entry.previous
      : undefined
  } catch {
    return undefined
  }
}

/** Entries in one page of the chain. */
const pageSize = 1000

/** A check begins again when old entries are removed meanwhile, this often. */
const restartsMax = 3

/** A page of stored texts, and what the log says of both its ends. */
interface ChainPage {
  readonly anchor: AuditPoint
  readonly last: AuditPoint
  readonly items: ReadonlyArray<{ readonly number: number; readonly text: string }>
}

const chainPageOf = (document: JsonObject): ChainPage => ({
  anchor: {
    number: optionalNumber(document, "anchor-number") ?? 0,
    hash: textOf(document, "anchor-hash")
  },
  last: { number: numberOf(document, "last-number"), hash: textOf(document, "last-hash") },
  items: listOf(document, "item").map((item) => ({
    number: numberOf(item, "number"),
    text: textOf(item, "text")
  }))
})

/** Thrown when the entries after the last one that was read are removed at their age. */
class Trimmed extends Error {}

export class AuditLog {
  private readonly transport: HttpTransport

  constructor(transport: HttpTransport) {
    this.transport = transport
  }

  /** The entries of a filter, newest first. */
  list(filter: AuditFilter = {}, options: ListingOptions = {}): AsyncGenerator<RecordedOperation> {
    return this.transport.list("/audit", "entry", entryOf, options, { ...filter })
  }

  /**
   * Reads the whole chain and computes all hashes. With `noted`, an entry that was noted earlier,
   * it also finds a chain that was replaced as a whole.
   */
  async verify(noted?: AuditPoint): Promise<AuditCheck> {
    for (let restarts = 0;; restarts++) {
      try {
        return await this.follow(noted)
      } catch (error) {
        if (!(error instanceof Trimmed) || restarts >= restartsMax) throw error
      }
    }
  }

  private async follow(noted: AuditPoint | undefined): Promise<AuditCheck> {
    const first = await this.page(0)
    const { anchor, last } = first
    let previous = anchor
    let entries = 0
    const result = (number: number, reason: string): AuditCheck => ({
      entries,
      last,
      fault: { number, reason }
    })
    if (noted !== undefined && noted.number < anchor.number) {
      return result(noted.number, "it was removed at its age: note a later one")
    }
    for (let page = first; previous.number < last.number; page = await this.page(previous.number)) {
      if (page.anchor.number > previous.number) throw new Trimmed("the log was trimmed meanwhile")
      const items = page.items.filter(({ number }) => number <= last.number)
      if (items.length === 0) return result(previous.number + 1, "it is missing")
      for (const { number, text } of items) {
        if (isNotedOtherwise(previous, noted)) return result(previous.number, notedOtherwise)
        const fault = faultOf(previous, number, text)
        if (fault !== undefined) return result(fault.number, fault.reason)
        previous = { number, hash: await sha256(text) }
        entries++
      }
    }
    if (isNotedOtherwise(previous, noted)) return result(previous.number, notedOtherwise)
    if (previous.hash !== last.hash) {
      return result(last.number, "the log has another hash of its last entry")
    }
    return noted !== undefined && noted.number > last.number
      ? result(last.number + 1, "it is missing")
      : { entries, last, fault: undefined }
  }

  private async page(after: number): Promise<ChainPage> {
    return chainPageOf(
      await this.transport.get(withQuery("/audit/chain", { after, limit: pageSize }))
    )
  }
}

const notedOtherwise = "another hash of it was noted"

const isNotedOtherwise = (point: AuditPoint, noted: AuditPoint | undefined): boolean =>
  noted?.number === point.number && noted.hash !== point.hash

/** Why an entry does not follow the previous one. */
const faultOf = (previous: AuditPoint, number: number, text: string): AuditCheck["fault"] => {
  const expected = previous.number + 1
  if (number !== expected) return { number: expected, reason: "it is missing" }
  const hash = previousOf(text)
  if (hash === undefined) return { number, reason: "it is not an entry of an audit log" }
  if (hash === previous.hash) return undefined
  return previous.number === 0
    ? { number, reason: "it is not the first entry of a log" }
    : { number: previous.number, reason: `entry ${number} has another hash of it` }
}
