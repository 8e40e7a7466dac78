/** The documents and pages of outgoing mailboxes; the pages work without a script. */
import type { NotificationStatus, NotificationView,
  RecipientState } from "../../../actors/notification/index.ts"
import type { Pauses } from "../../../actors/outgoing-mailbox/index.ts"
import { addressLink, attribute, chipsScriptPath, deleteForm, emptyState, type Html, html,
  type HtmlForm, link, livePart, liveScriptPath, liveState, nothing, type PageLink, renderForm,
  statusBadge, type StatusBadges, timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, printable } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { foldedAs, notificationControls } from "../mailboxes/index.ts"
import { attemptsHref, attemptsPath, mailboxPath, notificationPath, type OutgoingNotificationRef,
  type OutgoingRef, recipientAnchor, recipientName } from "./outgoing-access.ts"
import { pausedNotice, pauseForms } from "./pause-views.ts"

/** One notification of a listing. */
export interface ListedOutgoing {
  readonly id: string
  readonly status: NotificationStatus
  readonly atMs: number
  /** The URI of its first recipient; undefined where the actor could not be asked. */
  readonly firstTo: string | undefined
  readonly about: string | undefined
  /** How many recipients it has. */
  readonly count: number
}

/** The statuses that a listing can be filtered by. */
export const notificationStatuses: ReadonlyArray<NotificationStatus> = ["waiting", "sent", "failed"]

const badges: StatusBadges<NotificationStatus | RecipientState["status"]> = {
  sent: ["good", "✓ sent"],
  success: ["good", "✓ success"],
  waiting: ["wait", "○ waiting"],
  retry: ["wait", "↻ retry"],
  failed: ["bad", "✗ failed"]
}

/* The pages. */

/** The code of the answer, unless the problem says it. */
const answered = ({ code, problem }: RecipientState): string | undefined =>
  code === undefined || problem?.includes(String(code)) === true ? undefined : `answered ${code}`

/** How many attempts there were, with a link to them. */
const attemptCount = ({ attempts }: RecipientState, at: number, path: string): Html => {
  const text = attempts === 1 ? "1 attempt" : `${attempts} attempts`
  return attempts === 0
    ? html`${text}`
    : html`<a href="${attemptsPath(path)}#${recipientAnchor(at)}">${text}</a>`
}

/** The details of a recipient, in the order of a person's questions. */
const details = (
  recipient: RecipientState,
  at: number,
  heldAtMs: number | undefined,
  path: string
): Html => {
  const { lastAtMs, location, problem } = recipient
  const nextAtMs = heldAtMs === undefined ? recipient.nextAtMs : undefined
  const code = answered(recipient)
  return html`${attemptCount(recipient, at, path)}${
    lastAtMs === undefined ? nothing : html` · last ${timeAt(lastAtMs)}`
  }${nextAtMs === undefined ? nothing : html` · next ${timeAt(nextAtMs)}`}${
    heldAtMs === undefined ? nothing : html` · paused since ${timeAt(heldAtMs)}`
  }${code === undefined ? nothing : html` · ${code}`}${
    problem === undefined ? nothing : html` · ${problem}`
  }${location === undefined ? nothing : html` · ${link(location, "where it is stored")}`}`
}

const row = (
  service: Service,
  recipient: RecipientState,
  at: number,
  heldAtMs: number | undefined,
  path: string
): Html =>
  html`<tr><td>${addressLink(recipient.to, recipientName(service, recipient.to))}</td><td>${
    statusBadge(badges, recipient.status)
  }
<span class="quiet">${details(recipient, at, heldAtMs, path)}</span></td></tr>
`

/** When the notification was last replaced, and when it was withdrawn. */
const followUpTimes = (
  { followUps = [] }: NotificationView
): { readonly replaced: number | undefined; readonly withdrawn: number | undefined } => {
  const last = (kind: "replacement" | "withdrawal"): number | undefined =>
    followUps.findLast((one) => one.kind === kind)?.atMs
  return { replaced: last("replacement"), withdrawn: last("withdrawal") }
}

/** The status of a notification and of each recipient; with a script it changes by itself. */
const notificationPage = (
  service: Service,
  { caller, path }: OutgoingNotificationRef,
  view: NotificationView
): Html => {
  const { createdAtMs, held, recipients, status } = view
  const { replaced, withdrawn } = followUpTimes(view)
  return html`${
    livePart(
      "delivery",
      html`<p>${statusBadge(badges, status)} <span class="quiet">sent ${timeAt(createdAtMs)}${
        replaced === undefined ? nothing : html` · replaced ${timeAt(replaced)}`
      }${withdrawn === undefined ? nothing : html` · withdrawn ${timeAt(withdrawn)}`}</span></p>
<div class="scroll" role="region" aria-label="Recipients" tabindex="0">
<table class="stack"><thead><tr><th scope="col">Recipient</th>
<th scope="col">Status</th></tr></thead>
<tbody id="recipients">
${recipients.map((one, at) => row(service, one, at, held?.[at], path))}</tbody></table></div>
`,
      path
    )
  }${liveState}${
    livePart(
      "retry-form",
      recipients.some((one) => one.status === "failed") ? renderForm(retryForm(path)) : nothing
    )
  }${renderForm(replayForm(path), "rare")}${
    withdrawn !== undefined || caller.name !== view.account
      ? nothing
      : renderForm(replacementForm(path), "rare")
  }${withdrawn === undefined ? renderForm(withdrawalForm(path)) : nothing}${
    deleteForm(path, "Remove it, and make no further attempt: what has arrived stays there")
  }`
}

