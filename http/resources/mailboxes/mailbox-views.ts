/** The documents, pages, feeds and JSON-LD of mailboxes; the pages work without a script. */
import { parseUrl } from "../../../actors/index.ts"
import type { MailboxView, OwnerSettings } from "../../../actors/mailbox/index.ts"
import { addressLink, attribute, badge, type Control, copyField, emptyState, type Html, html,
  type HtmlForm, icon, link, listScriptPath, livePart, liveScriptPath, liveState, methodControl,
  nothing, notifyScriptPath, renderButton, renderElement, renderForm, secretsOnce, signInHref,
  sizeText, type StatusBadges, table, timeAgo, uriName } from "../../formats/html/index.ts"
import { type Feed, mediaTypeOf, type ResourceView } from "../../formats/index.ts"
import { childText, element, escapeAttribute, parseFragment, tagsIn, writeElement,
  xmlDeclaration } from "../../formats/xml/index.ts"
import { plainTextTagsMax, searchCharsMax, uriCharsMax } from "../../limits.ts"
import type { Service } from "../../pipeline/index.ts"
import type { ShownFile, ShownMessage } from "../content/index.ts"
import { activityOf, writeLinkedData } from "../interop/index.ts"
import type { MailboxRef } from "./mailbox-access.ts"
import { afterOpening, depositLinks, discardedNotice, entryXml, filterText, itemIn,
  type ListingPage, type ListingQuery, type MailboxEntry, type MailboxFilter, nextHref, openingOf,
  pageLinks } from "./listing/index.ts"
import { defaultRetention, mailboxDocument, type MailboxSecretUris,
  settingsElements } from "./mailbox-settings.ts"
import { openForm, settingsOf } from "./settings-views.ts"

/** What only the page of a list needs. */
interface ListingParts {
  readonly previews?: Previews | undefined
  /** The list for this browser, where it differs from the URI of the mailbox. */
  readonly list?: string
}

/** The view of a page, whose XML joins the stored fragments. */
export const listingView = (
  mailbox: MailboxRef,
  page: ListingPage,
  query: ListingQuery,
  { list = mailbox.here, previews = new Map() }: ListingParts = {}
): ResourceView => {
  const { entries, time, view } = page
  const { isOwner, settings } = view
  const title = settings.title ?? mailbox.name
  const own = isOwner ? settingsElements(settings) : []
  const next = nextHref(mailbox, page, query)
  let xml = `${xmlDeclaration}<mailbox href="${escapeAttribute(mailbox.href)}" ` +
    `title="${escapeAttribute(settings.title ?? "")}" time="${time}"` +
    `${page.isDiscarded === true ? " discarded=\"true\"" : ""}>`
  for (const setting of own) xml += writeElement(setting)
  const opening = openingOf(mailbox)
  for (const entry of entries) xml += opening + afterOpening(entry)
  return {
    title,
    xml: `${xml}</mailbox>`,
    links: pageLinks(mailbox, page, query, next),
    body: () => readerPage(mailbox, page, query, { list, previews }),
    forms: () => readerForms(mailbox, view),
    scripts: [...isLive(page, query) ? [liveScriptPath] : [], listScriptPath, notifyScriptPath],
    feed: () => feedOf(mailbox, page, title),
    // Linked Data Notifications §3.3.2: the newest first.
    linkedData: () =>
      writeLinkedData({
        "@context": "http://www.w3.org/ns/ldp",
        "@id": mailbox.here,
        contains: entries.map((entry) => entryHref(mailbox, entry)).toReversed()
      })
  }
}

/** Whether what is deposited next appears on the page. */
const isLive = ({ isLatest, more }: ListingPage, { before }: ListingQuery): boolean =>
  isLatest === true ? before === undefined : !more

/* The main fields of a notification, for people and for feeds. */

/** The main fields of a notification. */
export interface NotificationSummary {
  readonly href: string
  readonly received: string
  readonly description: string
  readonly url: string
  readonly password: string | undefined
  readonly from: string | undefined
  readonly isRead: boolean
  /** 1 to 5; 3 is usual. */
  readonly priority: string | undefined
  readonly tags: ReadonlyArray<string>
  /** What a person is to open. */
  readonly click: string | undefined
  /** The URI of the notification that the sender has replaced by this one, or withdrawn. */
  readonly replaces: string | undefined
  /** When the sender withdrew what this replaces, as the service has written it. */
  readonly withdrawn: string | undefined
  /** On the page of the mailbox. */
  readonly preview?: Preview | undefined
}

