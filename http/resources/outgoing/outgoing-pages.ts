/** The pages of outgoing mailboxes; they work without a script. */
import type { NotificationStatus, NotificationView as Notification,
  RecipientState } from "../../../actors/notification/index.ts"
import { badge, emptyState, type Html, html, type HtmlForm, link, livePart, liveState, nothing,
  pageTools, renderForm, timeAt } from "../../formats/html/index.ts"
import { uriCharsMax } from "../../limits.ts"
import { notificationPath, type OutgoingNotificationRef,
  type OutgoingRef } from "./outgoing-access.ts"

export const outgoingScript = `"use strict"
const rows = document.getElementById("recipients")
const state = document.getElementById("live")
if (rows !== null && window.EventSource !== undefined) {
  const marks = {
    sent: "\\u2713 sent",
    success: "\\u2713 success",
    waiting: "\\u25cb waiting",
    retry: "\\u21bb retry",
    failed: "\\u2717 failed"
  }
  const kinds = { sent: "good", success: "good", waiting: "wait", retry: "wait", failed: "bad" }
  const badge = (node, status) => {
    node.textContent = marks[status] ?? ""
    node.className = "badge " + (kinds[status] ?? "")
  }
${pageTools}
  const rowOf = (recipient) => {
    const field = (name) => recipient.getAttribute(name)
    const row = document.createElement("tr")
    link(field("href") ?? "", field("href") ?? "", make("td", undefined, row))
    const cell = make("td", undefined, row)
    badge(make("span", undefined, cell), field("status"))
    cell.append(" ")
    const attempts = field("attempts") ?? "0"
    const details = make("span", attempts + (attempts === "1" ? " attempt" : " attempts"), cell)
    details.className = "quiet"
    for (const name of ["last", "next"]) {
      const text = field(name)
      if (text === null) continue
      details.append(" \\u00b7 " + name + " ")
      make("time", text.slice(0, 19).replace("T", " ") + " UTC", details).dateTime = text
    }
    const problem = field("problem")
    const code = field("code")
    if (code !== null && problem?.includes(code) !== true) {
      details.append(" \\u00b7 answered " + code)
    }
    if (problem !== null) details.append(" \\u00b7 " + problem)
    if (field("location") !== null) {
      details.append(" \\u00b7 ")
      link(field("location"), "where it is stored", details)
    }
    return row
  }
  const show = (text) => {
    const root = new DOMParser().parseFromString(text, "application/xml").documentElement
    badge(document.getElementById("status"), root.getAttribute("status"))
    rows.replaceChildren(...[...root.children].map(rowOf))
  }
  const source = new EventSource(rows.dataset.stream)
  source.addEventListener("open", () => say("This page changes by itself."))
  source.addEventListener("error", () =>
    say(source.readyState === EventSource.CLOSED
      ? "Load this page again to see how it stands."
      : "The connection is lost; trying again."))
  source.addEventListener("status", (event) => show(event.data))
  source.addEventListener("gone", () => {
    source.close()
    say("This notification has been removed.")
  })
}
`

/* How notifications stand, as the listing and the pages tell it. */

/** RFC 3339 of a time in ms since the epoch. */
export const timeOf = (atMs: number): string => new Date(atMs).toISOString()

/** One notification of a listing. */
export interface ListedOutgoing {
  readonly id: string
  readonly status: NotificationStatus
  readonly atMs: number
  readonly recipients: ReadonlyArray<RecipientState>
}

/** The statuses that a listing can be filtered by. */
export const statuses: ReadonlyArray<NotificationStatus> = ["waiting", "sent", "failed"]

/* `/outgoing.js`: with it an open page of a notification changes by itself. */

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
    renderForm({
      id: "retry",
      action: `${path}/retry`,
      legend: "Try again those that have failed",
      controls: [],
      submit: "Try again"
    })
  }${
    renderForm({
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
  html`${place.caller.name === place.account ? renderForm(composeForm(place.path)) : nothing}${
    renderForm(replayForm(place.path))
  }`

/** Goes on where trying a span again has stopped: the same request with another cursor. */
export const goOnForm = (action: string): Html =>
  renderForm({ id: "go-on", action, legend: "There may be more", controls: [], submit: "Go on" })
