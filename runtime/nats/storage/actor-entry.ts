/**
 * What the store knows of one actor, as its state record and the messages' headers tell.
 *
 * The sequence of the state's key is the fence: an activation's first commit after a load writes
 * that key, with its old text when the commit brings none, and every commit compares its
 * sequence. The port's revision is the sequence of the message that brought the text, which a
 * mere rewriting carries on in `Restante-Revision`.
 */
import type { LogItem } from "../../actor/index.ts"
import { logMessageBytes, logMessageItemsMax } from "../../limits.ts"
import type { StoredMessage } from "../stream/index.ts"

const GONE = "-"

/** What is written at the key of item `n`: it and those that follow, undefined where removed. */
export interface LogMessage {
  readonly n: number
  readonly values: ReadonlyArray<string | undefined>
}

/** The message of a pack; `headers` are whole lines. */
export const encodeLogMessage = ({ values }: LogMessage): { data: string; headers: string } => {
  const [first] = values
  if (values.length === 1) return { data: first ?? "", headers: "" }
  const lengths = values.map((value) => value === undefined ? GONE : Buffer.byteLength(value))
  const data = values.filter((value) => value !== undefined).join("\n")
  return { data, headers: `${ITEMS}: ${lengths.join(",")}\r\n` }
}

/** Items in packs of numbers that follow each other, each of at most so many bytes. */
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

/** The pack of a stored message at the key of item `n`. */
export const parseLogMessage = (n: number, stored: StoredMessage): LogMessage => {
  const lengths = stored.header(ITEMS)?.split(",")
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

/** The numbers at whose keys item `n` may be. */
export const keysOfItem = (n: number): ReadonlyArray<number> =>
  Array.from(
    { length: Math.min(n, logMessageItemsMax) },
    (_, at) => n - Math.min(n, logMessageItemsMax) + 1 + at
  )

/*
 * Log items that are appended together, several in one message: atomic without being a batch. A
 * message at the key of item n with the header `Restante-Items: 5,-,7` holds the items n to n + 2,
 * of 5 and 7 bytes; the second of them was removed. They are parted by line feeds. Without that
 * header a message is one item.
 */

export const HEAD = "Restante-Head"

export const REVISION = "Restante-Revision"

export const COMMIT = "Restante-Commit"

/** Sequence up to which log items belong to a removed actor of the same address. */
export const FLOOR = "Restante-Floor"

/** Items above this number are not yet committed: a commit too large for one batch. */
export const CAP = "Restante-Cap"

/** Of a message that holds several items, or did: the length of each, see `packs.ts`. */
export const ITEMS = "Restante-Items"

/** The items up to this number were removed. */
export const LOW_WATERMARK = "Restante-Cleared"

/** `<n>:<sequence>`: items above n with a lower sequence were never committed. */
export const VOID = "Restante-Void"

export interface VoidRange {
  readonly after: number
  /** undefined: the sequence of the record that says so. */
  readonly before: number | undefined
}

/** One actor, as its writer must know it. */
export interface ActorEntry {
  /** Last sequence of the state's key; 0 when there is none. */
  readonly seq: number
  /** The port's revision; 0 when there is no state. */
  readonly revision: number
  /** Its text, as long as the entry is not claimed. */
  readonly text: string | undefined
  readonly head: number
  /** Last sequence of the key of item head + 1, while not claimed. */
  readonly nextSeq: number
  readonly floor: number
  /** Up to this number no item counts: each of them was removed. */
  readonly lowWatermark: number
  /** Whether more of them may be: always, when the next one is removed. */
  readonly mayAdvance: boolean
  readonly voided: VoidRange | undefined
  /** Whether this activation has written the state's key since it was loaded. */
  readonly isFenced: boolean
  /** Id of the commit that wrote the state's key. */
  readonly commit: string | undefined
  /** A sequence of the stream that holds all that is known of the actor. */
  readonly lastSeq: number
}

const numberOf = (stored: StoredMessage, name: string): number => Number(stored.header(name) ?? 0)

export const isMarker = (stored: StoredMessage): boolean =>
  stored.header("KV-Operation") !== undefined

const voidOf = (stored: StoredMessage): VoidRange | undefined => {
  const cap = stored.header(CAP)
  if (cap !== undefined) return { after: Number(cap), before: undefined }
  const [after, before] = stored.header(VOID)?.split(":") ?? []
  if (after === undefined) return undefined
  return { after: Number(after), before: before === undefined ? stored.seq : Number(before) }
}

/** What the state record alone tells; its log may be longer. */
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
    isFenced: false,
    commit: undefined,
    lastSeq: 0
  }
  if (stored === undefined) return nothing
  const isGone = isMarker(stored)
  const head = stored.header(HEAD)
  return {
    ...nothing,
    seq: stored.seq,
    revision: isGone ? 0 : numberOf(stored, REVISION) || stored.seq,
    text: isGone ? undefined : stored.text(),
    head: Number(head ?? 0),
    // A mark without a head removed the actor; what is left of its log counts no more.
    floor: head === undefined && isGone ? stored.seq : numberOf(stored, FLOOR),
    lowWatermark: numberOf(stored, LOW_WATERMARK),
    voided: voidOf(stored),
    commit: stored.header(COMMIT),
    lastSeq: stored.seq
  }
}

/** Whether a commit too large for one batch is under way, or was broken off. */
export const isCapped = ({ voided }: ActorEntry): boolean =>
  voided !== undefined && voided.before === undefined

/** How many numbers a stored message stands for. */
export const itemCount = (stored: StoredMessage): number =>
  stored.header(ITEMS)?.split(",").length ?? 1

/** Whether a stored message, at the key of item `n`, is of the actor's log. */
export const isLiveItem = (entry: ActorEntry, n: number, stored: StoredMessage): boolean => {
  if (stored.seq <= entry.floor || isMarker(stored)) return false
  if (n + itemCount(stored) - 1 <= entry.lowWatermark) return false
  const { voided } = entry
  return voided === undefined || n <= voided.after || stored.seq > (voided.before ?? Infinity)
}
