/** The pages of outgoing mailboxes; they work without a script. */
import type {
  NotificationStatus,
  NotificationView as Notification,
  RecipientState
} from "../../actors/notification/protocol.ts"
import { form, type HtmlForm } from "../html/forms.ts"
import { badge, emptyState, livePart, liveState, timeAt } from "../html/parts.ts"
import { type Html, html, link, nothing } from "../html/template.ts"
import { uriCharsMax } from "../limits.ts"
import { notificationPath, type OutgoingNotificationRef, type OutgoingRef } from "./place.ts"
import { type ListedOutgoing, statuses, timeOf } from "./standing.ts"

/** A sign and the word: no status is told by its sign alone. */
const marks: { readonly [S in NotificationStatus | RecipientState["status"]]: string } = {
  sent: "✓ sent",
  success: "✓ success",
  waiting: "○ waiting",
  retry: "↻ retry",
  failed: "✗ failed"
}

const kinds: {
  readonly [S in NotificationStatus | RecipientState["status"]]: "good" | "wait" | "bad"
} = {
  sent: "good",
  success: "good",
  waiting: "wait",
  retry: "wait",
  failed: "bad"
}

const standing = (status: NotificationStatus | RecipientState["status"], id?: string): Html =>
  badge(kinds[status], marks[status], id)

/** The code of the answer, unless the problem says it. */
const answered = ({ code, problem }: RecipientState): string | undefined =>
  code === undefined || problem?.includes(String(code)) === true ? undefined : `answered ${code}`

/** What is known of a recipient beside its status, in the order of a person's questions. */
const details = (recipient: RecipientState): Html => {
  const { attempts, lastAtMs, location, nextAtMs, problem } = recipient
  const code = answered(recipient)
  return html`${attempts === 1 ? "1 attempt" : `${attempts} attempts`}${
    lastAtMs === undefined ? nothing : html` · last ${timeAt(lastAtMs)}`
  }${nextAtMs === undefined ? nothing : html` · next ${timeAt(nextAtMs)}`}${
    code === undefined ? nothing : html` · ${code}`
  }${problem === undefined ? nothing : html` · ${problem}`}${
    location === undefined ? nothing : html` · ${link(location, "where it is stored")}`
  }`
}

const row = (recipient: RecipientState): Html =>
  html`<tr><td>${link(recipient.to)}</td><td>${standing(recipient.status)}
<span class="quiet">${details(recipient)}</span></td></tr>
`

/** How a notification stands, with every recipient; with a script it changes by itself. */
export const notificationPage = (
  { path }: OutgoingNotificationRef,
  { createdAtMs, recipients, status }: Notification
): Html =>
  html`<p>${standing(status, "status")} <span class="quiet">sent off ${
    timeAt(createdAtMs)
  }</span></p>
<div class="scroll" role="region" aria-label="Recipients" tabindex="0">
<table class="stack"><thead><tr><th scope="col">Recipient</th>
<th scope="col">How it stands</th></tr></thead>
<tbody id="recipients" data-stream="${path}">
${recipients.map(row)}</tbody></table></div>
<p class="quiet" id="live" role="status">Load this page again to see how it stands.</p>
${
    form({
      id: "retry",
      action: `${path}/retry`,
      legend: "Try again those that have failed",
      controls: [],
      submit: "Try again"
    })
  }${
    form({
      id: "delete",
      action: path,
      legend: "Remove it, and make no further attempt",
      controls: [{ name: "method", label: "", type: "hidden", value: "delete" }],
      submit: "Remove",
      tone: "danger"
    })
  }`

const others = (count: number): string =>
  count === 0 ? "" : count === 1 ? " and one other" : ` and ${count} others`

const entry = (place: OutgoingRef, { atMs, id, recipients, status }: ListedOutgoing): Html =>
  html`<li><p>${standing(status)} <a href="${notificationPath(place.account, id)}">${
    timeAt(atMs)
  }</a></p>
${
    recipients[0] === undefined
      ? nothing
      : html`<p class="quiet">to ${link(recipients[0].to)}${others(recipients.length - 1)}</p>`
  }</li>
`

const filters = (place: OutgoingRef, chosen: NotificationStatus | undefined): Html =>
  html`<p class="choices">${
    [undefined, ...statuses].map((status) => {
      const name = status === undefined ? "all" : marks[status]
      const query = status === undefined ? "" : `?status=${status}`
      return status === chosen
        ? html`<b aria-current="page">${name}</b> `
        : html`<a href="${place.path}${query}">${name}</a> `
    })
  }</p>`

/** The form that sends (A5); what is written under text is published with it. */
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
      hint: "Addresses of mailboxes, one a line."
    },
    { name: "description", label: "What it is about", required: true, maxlength: 1000 },
    {
      name: "content",
      label: "The message itself",
      type: "textarea",
      hint: "It is published for the recipients."
    },
    {
      name: "url",
      label: "Address of the message",
      type: "url",
      maxlength: uriCharsMax,
      hint: "Instead of writing it: where it can be fetched already."
    },
    {
      name: "from",
      label: "Name this outgoing mailbox as the sender",
      type: "checkbox"
    }
  ],
  submit: "Send"
})

/** The form that tries a span again. */
export const replayForm = (path: string): HtmlForm => ({
  id: "retry",
  action: `${path}/retry`,
  legend: "Try again all that have failed",
  controls: [{
    name: "since",
    label: "Sent since",
    required: true,
    value: timeOf(0),
    hint: "A time of RFC 3339."
  }],
  submit: "Try again"
})

/** The notifications, newest first, and all that can be done. */
export const listingPage = (
  place: OutgoingRef,
  listed: ReadonlyArray<ListedOutgoing>,
  filter: NotificationStatus | undefined
): Html =>
  html`${filters(place, filter)}
${
    livePart(
      "entries",
      listed.length > 0
        ? html`<ol class="entries">${listed.map((one) => entry(place, one))}</ol>`
        : emptyState(
          "There is nothing here.",
          filter === undefined
            ? "What is sent with the form below is shown here, with what became of it."
            : "None of what was sent stands like this."
        )
    )
  }${liveState}`

/** What follows the notifications: sending another, trying failed ones again. */
export const listingForms = (place: OutgoingRef): Html =>
  html`${place.caller.name === place.account ? form(composeForm(place.path)) : nothing}${
    form(replayForm(place.path))
  }`

/** Goes on where trying a span again has stopped: the same request with another cursor. */
export const goOnForm = (action: string): Html =>
  form({ id: "go-on", action, legend: "There may be more", controls: [], submit: "Go on" })
