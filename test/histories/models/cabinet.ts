/**
 * One mailbox, read through a cabinet with a cursor. Each reading begins at the end of an earlier
 * one of the same reader. No notification is missing, invented or out of order. The cursor
 * never goes back; a notification may be shown again. The model checks each mailbox of a cabinet
 * separately, because a merged listing is not a snapshot of several mailboxes.
 */
import type { HistoryOperation as Operation, Model } from "../../../runtime/testing/index.ts"

export type CabinetInput =
  | { readonly kind: "deposit"; readonly id: string }
  | { readonly kind: "remove"; readonly id: string }
  /** `known`: the notifications that this reader saw up to the cursor `since`. */
  | { readonly kind: "poll"; readonly since: number; readonly known: ReadonlyArray<string> }

export type CabinetOutput =
  | { readonly _tag: "Done" }
  /** The page's entries, oldest first, and the cursor of the next page. */
  | { readonly _tag: "Polled"; readonly ids: ReadonlyArray<string>; readonly cursor: number }

export type CabinetOperation = Operation<CabinetInput, CabinetOutput>

export interface CabinetState {
  /** In order. */
  readonly stored: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
}

const isInOrder = (of: ReadonlyArray<string>, ids: ReadonlyArray<string>): boolean => {
  let last = -1
  return ids.every((id) => {
    const at = of.indexOf(id)
    const isLater = at > last
    last = at
    return isLater
  })
}

/**
 * Every shown notification was stored before. An unknown deposit that was neither shown nor removed
 * changes no answer.
 */
const settle = (
  operations: ReadonlyArray<CabinetOperation>
): ReadonlyArray<CabinetOperation> => {
  const seen = new Map<string, number>()
  const counts = new Map<string, number>()
  const removed = new Set<string>()
  for (const { end, input, outcome, output } of operations) {
    if (input.kind === "remove") removed.add(input.id)
    else if (input.kind === "deposit") counts.set(input.id, (counts.get(input.id) ?? 0) + 1)
    else if (outcome === "ok" && output?._tag === "Polled") {
      for (const id of output.ids) seen.set(id, Math.min(end, seen.get(id) ?? Infinity))
    }
  }
  const known = new Set(
    operations.flatMap(({ input }) => input.kind === "poll" ? input.known : [])
  )
  return operations.map((one): CabinetOperation => {
    if (one.outcome !== "info" || one.input.kind !== "deposit") return one
    const { id } = one.input
    const end = seen.get(id)
    if (end !== undefined) {
      return counts.get(id) === 1 ? { ...one, end, outcome: "ok" } : one
    }
    return removed.has(id) || known.has(id) ? one : { ...one, outcome: "fail" }
  })
}

export const cabinet: Model<CabinetState, CabinetInput, CabinetOutput> = {
  initial: { stored: [], removed: [] },
  keyOf: ({ removed, stored }) => `${stored.join("\n")}\n\n${removed.toSorted().join("\n")}`,
  step: (state, input, output) => {
    const { removed, stored } = state
    switch (input.kind) {
      case "deposit":
        if (output !== undefined && output._tag !== "Done") return []
        return stored.includes(input.id) && !removed.includes(input.id)
          ? [state]
          : [{ ...state, stored: [...stored, input.id] }]
      case "remove":
        if (output !== undefined && output._tag !== "Done") return []
        return [removed.includes(input.id) ? state : { ...state, removed: [...removed, input.id] }]
      case "poll": {
        if (output === undefined) return [state]
        if (output._tag !== "Polled" || output.cursor < input.since) return []
        const there = stored.filter((id) => !removed.includes(id))
        const shown = new Set([...input.known, ...output.ids])
        const isHealthy = there.every((id) => shown.has(id))
        return isHealthy && isInOrder(there, output.ids) ? [state] : []
      }
    }
  },
  settle
}
