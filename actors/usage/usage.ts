/**
 * How much content each owner has stored (protocol §7). The entry of a content says what it counts:
 * its current body, and the bodies that are about to be stored, which are reservations. The total
 * of an owner is the sum of its entries, since one write changes both. So a repeated change counts
 * once, and any entry can be corrected later by asking the content what it has stored. Pure.
 */
import { contentOverheadBytes, reservationsMax } from "../limits.ts"

/** A body that is about to be stored; its id is that of its blob. */
export interface Reservation {
  readonly id: string
  readonly bytes: number
  /** When the reservation, if nobody has settled it, is compared with the content. */
  readonly dueMs: number
  /** `<day>/<network>` of a sender without an account. */
  readonly network?: string
}

/** What a content counts. */
export interface UsageEntry {
  /** The account that it counts for; undefined for content of anonymous clients. */
  readonly owner?: string
  readonly publishedAtMs: number
  /** The current body, and its generation at the content. */
  readonly body?: { readonly generation: number; readonly bytes: number }
  readonly isRemoved?: boolean
  readonly reservations: ReadonlyArray<Reservation>
}

/** What all contents of an owner count. */
export interface UsageTotal {
  readonly bytes: number
  readonly contents: number
}

/** The bytes that each owner may have. */
export interface UsageLimits {
  /** All content of clients without an account. */
  readonly anonymousBytesMax: number
  /** What such clients of one network publish in a day. */
  readonly networkBytesMax: number
  readonly accountBytesMax: number
}

/** What a content has stored, as its actor knows it. */
export type StoredUsage =
  | {
    readonly _tag: "Body"
    readonly blobId: string
    readonly generation: number
    readonly lengthBytes: number
  }
  /** It was removed, and stores nothing again. */
  | { readonly _tag: "Removed" }
  /** It was not published so far. */
  | { readonly _tag: "Absent" }

export type UsageChange =
  | {
    readonly _tag: "Reserve"
    readonly contentId: string
    /** A larger or later one replaces the one of the same id. */
    readonly reservation: Reservation
    /** Who publishes new content; undefined for the replacement of a body. */
    readonly publication: { readonly owner?: string; readonly atMs: number } | undefined
  }
  /** Nothing will be stored for a reservation. */
  | { readonly _tag: "Cancel"; readonly contentId: string; readonly reservationId: string }
  /** The content has stored this. The reservations of its body, of `blobIds`, and due ones end. */
  | {
    readonly _tag: "Settle"
    readonly contentId: string
    readonly stored: StoredUsage
    readonly blobIds?: ReadonlyArray<string>
    readonly dueBeforeMs?: number
  }
  /**
   * A client without an account stores this beside content; `network` is a {@link networkKey}. It
   * has no entry: a repetition counts again, and nothing gives it back on that day.
   */
  | { readonly _tag: "Spend"; readonly network: string; readonly bytes: number }

/** A quota that a reservation exceeds, in bytes. */
export interface QuotaExceeded {
  readonly _tag: "QuotaExceeded"
  readonly quota: "anonymous" | "network" | "account"
  /** The account or the network. */
  readonly name?: string
  readonly usedBytes: number
  readonly wantedBytes: number
  readonly maxBytes: number
  /** A publication may send as much again as its content has stored, whatever the quota. */
  readonly repeatableBytes?: number
}

export type UsageReply =
  | { readonly _tag: "Counted" }
  /** Too many bodies are being stored for one content. */
  | { readonly _tag: "Busy" }
  | QuotaExceeded

const counted: UsageReply = { _tag: "Counted" }

/** What a body of this length counts: the records of a content take space, too. */
const charge = (lengthBytes: number): number => lengthBytes + contentOverheadBytes

const chargeOfEntry = (entry: UsageEntry | undefined): number =>
  entry === undefined ? 0 : (entry.body === undefined ? 0 : charge(entry.body.bytes)) +
    entry.reservations.reduce((sum, { bytes }) => sum + charge(bytes), 0)

/** The key of an owner's total and listing. */
export const ownerKey = (owner: string | undefined): string =>
  owner === undefined ? "anonymous" : `account=${owner}`

/** The key of a network's total of a day: `<day>/<network>`. */
export const networkKey = (network: string, nowMs: number): string =>
  `${new Date(nowMs).toISOString().slice(0, 10)}/${network}`

