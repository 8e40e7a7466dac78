/**
 * The cursor of a cabinet, its `time` and `since`: an RFC 3339 timestamp, `~`, and the position in
 * each mailbox's log, in base 36. The positions are exact and independent of clocks; the
 * timestamp is for people. Each position names its mailbox, so that a cursor stays valid when the
 * list changes. A mailbox without a position was not read.
 */
import { createHash } from "node:crypto"
import { numberMax, type Since } from "../../../actors/mailbox/index.ts"
import { uriCharsMax } from "../../limits.ts"
import { parseListingSince } from "../mailboxes/index.ts"

/** Log number up to which a mailbox has been read, by {@link positionKey}. */
export type Positions = ReadonlyMap<number, number>

/**
 * Where a reader begins: after the positions of a cursor, or at a time. No item at a position is
 * newer than the cursor's time.
 */
export type CabinetSince =
  | { readonly _tag: "Behind"; readonly positions: Positions; readonly atMs: number }
  | Extract<Since, { readonly _tag: "At" }>

const radix = 36

/** 32 bits that name a mailbox in cursors. */
export const positionKey = (mailbox: string): number =>
  createHash("sha256").update(mailbox).digest().readUInt32BE(0)

/** The cursor at `atMs` (ms since the epoch). Positions of 0 are omitted. */
export const formatCabinetCursor = (
  atMs: number,
  positions: Iterable<readonly [mailbox: string, n: number]>
): string => {
  const parts = [...positions].filter(([, n]) => n > 0)
    .map(([mailbox, n]) => `${positionKey(mailbox).toString(radix)}.${n.toString(radix)}_`)
  return `${new Date(atMs).toISOString()}~${parts.join("")}`
}

/** Each position ends with `_`, so that a shortened cursor is not valid. */
const positionsPattern = /^(?:[0-9a-z]{1,7}\.[0-9a-z]{1,8}_)*$/

const positionsOf = (text: string): Positions | undefined => {
  if (!positionsPattern.test(text)) return undefined
  const positions = new Map<number, number>()
  for (const part of text.split("_").slice(0, -1)) {
    const [key = 0, n = 0] = part.split(".").map((digits) => Number.parseInt(digits, radix))
    if (n > numberMax) return undefined
    // If two mailboxes share a key, the smaller position misses no notification of either.
    positions.set(key, Math.min(n, positions.get(key) ?? n))
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
  return positions === undefined ? undefined : { _tag: "Behind", positions, atMs: at.atMs }
}
