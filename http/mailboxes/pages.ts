/** The pages of mailboxes: to read, to deposit, to open one; they work without a script. */
import type { MailboxView } from "../../actors/mailbox/protocol.ts"
import { button, form, type HtmlForm } from "../html/forms.ts"
import { copied, emptyState, table, time } from "../html/parts.ts"
import { type Html, html, link, nothing } from "../html/template.ts"
import { slugCharsMax, titleCharsMax, uriCharsMax } from "../limits.ts"
import type { ListingPage } from "./listing.ts"
import type { MailboxRef } from "./reader.ts"
import type { MailboxSecretUris } from "./settings.ts"
import type { Summary } from "./summary.ts"

/** One notification of a list; `more` follows what is known of it, `after` stands below. */
export const entryItem = (summary: Summary, more: Html = nothing, after: Html = nothing): Html => {
  const { description, from, href, password, received, url } = summary
  return html`<li data-href="${href}"><p>${
    url === "" ? description : link(url, description === "" ? url : description)
  }</p>
<p class="quiet">${time(received)}${more}${
    from === undefined ? nothing : html` · from ${link(from)}`
  }${password === undefined ? nothing : html` · password ${copied("password", password)}`} · ${
    link(href, "this notification")
  }</p>${after}</li>
`
}

const removed = { method: "delete" }

const entry = (summary: Summary): Html => {
  const { description, href, url } = summary
  const about = description === "" ? url : description
  return entryItem(summary, nothing, button(href, "Remove", about, removed))
}

/** The form that deposits (A2); what is written under text is published with it. */
export const depositForm = (name: string): HtmlForm => ({
  id: "deposit",
  action: `/mailboxes/${name}`,
  legend: "Leave a notification here",
  controls: [
    { name: "description", label: "What it is about", required: true, maxlength: 1000 },
    {
      name: "content",
      label: "The message itself",
      type: "textarea",
      hint: "It is published for whoever reads the mailbox."
    },
    {
      name: "url",
      label: "Address of the message",
      type: "url",
      maxlength: uriCharsMax,
      hint: "Instead of writing it: where it can be fetched already."
    }
  ],
  submit: "Deposit"
})

const settingsOf = (place: MailboxRef, { settings }: MailboxView): Html =>
  html`<h2>Settings</h2>
<dl class="facts"><dt>Address</dt><dd>${link(place.href)}</dd>
<dt>Who may deposit</dt><dd>${settings.deposit}</dd>
<dt>Kept after retrieval for</dt><dd>${settings.retention}</dd>
<dt>Fetches the messages</dt><dd>${settings.fetch}</dd>
<dt>Receipts</dt><dd>${settings.receipts}</dd></dl>
${
    form({
      id: "secrets",
      action: `/mailboxes/${place.name}/password`,
      legend: "Password and shared address: the old ones are good no more",
      controls: [],
      submit: "Replace both",
      tone: "danger"
    })
  }`

/** What a reader sees: the notifications, oldest first; with a script it fills by itself. */
export const readerPage = (
  place: MailboxRef,
  page: ListingPage,
  summaries: ReadonlyArray<Summary>
): Html => {
  const stream = `${place.here}?since=${encodeURIComponent(page.time)}`
  const list = page.more
    ? html`<ol class="entries">${summaries.map(entry)}</ol>`
    : html`<ol class="entries" aria-live="polite" data-stream="${stream}">${
      summaries.map(entry)
    }</ol>
<p class="quiet" id="live" role="status">Load this page again to see what is new.</p>`
  return html`<h2>Notifications</h2>
${
    summaries.length === 0
      ? emptyState(
        "There is nothing here.",
        "Leave a notification below, or tell others the address of this mailbox."
      )
      : nothing
  }${list}
<p><a href="${place.here}/registrations">Push registrations</a>: callbacks told what is new</p>`
}