/** The network of a {@link networkKey}. */
const networkOf = (key: string): string => key.slice(key.indexOf("/") + 1)

/** The records that changes read and write, as they become. */
export interface UsageDraft {
  readonly entries: Map<string, UsageEntry | undefined>
  readonly totals: Map<string, UsageTotal>
  /** Bytes by {@link networkKey}. */
  readonly networks: Map<string, number>
}

const noTotal: UsageTotal = { bytes: 0, contents: 0 }

const addToNetwork = ({ networks }: UsageDraft, key: string | undefined, bytes: number): void => {
  if (key === undefined || bytes === 0) return
  networks.set(key, Math.max(0, (networks.get(key) ?? 0) + bytes))
}

/** Adds an entry to its owner's total, for a sum of entries. */
export const addToTotals = (totals: Map<string, UsageTotal>, entry: UsageEntry): void => {
  const key = ownerKey(entry.owner)
  const { bytes, contents } = totals.get(key) ?? noTotal
  totals.set(key, { bytes: bytes + chargeOfEntry(entry), contents: contents + 1 })
}

/** Replaces an entry, and adds the difference to its owner's total. */
const replace = (draft: UsageDraft, id: string, next: UsageEntry | undefined): void => {
  const earlier = draft.entries.get(id)
  const key = ownerKey((next ?? earlier)?.owner)
  const { bytes, contents } = draft.totals.get(key) ?? noTotal
  draft.totals.set(key, {
    bytes: Math.max(0, bytes + chargeOfEntry(next) - chargeOfEntry(earlier)),
    contents: Math.max(0, contents + (next === undefined ? 0 : 1) - (earlier === undefined ? 0 : 1))
  })
  draft.entries.set(id, next)
}

/** Bytes that are added for an owner, and those that it gets back for them. */
interface Addition {
  readonly owner: string | undefined
  readonly network: string | undefined
  readonly added: number
  readonly returned: number
}

/** The quota, if it has no room for the bytes that are added to the used ones. */
const exceeds = (
  quota: QuotaExceeded["quota"],
  usedBytes: number,
  wantedBytes: number,
  maxBytes: number,
  name?: string
): QuotaExceeded | undefined =>
  usedBytes + wantedBytes <= maxBytes ? undefined : {
    _tag: "QuotaExceeded",
    quota,
    usedBytes,
    wantedBytes,
    maxBytes,
    ...name === undefined ? {} : { name }
  }

const exceedsNetwork = (
  { networks }: UsageDraft,
  { networkBytesMax }: UsageLimits,
  key: string,
  bytes: number
): QuotaExceeded | undefined =>
  exceeds("network", networks.get(key) ?? 0, bytes, networkBytesMax, networkOf(key))

/** The quota that an addition exceeds. */
const exceededQuota = (
  draft: UsageDraft,
  limits: UsageLimits,
  { added, network, owner, returned }: Addition
): QuotaExceeded | undefined => {
  const { bytes } = draft.totals.get(ownerKey(owner)) ?? noTotal
  const usedBytes = Math.max(0, bytes - returned)
  const overNetwork = network === undefined
    ? undefined
    : exceedsNetwork(draft, limits, network, added)
  return overNetwork ?? (owner === undefined
    ? exceeds("anonymous", usedBytes, added, limits.anonymousBytesMax)
    : exceeds("account", usedBytes, added, limits.accountBytesMax, owner))
}

const spend = (
  draft: UsageDraft,
  limits: UsageLimits,
  { bytes, network }: Extract<UsageChange, { readonly _tag: "Spend" }>
): UsageReply => {
  const exceeded = exceedsNetwork(draft, limits, network, bytes)
  if (exceeded !== undefined) return exceeded
  addToNetwork(draft, network, bytes)
  return counted
}