/** How a message begins, after the description, or the file that it is. */
export type Preview = string | ShownFile

/** The previews of a page's notifications, by the numbers of the notifications. */
export type Previews = ReadonlyMap<number, Preview>

const entryHref = (mailbox: MailboxRef, entry: MailboxEntry): string =>
  `${mailbox.here}/notifications/${entry.id}`

export const summaryOf = (mailbox: MailboxRef, entry: MailboxEntry): NotificationSummary => {
  const item = itemIn(entry.fragment)
  const field = (name: string): string | undefined =>
    item === undefined ? undefined : childText(item, name)
  return {
    href: entryHref(mailbox, entry),
    received: entry.received,
    description: field("description") ?? "",
    url: field("url") ?? "",
    password: field("password"),
    from: field("from"),
    isRead: entry.isRead === true,
    priority: field("priority"),
    tags: tagsIn(field("tags")),
    click: field("click"),
    replaces: field("replaces"),
    withdrawn: field("withdrawn")
  }
}

/* The pages of mailboxes: to read, to deposit, to open one; they work without a script. */

/** Between what a line has of a notification; where the line breaks, it does not begin the next. */
const dot = html`&nbsp;· `

const titleOf = ({ description, url }: NotificationSummary): string =>
  description !== "" ? description : url !== "" ? uriName(url) : "A notification"

const hostOf = (uri: string): string => parseUrl(uri)?.host ?? ""

/** The link to the message, by where it is. */
const messageLink = ({ url, withdrawn }: NotificationSummary): Html => {
  if (url === "" || withdrawn !== undefined) return nothing
  const host = hostOf(url)
  return html`${dot}${link(url, host === "" ? url : `message at ${host}`)}`
}

const priorityBadges: StatusBadges<string> = {
  5: ["bad", "‼ urgent"],
  4: ["wait", "! important"],
  2: ["good", "↓ minor"],
  1: ["good", "↓ unimportant"]
}

/** The address of the listing with a further condition. */
type FilterHref = (more: Partial<MailboxFilter>) => string

/** A mark, which leads to all notifications that have it where the list can be filtered. */
const filterLink = (
  shown: Html,
  about: string,
  href: FilterHref | undefined,
  more: Partial<MailboxFilter>
): Html =>
  href === undefined
    ? shown
    : html`<a class="filter" href="${href(more)}" title="${about}" rel="nofollow">${shown}</a>`

/** What a sender says of its notification: priority, tags, and what to open. */
const marksOf = (
  { click, priority = "", replaces, tags, withdrawn }: NotificationSummary,
  href?: FilterHref
): Html => {
  // A sender may write anything, such as the name of a property that every object has.
  const level = Object.hasOwn(priorityBadges, priority) ? priorityBadges[priority] : undefined
  // A link to what it replaces would end in 410.
  const followUp = withdrawn !== undefined
    ? badge("wait", "⌫ withdrawn by the sender")
    : replaces === undefined
    ? undefined
    : badge("wait", "↻ replaces an earlier one")
  return html`${
    level === undefined ?
      nothing :
      html`${dot}${
        filterLink(badge(level[0], level[1]), "All of this priority", href, { priority })
      }`
  }${followUp === undefined ? nothing : html`${dot}${followUp}`}${
    tags.slice(0, plainTextTagsMax).map((tag) =>
      html`${dot}${
        filterLink(html`<span class="tag">${tag}</span>`, "All with this tag", href, { tag })
      }`
    )
  }${click === undefined ? nothing : html`${dot}${link(click, `open ${uriName(click)}`)}`}`
}

const fileFacts = ({ lengthBytes, type }: ShownFile): string =>
  `${mediaTypeOf(type)}, ${sizeText(lengthBytes)}`

/**
 * One notification of a list, with `more` after its fields and `after` beside them. With
 * `filterHref` its tags and its priority lead to the others that have them.
 */
