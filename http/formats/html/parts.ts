/** Parts that many pages have: times, badges, tables that scroll, what stands for nothing. */
import { type Html, html, nothing } from "./template.ts"

/** A time of RFC 3339 as it is without a script; `/page.js` puts it into the reader's locale. */
export const time = (text: string): Html => {
  const shown = text.slice(0, 19).replace("T", " ")
  return html`<time datetime="${text}">${shown} UTC</time>`
}

/** The same of milliseconds since 1970. */
export const timeAt = (atMs: number): Html => time(new Date(atMs).toISOString())

/** How something stands: `text` begins with a sign, so that no color is needed to tell. */
export const badge = (kind: "good" | "wait" | "bad", text: string, id?: string): Html =>
  html`<span class="badge ${kind}"${id === undefined ? nothing : html` id="${id}"`}>${text}</span>`

/** The badge of each value of a status. */
export type StatusBadges<Status extends string> = {
  readonly [S in Status]: readonly [kind: "good" | "wait" | "bad", text: string]
}

/** The badge of a status. */
export const statusBadge = <Status extends string>(
  badges: StatusBadges<Status>,
  status: Status,
  id?: string
): Html => badge(badges[status][0], badges[status][1], id)

/** What a table's column is called; numbers stand to the right, under each other. */
export type Heading = string | { readonly number: string }

const heading = (head: Heading): Html =>
  typeof head === "string"
    ? html`<th scope="col">${head}</th>`
    : html`<th scope="col" class="num">${head.number}</th>`

/** A table that scrolls by itself where the page is narrow, by keyboard too. */
export const table = (
  about: string,
  heads: ReadonlyArray<Heading>,
  rows: ReadonlyArray<Html>,
  kind = "rows"
): Html =>
  html`<div class="scroll ${kind}" role="region" id="${
    about.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")
  }-table"
aria-label="${about}" tabindex="0"><table>
<thead><tr>${heads.map(heading)}</tr></thead>
<tbody>
${rows}</tbody></table></div>
`

/** What a page says where it has nothing to list; `advice` is what to do about it. */
export const emptyState = (said: string, advice: Html | string = ""): Html =>
  html`<p id="empty" class="empty">${said}${advice === "" ? "" : " "}${advice}</p>
`

/** A part of a page that `/live.js` keeps up to date; each needs an id of its own. */
export const livePart = (id: string, content: Html): Html =>
  html`<div id="${id}" data-live>
${content}</div>
`

/** Says how live the page is; with `/live.js` it is, without it has to be loaded again. */
export const liveState: Html =
  html`<p class="quiet" id="live" role="status">Load this page again to see how it stands.</p>
`

/** A secret that a person takes elsewhere; `/page.js` adds a button that copies it. */
export const copyField = (what: string, text: string): Html =>
  html`<span data-copy="${what}"><code>${text}</code></span>`

/** A page that shows secrets, and no other does: what each is for, and the secret. */
export const secretsOnce = (
  secrets: ReadonlyArray<readonly [label: string, secret: Html | string]>
): Html =>
  html`<p>Keep this: it is not shown again.</p>
<dl>${
    secrets.map(([label, secret]) =>
      html`<dt>${label}</dt><dd>${secret}</dd>
`
    )
  }</dl>
`
