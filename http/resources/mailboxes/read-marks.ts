/**
 * Read marks: which notifications the readers of a mailbox have seen. All readers share them, so
 * that they agree on all devices. A browser sets one by opening a notification's page; programs set
 * and remove them here.
 */
import { Effect } from "effect"
import type { MailboxMessage, MailboxReply } from "../../../actors/mailbox/index.ts"
import { ask, conditionFailed, emptyAnswer, type HandlerFailure, httpError, preconditionsHold,
  readFormMethod, readInput } from "../../pipeline/index.ts"
import { parseListingSince, positionSince, unknownPosition } from "./listing/index.ts"
import { defineMailboxHandler, type ReaderCall, requireReader,
  toMailbox } from "./mailbox-access.ts"
import { entryAt } from "./mailbox-reading.ts"
import { fieldsOf } from "./mailbox-settings.ts"

const send = (
  { mailbox, service }: ReaderCall,
  message: MailboxMessage
): Effect.Effect<unknown, HandlerFailure> => ask<MailboxReply>(service, mailbox.to, message)

/** Marks the notification of the path as read, or as unread. */
const markOne = Effect.fnUntraced(function*(
  readerCall: ReaderCall,
  method: "put" | "delete"
): Effect.fn.Return<void, HandlerFailure> {
  const { n } = yield* entryAt(readerCall)
  const { reader } = readerCall
  yield* send(
    readerCall,
    method === "put"
      ? { _tag: "MarkRead", from: n, to: n, reader }
      : { _tag: "MarkUnread", n, reader }
  )
})

/** Marks everything up to the `time` of a listing as read. Fails with 400 for another time. */
const markUpTo = Effect.fnUntraced(function*(
  readerCall: ReaderCall,
  form: boolean
): Effect.fn.Return<void, HandlerFailure> {
  const { call, mailbox, reader, service, view } = readerCall
  const time = fieldsOf(yield* readInput(call, "read", { form }))("time")
  const since = time === undefined ? undefined : parseListingSince(time)
  if (since === undefined) {
    return yield* httpError("unprocessable", "time must be the time of a listing of this mailbox")
  }
  const { after, state } = yield* positionSince(service, mailbox, view, since)
  if (state === "unknown") return yield* unknownPosition("time")
  if (after > 0) yield* send(readerCall, { _tag: "MarkRead", from: 1, to: after, reader })
})

/** A mark has no representation, which a condition could name. */
const checkConditions = Effect.fnUntraced(function*(
  { call }: ReaderCall
): Effect.fn.Return<void, HandlerFailure> {
  if (!preconditionsHold(call, undefined)) return yield* conditionFailed
})

const mark = (method: "put" | "delete") =>
  defineMailboxHandler(function*(mailboxCall) {
    const readerCall = yield* requireReader(mailboxCall)
    yield* checkConditions(readerCall)
    yield* markOne(readerCall, method)
    return emptyAnswer(204, [mailboxCall.mailbox.link])
  })

/** PUT: the notification is read. */
export const putRead = mark("put")

/** DELETE: the notification is unread again. */
export const deleteRead = mark("delete")

/** PUT or DELETE from the form of a page, which redirects the browser to the mailbox. */
export const postReadForm = defineMailboxHandler(function*(mailboxCall) {
  // Before the form is read: a stranger's body is not waited for.
  const readerCall = yield* requireReader(mailboxCall)
  const { method } = yield* readFormMethod(mailboxCall.call, "read", ["put", "delete"])
  yield* markOne(readerCall, method)
  return toMailbox(mailboxCall)
})

/** PUT: everything up to a time is read. */
export const putReadUpTo = defineMailboxHandler(function*(mailboxCall) {
  const readerCall = yield* requireReader(mailboxCall)
  yield* checkConditions(readerCall)
  yield* markUpTo(readerCall, false)
  return emptyAnswer(204, [mailboxCall.mailbox.link])
})

/** The same from the form of a page. */
export const postReadUpToForm = defineMailboxHandler(function*(mailboxCall) {
  yield* markUpTo(yield* requireReader(mailboxCall), true)
  return toMailbox(mailboxCall)
})
