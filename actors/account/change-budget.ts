/**
 * How many changes an account that is no admin may make in a day (UTC), since each has two entries
 * in the audit log: without a bound, one account could push all earlier entries out of the log, and
 * with them the trace of what it did. The count is one number in the account's own record, so it is
 * durable, the same for all nodes, and nobody else spends it. Pure.
 */
import { auditedChangesPerDayMax, auditedRevocationsPerDayMax,
  auditedSignOutsPerDayMax } from "../limits.ts"
import type { AccountMessage, CountedChanges } from "./protocol.ts"

const dayMs = 24 * 60 * 60 * 1000

/** The count after one more change; or when the next one is allowed. */
export type ChangeBudget =
  | { readonly _tag: "Counted"; readonly changes: CountedChanges }
  | { readonly _tag: "Spent"; readonly count: number; readonly untilMs: number }

type ChangeKind = Extract<AccountMessage, { readonly _tag: "CountChange" }>["kind"]

/**
 * Counts one more change. Revocations have a count of their own: whoever holds a token of a narrow
 * scope can spend the other one, and the owner still revokes that token. On another day than the
 * stored one the count starts at 0, also on an earlier one: a clock that was far ahead must not
 * keep an owner out until then.
 */
export const countOneMore = (
  counted: CountedChanges | undefined,
  kind: ChangeKind,
  nowMs: number
): ChangeBudget => {
  const day = Math.floor(nowMs / dayMs)
  const today = counted?.day === day ? counted : { day, count: 0 }
  const untilMs = (day + 1) * dayMs
  if (kind === "revocation") {
    const { revocations: count = 0 } = today
    return count < auditedRevocationsPerDayMax
      ? { _tag: "Counted", changes: { ...today, revocations: count + 1 } }
      : { _tag: "Spent", count, untilMs }
  }
  const { count } = today
  const most = auditedChangesPerDayMax + (kind === "sign-out" ? auditedSignOutsPerDayMax : 0)
  return count < most
    ? { _tag: "Counted", changes: { ...today, count: count + 1 } }
    : { _tag: "Spent", count, untilMs }
}