const retryForm = (path: string): HtmlForm => ({
  id: "retry",
  action: `${path}/retry`,
  legend: "Try the failed recipients again",
  controls: [],
  submit: "Try again"
})

/** The form that sends the notification again to some recipients. */
export const replayForm = (path: string): HtmlForm => ({
  id: "replay",
  action: `${path}/retry`,
  legend: "Send it again to some recipients: who still has it recognizes the repetition",
  controls: [{
    name: "to",
    label: "Recipients",
    type: "textarea",
    required: true,
    rows: 2,
    hint: "Names or addresses from the list above, one a line."
  }],
  submit: "Send again"
})

/** The form that replaces the notification for its recipients. */
export const replacementForm = (path: string): HtmlForm => ({
  id: "replacement",
  action: `${path}/replacement`,
  legend: "Replace it: its recipients get this one instead",
  controls: [
    ...notificationControls("the recipients"),
    { name: "from", label: "Name this outgoing mailbox as the sender", type: "checkbox" }
  ],
  foldedAs,
  submit: "Replace"
})

const withdrawalForm = (path: string): HtmlForm => ({
  id: "withdrawal",
  action: `${path}/withdrawal`,
  legend: "Withdraw it for good: mailboxes here show only that it was withdrawn, and when",
  controls: [],
  submit: "Withdraw",
  tone: "danger"
})

const others = (count: number): string =>
  count === 0 ? "" : count === 1 ? " and one other" : ` and ${count} others`

const entry = (
  service: Service,
  mailbox: OutgoingRef,
  { about, atMs, count, firstTo, id, status }: ListedOutgoing
): Html => {
  const to = firstTo === undefined
    ? undefined
    : `to ${recipientName(service, firstTo)}${others(count - 1)}`
  return html`<li><p><a href="${notificationPath(mailbox.account, id)}"${
    attribute("title", firstTo)
  }>${about ?? to ?? "A notification"}</a></p>
<p class="quiet">${statusBadge(badges, status)} ${timeAt(atMs)}${
    about === undefined || to === undefined ? nothing : ` · ${to}`
  }</p></li>
`
}

const filters = (mailbox: OutgoingRef, chosen: NotificationStatus | undefined): Html =>
  html`<p class="choices">${
    [undefined, ...notificationStatuses].map((status) => {
      const name = status === undefined ? "all" : badges[status][1]
      const query = status === undefined ? "" : `?status=${status}`
      return status === chosen
        ? html`<b aria-current="page">${name}</b> `
        : html`<a href="${mailbox.path}${query}">${name}</a> `
    })
  }</p>`

/** The form that sends (A5). */
export const composeForm = (action: string, to = ""): HtmlForm => ({
  id: "send",
  action,
  legend: "Send a notification",
  controls: [
    {
      name: "to",
      label: "To",
      type: "textarea",
      required: true,
      value: to,
      rows: 3,
      chips: true,
      hint: "Names of mailboxes of this service, or addresses, one a line."
    },
    ...notificationControls("the recipients"),
    { name: "from", label: "Name this outgoing mailbox as the sender", type: "checkbox" }
  ],
  foldedAs,
  submit: "Send"
})

/** The form that retries a span, or sends it again to some. */
export const retrySpanForm = (path: string): HtmlForm => ({
  id: "retry",
  action: `${path}/retry`,
  legend: "Try all failed recipients again, or send all again to some",
  controls: [{
    name: "since",
    label: "Sent since",
    required: true,
    value: isoTime(0),
    hint: "A time of RFC 3339."
  }, {
    name: "until",
    label: "Sent until",
    hint: "A time of RFC 3339; empty: until now."
  }, {
    name: "to",
    label: "Send again to",
    type: "textarea",
    rows: 2,
    chips: true,
    hint: "Recipients, one a line, who get all of it again, also what they have: who still has " +
      "it recognizes the repetition. Empty: only those that have failed, whoever they are."
  }],
  submit: "Try again"
})

/** The notifications, newest first. */
const listingPage = (
  service: Service,
  mailbox: OutgoingRef,
  pauses: Pauses | undefined,
  listed: ReadonlyArray<ListedOutgoing>,
  filter: NotificationStatus | undefined
): Html =>
  html`${pauses === undefined ? nothing : pausedNotice(mailbox, pauses)}${filters(mailbox, filter)}
${
    livePart(
      "entries",
      listed.length > 0
        ? html`<ol class="entries">${listed.map((one) => entry(service, mailbox, one))}</ol>`
        : emptyState(
          "There is nothing here.",
          filter === undefined
            ? html`Notifications that you send with the form below, or by a program (${
              link("/docs/how-to/recipes", "recipes")
            }), appear here, with their status.`
            : "No notification has this status."
        )
    )
  }${liveState}`

