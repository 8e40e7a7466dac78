/**
 * The bytes of the notifications that clients without an account have deposited and nobody has
 * retrieved or removed. They have a bound, so that strangers cannot fill the disk with one mailbox.
 *
 * A deposit adds to the count in memory. Parts of the log are counted together: a part is counted
 * until all its numbers are retrieved or removed, so the count is exact or too high. The record
 * gets the count with any other change, and once in `waitingSavedItems` deposits. Later deposits
 * are counted again from the log when the actor is loaded, since these items are recalled anyway.
 * A deposit that brought content stores the count with it: the log does not have that length.
 */
import { Schema } from "effect"
import type { LogItem } from "../../runtime/index.ts"
import { waitingOverheadBytes, waitingPartsMax, waitingSavedItems } from "../limits.ts"
import { Count } from "../schemas.ts"
import { fragmentStart } from "../sealed-fragment.ts"
import { decodeItem, isRemoval } from "./log-item.ts"

/** Numbers of the log, and the bytes of strangers' notifications among them. */
const Part = Schema.Struct({ from: Count, to: Count, bytes: Count })

type Part = typeof Part.Type

export const WaitingCount = Schema.Struct({
  /** The parts that do not grow any more, ascending, and their bytes. */
  parts: Schema.Array(Part),
  partsBytes: Count,
  /** The part that grows: its first number, 0 if it is empty, and its bytes. */
  from: Count,
  bytes: Count,
  /** The last number that was counted. */
  upTo: Count,
  /** Up to which number the count was stored for its own sake. */
  savedTo: Count
})

export type WaitingCount = typeof WaitingCount.Type

export const nothingWaiting: WaitingCount = {
  parts: [],
  partsBytes: 0,
  from: 0,
  bytes: 0,
  upTo: 0,
  savedTo: 0
}

/**
 * What a notification counts, by its log item: the bytes of its fragment, those of the content that
 * came in it, and the space of its record. It takes the whole item, because counting joins the
 * parts of a text in memory, which storing the item has to do anyway.
 */
export const waitingBytesOf = (item: string, inlinedBytes = 0): number =>
  Buffer.byteLength(item) - fragmentStart(item) + inlinedBytes + waitingOverheadBytes

/** What waits in the whole mailbox. */
export const waitingBytes = ({ bytes, partsBytes }: WaitingCount): number => partsBytes + bytes

/** The count with one more notification of a client without an account. */
export const withWaiting = (waiting: WaitingCount, n: number, bytes: number): WaitingCount => ({
  parts: waiting.parts,
  partsBytes: waiting.partsBytes,
  from: waiting.from === 0 ? n : waiting.from,
  bytes: waiting.bytes + bytes,
  upTo: n,
  savedTo: waiting.savedTo
})

/** Whether the deposit of number `n` must store the count: otherwise a crash could lose a part. */
export const isSaveDue = ({ savedTo, upTo }: WaitingCount, n: number): boolean =>
  upTo > savedTo && n - savedTo >= waitingSavedItems

/** The neighbors with the fewest bytes are one part, if there are too many. */
const bounded = (parts: ReadonlyArray<Part>): ReadonlyArray<Part> => {
  if (parts.length <= waitingPartsMax) return parts
  const sum = (at: number): number => (parts[at]?.bytes ?? 0) + (parts[at + 1]?.bytes ?? 0)
  let least = 0
  for (let at = 1; at < parts.length - 1; at++) if (sum(at) < sum(least)) least = at
  return parts.flatMap((part, at) => {
    if (at === least + 1) return []
    const next = parts[at + 1]
    return at === least && next !== undefined
      ? [{ from: part.from, to: next.to, bytes: part.bytes + next.bytes }]
      : [part]
  })
}

/** The count that is stored with number `n`: the part that grew is complete. */
export const savedWaiting = (waiting: WaitingCount, n: number): WaitingCount => {
  const { bytes, from, parts, partsBytes, upTo } = waiting
  if (from === 0) return { ...waiting, savedTo: n }
  return {
    parts: bounded([...parts, { from, to: upTo, bytes }]),
    partsBytes: partsBytes + bytes,
    from: 0,
    bytes: 0,
    upTo,
    savedTo: n
  }
}

/** The count with the items that the log has got since it was stored. */
export const recallWaiting = (
  waiting: WaitingCount,
  items: ReadonlyArray<LogItem>
): WaitingCount => {
  let next = waiting
  for (const { n, value } of items) {
    if (n <= waiting.upTo || isRemoval(value)) continue
    if (decodeItem(value).account === undefined) {
      next = withWaiting(next, n, waitingBytesOf(value))
    }
  }
  return next
}