export const entryItem = (
  summary: NotificationSummary,
  more: Html = nothing,
  after: Html = nothing,
  filterHref?: FilterHref
): Html => {
  const { from, href, isRead, password, preview, received } = summary
  return html`<li data-href="${href}"${attribute("class", isRead && "read")}><p>${
    link(href, titleOf(summary))
  }</p>
${
    typeof preview === "string"
      ? html`<p class="preview" dir="auto">${preview}</p>
`
      : nothing
  }<p class="quiet">${timeAgo(received)}${more}${
    from === undefined ? nothing : html`${dot}from ${link(from, uriName(from))}`
  }${typeof preview === "object" ? html`${dot}${icon("content")}${fileFacts(preview)}` : nothing}${
    marksOf(summary, filterHref)
  }${messageLink(summary)}${
    password === undefined ? nothing : html`${dot}password ${copyField("password", password)}`
  }</p>${after}</li>
`
}

/** What the query of the page has that asks whether the notification is to be removed. */
export const removalParameter = "remove"

/**
 * With a script, the notification is removed at once, and the removal can be undone on `list`.
 * Without one, the button leads to a page that asks.
 */
const removeButton = (summary: NotificationSummary, list?: string): Html =>
  renderButton(summary.href, "Remove", titleOf(summary), {
    method: "get",
    fields: { [removalParameter]: "true" },
    icon: "remove",
    list
  })

const entry = (summary: NotificationSummary, filterHref: FilterHref): Html => {
  const { href, isRead, url } = summary
  // The page of the notification shows a message of this service, or links to it.
  const shown = hostOf(url) === hostOf(href) ? { ...summary, url: "" } : summary
  return entryItem(
    { ...shown, description: titleOf(summary) },
    isRead ? nothing : html`${dot}<b>● unread</b>`,
    removeButton(summary),
    filterHref
  )
}

/** The controls of a notification; the service publishes the message that is written in them. */
export const notificationControls = (readers: string): ReadonlyArray<Control> => [
  { name: "description", label: "What it is about", required: true, maxlength: 1000 },
  {
    name: "content",
    label: "The message itself",
    type: "textarea",
    hint: `It is published for ${readers}.`
  },
  {
    name: "url",
    label: "Address of the message",
    type: "url",
    maxlength: uriCharsMax,
    hint: "The address of a message that is already published, instead of its text."
  },
  {
    name: "priority",
    label: "Priority",
    type: "select",
    isFolded: true,
    options: [
      ["", "usual"],
      ["5", "urgent"],
      ["4", "important"],
      ["2", "minor"],
      ["1", "unimportant"]
    ]
  },
  {
    name: "tags",
    label: "Tags",
    isFolded: true,
    hint: `Words with commas between them, at most ${plainTextTagsMax}.`
  },
  {
    name: "click",
    label: "Link",
    type: "url",
    maxlength: uriCharsMax,
    isFolded: true,
    hint: "What a person is to open, such as the page of an order."
  }
]

/** What opens the folded controls of a notification. */
export const foldedAs = "More: priority, tags, link"

/** The form that deposits (A2). */
export const depositForm = (name: string): HtmlForm => ({
  id: "deposit",
  action: `/mailboxes/${name}`,
  legend: "Leave a notification here",
  controls: notificationControls("the readers of the mailbox"),
  foldedAs,
  submit: "Deposit"
})

/** The list with the filter. */
const filteredHref = (list: string, filter: Partial<MailboxFilter>): string => {
  const text = filterText(filter)
  return list.includes("?") ? list + text : list + text.replace(/^&/, "?")
}

/** The tag and the priority by which the list is filtered, each with the way back. */
const chosenMarks = (list: string, filter: MailboxFilter): Html => {
  const { priority, tag } = filter
  const chosen = (mark: string, without: Partial<MailboxFilter>): Html =>
    html`<a class="filter" href="${filteredHref(list, { ...filter, ...without })}"
aria-label="Without ${mark}">${mark} ✕</a> `
  return html`${tag === undefined ? nothing : chosen(`tag ${tag}`, { tag: undefined })}${
    priority === undefined ? nothing : chosen(`priority ${priority}`, { priority: undefined })
  }`
}

