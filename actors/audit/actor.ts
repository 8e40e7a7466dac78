/** The audit log bound to the runtime. The service has one, with the id {@link auditId}. */
import { Effect } from "effect"
import type { Address, Behavior, Peers } from "../../runtime/index.ts"
import { removalsMax } from "../limits.ts"
import { codecsOf } from "../schemas.ts"
import { decodeEntry, entryHash } from "./chain.ts"
import { auditTable, emptyLog } from "./decide.ts"
import { type AuditAction, AuditMessage, type AuditOperation, type AuditReply, AuditState,
  type ChainPoint } from "./protocol.ts"

export const auditKind = "audit"

/** The id of the one audit log. */
export const auditId = "log"

/** The operation of a stored entry, without its time and outcome. */
const operationOf = (text: string): AuditOperation | undefined => {
  const entry = decodeEntry(text)
  if (entry === undefined) return undefined
  const { atMs: _atMs, of: _of, outcome: _outcome, previous: _previous, ...operation } = entry
  return operation
}

const readOpen = (peers: Peers, self: Address, numbers: ReadonlyArray<number>) =>
  Effect.map(
    Effect.forEach(numbers, (n) =>
      Effect.map(peers.read(self, n, 1), ([item]) => {
        const operation = item?.n === n ? operationOf(item.value) : undefined
        return operation === undefined ? { n } : { n, operation }
      })),
    (attempts): AuditMessage => ({ _tag: "Lapse", attempts })
  )

type Oldest = Extract<AuditAction, { readonly _tag: "ReadOldest" }>

/** An entry that cannot be read has no time: it is as old as the ones before it. */
const readOldest = (peers: Peers, self: Address, { beforeMs, from, surplusUpTo }: Oldest) =>
  Effect.map(peers.read(self, from.n + 1, removalsMax), (items): AuditMessage => {
    let upTo: ChainPoint = from
    for (const { n, value } of items) {
      const atMs = decodeEntry(value)?.atMs ?? upTo.atMs
      const isOld = atMs < beforeMs || n <= surplusUpTo
      if (!isOld || n - from.n > removalsMax) break
      upTo = { n, hash: entryHash(value), atMs }
    }
    return { _tag: "Trim", upTo }
  })

/** The dependencies of the audit log. */
export interface AuditDependencies {
  /** How long an entry is kept, in ms. */
  readonly auditRetentionMs: number
}

export const audit = (
  { auditRetentionMs }: AuditDependencies
): Behavior<AuditState, AuditMessage, AuditReply, AuditAction> => ({
  kind: auditKind,
  initial: emptyLog,
  table: auditTable(auditRetentionMs),
  ...codecsOf(AuditState, AuditMessage),
  perform: (action, self, peers) =>
    (action._tag === "ReadOpen"
      ? readOpen(peers, self, action.numbers)
      : readOldest(peers, self, action)).pipe(
        // The timer that was committed with the action repeats it.
        Effect.catch((failure) => Effect.logWarning("the audit log was not read", failure))
      )
})
