/** Whether and when a background task may make a request (protocol §7). */
import { Clock, Effect } from "effect"
import { anonymousRequestsMs, redirectsMax } from "../limits.ts"
import type { StoredNotification } from "../mailbox/index.ts"
import type { Deferred, DeliveryOutcome, RequestBounds, RequestCause } from "../outbound/index.ts"
import { parseUrl } from "../parse-url.ts"
import { AnonymousBudget } from "./anonymous-budget.ts"
import { DroppedRequests } from "./dropped-requests.ts"
import type { BackgroundTaskDependencies, Pointer } from "./protocol.ts"
import { namesReceipts, ReceiptAcceptance } from "./receipt-acceptance.ts"

/** The request may be made now, not now for the reason of an outcome, or never. */
export type RequestAdmission = DeliveryOutcome | "admitted" | "never"

/** What the tasks of a node remember of earlier requests. */
export interface RequestHistory {
  readonly budget: AnonymousBudget
  readonly acceptance: ReceiptAcceptance
  readonly dropped: DroppedRequests
}

export const makeRequestHistory = (dropped = new DroppedRequests()): RequestHistory => ({
  budget: new AnonymousBudget(),
  acceptance: new ReceiptAcceptance(),
  dropped
})

/**
 * Why a request has to wait: for the budget of its anonymous sender. Others do not wait. `kept`
 * requests of the budget are left for redirects within the origin: many first requests at once
 * would take all of it, and each redirect would then have to wait.
 */
const admit = (
  { budget, dropped }: RequestHistory,
  { atMs, network }: StoredNotification,
  url: string,
  kept = redirectsMax
): Effect.Effect<Deferred | "admitted" | "never"> =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (nowMs): Effect.Effect<Deferred | "admitted" | "never"> => {
      if (network === undefined) return Effect.succeed("admitted")
      const leftMs = atMs + anonymousRequestsMs - nowMs
      if (leftMs <= 0) return Effect.succeed("never")
      const waitMs = budget.take(network, parseUrl(url)?.origin ?? "", nowMs, kept)
      if (waitMs === 0) return Effect.succeed("admitted")
      return waitMs < leftMs
        ? Effect.succeed({ _tag: "Deferred", untilMs: nowMs + waitMs })
        : Effect.as(dropped.note(), "never")
    }
  )

/** Whoever deposited the notification; the mailbox, if nobody is known, as for signed webhooks. */
const causeOf = ({ account, network }: StoredNotification, mailbox: string): RequestCause => {
  if (account !== undefined) return { kind: "account", id: account }
  return network === undefined
    ? { kind: "mailbox", id: mailbox }
    : { kind: "network", id: network }
}

/**
 * Who causes the requests for a notification of `mailbox`, and where they may go. An anonymous
 * sender causes requests to public addresses only, whatever the operator allows; and each redirect
 * is a request to its own origin, since a stranger's many origins could all redirect to one victim.
 */
export const boundsOf = (
  history: RequestHistory,
  notification: StoredNotification,
  mailbox: string
): RequestBounds => {
  const cause = causeOf(notification, mailbox)
  return notification.network === undefined ? { reach: "allowed", cause } : {
    reach: "public",
    cause,
    admitRedirect: (uri) =>
      Effect.map(admit(history, notification, uri, 0), (admission) => {
        if (admission === "admitted") return undefined
        return admission === "never" ? lastDeferred(notification) : admission
      })
  }
}

/** Until the notification is too old for another request. */
const lastDeferred = ({ atMs }: StoredNotification): Deferred => ({
  _tag: "Deferred",
  untilMs: atMs + anonymousRequestsMs
})

/** Whether the content may be fetched now. What stays in this service always may. */
export const admitFetch = (
  { links }: BackgroundTaskDependencies,
  history: RequestHistory,
  notification: StoredNotification,
  { url }: Pointer
): Effect.Effect<RequestAdmission> =>
  links.contentOf(url) !== undefined
    ? Effect.succeed("admitted")
    : admit(history, notification, url)

/**
 * Whether a receipt may be sent now. A message of another service has to take receipts: if that is
 * not known, a HEAD finds it out, which the budget counts too.
 */
export const admitReceipt = Effect.fnUntraced(function*(
  { links, outbound }: BackgroundTaskDependencies,
  history: RequestHistory,
  notification: StoredNotification,
  pointer: Pointer,
  bounds: RequestBounds
): Effect.fn.Return<RequestAdmission> {
  const { password, url } = pointer
  if (links.contentOf(url) !== undefined) return "admitted"
  const { acceptance } = history
  let accepts = acceptance.known(pointer, yield* Clock.currentTimeMillis)
  if (accepts === undefined) {
    const admission = yield* admit(history, notification, url)
    if (admission !== "admitted") return admission
    const headers = password === undefined ? {} : { "Message-Password": password }
    const outcome = yield* outbound.head({ uri: url, headers, ...bounds })
    if (outcome._tag === "RetryableFailure" || outcome._tag === "Deferred") return outcome
    accepts = outcome._tag === "Probed" && namesReceipts(outcome.acceptPost)
    acceptance.record(pointer, accepts, yield* Clock.currentTimeMillis)
  }
  return accepts ? yield* admit(history, notification, url) : "never"
})