/** All, or the unread ones; and a search. A browser that asks for the password keeps `read`. */
const findForm = (
  mailbox: MailboxRef,
  { isOwner }: MailboxView,
  { filter }: ListingQuery,
  list: string
): Html => {
  // Only the owner's browser can open what it shows, without a password or a secret.
  const registrations = isOwner ? `/mailboxes/${mailbox.name}/registrations` : undefined
  const { isUnread = false, priority, tag, text = "" } = filter ?? {}
  const choice = (name: string, isChosen: boolean, chosen: Partial<MailboxFilter>): Html =>
    isChosen
      ? html`<b aria-current="page">${name}</b> `
      : html`<a href="${filteredHref(list, chosen)}">${name}</a> `
  const hidden = (name: string, value: string | undefined): Html =>
    value === undefined ? nothing : html`<input type="hidden" name="${name}" value="${value}">`
  return html`<form class="find" action="${mailbox.here}" method="get" role="search">
<p class="choices"${attribute("data-registrations", registrations)}>${
    choice("all", filter === undefined, {})
  }${choice("● unread", isUnread, { ...filter, isUnread: true })}${
    filter === undefined ? nothing : chosenMarks(list, filter)
  }</p>
<p>${hidden("read", list === mailbox.here ? undefined : "")}${hidden("tag", tag)}${
    hidden("priority", priority)
  }
<input type="search" name="q" value="${text}" maxlength="${searchCharsMax}"
aria-label="Search in this mailbox" placeholder="Search" autocomplete="off">
<button type="submit" class="small">${icon("search")}Search</button></p></form>
`
}

/** Whether a list has all that is unread, and leaves out nothing else. */
const isUnreadOnly = ({ isUnread, priority, tag, text }: MailboxFilter): boolean =>
  isUnread && [priority, tag, text].every((one) => one === undefined)

/** Marks all notifications as read that a page of the newest begins with. */
const readMarkButton = (
  mailbox: MailboxRef,
  { isLatest, time }: ListingPage,
  { filter }: ListingQuery,
  summaries: ReadonlyArray<NotificationSummary>
): Html =>
  isLatest === true && [filter?.text, filter?.tag, filter?.priority].every((one) =>
      one === undefined
    ) &&
    summaries.some(({ isRead }) => !isRead)
    ? renderButton(`${mailbox.here}/read`, "Mark all as read", "in this mailbox", {
      fields: { time }
    })
    : nothing

/**
 * The notifications for a reader: the newest first, or from a cursor on the oldest. With a script,
 * new ones appear by themselves.
 */
const readerPage = (
  mailbox: MailboxRef,
  page: ListingPage,
  query: ListingQuery,
  { list, previews }: { readonly list: string; readonly previews: Previews }
): Html => {
  const summaries = page.entries.map((each) => ({
    ...summaryOf(mailbox, each),
    preview: previews.get(each.n)
  }))
  const stream = `${mailbox.here}?since=${encodeURIComponent(page.time)}&changes=true`
  const empty = query.filter === undefined
    ? emptyState(
      "There is nothing here.",
      "Leave a notification below, or tell others the address of this mailbox."
    )
    : emptyState(
      page.more
        ? "There is nothing on this page: see the older ones."
        : isUnreadOnly(query.filter)
        ? "Everything is read."
        : "Nothing is found."
    )
  const filterHref: FilterHref = (more) => filteredHref(list, { ...query.filter, ...more })
  const entries = (page.isLatest === true ? summaries.toReversed() : summaries)
    .map((summary) => entry(summary, filterHref))
  return html`<h2>Notifications</h2>
${findForm(mailbox, page.view, query, list)}${
    page.isDiscarded === true
      ? html`<p class="quiet">${discardedNotice}</p>
`
      : nothing
  }${livePart("no-entries", summaries.length === 0 ? empty : nothing)}${
    !isLive(page, query)
      ? html`<ol class="entries">${entries}</ol>`
      // The list itself is the live part, so that its new entries are announced.
      : html`<ol class="entries" id="entries" aria-live="polite" data-live data-stream="${stream}">
${entries}</ol>
${liveState}`
  }
${livePart("read-marks", readMarkButton(mailbox, page, query, summaries))}
<p><a href="${mailbox.here}/registrations">Push registrations</a>: callbacks for changes</p>`
}

/** The forms below the notifications: to deposit, and the settings for the owner. */
const readerForms = (mailbox: MailboxRef, view: MailboxView): Html =>
  html`${renderForm(depositForm(mailbox.name))}${
    view.isOwner ? settingsOf(mailbox, view) : nothing
  }`

const shownMessage = (message: ShownMessage | undefined): Html => {
  switch (message?._tag) {
    case "Text":
      return html`<pre class="message">
${message.text}</pre>
`
    case "Picture":
      return html`<p><img class="message" src="${message.path}" loading="lazy"
alt="The message, a picture"></p>
`
    case "File":
      return html`<p><b>${message.name ?? "A file"}</b>
<span class="quiet">${fileFacts(message)}</span></p>
`
    case undefined:
      return nothing
  }
}

