/**
 * The decisions by which a removed account deletes what it owned, page by page. The progress is
 * in its record and its timer stays set, so that a crash repeats one page at most. Pure.
 *
 * A pass goes through the listings of all kinds. A request that was under way when the account was
 * removed may still store something, or has written only its entry so far. So the last pass begins
 * a while later, and it has to find nothing.
 */
import { become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { ownedPassMs, ownedRemovalRetryMs, ownedSettledMs } from "../limits.ts"
import { type AccountAction, type AccountMessage, type AccountReply, type AccountState, OwnedKind,
  type OwnedRemoval } from "./protocol.ts"

type RemovedCells = BehaviorTable<
  AccountState,
  AccountMessage,
  AccountReply,
  AccountAction
>["Removed"]

type Removed = Variant<AccountState, "Removed">

const kinds: ReadonlyArray<OwnedKind> = OwnedKind.literals

const firstKind: OwnedKind = "outgoing"

/** Stores the progress. Spreading the state keeps the fields of a later version. */
const stored = (
  state: Removed,
  owned: OwnedRemoval,
  timerMs: number | null
): Decision<AccountState> => become<AccountState>({ ...state, owned }).setTimer(timerMs)

/** The removed account begins to delete what it owned. */
export const startOwnedRemoval = (
  state: Removed,
  account: string,
  nowMs: number
): Decision<AccountState> =>
  stored(state, {
    account,
    startedAtMs: nowMs,
    passAtMs: nowMs,
    kind: firstKind,
    found: 0,
    deleted: 0
  }, nowMs)

/** The progress, for admins. */
export const ownedText = ({ deleted, endedAtMs }: OwnedRemoval): string =>
  endedAtMs === undefined
    ? `the account was removed; what it owned is being deleted, ${deleted} resources so far`
    : `the account was removed, and the ${deleted} resources that it owned are deleted`

/** A pass has ended: either it was the last one, or another one follows. */
const endPass = (
  state: Removed,
  owned: OwnedRemoval,
  nowMs: number
): Decision<AccountState> => {
  const { found, passAtMs, startedAtMs } = owned
  const settledAtMs = startedAtMs + ownedSettledMs
  if (found === 0 && passAtMs >= settledAtMs) {
    return stored(state, { ...owned, endedAtMs: nowMs }, null)
  }
  const nextMs = found === 0 ? Math.max(nowMs, settledAtMs) : nowMs + ownedPassMs
  return stored(state, { ...owned, kind: firstKind, passAtMs: nextMs, found: 0 }, nextMs)
}

const isUnderWay = (
  owned: OwnedRemoval,
  { after, kind }: Variant<AccountMessage, "OwnedRemoved">
): boolean => owned.endedAtMs === undefined && owned.kind === kind && owned.after === after

/** The cells of a removed account that delete what it owned. */
export const ownedCells: Pick<RemovedCells, "OwnedRemoved" | "TimerFired"> = {
  OwnedRemoved: (state, message, { nowMs }) => {
    const { owned } = state
    // A page that was repeated ends twice.
    if (owned === undefined || !isUnderWay(owned, message)) return stay()
    const { after: _after, ...rest } = owned
    const counted: OwnedRemoval = {
      ...rest,
      found: owned.found + message.found,
      deleted: owned.deleted + message.deleted
    }
    if (message.next !== undefined) return stored(state, { ...counted, after: message.next }, nowMs)
    const nextKind = kinds[kinds.indexOf(owned.kind) + 1]
    return nextKind === undefined
      ? endPass(state, counted, nowMs)
      : stored(state, { ...counted, kind: nextKind }, nowMs)
  },
  TimerFired: ({ owned }, _message, { nowMs }) => {
    if (owned === undefined || owned.endedAtMs !== undefined) return stay()
    const { account, after, kind, passAtMs, startedAtMs } = owned
    return stay<AccountState>()
      .perform<AccountAction>({
        _tag: "RemoveOwned",
        account,
        kind,
        ...after === undefined ? {} : { after },
        isSettled: passAtMs >= startedAtMs + ownedSettledMs
      })
      .deferTimer(nowMs + ownedRemovalRetryMs)
  }
}
