/** The documents of outgoing mailboxes: how a notification stands, and the listing. */
import type { NotificationStatus, NotificationView as Notification,
  RecipientState } from "../../../actors/notification/index.ts"
import { liveScriptPath, type PageLink } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isText } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { mailboxPath, notificationPath, type OutgoingNotificationRef,
  type OutgoingRef } from "./outgoing-access.ts"
import { goOnForm, type ListedOutgoing, listingForms, listingPage, notificationPage,
  timeOf } from "./outgoing-pages.ts"

const optionalTime = (atMs: number | undefined): string | undefined =>
  atMs === undefined ? undefined : timeOf(atMs)

/** Text that may come from another service, as it can be written. */
const printable = (text: string | undefined): string | undefined =>
  text === undefined || isText(text) ? text : JSON.stringify(text)

const recipientElement = (recipient: RecipientState): Element =>
  element("recipient", {
    status: recipient.status,
    href: recipient.to,
    attempts: recipient.attempts,
    last: optionalTime(recipient.lastAtMs),
    next: optionalTime(recipient.nextAtMs),
    code: recipient.code,
    location: printable(recipient.location),
    problem: printable(recipient.problem)
  })

/** How a notification stands (A6). */
export const statusElement = (
  { href }: OutgoingNotificationRef,
  { createdAtMs, recipients, status }: Notification
): Element =>
  element(
    "notification",
    { href, time: timeOf(createdAtMs), status },
    ...recipients.map(recipientElement)
  )

const recipientStatuses: ReadonlyArray<RecipientState["status"]> = [
  "success",
  "retry",
  "waiting",
  "failed"
]

/** `Notification-Status: waiting; success=3; retry=1`: how many recipients stand how. */
export const statusField = (
  { recipients, status }: Notification
): readonly [string, string] => {
  let value: string = status
  for (const one of recipientStatuses) {
    const count = recipients.filter((recipient) => recipient.status === one).length
    if (count > 0) value += `; ${one}=${count}`
  }
  return ["Notification-Status", value]
}

/** A6. */
export const statusView = (
  outgoing: OutgoingNotificationRef,
  view: Notification
): ResourceView => ({
  title: "An outgoing notification",
  tree: () => statusElement(outgoing, view),
  body: () => notificationPage(outgoing, view),
  links: [{ rel: "collection", href: mailboxPath(view.account), title: "The outgoing mailbox" }],
  script: "/outgoing.js"
})

/** A7. */
export const listingView = (
  service: Service,
  place: OutgoingRef,
  listed: ReadonlyArray<ListedOutgoing>,
  filter: NotificationStatus | undefined,
  next: string | undefined
): ResourceView => {
  const links: ReadonlyArray<PageLink> = next === undefined
    ? []
    : [{ rel: "next", href: next, title: "Earlier notifications" }]
  return {
    title: `Outgoing mailbox of ${place.account}`,
    tree: () =>
      element(
        "notifications",
        { href: place.href },
        ...listed.map(({ atMs, id, status }) =>
          element("notification", {
            status,
            href: absoluteUri(service, notificationPath(place.account, id)),
            time: timeOf(atMs)
          })
        )
      ),
    body: () => listingPage(place, listed, filter),
    forms: () => listingForms(place),
    links,
    script: liveScriptPath
  }
}

/** What trying a span of notifications again came to; `next` is a path to POST to. */
export const retriedView = (
  service: Service,
  place: OutgoingRef,
  counts: { readonly notifications: number; readonly recipients: number },
  next: string | undefined
): ResourceView => ({
  title: "Tried again",
  tree: element("retried", {
    ...counts,
    next: next === undefined ? undefined : absoluteUri(service, next)
  }),
  ...next === undefined ? {} : { forms: goOnForm(next) },
  links: [
    { rel: "up", href: place.path, title: "The outgoing mailbox" },
    ...next === undefined ? [] : [{ rel: "next", href: absoluteUri(service, next) }]
  ]
})
