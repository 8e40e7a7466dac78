/** The pages of cabinets: to read one, to change it, to make one; they work without a script. */
import type { CabinetView as Cabinet } from "../../actors/cabinet/protocol.ts"
import { type Control, form, type HtmlForm } from "../html/forms.ts"
import { badge, emptyState, livePart, liveState, table } from "../html/parts.ts"
import { type Html, html, link, nothing } from "../html/template.ts"
import { containsCharsMax, titleCharsMax } from "../limits.ts"
import { entryItem } from "../mailboxes/pages.ts"
import { summaryOf } from "../mailboxes/summary.ts"
import { mailboxRefNamed } from "../mailboxes/reader.ts"
import type { Service } from "../service.ts"
import type { MergedEntry, MergedPage } from "./merge.ts"

const mergedItem = ({ entry, place }: MergedEntry): Html =>
  entryItem(summaryOf(place, entry), html` · in ${link(place.href, place.name)}`)

const controls = (
  service: Service,
  cabinet?: Pick<Cabinet, "title" | "mailboxes" | "query">
): ReadonlyArray<Control> => [
  { name: "title", label: "Title", value: cabinet?.title ?? "", maxlength: titleCharsMax },
  {
    name: "mailbox",
    label: "Mailboxes",
    type: "textarea",
    required: true,
    value: (cabinet?.mailboxes ?? [])
      .map(({ name }) => mailboxRefNamed(service, name).href)
      .join("\n"),
    hint: "An address a line: your own mailboxes, or shared addresses that you were given. "
      + "A shared address is not shown again; it stays good as long as its mailbox is listed."
  },
  {
    name: "contains",
    label: "Only notifications with this text",
    type: "search",
    value: cabinet?.query?.contains ?? "",
    maxlength: containsCharsMax
  },
  {
    name: "since",
    label: "Only notifications since",
    value: cabinet?.query?.since ?? "",
    hint: "A time such as 2030-01-31T00:00:00Z."
  }
]

/** The form that makes a cabinet; `mailboxes` is what it begins with. */
export const makeForm = (service: Service, mailboxes = ""): HtmlForm => ({
  id: "make",
  action: "/cabinets",
  legend: "Make a cabinet",
  controls: controls(service).map((control) =>
    control.name === "mailbox" ? { ...control, value: mailboxes } : control
  ),
  submit: "Make"
})

/** The form that changes one. */
export const changeForm = (service: Service, path: string, cabinet?: Cabinet): HtmlForm => ({
  id: "change",
  action: path,
  legend: "Change this cabinet",
  controls: controls(service, cabinet),
  submit: "Change"
})

/** What its owner sees: the notifications of all mailboxes, oldest first. */
export const cabinetPage = (page: MergedPage): Html =>
  html`${livePart("entries", cabinetParts(page))}${liveState}`

const cabinetParts = (page: MergedPage): Html =>
  html`<h2>Mailboxes</h2>
<ul>${
    page.mailboxes.map(({ isReadable, place }) =>
      html`<li>${link(place.href)}${
        isReadable ? nothing : html` ${badge("bad", "✗ cannot be read")}`
      }</li>
`
    )
  }</ul>
<h2>Notifications</h2>
${
    page.entries.length > 0
      ? html`<ol class="entries">${page.entries.map(mergedItem)}</ol>`
      : page.more
      ? emptyState("There is nothing on this page: see the next one.")
      : emptyState("There is nothing here.", "What comes into its mailboxes is shown here, too.")
  }`

/** What follows: the forms. */
export const cabinetForms = (service: Service, path: string, cabinet: Cabinet): Html =>
  html`${form(changeForm(service, path, cabinet))}${
    form({
      id: "delete",
      action: path,
      legend: "Remove this cabinet; its mailboxes stay as they are",
      controls: [{ name: "method", label: "", type: "hidden", value: "delete" }],
      submit: "Remove",
      tone: "danger"
    })
  }`

/** One of the caller's own cabinets. */
export interface OwnCabinet {
  readonly path: string
  readonly title: string
  readonly mailboxes: number
}

/** The caller's own cabinets. */
export const ownPage = (own: ReadonlyArray<OwnCabinet>): Html =>
  html`${livePart("own", ownTable(own))}${liveState}`

const ownTable = (own: ReadonlyArray<OwnCabinet>): Html =>
  own.length === 0
    ? emptyState("You have none yet.", "A cabinet shows several mailboxes as one: make it below.")
    : table(
      "Your cabinets",
      ["Cabinet", { number: "Mailboxes" }],
      own.map(({ mailboxes, path, title }) =>
        html`<tr><td>${link(path, title)}</td><td class="num">${mailboxes}</td></tr>
`
      )
    )