/** The forms below the notifications. */
const listingForms = (mailbox: OutgoingRef, pauses: Pauses | undefined): Html =>
  html`${
    mailbox.caller.name === mailbox.account ? renderForm(composeForm(mailbox.path)) : nothing
  }${renderForm(retrySpanForm(mailbox.path), "rare")}${
    pauses === undefined ? nothing : pauseForms(mailbox, pauses)
  }`

/** Continues a retry of a span: the same request with another cursor. */
const continueForm = (action: string, to: ReadonlyArray<string> = []): Html =>
  renderForm({
    id: "continue",
    action,
    legend: "There may be more",
    controls: to.map((value) => ({ name: "to", label: "To", type: "hidden", value })),
    submit: "Continue"
  })

/* The documents. */

const optionalText = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : printable(text)

const recipientElement = (recipient: RecipientState, heldAtMs: number | undefined): Element =>
  element("recipient", {
    status: recipient.status,
    href: recipient.to,
    attempts: recipient.attempts,
    last: isoTime(recipient.lastAtMs),
    next: isoTime(recipient.nextAtMs),
    paused: isoTime(heldAtMs),
    code: recipient.code,
    location: optionalText(recipient.location),
    problem: optionalText(recipient.problem)
  })

/** The status of a notification (A6). */
export const statusElement = (
  { href }: Pick<OutgoingNotificationRef, "href">,
  view: NotificationView
): Element => {
  const { createdAtMs, held, recipients, status } = view
  const { replaced, withdrawn } = followUpTimes(view)
  return element(
    "notification",
    {
      href,
      time: isoTime(createdAtMs),
      status,
      replaced: isoTime(replaced),
      withdrawn: isoTime(withdrawn)
    },
    ...recipients.map((one, at) => recipientElement(one, held?.[at]))
  )
}

const recipientStatuses: ReadonlyArray<RecipientState["status"]> = [
  "success",
  "retry",
  "waiting",
  "failed"
]

/** `Notification-Status: waiting; success=3; retry=1`: how many recipients have each status. */
export const statusField = (
  { recipients, status }: NotificationView
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
  service: Service,
  outgoing: OutgoingNotificationRef,
  view: NotificationView
): ResourceView => ({
  title: view.about ?? "An outgoing notification",
  tree: () => statusElement(outgoing, view),
  body: () => notificationPage(service, outgoing, view),
  links: [
    { rel: "collection", href: mailboxPath(view.account), title: "The outgoing mailbox" },
    { rel: "related", href: attemptsHref(outgoing), title: "All attempts" }
  ],
  scripts: [liveScriptPath]
})

/** A7. */
export const listingView = (
  service: Service,
  mailbox: OutgoingRef,
  pauses: Pauses | undefined,
  { filter, listed, next }: {
    readonly listed: ReadonlyArray<ListedOutgoing>
    readonly filter: NotificationStatus | undefined
    readonly next: string | undefined
  }
): ResourceView => {
  const links: ReadonlyArray<PageLink> = next === undefined
    ? []
    : [{ rel: "next", href: next, title: "Earlier notifications" }]
  return {
    title: `Outgoing mailbox of ${mailbox.account}`,
    tree: () =>
      element(
        "notifications",
        { href: mailbox.href, paused: isoTime(pauses?.pausedAtMs) },
        ...listed.map(({ atMs, id, status }) =>
          element("notification", {
            status,
            href: absoluteUri(service, notificationPath(mailbox.account, id)),
            time: isoTime(atMs)
          })
        )
      ),
    body: () => listingPage(service, mailbox, pauses, listed, filter),
    forms: () => listingForms(mailbox, pauses),
    links,
    scripts: [liveScriptPath, chipsScriptPath]
  }
}

/** The outcome of retrying a span; `next` is a path to POST to, with the recipients `to`. */
export const retriedView = (
  service: Service,
  mailbox: OutgoingRef,
  { notifications, recipients, refused }: {
    readonly notifications: number
    readonly recipients: number
    readonly refused: number
  },
  { next, to }: {
    readonly next: string | undefined
    readonly to: ReadonlyArray<string> | undefined
  }
): ResourceView => ({
  title: to === undefined ? "Tried again" : "Sent again",
  tree: element("retried", {
    notifications,
    recipients,
    refused: refused === 0 ? undefined : refused,
    next: next === undefined ? undefined : absoluteUri(service, next)
  }),
  ...next === undefined ? {} : { forms: continueForm(next, to) },
  links: [
    { rel: "up", href: mailbox.path, title: "The outgoing mailbox" },
    ...next === undefined ? [] : [{ rel: "next", href: absoluteUri(service, next) }]
  ]
})
