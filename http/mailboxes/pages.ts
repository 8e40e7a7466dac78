/** The pages of mailboxes: to read, to deposit, to open one; they work without a script. */
import type { View as MailboxView } from "../../actors/mailbox/protocol.ts"
import { form } from "../html/forms.ts"
import { type Html, html, link, nothing } from "../html/template.ts"
import { slugCharsMax, titleCharsMax, uriCharsMax } from "../limits.ts"
import type { Page } from "./listing.ts"
import type { Place } from "./reader.ts"
import type { Secrets } from "./settings.ts"
import type { Summary } from "./summary.ts"

const entry = ({ description, from, href, password, received, url }: Summary): Html =>
  html`<li data-href="${href}"><p>${
    url === "" ? description : link(url, description === "" ? url : description)
  }</p>
<p class="quiet"><time datetime="${received}">${
    received.slice(0, 19).replace("T", " ")
  } UTC</time>${from === undefined ? nothing : html` · from ${link(from)}`}${
    password === undefined ? nothing : html` · password <code>${password}</code>`
  } · ${link(href, "this notification")}</p></li>
`

/** The form that deposits (A2); what is written under text is published with it. */
export const depositForm = (place: Place): Html =>
  form({
    id: "deposit",
    action: `/mailboxes/${place.name}`,
    legend: "Leave a notification here",
    controls: [
      { name: "description", label: "What it is about", required: true, maxlength: 1000 },
      {
        name: "url",
        label: "Address of the message",
        type: "url",
        maxlength: uriCharsMax,
        hint: "Where the message can be fetched. Or write it here:"
      },
      { name: "content", label: "The message itself", type: "textarea" }
    ],
    submit: "Deposit"
  })

const settingsOf = (place: Place, { settings }: MailboxView): Html =>
  html`<h2>Settings</h2>
<dl><dt>Address</dt><dd>${link(place.href)}</dd>
<dt>Who may deposit</dt><dd>${settings.deposit}</dd>
<dt>Kept after retrieval for</dt><dd>${settings.retention}</dd>
<dt>Fetches the messages</dt><dd>${settings.fetch}</dd>
<dt>Receipts</dt><dd>${settings.receipts}</dd></dl>
${
    form({
      id: "secrets",
      action: `/mailboxes/${place.name}/password`,
      legend: "Password and shared address",
      controls: [],
      submit: "Replace both"
    })
  }`

/** What a reader sees: the notifications, oldest first; with a script it fills by itself. */
export const readerPage = (
  place: Place,
  page: Page,
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
${summaries.length === 0 ? html`<p id="empty">There is nothing here.</p>` : nothing}
${list}
<p><a href="${place.here}/registrations">Push registrations</a>: callbacks told what is new</p>
${depositForm(place)}${page.mailbox.isOwner ? settingsOf(place, page.mailbox) : nothing}`
}

/** What everybody else sees. */
export const publicPage = (place: Place, { settings }: MailboxView): Html =>
  html`<p>This is a mailbox. ${
    settings.deposit === "anyone"
      ? "Anybody may leave a notification in it."
      : "Whoever has an account here may leave a notification in it."
  }</p>
${
    depositForm(place)
  }<p><a href="?read=" rel="nofollow">Read this mailbox</a> (asks for its password)</p>`

/** After a deposit. */
export const depositedPage = (place: Place, href: string): Html =>
  html`<p>The notification is deposited, and kept until it is retrieved.</p>
<p class="quiet">${link(href)}</p>
<p>${link(`/mailboxes/${place.name}`, "Back to the mailbox")}</p>`

/** The form that opens a mailbox (A9). */
export const openForm = (retention: string): Html =>
  form({
    id: "open",
    action: "/mailboxes",
    legend: "Open a mailbox",
    controls: [
      {
        name: "name",
        label: "Name",
        maxlength: slugCharsMax,
        pattern: "[a-z0-9][a-z0-9\\-]*",
        hint: "Small letters, digits and hyphens; left empty, one is chosen."
      },
      { name: "title", label: "Title", maxlength: titleCharsMax },
      {
        name: "deposit",
        label: "Who may deposit",
        type: "select",
        options: [["anyone", "anybody"], ["accounts", "whoever has an account"]]
      },
      {
        name: "retention",
        label: "Kept after retrieval for",
        value: retention,
        hint: "A duration of ISO 8601: P30D is thirty days, PT1H an hour."
      }
    ],
    submit: "Open"
  })

/** The one page that shows the secrets. */
export const secretsPage = (href: string, { password, sharedHref }: Secrets): Html =>
  html`<p>Keep these: they are not shown again.</p>
<dl><dt>The mailbox, where others deposit</dt><dd>${link(href)}</dd>
<dt>Password, to read it with any user name</dt><dd><code>${password}</code></dd>
<dt>Shared address, to read it without a password</dt><dd>${link(sharedHref)}</dd></dl>`
