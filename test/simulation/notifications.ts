/** Operations of clients on outgoing notifications. */
import { Effect, Schema } from "effect"
import { notificationKind } from "../../actors/index.ts"
import { recipientItemsMax } from "../../actors/limits.ts"
import { withRecipients } from "../../actors/notification/attempts.ts"
import { type NotificationReply, NotificationState } from "../../actors/notification/protocol.ts"
import { decodeStoredState } from "../../runtime/actor/format.ts"
import { type Address, address, type StorageApi } from "../../runtime/index.ts"
import type { NotificationOutput } from "../histories/models/notification.ts"
import type { AnyMessage } from "./requests.ts"
import { links } from "./nodes.ts"
import type { Operation } from "./plan.ts"
import { askToCreate, askUntilAnswered, caller, type Operations, owner, reasonOf,
  type Turn } from "./operations.ts"

export const notificationAt = (id: string) => address(notificationKind, id)

/** Number of shards with notifications. */
export const notificationParts = 2
export const notificationIdOf = (mark: number): string => `out-${mark % notificationParts}=${mark}`

/** The number in a document, which identifies it at every recipient. */
export const markIn = (body: string): number => Number(/<description>n(\d+)</.exec(body)?.[1] ?? -1)

const externalServices = ["https://a.test/in", "https://b.test/in", "https://gone.test/in"]
const manyRecipients = 18

export const decodeState = Schema.decodeUnknownSync(NotificationState)

/** An outgoing notification as it is stored, with the recipients of its log. */
export const storedNotification = (
  storage: StorageApi,
  of: Address
): NotificationState | undefined => {
  const { state: text } = Effect.runSync(storage.load(of))
  if (text === undefined) return undefined
  const state = decodeState(JSON.parse(decodeStoredState(text).text))
  if (state._tag !== "Queued" || state.listed === undefined) return state
  return withRecipients(state, Effect.runSync(storage.read(of, 1, recipientItemsMax)))
}

/** The recipients of the notification with this number. */
export const recipientsOf = (mark: number): ReadonlyArray<string> => {
  if (mark % 11 === 0) {
    return Array.from({ length: manyRecipients }, (_, at) => `https://many.test/${at}`)
  }
  const all = [links.mailbox("mailbox-0"), ...externalServices, links.mailbox("mailbox-1")]
  const some = all.filter((_, at) => ((mark * 7) >> at) % 2 === 1)
  return some.length === 0 ? all.slice(0, 2) : some
}

const outputOf = (reported: unknown): NotificationOutput => {
  if (reasonOf(reported) !== undefined) return { _tag: "Gone" }
  // The replies of a notification have the types of its protocol.
  const reply = reported as NotificationReply
  return reply._tag === "Described"
    ? {
      _tag: "Shown",
      recipients: reply.view.recipients.map(({ attempts, status }) => ({ attempts, status }))
    }
    : { _tag: "Done" }
}

const send = (turn: Turn, operation: Operation) => {
  const { mark } = operation
  const id = notificationIdOf(mark)
  const to = recipientsOf(mark)
  turn.known.notifications.push(id)
  const message = {
    _tag: "Create",
    requestId: `send ${mark}`,
    account: owner,
    listingKey: `${owner}/${mark}`,
    traceId: String(mark).padStart(32, "0"),
    document: `<notification><item><description>n${mark}</description></item></notification>`,
    to
  }
  return askToCreate(turn, operation, notificationAt(id), message, {
    all: turn.records.notification,
    resource: id,
    input: { kind: "queue", recipients: to.length } as const,
    outputOf
  })
}

/** Runs the operation on one of the known notifications, if there is one. */
const toKnown =
  (message: AnyMessage, kind: "show" | "retry" | "delete") =>
  (turn: Turn, operation: Operation): Promise<unknown> => {
    const { notifications } = turn.known
    const id = notifications[Math.floor(operation.choice * notifications.length)]
    if (id === undefined) return Promise.resolve()
    return askUntilAnswered(turn, operation, notificationAt(id), { ...message, caller }, {
      all: turn.records.notification,
      resource: id,
      input: { kind },
      outputOf
    })
  }

const deleteKnown = toKnown({ _tag: "Delete" }, "delete")

export const notificationVerbs: Operations = {
  send,
  describe: toKnown({ _tag: "Describe" }, "show"),
  retry: toKnown({ _tag: "Retry" }, "retry"),
  delete: (turn, operation) =>
    operation.mark % 3 === 0 ? deleteKnown(turn, operation) : Promise.resolve()
}
