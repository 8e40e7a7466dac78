/**
 * What the whole history of a mailbox tells of its unknown outcomes. Afterwards some order explains
 * it if and only if one did before: it only spares the search.
 */
import type { Entry, MailboxOperation, Place } from "./mailbox.ts"

interface Told {
  /** Every place at which the document was shown. */
  readonly places: Set<Place>
  /** When the first showing ended, and the last began. */
  end: number
  start: number
}

/** What was shown of each document, by whatever answer. */
const toldOf = (operations: ReadonlyArray<MailboxOperation>): ReadonlyMap<string, Told> => {
  const told = new Map<string, Told>()
  const tell = ({ id, place }: Entry, start: number, end: number) => {
    const before = told.get(id) ?? { places: new Set<Place>(), start: -Infinity, end: Infinity }
    before.places.add(place)
    before.start = Math.max(before.start, start)
    before.end = Math.min(before.end, end)
    told.set(id, before)
  }
  for (const { end, input, outcome, output, start } of operations) {
    if (outcome !== "ok") continue
    if (output?._tag === "Listed") { for (const entry of output.entries) tell(entry, start, end) }
    else if (output?._tag === "Latest" && output.entry !== undefined) {
      tell(output.entry, start, end)
    } else if (output?._tag === "Found" && input.kind === "read") {
      tell({ id: output.id, place: input.place }, start, end)
    } else if (output?._tag === "Deposited" && input.kind === "deposit") {
      tell({ id: input.id, place: output.place }, start, end)
    }
  }
  return told
}

/** By a key, the first to start of the operations that have one. */
const firsts = (
  operations: ReadonlyArray<MailboxOperation>,
  keyOf: (one: MailboxOperation) => Place | undefined
): ReadonlyMap<Place, MailboxOperation> => {
  const first = new Map<Place, MailboxOperation>()
  for (const one of operations) {
    const key = keyOf(one)
    if (key === undefined) continue
    const before = first.get(key)
    if (before === undefined || one.start < before.start) first.set(key, one)
  }
  return first
}

const isUnknown = ({ outcome }: MailboxOperation) => outcome === "info"
const none = (one: MailboxOperation): MailboxOperation => ({ ...one, outcome: "fail" })

/**
 * Of unknown removals of one place the first does for all, and none before the place was last
 * shown; it may have been in vain.
 */
const settleRemovals = (
  operations: ReadonlyArray<MailboxOperation>,
  shown: ReadonlyMap<Place, number>
): ReadonlyArray<MailboxOperation> => {
  const first = firsts(
    operations.filter(isUnknown),
    ({ input }) => input.kind === "remove" ? input.place : undefined
  )
  return operations.map((one) => {
    if (!isUnknown(one) || one.input.kind !== "remove") return one
    if (first.get(one.input.place) !== one) return none(one)
    return { ...one, start: Math.max(one.start, shown.get(one.input.place) ?? -Infinity) }
  })
}

/**
 * A document that was shown at one place and never removed from it was stored by the first of its
 * deposits, if all are unknown; the others found it there. One whose document nobody was shown
 * changes nothing for anybody. Neither is so if somebody removed what nobody was shown: it may
 * have been this document, at a place where it stood before.
 */
const settleDeposits = (
  operations: ReadonlyArray<MailboxOperation>,
  told: ReadonlyMap<string, Told>
): ReadonlyArray<MailboxOperation> => {
  const idOf = ({ input, outcome }: MailboxOperation) =>
    input.kind === "deposit" && outcome !== "fail" ? input.id : undefined
  const first = firsts(operations.filter(isUnknown), idOf)
  const known = new Set(operations.filter(({ outcome }) => outcome === "ok").map(idOf))
  const counts = new Map<string, number>()
  for (const id of operations.map(idOf)) {
    if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  const removed = new Set(
    operations.flatMap(({ input, outcome, output }) =>
      input.kind === "remove" && outcome !== "fail" && output?._tag !== "Gone" ? [input.place] : []
    )
  )
  const places = new Set([...told.values()].flatMap((one) => [...one.places]))
  const isRemovedBlindly = [...removed].some((place) => !places.has(place))
  return operations.map((one): MailboxOperation => {
    const id = idOf(one)
    if (id === undefined) return one
    const found = told.get(id)
    if (found === undefined) return isUnknown(one) && !isRemovedBlindly ? none(one) : one
    const [place] = found.places
    const isOnce = counts.get(id) === 1
    const isKept = found.places.size === 1 && place !== undefined && !removed.has(place) &&
      !isRemovedBlindly
    if (place === undefined || !isOnce && !isKept) return one
    const rank = isOnce && typeof place === "number" ? { rank: place } : {}
    if (!isUnknown(one)) return { ...one, ...rank }
    if (first.get(id) !== one) return none(one)
    const output = { _tag: "Deposited" as const, place }
    if (known.has(id)) return { ...one, output }
    const ranked = typeof place === "number" ? { rank: place } : {}
    return { ...one, ...ranked, output, end: found.end, outcome: "ok" }
  })
}

/** Narrows the unknown outcomes of a mailbox's history. */
export const settle = (
  operations: ReadonlyArray<MailboxOperation>
): ReadonlyArray<MailboxOperation> => {
  const told = toldOf(operations)
  const shown = new Map<Place, number>()
  for (const { places, start } of told.values()) {
    const [place] = places
    if (places.size === 1 && place !== undefined) shown.set(place, start)
  }
  return settleRemovals(settleDeposits(operations, told), shown)
}
