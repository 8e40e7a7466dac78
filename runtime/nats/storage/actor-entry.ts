/**
 * What the store knows of one actor: its state record, and the headers of its messages.
 *
 * The sequence of the state's key is the fence. The first commit of an activation writes that key,
 * with its old text when the commit has none, and every commit compares its sequence. The port's
 * revision is the sequence of the message that brought the text; a message that only repeats the
 * text carries it in `Restante-Revision`.
 *
 * Log items that are appended together are one message where possible: atomic without a batch. A
 * message at the key of item n with the header `Restante-Items: 5,-,7` holds the items n to n + 2,
 * of 5 and 7 bytes, separated by line feeds; the second one was removed. A message without that
 * header is one item.
 */
import type { LogItem } from "../../actor/index.ts"
import { logMessageBytes, logMessageItemsMax } from "../../limits.ts"
import { commitHeader, isMarker, type StoredMessage } from "../stream/index.ts"

const GONE = "-"

/** The message at the key of item `n`: that item and those after it, undefined where removed. */
export interface LogMessage {
  readonly n: number
  readonly values: ReadonlyArray<string | undefined>
}

/** Its data and header lines. */
export const encodeLogMessage = ({ values }: LogMessage): { data: string; headers: string } => {
  const [first] = values
  if (values.length === 1) return { data: first ?? "", headers: "" }
  const lengths = values.map((value) => value === undefined ? GONE : Buffer.byteLength(value))
  const data = values.filter((value) => value !== undefined).join("\n")
  return { data, headers: `${itemsHeader}: ${lengths.join(",")}\r\n` }
}

/** Groups items of consecutive numbers into messages of at most `bytesMax` bytes. */
export const groupItems = (
  append: ReadonlyArray<LogItem>,
  bytesMax: number
): ReadonlyArray<LogMessage> => {
  const packs: Array<{ n: number; values: Array<string> }> = []
  let bytesLeft = 0
  for (const { n, value } of append) {
    // A UTF-16 unit takes at most three bytes of UTF-8; the line feed takes one.
    const bytes = 3 * value.length + 1
    const last = packs.at(-1)
    const fits = last !== undefined && n === last.n + last.values.length &&
      last.values.length < logMessageItemsMax && bytes <= bytesLeft
    if (fits) {
      last.values.push(value)
      bytesLeft -= bytes
    } else {
      packs.push({ n, values: [value] })
      bytesLeft = Math.min(logMessageBytes, bytesMax) - bytes
    }
  }
  return packs
}

/** Decodes a stored message at the key of item `n`. */
export const parseLogMessage = (n: number, stored: StoredMessage): LogMessage => {
  const lengths = stored.header(itemsHeader)?.split(",")
  if (lengths === undefined) return { n, values: [stored.text()] }
  const bytes = Buffer.from(stored.bytes())
  let at = 0
  const values = lengths.map((length) => {
    if (length === GONE) return undefined
    const from = at
    at += Number(length) + 1
    return bytes.toString("utf8", from, at - 1)
  })
  return { n, values }
}

/** The items of a stored message at the key of item `n`, without those that were removed. */
export const itemsOf = (n: number, stored: StoredMessage): ReadonlyArray<LogItem> =>
  parseLogMessage(n, stored).values.flatMap((value, at) =>
    value === undefined ? [] : [{ n: n + at, value }]
  )

/** The numbers whose keys may hold item `n`. */
export const keysOfItem = (n: number): ReadonlyArray<number> =>
  Array.from(
    { length: Math.min(n, logMessageItemsMax) },
    (_, at) => n - Math.min(n, logMessageItemsMax) + 1 + at
  )

export const headHeader = "Restante-Head"

export const revisionHeader = "Restante-Revision"

/** The time of the actor's own timer, ms since the epoch. */
export const timerHeader = "Restante-Timer"

/** Log items up to this sequence belong to a removed actor of the same address. */
export const floorHeader = "Restante-Floor"

/** Items above this number are not committed yet: the commit is too large for one batch. */
export const capHeader = "Restante-Cap"

