/**
 * The decisions of the audit log. It only grows at its end: each entry has the hash of the previous
 * one. An operation has two entries, since neither alone is enough: the first is stored before the
 * operation, so that none is missed, and the second has its outcome. If the second does not come,
 * a timer records that the outcome is unknown. Entries are removed at their age, from the oldest
 * on; the hash of the last removed one stays, so that the chain can still be checked.
 */
import { become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { auditEntriesMax, auditLapsedMax, auditLapseMs, auditOpenMax, auditRetryMs,
  auditTrimIntervalMs, removalsMax } from "../limits.ts"
import { deny } from "../refusals.ts"
import { chainStart, encodeEntry, entryHash } from "./chain.ts"
import type { AuditAction, AuditEntry, AuditMessage, AuditOperation, AuditReply,
  AuditState } from "./protocol.ts"

type Recording = Variant<AuditState, "Recording">

type AuditTable = BehaviorTable<AuditState, AuditMessage, AuditReply, AuditAction>

export const emptyLog: AuditState = {
  _tag: "Recording",
  last: chainStart,
  anchor: chainStart,
  open: [],
  trimAtMs: 0
}

export const auditTable = (retentionMs: number): AuditTable => ({
  Recording: {
    Begin: (state, { operation }, context) => {
      if (state.open.length >= auditOpenMax) {
        return deny("Busy", "too many operations wait for their audit entries")
      }
      const written = write(state, { ...operation, outcome: "begun" }, context)
      const { n, atMs } = written.state.last
      return store({ ...written.state, open: [...state.open, { n, atMs }] }, [written], retentionMs)
    },
    End: (state, { n, operation, outcome }, context) => {
      const written = write(state, { ...operation, outcome, of: n }, context)
      const open = state.open.filter((one) => one.n !== n)
      return store({ ...written.state, open }, [written], retentionMs)
    },
    Record: (state, { operation, outcome }, context) => {
      const written = write(state, { ...operation, outcome }, context)
      return store(written.state, [written], retentionMs)
    },
    Describe: ({ anchor, last }) => stay().reply<AuditReply>({ _tag: "Described", anchor, last }),
    Lapse: lapse(retentionMs),
    Trim: trim(retentionMs),
    TimerFired: (state, _message, { nowMs }) => {
      const lapsed = state.open.filter(({ atMs }) => atMs + auditLapseMs <= nowMs)
      const numbers = lapsed.slice(0, auditLapsedMax).map(({ n }) => n)
      const surplusUpTo = state.last.n - auditEntriesMax
      const isTrimDue = state.trimAtMs <= nowMs || surplusUpTo > state.anchor.n
      const from = state.anchor
      if (numbers.length === 0 && !isTrimDue) {
        return stay<AuditState>().setTimer(nextTimerMs(state))
      }
      // Both results set the next timer; this one finds them lost.
      const decision: Decision<AuditState, never, AuditAction> = stay<AuditState>()
        .setTimer(nowMs + auditRetryMs)
      if (numbers.length > 0) decision.perform<AuditAction>({ _tag: "ReadOpen", numbers })
      if (isTrimDue) {
        const beforeMs = nowMs - retentionMs
        decision.perform<AuditAction>({ _tag: "ReadOldest", from, beforeMs, surplusUpTo })
      }
      return decision
    }
  }
})

/** An entry's text, and the state after it. */
interface Written {
  readonly state: Recording
  readonly text: string
}

/** The next entry of the chain. Its time is not before that of the previous one. */
const write = (
  state: Recording,
  fields: Omit<AuditEntry, "atMs">,
  { head, nowMs }: Pick<DecisionContext, "head" | "nowMs">
): Written => {
  const atMs = Math.max(nowMs, state.last.atMs)
  const text = encodeEntry(state.last.hash, { atMs, ...fields })
  return { text, state: { ...state, last: { n: head + 1, hash: entryHash(text), atMs } } }
}

/** Stores the entries and the state after them; replies the number of the last one. */
const store = (
  state: Recording,
  written: ReadonlyArray<Written>,
  retentionMs: number
): Decision<AuditState, AuditReply> => {
  const interval = Math.min(auditTrimIntervalMs, retentionMs)
  const next: Recording = state.trimAtMs === 0
    ? { ...state, trimAtMs: state.last.atMs + interval }
    : state
  const decision = become<AuditState>(next).setTimer(nextTimerMs(next))
  for (const { text } of written) decision.append(text)
  return decision.reply<AuditReply>({ _tag: "Recorded", n: next.last.n })
}

/** When an operation's outcome lapses, or entries are old or too many. */
const nextTimerMs = ({ anchor, last, open, trimAtMs }: Recording): number | null => {
  const [oldest] = open
  if (last.n - anchor.n > auditEntriesMax) return last.atMs
  if (oldest === undefined) return trimAtMs === 0 ? null : trimAtMs
  return Math.min(trimAtMs, oldest.atMs + auditLapseMs)
}

/** Records an unknown outcome for each of the operations that still have none. */
const lapse =
  (retentionMs: number): AuditTable["Recording"]["Lapse"] =>
  (state, { attempts }, { head, nowMs }) => {
    const waiting = new Set(state.open.map(({ n }) => n))
    const lapsed = attempts.filter(({ n }) => waiting.has(n))
    if (lapsed.length === 0) return stay<AuditState>().setTimer(nextTimerMs(state))
    const ended = new Set(lapsed.map(({ n }) => n))
    let next: Recording = { ...state, open: state.open.filter(({ n }) => !ended.has(n)) }
    const written: Array<Written> = []
    for (const { n, operation } of lapsed) {
      // An entry that nobody can read has nothing to repeat.
      const known: AuditOperation = operation ?? { action: "unreadable", target: `/audit#${n}` }
      const one = write(next, { ...known, outcome: "unknown", of: n }, {
        head: head + written.length,
        nowMs
      })
      written.push(one)
      next = one.state
    }
    return store(next, written, retentionMs)
  }

/** Removes the entries up to a point, which becomes the anchor, in steps of one commit. */
const trim =
  (retentionMs: number): AuditTable["Recording"]["Trim"] => (state, { upTo }, { nowMs }) => {
    const from = state.anchor.n + 1
    const count = Math.min(upTo.n, state.last.n) - state.anchor.n
    const isWhole = count > 0 && count <= removalsMax
    const mayBeMore = isWhole && count === removalsMax
    const interval = Math.min(auditTrimIntervalMs, retentionMs)
    const next: Recording = {
      ...state,
      ...isWhole ? { anchor: upTo } : {},
      trimAtMs: mayBeMore ? nowMs : nowMs + interval
    }
    const decision = become<AuditState>(next).setTimer(nextTimerMs(next))
    return isWhole
      ? decision.removeItems(...Array.from({ length: count }, (_, at) => from + at))
      : decision
  }
