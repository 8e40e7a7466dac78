/**
 * What the store knows of one actor, as its state record and the messages' headers tell.
 *
 * The sequence of the state's key is the fence: an activation's first commit after a load writes
 * that key, with its old text when the commit brings none, and every commit compares its
 * sequence. The port's revision is the sequence of the message that brought the text, which a
 * mere rewriting carries on in `Restante-Revision`.
 */
import type { StoredMessage } from "./wire.ts"

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
export const CLEARED = "Restante-Cleared"
/** `<n>:<sequence>`: items above n with a lower sequence were never committed. */
export const VOID = "Restante-Void"

export interface ClearedRange {
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
  readonly cleared: number
  /** Whether more of them may be: always, when the next one is removed. */
  readonly isFurther: boolean
  readonly gone: ClearedRange | undefined
  /** Whether this activation has written the state's key since it was loaded. */
  readonly claimed: boolean
  /** Id of the commit that wrote the state's key. */
  readonly commit: string | undefined
  /** A sequence of the stream that holds all that is known of the actor. */
  readonly lastSeq: number
}

const numberOf = (stored: StoredMessage, name: string): number => Number(stored.header(name) ?? 0)

export const isMarker = (stored: StoredMessage): boolean =>
  stored.header("KV-Operation") !== undefined

const voidOf = (stored: StoredMessage): ClearedRange | undefined => {
  const cap = stored.header(CAP)
  if (cap !== undefined) return { after: Number(cap), before: undefined }
  const [after, before] = stored.header(VOID)?.split(":") ?? []
  if (after === undefined) return undefined
  return { after: Number(after), before: before === undefined ? stored.seq : Number(before) }
}

/** What the state record alone tells; its log may be longer. */
export const entryOf = (stored: StoredMessage | undefined): ActorEntry => {
  const nothing: ActorEntry = {
    seq: 0,
    revision: 0,
    text: undefined,
    head: 0,
    nextSeq: 0,
    floor: 0,
    cleared: 0,
    isFurther: true,
    gone: undefined,
    claimed: false,
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
    cleared: numberOf(stored, CLEARED),
    gone: voidOf(stored),
    commit: stored.header(COMMIT),
    lastSeq: stored.seq
  }
}

/** Whether a commit too large for one batch is under way, or was broken off. */
export const isCapped = ({ gone }: ActorEntry): boolean =>
  gone !== undefined && gone.before === undefined

/** How many numbers a stored message stands for. */
export const countOf = (stored: StoredMessage): number =>
  stored.header(ITEMS)?.split(",").length ?? 1

/** Whether a stored message, at the key of item `n`, is of the actor's log. */
export const isItem = (entry: ActorEntry, n: number, stored: StoredMessage): boolean => {
  if (stored.seq <= entry.floor || isMarker(stored)) return false
  if (n + countOf(stored) - 1 <= entry.cleared) return false
  const { gone } = entry
  return gone === undefined || n <= gone.after || stored.seq > (gone.before ?? Infinity)
}
