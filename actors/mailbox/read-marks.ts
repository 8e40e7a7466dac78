/**
 * The read marks of a mailbox: which notifications its readers have seen. All readers share them,
 * so that they agree on all devices. They change nothing else: a retrieval begins a retention, and
 * a read mark does not. Pure.
 */
import { become, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { readRangesMax } from "../limits.ts"
import type { MailboxMessage, MailboxReply, MailboxState } from "./protocol.ts"
import { covers, include, joinAcross, type Range, subtract } from "./ranges.ts"

type Open = Variant<MailboxState, "Open">

const done: MailboxReply = { _tag: "Done" }

/**
 * The marks, at most `readRangesMax` ranges. First go those of removed notifications, which nobody
 * sees: below the first notification, and between two ranges. Then the oldest are forgotten, but
 * never those with a number of `added`: a mark that was answered has an effect.
 */
const bounded = (
  { gone }: Open,
  read: ReadonlyArray<Range>,
  added: Range | undefined
): ReadonlyArray<Range> => {
  if (read.length <= readRangesMax) return read
  const [lowest] = gone
  const removedUpTo = lowest?.from === 1 ? lowest.to : 0
  const shown = joinAcross(read.filter(({ to }) => to > removedUpTo), gone)
  let excess = shown.length - readRangesMax
  return shown.filter((range) => {
    const isAdded = added !== undefined && added.from <= range.to && added.to >= range.from
    if (excess <= 0 || isAdded) return true
    excess--
    return false
  })
}

const markedAs = (
  state: Open,
  read: ReadonlyArray<Range>,
  added?: Range
): Decision<MailboxState, MailboxReply> =>
  become<MailboxState>({ ...state, read: bounded(state, read, added) }).reply(done)

/** Marks the notifications from `from` to `to` as read, as far as the log goes. */
export const markRead = (
  state: Open,
  { from, to }: Variant<MailboxMessage, "MarkRead">,
  { head }: DecisionContext
): Decision<MailboxState, MailboxReply> => {
  const whole = { from: Math.max(1, from), to: Math.min(to, head) }
  if (whole.from > whole.to || subtract(whole, state.read).length === 0) {
    return stay<MailboxState>().reply(done)
  }
  return markedAs(state, include(state.read, [whole], Number.POSITIVE_INFINITY), whole)
}

/** Marks one notification as unread. */
export const markUnread = (
  state: Open,
  { n }: Variant<MailboxMessage, "MarkUnread">
): Decision<MailboxState, MailboxReply> => {
  if (!covers(state.read, n)) return stay<MailboxState>().reply(done)
  const without = state.read.flatMap((range) => subtract(range, [{ from: n, to: n }]))
  return markedAs(state, without)
}
