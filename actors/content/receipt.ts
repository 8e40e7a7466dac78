/** A receipt as a log item: when it was received, then what was sent. */

export interface StoredReceipt {
  /** ms since the epoch. */
  readonly atMs: number
  /** As it was given to the content, opaque to it. */
  readonly value: string
}

/** The log item of a receipt. */
export const encodeReceipt = (atMs: number, value: string): string =>
  `${atMs.toString(36)}\n${value}`

/** The receipt of a log item. */
export const decodeReceipt = (item: string): StoredReceipt => {
  const end = item.indexOf("\n")
  if (end < 1) throw new Error("a receipt's log item has no header line")
  return { atMs: Number.parseInt(item.slice(0, end), 36), value: item.slice(end + 1) }
}