const reserve = (
  draft: UsageDraft,
  limits: UsageLimits,
  { contentId, publication, reservation }: Extract<UsageChange, { readonly _tag: "Reserve" }>
): UsageReply => {
  const earlier = draft.entries.get(contentId)
  // The content is older than the entries, which do not count it.
  if (earlier === undefined && publication === undefined) return counted
  const entry: UsageEntry = earlier ?? {
    publishedAtMs: publication?.atMs ?? 0,
    reservations: [],
    ...publication?.owner === undefined ? {} : { owner: publication.owner }
  }
  const others = entry.reservations.filter(({ id }) => id !== reservation.id)
  const replaced = entry.reservations.find(({ id }) => id === reservation.id)
  if (replaced === undefined && others.length >= reservationsMax) return { _tag: "Busy" }
  const added = charge(reservation.bytes) - (replaced === undefined ? 0 : charge(replaced.bytes))
  // One replacement at a time may use the bytes that it gives back.
  const returned = publication === undefined && others.length === 0 ? entry.body : undefined
  // A repeated publication stores nothing more: its content is there, and its body is removed. A
  // larger body is no repetition: without this bound it would pass every quota until it is refused.
  const repeatableBytes = publication === undefined ? undefined : entry.body?.bytes
  const isRepetition = repeatableBytes !== undefined && reservation.bytes <= repeatableBytes
  const exceeded = isRepetition || added <= 0
    ? undefined
    : exceededQuota(draft, limits, {
      owner: entry.owner,
      network: reservation.network,
      added,
      returned: returned === undefined ? 0 : charge(returned.bytes)
    })
  if (exceeded !== undefined) {
    return repeatableBytes === undefined ? exceeded : { ...exceeded, repeatableBytes }
  }
  addToNetwork(draft, reservation.network, added)
  replace(draft, contentId, { ...entry, reservations: [...others, reservation] })
  return counted
}

/** An entry that counts nothing is removed. */
const unlessEmpty = (entry: UsageEntry): UsageEntry | undefined =>
  entry.body === undefined && entry.reservations.length === 0 ? undefined : entry

/** The entry after its content has stored something, with the reservations that remain. */
const withStored = (
  entry: UsageEntry,
  stored: StoredUsage,
  reservations: ReadonlyArray<Reservation>
): UsageEntry => {
  const { body, ...others } = entry
  const rest = { ...others, reservations }
  if (stored._tag === "Removed") return { ...rest, isRemoved: true }
  const isNewer = stored._tag === "Body" && entry.isRemoved !== true &&
    stored.generation > (body?.generation ?? 0)
  if (!isNewer) return body === undefined ? rest : { ...rest, body }
  return { ...rest, body: { generation: stored.generation, bytes: stored.lengthBytes } }
}

const settle = (
  draft: UsageDraft,
  change: Extract<UsageChange, { readonly _tag: "Settle" }>
): UsageReply => {
  const { blobIds = [], contentId, dueBeforeMs = 0, stored } = change
  const entry = draft.entries.get(contentId)
  if (entry === undefined) return counted
  const isStored = (id: string) => stored._tag === "Body" && stored.blobId === id
  const isEnded = ({ dueMs, id }: Reservation) =>
    isStored(id) || blobIds.includes(id) || dueMs <= dueBeforeMs
  for (const { bytes, id, network } of entry.reservations.filter(isEnded)) {
    // What was reserved and not stored does not count for the network's day.
    const kept = stored._tag === "Body" && isStored(id) ? charge(stored.lengthBytes) : 0
    addToNetwork(draft, network, kept - charge(bytes))
  }
  const left = entry.reservations.filter((one) => !isEnded(one))
  replace(draft, contentId, unlessEmpty(withStored(entry, stored, left)))
  return counted
}

/** Makes one change of the draft. */
export const applyChange = (
  draft: UsageDraft,
  limits: UsageLimits,
  change: UsageChange
): UsageReply => {
  switch (change._tag) {
    case "Reserve":
      return reserve(draft, limits, change)
    case "Cancel": {
      const { contentId, reservationId } = change
      const entry = draft.entries.get(contentId)
      const cancelled = entry?.reservations.find(({ id }) => id === reservationId)
      if (entry === undefined || cancelled === undefined) return counted
      addToNetwork(draft, cancelled.network, -charge(cancelled.bytes))
      const reservations = entry.reservations.filter((one) => one !== cancelled)
      replace(draft, contentId, unlessEmpty({ ...entry, reservations }))
      return counted
    }
    case "Settle":
      return settle(draft, change)
    case "Spend":
      return spend(draft, limits, change)
  }
}
