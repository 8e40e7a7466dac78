/**
 * A stored notification as a log item: a header line, then the XML fragment that it is served
 * as. `<time, ms since the epoch, base 36> <random> <digest>\n<item>…</item>`; the random part
 * and the digest have 22 characters of base64url, 128 bits each.
 */

export interface StoredNotification {
  /** When the mailbox received it, ms since the epoch. */
  readonly atMs: number
  /** The random part of its URI. */
  readonly idRandom: string
  /** Digest of the document, by which a repeated one is recognized. */
  readonly digest: string
  /** The `item` element as XML, to be served as it is. */
  readonly fragment: string
}

/** Length of the random part and of the digest. */
export const partChars = 22

/** The log item of a notification. */
export const encodeItem = (
  atMs: number,
  idRandom: string,
  digest: string,
  fragment: string
): string => `${atMs.toString(36)} ${idRandom} ${digest}\n${fragment}`

const corrupted = (): Error => new Error("a mailbox's log item has no header line")

/**
 * Marks a log item that is an event of removals, which registrations read:
 * `<time, ms since the epoch, base 36> !\n<id>\n<id>…`. No random part begins with `!`.
 */
const removalMark = "!"

/** The log item of removals, with the ids of the notifications. */
export const encodeRemoval = (atMs: number, ids: ReadonlyArray<string>): string =>
  `${atMs.toString(36)} ${removalMark}\n${ids.join("\n")}`

/** Whether a log item is an event of removals; any other one is a notification. */
export const isRemoval = (value: string): boolean =>
  value.startsWith(removalMark, value.indexOf(" ") + 1)

/** The ids of the removed notifications in a log item. */
export const decodeRemoval = (value: string): ReadonlyArray<string> => value.split("\n").slice(1)

/** Where the digest begins. */
const digestAt = (value: string): number => {
  const space = value.indexOf(" ")
  const at = space + partChars + 2
  if (space < 1 || value.charCodeAt(at + partChars) !== 10) throw corrupted()
  return at
}

/** When the log item was made, ms since the epoch: its notification received, or removed. */
export const itemAtMs = (value: string): number =>
  Number.parseInt(value.slice(0, value.indexOf(" ")), 36)

/**
 * Characters of a digest in the deduplication window: 72 bits. A longer substring would be a view
 * of the whole item, and would keep the item in memory.
 */
const repeatKeyChars = 12

/** The key of a document of this digest in the deduplication window. */
export const repeatKey = (digest: string): string => digest.slice(0, repeatKeyChars)

/** The {@link repeatKey} of a log item; undefined for an event of removals. */
export const itemRepeatKey = (value: string): string | undefined => {
  if (isRemoval(value)) return
  const at = digestAt(value)
  return value.slice(at, at + repeatKeyChars)
}

/** The notification of a log item; throws for any other item. */
export const decodeItem = (value: string): StoredNotification => {
  const at = digestAt(value)
  return {
    atMs: itemAtMs(value),
    idRandom: value.slice(at - partChars - 1, at - 1),
    digest: value.slice(at, at + partChars),
    fragment: value.slice(at + partChars + 1)
  }
}

const idPattern = /^([1-9a-z][0-9a-z]{0,7})-([A-Za-z0-9_-]{22})$/

/** The id of a notification in URIs: its log number, base 36, and its random part. */
export const notificationId = (n: number, idRandom: string): string =>
  `${n.toString(36)}-${idRandom}`

/** The parts of a {@link notificationId}; undefined for any other text. */
export const parseNotificationId = (
  id: string
): { readonly n: number; readonly idRandom: string } | undefined => {
  const [, n, idRandom] = idPattern.exec(id) ?? []
  return n === undefined || idRandom === undefined
    ? undefined
    : { n: Number.parseInt(n, 36), idRandom }
}
