/** The pages of cabinets: to read one, to change it, to make one; they work without a script. */
import type { View as Cabinet } from "../../actors/cabinet/protocol.ts"
import { type Control, form } from "../html/forms.ts"
import { type Html, html, link, nothing } from "../html/template.ts"
import { containsCharsMax, titleCharsMax } from "../limits.ts"
import { summaryOf } from "../mailboxes/summary.ts"
import { placeNamed } from "../mailboxes/reader.ts"
import type { Service } from "../service.ts"
import type { CabinetPage, Merged } from "./merge.ts"

const entryItem = ({ entry, place }: Merged): Html => {
  const { description, from, href, password, received, url } = summaryOf(place, entry)
  return html`<li data-href="${href}"><p>${
    url === "" ? description : link(url, description === "" ? url : description)
  }</p>
<p class="quiet"><time datetime="${received}">${
    received.slice(0, 19).replace("T", " ")
  } UTC</time> · in ${link(place.href, place.name)}${
    from === undefined ? nothing : html` · from ${link(from)}`
  }${password === undefined ? nothing : html` · password <code>${password}</code>`} · ${
    link(href, "this notification")
  }</p></li>
`
}

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
      .map(({ name }) => placeNamed(service, name).href)
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

/** The form that makes a cabinet. */
export const makeForm = (service: Service): Html =>
  form({
    id: "make",
    action: "/cabinets",
    legend: "Make a cabinet",
    controls: controls(service),
    submit: "Make"
  })

/** What its owner sees: the notifications of all mailboxes, oldest first, and the form. */
export const cabinetPage = (
  service: Service,
  path: string,
  cabinet: Cabinet,
  page: CabinetPage
): Html =>
  html`<h2>Mailboxes</h2>
<ul>${
    page.mailboxes.map(({ isReadable, place }) =>
      html`<li>${link(place.href)}${
        isReadable ? nothing : html` <span class="quiet">cannot be read</span>`
      }</li>
`
    )
  }</ul>
<h2>Notifications</h2>
${
    page.entries.length === 0
      ? html`<p id="empty">There is nothing here${page.more ? " yet: see the next page" : ""}.</p>`
      : html`<ol class="entries">${page.entries.map(entryItem)}</ol>`
  }
${
    form({
      id: "change",
      action: path,
      legend: "Change this cabinet",
      controls: controls(service, cabinet),
      submit: "Change"
    })
  }${
    form({
      id: "delete",
      action: path,
      legend: "Remove this cabinet; its mailboxes stay as they are",
      controls: [{ name: "method", label: "", type: "hidden", value: "delete" }],
      submit: "Remove"
    })
  }`
