/**
 * The items of a mailbox's log. A notification is a header line and the XML that readers get:
 * `<time, ms since the epoch, base 36> <random> <digest>\n<item>…</item>`. The random part and the
 * digest have 22 characters of base64url each, 128 bits. After the digest there may be a space and
 * the depositor: `@` and the name of an account, or the network of an anonymous client. The other
 * kind of item is a removal event.
 */

export interface StoredNotification {
  /** When the mailbox received it, ms since the epoch. */
  readonly atMs: number
  /** The random part of its URI. */
  readonly idRandom: string
  /** Digest of the document, to recognize a repeated deposit. */
  readonly digest: string
  /** The `item` element as XML; a message password in it is encrypted, see `openItems`. */
  readonly fragment: string
  /** The client network of an anonymous depositor. */
  readonly network: string | undefined
  /** The account of any other depositor. */
  readonly account: string | undefined
}

/** Length of the random part and of the digest. */
export const partChars = 22

/**
 * The random part of the id of a local delivery begins with this mark, so that a removal recognizes
 * it without reading the item. One in 64 of the other notifications has the mark by chance: the
 * mailbox then remembers its removal too, which does no harm.
 */
const localDeliveryMark = "_"

/** The random part of the id of a local delivery; each attempt has the same `name`. */
export const localDeliveryIdRandom = (name: string): string =>
  localDeliveryMark + name.slice(0, partChars - 1)

/** Whether the notification of this random part may be a local delivery, which may be repeated. */
export const mayBeLocalDelivery = (idRandom: string): boolean =>
  idRandom.startsWith(localDeliveryMark)

/** Who deposited a notification: an account, or an anonymous client in a network. */
interface Depositor {
  readonly account?: string | undefined
  readonly network?: string | undefined
}

/** The log item of a notification. */
export const encodeItem = (
  atMs: number,
  idRandom: string,
  digest: string,
  fragment: string,
  { account, network }: Depositor = {}
): string => {
  const by = account === undefined ? network === undefined ? "" : ` ${network}` : ` @${account}`
  return `${atMs.toString(36)} ${idRandom} ${digest}${by}\n${fragment}`
}

const corrupted = (): Error =>
  new Error("a log item of a mailbox is corrupted: its header line is missing")

/**
 * Marks a removal event. Its item is `<time, ms since the epoch, base 36> !\n<id>\n<id>…`, with the
 * ids of the removed notifications; registrations push it. No random part begins with `!`.
 */
const removalMark = "!"

/** The log item of a removal event, with the ids of the removed notifications. */
export const encodeRemoval = (atMs: number, ids: ReadonlyArray<string>): string =>
  `${atMs.toString(36)} ${removalMark}\n${ids.join("\n")}`

/** Whether a log item is a removal event; any other item is a notification. */
export const isRemoval = (value: string): boolean =>
  value.startsWith(removalMark, value.indexOf(" ") + 1)

/** The ids of the removed notifications in a removal event. */
export const decodeRemoval = (value: string): ReadonlyArray<string> => value.split("\n").slice(1)

/** The index of the digest in the log item of a notification; throws for a corrupted item. */
const digestOffset = (value: string): number => {
  const space = value.indexOf(" ")
  const offset = space + partChars + 2
  const after = value[offset + partChars]
  if (space < 1 || (after !== "\n" && after !== " ")) throw corrupted()
  return offset
}

/** When the mailbox received or removed the notifications of a log item, ms since the epoch. */
export const itemAtMs = (value: string): number =>
  Number.parseInt(value.slice(0, value.indexOf(" ")), 36)

/**
 * Characters of a digest in the deduplication window: 72 bits. V8 copies a substring of up to 12
 * characters. A longer one would be a view of the whole item, and would keep it in memory.
 */
const repeatKeyChars = 12

/** The key in the deduplication window of a document with this digest. */
export const repeatKey = (digest: string): string => digest.slice(0, repeatKeyChars)

/** The {@link repeatKey} of a log item; undefined for a removal event. */
export const itemRepeatKey = (value: string): string | undefined => {
  if (isRemoval(value)) return
  const offset = digestOffset(value)
  return value.slice(offset, offset + repeatKeyChars)
}

/** The notification in a log item; throws if the item is a removal event or corrupted. */
export const decodeItem = (value: string): StoredNotification => {
  const offset = digestOffset(value)
  const end = value.indexOf("\n", offset + partChars)
  if (end < 0) throw corrupted()
  const by = end === offset + partChars ? undefined : value.slice(offset + partChars + 1, end)
  const isAccount = by?.startsWith("@") === true
  return {
    atMs: itemAtMs(value),
    idRandom: value.slice(offset - partChars - 1, offset - 1),
    digest: value.slice(offset, offset + partChars),
    fragment: value.slice(end + 1),
    network: isAccount ? undefined : by,
    account: isAccount ? by.slice(1) : undefined
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