const messageLinkText = (message: ShownMessage | undefined): string => {
  switch (message?._tag) {
    case undefined:
      return "Read the message"
    case "File":
      return "Download"
    default:
      return "The message by itself"
  }
}

/** The page itself has marked the notification as read. */
const notificationForms = (summary: NotificationSummary, list: string): Html =>
  html`<div class="actions">${
    renderButton(`${summary.href}/read`, "Mark as unread", titleOf(summary), {
      fields: { method: "delete" }
    })
  }${removeButton(summary, list)}</div>`

/** All that a notification has, also what no protocol knows. */
const fieldsOf = (xml: string): ReadonlyArray<Html> =>
  parseFragment(xml).map((node) => typeof node === "string" ? nothing : renderElement(node))

/** A notification on its own page, with its message where that can be shown. */
const notificationPage = (
  summary: NotificationSummary,
  message: ShownMessage | undefined,
  xml: string
): Html => {
  const { from, password, received, url, withdrawn } = summary
  return html`<p class="quiet">${timeAgo(received)}${
    from === undefined ? nothing : html`${dot}from ${link(from, uriName(from))}`
  }${marksOf(summary)}</p>
${shownMessage(message)}${
    url === "" || withdrawn !== undefined ?
      nothing :
      html`<p>${link(url, messageLinkText(message))}${
        password === undefined
          ? nothing
          : html`: it asks for the password ${copyField("password", password)}, with any user name`
      }</p>
`
  }<details><summary>All fields</summary>
${fieldsOf(xml)}</details>
`
}

/** The way to the notifications, on the page of everybody who may not read them. */
const readingHelp = (mailbox: MailboxRef, account: string | undefined): Html =>
  account === undefined
    ? html`<p>Is it yours? <a href="${
      signInHref(`/mailboxes/${mailbox.name}`)
    }" rel="nofollow"><b>Sign in to read</b></a></p>`
    : html`<p>You are signed in as <b>${account}</b>, who may not read this mailbox.</p>`

const passwordHelp = html`<p class="quiet"><a href="?read=password" rel="nofollow">Read with the
mailbox's password</a>: your browser asks for it, with any user name.</p>`

/** The page of a mailbox for everybody who may not read it; `account` is signed in. */
export const publicView = (
  mailbox: MailboxRef,
  { settings }: MailboxView,
  account: string | undefined
): ResourceView => ({
  title: settings.title ?? mailbox.name,
  body: () =>
    html`<p>This is a mailbox. ${
      settings.deposit === "anyone"
        ? "Anybody may leave a notification in it."
        : "Anybody with an account here may leave a notification in it."
    }</p>
${readingHelp(mailbox, account)}
${renderForm(depositForm(mailbox.name))}${passwordHelp}`,
  links: depositLinks(mailbox)
})

