/**
 * The cursor of a cabinet, its `time` and `since`: an RFC 3339 timestamp, `~`, and the position in
 * each mailbox's log, in base64url. The positions are exact and independent of clocks; the
 * timestamp is for people. Each position names its mailbox, so that a cursor stays valid when the
 * list changes. A mailbox without a position was not read.
 */
import { createHash } from "node:crypto"
import { numberMax, type Since } from "../../../actors/mailbox/index.ts"
import { uriCharsMax } from "../../limits.ts"
import { parseListingSince } from "../mailboxes/index.ts"

/** Log number up to which a mailbox has been read, by {@link positionKey}. */
export type Positions = ReadonlyMap<number, number>

/** Where a reader begins: after the positions of a cursor, or at a time. */
export type CabinetSince =
  | { readonly _tag: "Behind"; readonly positions: Positions }
  | Extract<Since, { readonly _tag: "At" }>

const keyBytes = 4

/** 32 bits that name a mailbox in cursors. */
export const positionKey = (mailbox: string): number =>
  createHash("sha256").update(mailbox).digest().readUInt32BE(0)

/** The cursor at `atMs` (ms since the epoch). Positions of 0 are omitted. */
export const formatCabinetCursor = (
  atMs: number,
  positions: Iterable<readonly [mailbox: string, n: number]>
): string => {
  const bytes: Array<number> = []
  for (const [mailbox, n] of positions) {
    if (n === 0) continue
    const key = positionKey(mailbox)
    bytes.push(key >>> 24, (key >>> 16) & 255, (key >>> 8) & 255, key & 255)
    let rest = n
    for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push(rest % 128 + 128)
    bytes.push(rest)
  }
  return `${new Date(atMs).toISOString()}~${Buffer.from(bytes).toString("base64url")}`
}

/** A number in base 128, least significant byte first, and the offset after it. */
const numberAt = (
  bytes: Uint8Array,
  from: number
): { readonly n: number; readonly next: number } | undefined => {
  let n = 0
  let weight = 1
  for (let at = from; at < bytes.length && n <= numberMax; at++) {
    const byte = bytes[at] ?? 0
    n += byte % 128 * weight
    weight *= 128
    if (byte < 128) return n > numberMax ? undefined : { n, next: at + 1 }
  }
  return undefined
}

const positionsOf = (text: string): Positions | undefined => {
  const bytes = Buffer.from(text, "base64url")
  if (bytes.toString("base64url") !== text) return undefined
  const positions = new Map<number, number>()
  for (let at = 0; at < bytes.length;) {
    const read = at + keyBytes < bytes.length ? numberAt(bytes, at + keyBytes) : undefined
    if (read === undefined) return undefined
    const key = bytes.readUInt32BE(at)
    // If two mailboxes share a key, the smaller position misses no notification of either.
    positions.set(key, Math.min(read.n, positions.get(key) ?? read.n))
    at = read.next
  }
  return positions
}

/** A time: RFC 3339, or the time part of a mailbox's own cursor. */
export const timeOf = (text: string): Extract<Since, { readonly _tag: "At" }> | undefined => {
  // A log number of one mailbox has no meaning in the others.
  const since = parseListingSince(text.replace(/(\.\d{3})\d{12}(?=[Zz]$)/, "$1"))
  return since?._tag === "At" ? since : undefined
}

/** A cursor of a cabinet, or any RFC 3339 timestamp; undefined when it is neither. */
export const parseCabinetSince = (text: string): CabinetSince | undefined => {
  if (text.length > uriCharsMax) return undefined
  const tilde = text.indexOf("~")
  const at = timeOf(tilde === -1 ? text : text.slice(0, tilde))
  if (at === undefined || tilde === -1) return at
  const positions = positionsOf(text.slice(tilde + 1))
  return positions === undefined ? undefined : { _tag: "Behind", positions }
}
