/**
 * The chain of the audit log. The text of each entry contains the hash of the text before it, so
 * that a change of one entry shows in the next one, or in the last hash.
 */
import { Option, Schema } from "effect"
import type { LogItem } from "../../runtime/index.ts"
import { sha256 } from "../secret-hash.ts"
import { AuditEntry, type ChainPoint } from "./protocol.ts"

/** The point before the first entry. */
export const chainStart: ChainPoint = { n: 0, hash: sha256("restante audit log"), atMs: 0 }

/** An entry as it is stored: its own fields, and the hash of the previous entry. */
const StoredEntry = Schema.Struct({ previous: Schema.String, ...AuditEntry.fields })

const decodeStored = Schema.decodeUnknownOption(Schema.fromJsonString(StoredEntry))

/** The text of an entry, which the log stores. */
export const encodeEntry = (previous: string, entry: AuditEntry): string =>
  JSON.stringify({ previous, ...entry })

/** The hash of a stored text. */
export const entryHash = (text: string): string => sha256(text)

/** The entry in a stored text, and the hash of the previous one; undefined if it is none. */
export const decodeEntry = (text: string): typeof StoredEntry.Type | undefined =>
  Option.getOrUndefined(decodeStored(text))

/** The first entry that is not as it was recorded, and how that shows. */
export interface ChainFault {
  readonly n: number
  readonly reason: string
}

/**
 * Follows the chain from the anchor over all entries, which come in their order. `add` and `end`
 * return the first fault.
 */
export class ChainCheck {
  private previous: ChainPoint

  constructor(anchor: ChainPoint) {
    this.previous = anchor
  }

  /** How far the chain is whole. */
  get point(): ChainPoint {
    return this.previous
  }

  add({ n, value }: LogItem): ChainFault | undefined {
    const expected = this.previous.n + 1
    if (n !== expected) return { n: expected, reason: "it is missing" }
    const entry = decodeEntry(value)
    if (entry === undefined) return { n, reason: "it is not an entry of an audit log" }
    if (entry.previous !== this.previous.hash) {
      const changed = this.previous.n
      return changed === 0
        ? { n, reason: "it is not the first entry of a log" }
        : { n: changed, reason: `entry ${n} has another hash of it` }
    }
    this.previous = { n, hash: entryHash(value), atMs: entry.atMs }
    return undefined
  }

  /** The check after the last entry; `last` is what the log itself says of it. */
  end(last: ChainPoint): ChainFault | undefined {
    const { hash, n } = this.previous
    if (n < last.n) return { n: n + 1, reason: "it is missing" }
    return n > last.n || hash === last.hash
      ? undefined
      : { n, reason: "the log has another hash of its last entry" }
  }
}
