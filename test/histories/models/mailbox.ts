/**
 * A mailbox (A2, A9 to A11). Notifications are in the order of their deposits, and each keeps its
 * place for ever. A repeated document is not stored again. A removed one never comes back.
 */
import type { HistoryOperation as Operation, Model } from "../../../runtime/testing/index.ts"

interface Reported {
  /** Every place at which the document was shown. */
  readonly places: Set<Place>
  /** The end of the first answer that showed the document, and the start of the last. */
  end: number
  start: number
}

/** For each document, all answers that showed it. */
export const reportedByDocument = (
  operations: ReadonlyArray<MailboxOperation>
): ReadonlyMap<string, Reported> => {
  const reported = new Map<string, Reported>()
  const tell = ({ id, place }: Entry, start: number, end: number) => {
    const before = reported.get(id) ?? { places: new Set<Place>(), start: -Infinity, end: Infinity }
    before.places.add(place)
    before.start = Math.max(before.start, start)
    before.end = Math.min(before.end, end)
    reported.set(id, before)
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
  return reported
}

/** For each key, the operation that started first. */
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
 * Of the unknown removals of one place only the first matters. It took effect after the place was
 * last shown, or never.
 */
export const settleRemovals = (
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
 * If all deposits of a document are unknown, and it was shown at one place and never removed, its
 * first deposit stored it and the others repeated it. A deposit whose document was never shown
 * changes no answer. Neither holds if a client removed a place that was never shown: this
 * document may have been there.
 */
export const settleDeposits = (
  operations: ReadonlyArray<MailboxOperation>,
  reported: ReadonlyMap<string, Reported>
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
  const places = new Set([...reported.values()].flatMap((one) => [...one.places]))
  const isRemovedBlindly = [...removed].some((place) => !places.has(place))
  return operations.map((one): MailboxOperation => {
    const id = idOf(one)
    if (id === undefined) return one
    const found = reported.get(id)
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

/*
 * What the whole history of a mailbox tells of its unknown outcomes. Afterwards some order explains
 * it if and only if one did before: it only spares the search.
 */

/** Narrows the unknown outcomes of a mailbox's history. */
export const settle = (
  operations: ReadonlyArray<MailboxOperation>
): ReadonlyArray<MailboxOperation> => {
  const reported = reportedByDocument(operations)
  const shown = new Map<Place, number>()
  for (const { places, start } of reported.values()) {
    const [place] = places
    if (places.size === 1 && place !== undefined) shown.set(place, start)
  }
  return settleRemovals(settleDeposits(operations, reported), shown)
}

/** The position of a notification: its number, which grows, or another name, such as its URI. */
export type Place = number | string

export interface Entry {
  /** The document; two deposits of one document have the same. */
  readonly id: string
  readonly place: Place
}

export type MailboxInput =
  | { readonly kind: "create" }
  | { readonly kind: "deposit"; readonly id: string }
  /** Everything in it. */
  | { readonly kind: "list" }
  /** The notifications after this place. */
  | { readonly kind: "since"; readonly place: number }
  | { readonly kind: "latest" }
  | { readonly kind: "read"; readonly place: Place }
  | { readonly kind: "remove"; readonly place: Place }
  | { readonly kind: "destroy" }

export type MailboxOutput =
  | { readonly _tag: "Done" }
  /** Of a creation: the mailbox existed already. */
  | { readonly _tag: "Taken" }
  | { readonly _tag: "Deposited"; readonly place: Place }
  | { readonly _tag: "Listed"; readonly entries: ReadonlyArray<Entry> }
  /** Undefined when it is empty. */
  | { readonly _tag: "Latest"; readonly entry: Entry | undefined }
  | { readonly _tag: "Found"; readonly id: string }
  /** The entry or the mailbox does not exist, or was removed. */
  | { readonly _tag: "Gone" }

export type MailboxOperation = Operation<MailboxInput, MailboxOutput>

interface Stored {
  readonly id: string
  /** Undefined until an answer names it. */
  readonly place: Place | undefined
  readonly isRemoved: boolean
}

export interface MailboxState {
  readonly is: "absent" | "open" | "destroyed"
  readonly stored: ReadonlyArray<Stored>
}

/** Whether the known places allow this order: no place occurs twice, and numbers grow. */
const isOrdered = (stored: ReadonlyArray<Stored>): boolean => {
  const seen = new Set<Place>()
  let last = -Infinity
  for (const { place } of stored) {
    if (place === undefined) continue
    if (seen.has(place)) return false
    seen.add(place)
    if (typeof place === "number") {
      if (place <= last) return false
      last = place
    }
  }
  return true
}

/** The stored notifications with these entries placed; undefined when they do not match. */
const placed = (
  stored: ReadonlyArray<Stored>,
  shown: (one: Stored) => boolean,
  entries: ReadonlyArray<Entry>
): ReadonlyArray<Stored> | undefined => {
  let at = 0
  const after: Array<Stored> = []
  for (const one of stored) {
    const entry = entries[at]
    const isIt = !one.isRemoved && entry !== undefined && entry.id === one.id &&
      (one.place ?? entry.place) === entry.place
    if (isIt) {
      at += 1
      after.push(one.place === undefined ? { ...one, place: entry.place } : one)
    } else if (one.isRemoved || !shown(one)) after.push(one)
    else return undefined
  }
  return at === entries.length && isOrdered(after) ? after : undefined
}

const all = () => true

type Step = (state: MailboxState, output: MailboxOutput | undefined) => ReadonlyArray<MailboxState>

const deposit = (id: string): Step => (state, output) => {
  const { stored } = state
  const known = output?._tag === "Deposited" ? output.place : undefined
  if (output !== undefined && known === undefined) return []
  const there = stored.find((one) => one.id === id && !one.isRemoved)
  if (there === undefined) {
    const after = [...stored, { id, place: known, isRemoved: false }]
    return isOrdered(after) ? [{ ...state, stored: after }] : []
  }
  if (known === undefined || there.place === known) return [state]
  if (there.place !== undefined) return []
  const after = stored.map((one) => one === there ? { ...one, place: known } : one)
  return isOrdered(after) ? [{ ...state, stored: after }] : []
}

const list: Step = (state, output) => {
  if (output === undefined) return [state]
  if (output._tag !== "Listed") return []
  const stored = placed(state.stored, all, output.entries)
  return stored === undefined ? [] : [{ ...state, stored }]
}

/** Entries whose position no answer has named may stand on either side. */
const since = (place: number): Step => (state, output) => {
  if (output === undefined) return [state]
  if (output._tag !== "Listed") return []
  const isAfter = ({ place: other }: Stored) => typeof other === "number" && other > place
  const stored = placed(state.stored, isAfter, output.entries)
  const isAll = output.entries.every(({ place: other }) => Number(other) > place)
  return stored === undefined || !isAll ? [] : [{ ...state, stored }]
}

const latest: Step = (state, output) => {
  if (output === undefined) return [state]
  if (output._tag !== "Latest") return []
  const last = state.stored.findLast(({ isRemoved }) => !isRemoved)
  if (last === undefined || output.entry === undefined) {
    return last === output.entry ? [state] : []
  }
  const stored = placed(state.stored, (one) => one === last, [output.entry])
  return stored === undefined ? [] : [{ ...state, stored }]
}

/** The notification at a place: the known one, or the candidates without a known place. */
const candidatesAt = (
  { stored }: MailboxState,
  place: Place
): { readonly known: Stored | undefined; readonly possible: ReadonlyArray<Stored> } => {
  const known = stored.find((one) => one.place === place && !one.isRemoved)
  const isTaken = stored.some((one) => one.place === place)
  const unplaced = stored.filter((one) => one.place === undefined && !one.isRemoved)
  return { known, possible: known === undefined ? isTaken ? [] : unplaced : [known] }
}

const replaced = (state: MailboxState, one: Stored, by: Stored): ReadonlyArray<MailboxState> => {
  const stored = state.stored.map((other) => other === one ? by : other)
  return isOrdered(stored) ? [{ ...state, stored }] : []
}

const read = (place: Place): Step => (state, output) => {
  if (output === undefined) return [state]
  const { known, possible } = candidatesAt(state, place)
  if (output._tag === "Gone") return known === undefined ? [state] : []
  if (output._tag !== "Found") return []
  return possible.filter(({ id }) => id === output.id)
    .flatMap((one) => replaced(state, one, { ...one, place }))
}

const remove = (place: Place): Step => (state, output) => {
  const { known, possible } = candidatesAt(state, place)
  const isGone = known === undefined && (output === undefined || output._tag === "Gone")
  const isRemoved = output === undefined || output._tag === "Done"
  return [
    ...isGone ? [state] : [],
    ...isRemoved
      ? possible.flatMap((one) => replaced(state, one, { ...one, place, isRemoved: true }))
      : []
  ]
}

const inOpen = (input: MailboxInput): Step => {
  switch (input.kind) {
    case "deposit":
      return deposit(input.id)
    case "list":
      return list
    case "since":
      return since(input.place)
    case "latest":
      return latest
    case "read":
      return read(input.place)
    case "remove":
      return remove(input.place)
    case "create":
      return (state, output) => output === undefined || output._tag === "Taken" ? [state] : []
    case "destroy":
      return (_, output) =>
        output === undefined || output._tag === "Done" ? [{ is: "destroyed", stored: [] }] : []
  }
}

const isDestroyed = (state: MailboxState, output: MailboxOutput | undefined) =>
  output === undefined || output._tag === "Gone" ? [state] : []

/** The model of a mailbox, with its first state. */
const mailboxModel = (
  is: MailboxState["is"]
): Model<MailboxState, MailboxInput, MailboxOutput> => ({
  initial: { is, stored: [] },
  keyOf: (state) =>
    state.is +
    state.stored.map(({ id, isRemoved, place }) =>
      `\n${id}\t${place ?? ""}\t${isRemoved ? "-" : "+"}`
    ).join(""),
  step: (state, input, output) => {
    if (state.is === "open") return inOpen(input)(state, output)
    if (state.is === "destroyed" || input.kind !== "create") return isDestroyed(state, output)
    return output === undefined || output._tag === "Done" ? [{ is: "open", stored: [] }] : []
  },
  settle
})

export const mailbox = mailboxModel("absent")

export const openMailbox = mailboxModel("open")