/** The page after a deposit. */
export const depositedView = (mailbox: MailboxRef, href: string): ResourceView => ({
  title: "Deposited",
  body: () =>
    html`<p>The notification is deposited, and kept until it is retrieved.</p>
<p class="quiet">${addressLink(href)}</p>
<p>${link(`/mailboxes/${mailbox.name}`, "Back to the mailbox")}, or ${
      link(`/?mailbox=${mailbox.name}#read`, "continue the tour")
    }</p>`,
  links: [{ rel: "mailbox", href: mailbox.href }]
})

/** One of the caller's mailboxes. */
export interface OwnedMailbox {
  readonly name: string
  readonly href: string
  readonly title: string
  readonly notifications: number
  /** Whether the service has opened it for failure reports. */
  readonly isForReports: boolean
}

/** A page of the caller's mailboxes; `next` is the URI of the next page. */
export const mailboxesView = (
  service: Service,
  listed: ReadonlyArray<OwnedMailbox>,
  next: string | undefined
): ResourceView => ({
  title: "Your mailboxes",
  tree: element(
    "mailboxes",
    {},
    ...listed.map(({ href, notifications, title }) =>
      element("mailbox", { href, title, notifications })
    )
  ),
  links: next === undefined ? [] : [{ rel: "next", href: next, title: "More mailboxes" }],
  body: () =>
    listed.length === 0
      ? emptyState("You have no mailbox yet.", "Open one below: a name is all that it needs.")
      : table(
        "Your mailboxes",
        ["Mailbox", "Title", { number: "Notifications" }],
        listed.map(({ href, name, notifications, title }) =>
          html`<tr><td>${
            link(href, name)
          }</td><td>${title}</td><td class="num">${notifications}</td></tr>
`
        )
      ),
  forms: renderForm(openForm(defaultRetention(service.settings)))
})

const secretsPage = (
  { href, name }: MailboxRef,
  { password, sharedHref }: MailboxSecretUris
): Html =>
  html`${
    secretsOnce([
      ["The mailbox, where others deposit", html`<span data-copy="address">${link(href)}</span>`],
      ["Password, to read it with any user name", copyField("password", password)],
      [
        "Shared address, to read it without a password",
        html`<span data-copy="shared address">${link(sharedHref)}</span>`
      ]
    ])
  }<p>Next: ${link(`/mailboxes/${name}`, "read it")}, or ${
    link(`/?mailbox=${name}#note`, "continue the tour")
  } and leave a note in it.</p>`

/** A mailbox with its secrets, which no other answer shows; with its settings when it is new. */
export const secretsView = (
  mailbox: MailboxRef,
  secrets: MailboxSecretUris,
  settings?: OwnerSettings
): ResourceView => ({
  title: settings === undefined
    ? "The mailbox's new secrets"
    : settings.title ?? mailbox.name,
  tree: mailboxDocument(mailbox.href, settings, secrets),
  body: () => secretsPage(mailbox, secrets),
  links: [{ rel: "mailbox", href: mailbox.href }]
})

/** The settings of a mailbox. */
export const settingsView = (mailbox: MailboxRef, settings: OwnerSettings): ResourceView => ({
  title: settings.title ?? mailbox.name,
  tree: mailboxDocument(mailbox.href, settings),
  links: [{ rel: "mailbox", href: mailbox.href }]
})

/* A page of a mailbox as a feed: the newest notification first. */

/** The feed of a page. The ids of its entries are their public URIs, which never change. */
const feedOf = (mailbox: MailboxRef, page: ListingPage, title: string): Feed => ({
  href: mailbox.href,
  title,
  notice: page.isDiscarded === true ? discardedNotice : undefined,
  updated: new Date(page.view.lastAtMs).toISOString(),
  entries: page.entries.map((entry) => {
    const { description, from, url } = summaryOf(mailbox, entry)
    const id = `${mailbox.href}/notifications/${entry.id}`
    return { id, title: description, received: entry.received, url, author: from }
  }).toReversed()
})

/** What only the page of a notification needs. */
interface NotificationParts {
  readonly message?: ShownMessage | undefined
  /** The list for this browser. */
  readonly list: string
}

/** One notification; its page shows `message`. */
export const notificationView = (
  mailbox: MailboxRef,
  entry: MailboxEntry,
  { list, message }: NotificationParts
): ResourceView => {
  const summary = summaryOf(mailbox, entry)
  const xml = entryXml(mailbox, entry)
  return {
    title: titleOf(summary),
    xml: xmlDeclaration + xml,
    body: () => notificationPage(summary, message, xml),
    linkedData: () =>
      activityOf(entry.fragment, {
        id: summary.href,
        target: mailbox.href,
        published: entry.received
      }),
    links: [
      ...depositLinks(mailbox),
      { rel: "up", href: mailbox.here, title: "The mailbox" }
    ],
    forms: () => notificationForms(summary, list),
    scripts: [listScriptPath]
  }
}

/** The same, whose page asks whether it is to be removed. */
export const removalView = (
  mailbox: MailboxRef,
  entry: MailboxEntry,
  list: string
): ResourceView => {
  const summary = summaryOf(mailbox, entry)
  const { forms: _, links: __, scripts: ___, ...shown } = notificationView(mailbox, entry, { list })
  return {
    ...shown,
    links: depositLinks(mailbox),
    title: `Remove “${titleOf(summary)}”?`,
    body: () =>
      html`<p class="quiet">${timeAgo(summary.received)}${
        summary.from === undefined
          ? nothing
          : html` · from ${link(summary.from, uriName(summary.from))}`
      }</p>
<p>It leaves this mailbox for all of its readers, and nobody can bring it back.</p>
${
        renderForm({
          action: summary.href,
          controls: [methodControl("delete")],
          submit: "Remove",
          instead: { href: list, text: "Keep it" }
        }, "secondary")
      }`
  }
}
