/**
 * What consumers of Linked Data Notifications read (§3.3.2): a mailbox as an `ldp:contains` list,
 * a notification as the JSON-LD that was posted, or else as an Announce of ActivityStreams 2.0.
 */
import type { MailboxView } from "../../../actors/mailbox/index.ts"
import { copyField, emptyState, type Html, html, type HtmlForm, link, nothing, pageTools,
  renderButton, renderForm, table, time } from "../../formats/html/index.ts"
import type { Feed, ResourceView } from "../../formats/index.ts"
import { childOf, childrenOf, type Element, element, escapeAttribute, parseFragment, textOf,
  writeElement, xmlDeclaration } from "../../formats/xml/index.ts"
import { slugCharsMax, titleCharsMax, uriCharsMax } from "../../limits.ts"
import { linkedDataOf } from "../interop/index.ts"
import type { MailboxRef } from "./mailbox-access.ts"
import { afterOpening, entryElement, linksOf, type ListingPage, type ListingQuery,
  type MailboxEntry, nextOf, openingOf, selfOf } from "./mailbox-listing.ts"
import { type MailboxSecretUris, settingsElements } from "./mailbox-settings.ts"

/** The view of a page: its XML is a join of stored fragments, all else is built when wanted. */
export const listingView = (
  place: MailboxRef,
  page: ListingPage,
  query: ListingQuery
): ResourceView => {
  const { entries, mailbox, time } = page
  const { isOwner, settings } = mailbox
  const title = settings.title ?? place.name
  const own = isOwner ? settingsElements(settings) : []
  const next = nextOf(place, page, query)
  let xml = `${xmlDeclaration}<mailbox href="${escapeAttribute(place.href)}" ` +
    `title="${escapeAttribute(settings.title ?? "")}" time="${time}">`
  for (const setting of own) xml += writeElement(setting)
  const opening = openingOf(place)
  for (const entry of entries) xml += opening + afterOpening(entry)
  return {
    title,
    xml: `${xml}</mailbox>`,
    tree: () =>
      element(
        "mailbox",
        { href: place.href, title: settings.title ?? "", time },
        ...own,
        ...entries.map((entry) => entryElement(place, entry))
      ),
    links: linksOf(place, page, next),
    body: () => readerPage(place, page, entries.map((entry) => summaryOf(place, entry))),
    forms: () => readerForms(place, mailbox),
    script: page.more || query.before !== undefined ? undefined : "/mailbox.js",
    feed: () => feedOf(place, page, title, { self: selfOf(place, query), next }),
    linkedData: () => inboxDocument(place, page)
  }
}

export const mailboxScript = `"use strict"
const list = document.querySelector("ol[data-stream]")
const state = document.getElementById("live")
if (list !== null && window.EventSource !== undefined) {
${pageTools}
  const child = (node, name) =>
    node === undefined ? undefined : [...node.children].find((one) => one.tagName === name)
  const show = (text) => {
    const root = new DOMParser().parseFromString(text, "application/xml").documentElement
    const href = root.getAttribute("href") ?? ""
    if ([...list.children].some((one) => one.dataset.href === href)) return
    const item = child(root, "item")
    const field = (name) => child(item, name)?.textContent ?? ""
    const entry = document.createElement("li")
    entry.dataset.href = href
    const url = field("url")
    const title = field("description") || url
    const head = make("p", undefined, entry)
    if (url === "") head.textContent = title
    else link(url, title, head)
    const foot = make("p", undefined, entry)
    foot.className = "quiet"
    const received = root.getAttribute("received") ?? ""
    const time = make("time", received.slice(0, 19).replace("T", " ") + " UTC", foot)
    time.dateTime = received
    if (field("from") !== "") {
      foot.append(" \\u00b7 from ")
      link(field("from"), field("from"), foot)
    }
    if (field("password") !== "") {
      foot.append(" \\u00b7 password ")
      const secret = make("span", undefined, foot)
      secret.dataset.copy = "password"
      make("code", field("password"), secret)
    }
    foot.append(" \\u00b7 ")
    link(href, "this notification", foot)
    const form = make("form", undefined, entry)
    form.action = href
    form.method = "post"
    const method = make("input", undefined, form)
    method.type = "hidden"
    method.name = "method"
    method.value = "delete"
    const button = make("button", "Remove", form)
    button.className = "small"
    button.setAttribute("aria-label", "Remove " + title)
    document.getElementById("empty")?.remove()
    list.append(entry)
  }
  const source = new EventSource(list.dataset.stream)
  source.addEventListener("open", () => say("New notifications appear by themselves."))
  source.addEventListener("error", () =>
    say(source.readyState === EventSource.CLOSED
      ? "Load this page again to see what is new."
      : "The connection is lost; trying again."))
  source.addEventListener("notification", (event) => show(event.data))
  source.addEventListener("gone", () => {
    source.close()
    say("This mailbox has been removed.")
  })
}
`

/* A notification in a few words, for people and for feeds. */

/** What a person wants to know of a notification. */
export interface Summary {
  readonly href: string
  readonly received: string
  readonly description: string
  readonly url: string
  readonly password: string | undefined
  readonly from: string | undefined
}