/** What follows the notifications: the form, and for the owner the settings. */
export const readerForms = (place: MailboxRef, mailbox: MailboxView): Html =>
  html`${form(depositForm(place.name))}${mailbox.isOwner ? settingsOf(place, mailbox) : nothing}`

/** Below a notification on a page of its own. */
export const notificationForms = ({ href, password, url }: Summary): Html =>
  html`${
    url === "" ?
      nothing :
      html`<p>${link(url, "Read the message")}${
        password === undefined ?
          nothing :
          html`: it asks for the password ${copied("password", password)}, with any user name`
      }</p>
`
  }${
    form({
      id: "remove",
      action: href,
      legend: "Remove this notification from the mailbox",
      controls: [{ name: "method", label: "", type: "hidden", value: "delete" }],
      submit: "Remove",
      tone: "danger"
    })
  }`

/** What everybody else sees. */
export const publicPage = (place: MailboxRef, { settings }: MailboxView): Html =>
  html`<p>This is a mailbox. ${
    settings.deposit === "anyone"
      ? "Anybody may leave a notification in it."
      : "Whoever has an account here may leave a notification in it."
  }</p>
${
    form(depositForm(place.name))
  }<p><a href="?read=" rel="nofollow">Read this mailbox</a> (asks for its password)</p>`

/** After a deposit. */
export const depositedPage = (place: MailboxRef, href: string): Html =>
  html`<p>The notification is deposited, and kept until it is retrieved.</p>
<p class="quiet">${link(href)}</p>
<p>${link(`/mailboxes/${place.name}`, "Back to the mailbox")}, or ${
    link(`/?mailbox=${place.name}#read`, "on with the tour")
  }</p>`

/** The form that opens a mailbox (A9). */
export const openForm = (retention: string): HtmlForm => ({
  id: "open",
  action: "/mailboxes",
  legend: "Open a mailbox",
  controls: [
    {
      name: "name",
      label: "Name",
      maxlength: slugCharsMax,
      pattern: "[a-z0-9][a-z0-9\\-]*",
      width: "half",
      hint: "Small letters, digits and hyphens; left empty, one is chosen."
    },
    { name: "title", label: "Title", maxlength: titleCharsMax, width: "half" },
    {
      name: "deposit",
      label: "Who may deposit",
      type: "select",
      width: "half",
      options: [["anyone", "anybody"], ["accounts", "whoever has an account"]]
    },
    {
      name: "retention",
      label: "Kept after retrieval for",
      value: retention,
      width: "half",
      hint: "A duration of ISO 8601: P30D is thirty days, PT1H an hour."
    }
  ],
  submit: "Open"
})

/** One of the caller's own mailboxes. */
export interface OwnMailbox {
  readonly href: string
  readonly title: string
  readonly notifications: number
}

/** The caller's own mailboxes. */
export const ownPage = (own: ReadonlyArray<OwnMailbox>): Html =>
  own.length === 0
    ? emptyState("You have no mailbox yet.", "Open one below: a name is all that it needs.")
    : table(
      "Your mailboxes",
      ["Mailbox", "Title", { number: "Notifications" }],
      own.map(({ href, notifications, title }) =>
        html`<tr><td>${link(href)}</td><td>${title}</td><td class="num">${notifications}</td></tr>
`
      )
    )

/** The one page that shows the secrets. */
export const secretsPage = (
  name: string,
  href: string,
  { password, sharedHref }: MailboxSecretUris
): Html =>
  html`<p>Keep these: they are not shown again.</p>
<dl><dt>The mailbox, where others deposit</dt><dd>${link(href)}</dd>
<dt>Password, to read it with any user name</dt><dd>${copied("password", password)}</dd>
<dt>Shared address, to read it without a password</dt><dd>${link(sharedHref)}</dd></dl>
<p>What now? ${link(`/mailboxes/${name}?read=`, "Read it")}, or ${
    link(`/?mailbox=${name}#note`, "go on with the tour")
  } and leave a note in it.</p>`
