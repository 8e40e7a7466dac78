/**
 * The cursor of a cabinet, its `time` and `since`: an RFC 3339 timestamp, `~`, the cabinet, and the
 * position in each mailbox's log, in base 36. The positions are exact and independent of clocks;
 * the timestamp is for people. Another cabinet may have another query, so that it would skip
 * notifications that the reader has not seen. Each position names its mailbox, so that a cursor
 * stays valid when the list changes. A mailbox without a position was not read.
 */
import { createHash } from "node:crypto"
import { numberMax, type Since } from "../../../actors/mailbox/index.ts"
import { uriCharsMax } from "../../limits.ts"
import { parseListingSince } from "../mailboxes/index.ts"

/** Log number up to which a mailbox has been read, by {@link cursorKey}. */
export type Positions = ReadonlyMap<number, number>

/** The positions of a cursor. No item at a position is newer than the cursor's time. */
interface CabinetPosition {
  readonly _tag: "Behind"
  /** The {@link cursorKey} of the cabinet. */
  readonly cabinet: number
  readonly positions: Positions
  readonly atMs: number
}

/** Where a reader begins: after the positions of a cursor, or at a time. */
export type CabinetSince = CabinetPosition | Extract<Since, { readonly _tag: "At" }>

const radix = 36

const keyMax = 2 ** 32 - 1

/** 32 bits that name a mailbox, by its name, or a cabinet, by its id, in cursors. */
export const cursorKey = (name: string): number =>
  createHash("sha256").update(name).digest().readUInt32BE(0)

/**
 * The cursor of a cabinet at `atMs` (ms since the epoch). The position of a mailbox that has never
 * received anything is 0.
 */
export const formatCabinetCursor = (
  cabinet: string,
  atMs: number,
  positions: Iterable<readonly [mailbox: string, n: number]>
): string => {
  const parts = [...positions]
    .map(([mailbox, n]) => `${cursorKey(mailbox).toString(radix)}.${n.toString(radix)}_`)
  return `${new Date(atMs).toISOString()}~${cursorKey(cabinet).toString(radix)}_${parts.join("")}`
}

/** Each part ends with `_`, so that a shortened cursor is not valid. No number begins with 0. */
const positionsPattern =
  /^(?:0|[1-9a-z][0-9a-z]{0,6})_(?:(?:0|[1-9a-z][0-9a-z]{0,6})\.(?:0|[1-9a-z][0-9a-z]{0,7})_)*$/

const positionsOf = (text: string): Omit<CabinetPosition, "_tag" | "atMs"> | undefined => {
  if (!positionsPattern.test(text)) return undefined
  const [[cabinet = 0] = [], ...parts] = text.split("_").slice(0, -1)
    .map((part) => part.split(".").map((digits) => Number.parseInt(digits, radix)))
  if (cabinet > keyMax) return undefined
  const positions = new Map<number, number>()
  for (const [key = 0, n = 0] of parts) {
    if (key > keyMax || n > numberMax) return undefined
    // If two mailboxes share a key, the smaller position misses no notification of either.
    positions.set(key, Math.min(n, positions.get(key) ?? n))
  }
  return { cabinet, positions }
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
  return positions === undefined ? undefined : { _tag: "Behind", ...positions, atMs: at.atMs }
}
