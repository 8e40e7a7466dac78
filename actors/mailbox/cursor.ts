/**
 * The time that a mailbox gives its readers, and takes back as `since`: an RFC 3339 timestamp
 * whose fraction has 15 digits, three for milliseconds and twelve for the number of the last log
 * item. It is a time for readers, and an exact position in the log for the mailbox.
 * Cursors of one mailbox sort as texts in the order of time.
 */
/** The largest number that the twelve digits hold. */
export const numberMax = 999_999_999_999

/** The cursor after item `n`, at `atMs` (ms since the epoch). */
export const formatCursor = (atMs: number, n: number): string =>
  `${new Date(atMs).toISOString().slice(0, 23)}${String(n).padStart(12, "0")}Z`

/**
 * A position in a log: exactly after item `n`, or at a time, ms since the epoch. A cursor also has
 * the time of its item, which tells it from a cursor of another log.
 */
export type Since =
  | { readonly _tag: "After"; readonly n: number; readonly atMs?: number }
  | { readonly _tag: "At"; readonly atMs: number }

const timestamp =
  /^(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))$/

/** A cursor or any RFC 3339 timestamp; undefined when it is neither. */
export const parseSince = (text: string): Since | undefined => {
  const [all, date, hour, minute, second, fraction = "", zulu, sign, offHour, offMinute] =
    timestamp.exec(text) ?? []
  if (all === undefined || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return
  const dayMs = Date.parse(`${date}T00:00:00Z`)
  // Date.parse takes February 30 for March 1.
  if (Number.isNaN(dayMs) || !new Date(dayMs).toISOString().startsWith(String(date))) return
  if (Number(offHour ?? 0) > 23 || Number(offMinute ?? 0) > 59) return
  const offset = (Number(offHour ?? 0) * 60 + Number(offMinute ?? 0)) * (sign === "-" ? -1 : 1)
  const seconds = (Number(hour) * 60 + Number(minute) - offset) * 60 + Number(second)
  const atMs = dayMs + seconds * 1000 + Number(fraction.slice(0, 3).padEnd(3, "0"))
  return zulu !== undefined && fraction.length === 15
    ? { _tag: "After", n: Number(fraction.slice(3)), atMs }
    : { _tag: "At", atMs }
}

/** The first item of a log with a number from `n` on; undefined when there is none. */
export type ReadFrom = (
  n: number
) => Promise<{ readonly n: number; readonly atMs: number } | undefined>

/**
 * The number after which a listing begins: every item received at the time or later has a
 * greater one. For a time, a binary search over the log (at most 41 reads), whose items may have
 * gaps between them; a cursor beyond the head begins at the head.
 */
export const startAfter = async (
  since: Since,
  head: number,
  readFrom: ReadFrom
): Promise<number> => {
  if (since._tag === "After") return Math.min(since.n, head)
  let low = 1
  let high = head + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const item = await readFrom(middle)
    if (item === undefined || item.atMs >= since.atMs) high = middle
    else low = item.n + 1
  }
  return low - 1
}