export const summaryOf = (place: MailboxRef, entry: MailboxEntry): Summary => {
  const item = parseFragment(entry.fragment).find((child) =>
    typeof child !== "string" && child.name === "item"
  )
  const field = (name: string): string | undefined => {
    const child = item === undefined || typeof item === "string" ? undefined : childOf(item, name)
    return child === undefined ? undefined : textOf(child)
  }
  return {
    href: `${place.here}/notifications/${entry.id}`,
    received: entry.received,
    description: field("description") ?? "",
    url: field("url") ?? "",
    password: field("password"),
    from: field("from")
  }
}

/* The pages of mailboxes: to read, to deposit, to open one; they work without a script. */

/** One notification of a list; `more` follows what is known of it, `after` stands below. */
export const entryItem = (summary: Summary, more: Html = nothing, after: Html = nothing): Html => {
  const { description, from, href, password, received, url } = summary
  return html`<li data-href="${href}"><p>${
    url === "" ? description : link(url, description === "" ? url : description)
  }</p>
<p class="quiet">${time(received)}${more}${
    from === undefined ? nothing : html` · from ${link(from)}`
  }${password === undefined ? nothing : html` · password ${copyField("password", password)}`} · ${
    link(href, "this notification")
  }</p>${after}</li>
`
}

const removed = { method: "delete" }

const entry = (summary: Summary): Html => {
  const { description, href, url } = summary
  const about = description === "" ? url : description
  return entryItem(summary, nothing, renderButton(href, "Remove", about, removed))
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
    renderForm({
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
  html`${renderForm(depositForm(place.name))}${
    mailbox.isOwner ? settingsOf(place, mailbox) : nothing
  }`

/** Below a notification on a page of its own. */
export const notificationForms = ({ href, password, url }: Summary): Html =>
  html`${
    url === "" ?
      nothing :
      html`<p>${link(url, "Read the message")}${
        password === undefined ?
          nothing :
          html`: it asks for the password ${copyField("password", password)}, with any user name`
      }</p>
`
  }${
    renderForm({
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
    renderForm(depositForm(place.name))
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
<dt>Password, to read it with any user name</dt><dd>${copyField("password", password)}</dd>
<dt>Shared address, to read it without a password</dt><dd>${link(sharedHref)}</dd></dl>
<p>What now? ${link(`/mailboxes/${name}?read=`, "Read it")}, or ${
    link(`/?mailbox=${name}#note`, "go on with the tour")
  } and leave a note in it.</p>`

/* A page of a mailbox as a feed: the newest notification first. */

/** The feed of a page. Its entries are named by their public URIs, which never change. */
export const feedOf = (
  place: MailboxRef,
  page: ListingPage,
  title: string,
  links: { readonly self: string; readonly next: string | undefined }
): Feed => ({
  href: place.href,
  ...links,
  hub: `${place.here}/registrations`,
  title,
  updated: new Date(page.mailbox.lastAtMs).toISOString(),
  entries: page.entries.map((entry) => {
    const { description, from, url } = summaryOf(place, entry)
    const id = `${place.href}/notifications/${entry.id}`
    return { id, title: description, received: entry.received, url, author: from }
  }).toReversed()
})

/* `/mailbox.js`: with it an open mailbox page fills by itself. Without it the page is complete. */

const uriOf = (place: MailboxRef, entry: MailboxEntry): string =>
  `${place.here}/notifications/${entry.id}`

const written = (document: unknown): string => `${JSON.stringify(document)}\n`

/** A page of the mailbox, newest first; what more there is has a Link with rel=next. */
export const inboxDocument = (place: MailboxRef, { entries }: ListingPage): string =>
  written({
    "@context": "http://www.w3.org/ns/ldp",
    "@id": place.here,
    contains: entries.map((entry) => uriOf(place, entry)).toReversed()
  })

const textIn = (item: Element, name: string): string | undefined => {
  const child = childOf(item, name)
  return child === undefined ? undefined : textOf(child)
}

/** What is announced: the message by its URI, with the content that came with it, if it is text. */
const objectOf = (item: Element): unknown => {
  const url = textIn(item, "url")
  const content = childOf(item, "content")
  if (content === undefined || content.attributes["encoding"] !== undefined) return url
  return {
    id: url,
    type: "Object",
    mediaType: content.attributes["type"],
    content: textOf(content)
  }
}

/** Where a notification is, and since when; one under way is nowhere yet. */
interface Standing {
  readonly id?: string
  readonly target: string
  readonly published?: string
}

const announce = (fragment: string, { id, published, target }: Standing): unknown => {
  const root: Element = {
    name: "notification",
    attributes: {},
    children: parseFragment(fragment)
  }
  const [item] = childrenOf(root, "item")
  if (item === undefined) throw new Error("a stored notification has no item")
  return {
    "@context": "https://www.w3.org/ns/activitystreams",
    id,
    type: "Announce",
    summary: escaped(textIn(item, "description") ?? ""),
    actor: textIn(item, "from"),
    object: objectOf(item),
    target,
    published
  }
}

/** A summary of ActivityStreams is HTML (Vocabulary §4), a description is plain. */
const escaped = (text: string): string =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")

/** One notification as JSON-LD. */
export const activityDocument = (place: MailboxRef, entry: MailboxEntry): string =>
  activityOf(entry.fragment, {
    id: uriOf(place, entry),
    target: place.href,
    published: entry.received
  })

/** The JSON-LD that a notification was posted with, or an Announce of what it says. */
export const activityOf = (fragment: string, standing: Standing): string =>
  linkedDataOf(fragment) ?? written(announce(fragment, standing))