/** The lengths of the items of a message that holds several, or did. */
export const itemsHeader = "Restante-Items"

/** All items up to this number were removed. */
export const lowWatermarkHeader = "Restante-Low-Watermark"

/** `<n>:<sequence>`: items above n with a lower sequence were never committed. */
export const voidHeader = "Restante-Void"

export interface VoidRange {
  readonly after: number
  /** undefined: the sequence of the record itself. */
  readonly before: number | undefined
}

/** One actor, as its writer knows it. */
export interface ActorEntry {
  /** Last sequence of the state's key; 0 when there is none. */
  readonly seq: number
  /** The port's revision; 0 when there is no state. */
  readonly revision: number
  /** Its text, until this activation has written the state's key. */
  readonly text: string | undefined
  readonly head: number
  /** Last sequence of the key of item head + 1, until this activation has written. */
  readonly nextSeq: number
  readonly floor: number
  /** All items up to this number were removed. */
  readonly lowWatermark: number
  /** Whether the low watermark may advance without a removal of the next item. */
  readonly mayAdvance: boolean
  readonly voided: VoidRange | undefined
  /** Its own timer, ms since the epoch. */
  readonly timer: number | undefined
  /** Whether this activation has written the state's key since it was loaded. */
  readonly isFenced: boolean
  /** Id of the commit that wrote the state's key. */
  readonly commit: string | undefined
  /** A sequence of the stream that covers everything known of the actor. */
  readonly lastSeq: number
}

const numberOf = (stored: StoredMessage, name: string): number => Number(stored.header(name) ?? 0)

const voidOf = (stored: StoredMessage): VoidRange | undefined => {
  const cap = stored.header(capHeader)
  if (cap !== undefined) return { after: Number(cap), before: undefined }
  const [after, before] = stored.header(voidHeader)?.split(":") ?? []
  if (after === undefined) return undefined
  return { after: Number(after), before: before === undefined ? stored.seq : Number(before) }
}

/** Decodes the state record; the log may be longer than its head. */
export const parseEntry = (stored: StoredMessage | undefined): ActorEntry => {
  const nothing: ActorEntry = {
    seq: 0,
    revision: 0,
    text: undefined,
    head: 0,
    nextSeq: 0,
    floor: 0,
    lowWatermark: 0,
    mayAdvance: true,
    voided: undefined,
    timer: undefined,
    isFenced: false,
    commit: undefined,
    lastSeq: 0
  }
  if (stored === undefined) return nothing
  const isGone = isMarker(stored)
  const head = stored.header(headHeader)
  const timer = stored.header(timerHeader)
  return {
    ...nothing,
    seq: stored.seq,
    revision: isGone ? 0 : numberOf(stored, revisionHeader) || stored.seq,
    text: isGone ? undefined : stored.text(),
    head: Number(head ?? 0),
    // A marker without a head removed the actor: the rest of its log no longer counts.
    floor: head === undefined && isGone ? stored.seq : numberOf(stored, floorHeader),
    lowWatermark: numberOf(stored, lowWatermarkHeader),
    voided: voidOf(stored),
    timer: timer === undefined ? undefined : Number(timer),
    commit: stored.header(commitHeader),
    lastSeq: stored.seq
  }
}

/** Whether a commit too large for one batch is being written, or was interrupted. */
export const isCapped = ({ voided }: ActorEntry): boolean =>
  voided !== undefined && voided.before === undefined

/** How many item numbers a stored message covers. */
export const itemCount = (stored: StoredMessage): number =>
  stored.header(itemsHeader)?.split(",").length ?? 1

/** Whether a stored message at the key of item `n` belongs to the actor's log. */
export const isLiveItem = (entry: ActorEntry, n: number, stored: StoredMessage): boolean => {
  if (stored.seq <= entry.floor || isMarker(stored)) return false
  if (n + itemCount(stored) - 1 <= entry.lowWatermark) return false
  const { voided } = entry
  return voided === undefined || n <= voided.after || stored.seq > (voided.before ?? Infinity)
}
