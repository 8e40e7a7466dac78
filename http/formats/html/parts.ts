/** Parts of many pages: times, badges, tables, live parts. */
import { parseUrl } from "../../../actors/index.ts"
import { attribute, type Html, html, isLinkable } from "./template.ts"

/** A time of RFC 3339 in UTC; `/page.js` converts it to the reader's locale. */
export const time = (text: string): Html => {
  const utc = text.slice(0, 19).replace("T", " ")
  return html`<time datetime="${text}">${utc} UTC</time>`
}

/** {@link time} of milliseconds since the epoch. */
export const timeAt = (atMs: number): Html => time(new Date(atMs).toISOString())

/** {@link time}, which `/page.js` shows as long ago, with the time itself as its title. */
export const timeAgo = (text: string): Html => {
  const utc = text.slice(0, 19).replace("T", " ")
  return html`<time datetime="${text}" data-ago>${utc} UTC</time>`
}

const kib = 1024

/** A number of bytes with its unit. */
export const sizeText = (bytes: number): string =>
  bytes < kib
    ? `${bytes} B`
    : bytes < kib * kib
    ? `${(bytes / kib).toFixed(1)} KiB`
    : bytes < kib ** 3
    ? `${(bytes / kib ** 2).toFixed(1)} MiB`
    : `${(bytes / kib ** 3).toFixed(1)} GiB`

/** A name for a URI of a document, such as `alice at example.org`; its text if it has none. */
export const uriName = (uri: string): string => {
  const parsed = parseUrl(uri)
  if (parsed === undefined || parsed.host === "") return uri
  const { host, pathname } = parsed
  const last = pathname.split("/").findLast((part) => part !== "")
  return last === undefined ? host : `${last} at ${host}`
}

/** Characters of a URI that a page shows; a line of a phone has about as many. */
const shortUriCharsMax = 40

/** Of these the end, which tells URIs of one service from each other. */
const shortUriEndChars = 14

/** The host and path of a URI, without the middle if they are long. */
export const shortUri = (uri: string): string => {
  const parsed = parseUrl(uri)
  const { host = "", pathname = "", search = "" } = parsed ?? {}
  const text = host === "" ? uri : host + (pathname === "/" ? "" : pathname) + search
  return text.length <= shortUriCharsMax
    ? text
    : `${text.slice(0, shortUriCharsMax - shortUriEndChars - 1)}…${text.slice(-shortUriEndChars)}`
}

/** A link with a name or a short URI as its text; its title is the whole URI. */
export const namedLink = (uri: string, name: string = shortUri(uri)): Html =>
  isLinkable(uri)
    ? html`<a href="${uri}" title="${uri}">${name}</a>`
    : html`<span title="${uri}">${name}</span>`

/** {@link namedLink}, with a button of `/page.js` that copies the whole URI. */
export const addressLink = (uri: string, name: string = shortUri(uri)): Html =>
  html`<span data-copy="address of ${name}" data-text="${uri}">${namedLink(uri, name)}</span>`

/** A status; `text` begins with a sign, so that it does not depend on color. */
export const badge = (kind: "good" | "wait" | "bad", text: string): Html =>
  html`<span class="badge ${kind}">${text}</span>`

/** The badge of each value of a status. */
export type StatusBadges<Status extends string> = {
  readonly [S in Status]: readonly [kind: "good" | "wait" | "bad", text: string]
}

/** The badge of a status. */
export const statusBadge = <Status extends string>(
  badges: StatusBadges<Status>,
  status: Status
): Html => badge(badges[status][0], badges[status][1])

/** The heading of a column; columns of numbers are aligned to the right. */
export type Heading = string | { readonly number: string }

const heading = (head: Heading): Html =>
  typeof head === "string"
    ? html`<th scope="col">${head}</th>`
    : html`<th scope="col" class="num">${head.number}</th>`

/** A table that scrolls within a narrow page, also by keyboard. */
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

/** A cell of {@link cardTable}, with the heading that it shows on a phone. */
const cardCell = (head: Heading, content: Html | string): Html => {
  const label = typeof head === "string" ? head : head.number
  const kind = typeof head === "string" ? undefined : "num"
  return html`<td${attribute("class", kind)} data-label="${label}">${content}</td>`
}

/**
 * A table of records, each of which is a card on a phone: the first cell is its title, and empty
 * cells are left out.
 */
export const cardTable = (
  about: string,
  heads: ReadonlyArray<Heading>,
  rows: ReadonlyArray<ReadonlyArray<Html | string>>
): Html =>
  table(
    about,
    heads,
    rows.map(([title = "", ...cells]) =>
      html`<tr><th scope="row">${title}</th>${
        cells.map((cell, at) => cardCell(heads[at + 1] ?? "", cell))
      }</tr>
`
    ),
    "rows cards"
  )

/** The text of an empty list; `advice` says how to fill it. */
export const emptyState = (text: string, advice: Html | string = ""): Html =>
  html`<p class="empty">${text}${advice === "" ? "" : " "}${advice}</p>
`

/**
 * A part of a page that `/live.js` keeps current; its id must be unique. `stream` is the URI of the
 * event stream that announces changes.
 */
export const livePart = (id: string, content: Html, stream?: string): Html =>
  html`<div id="${id}" data-live${attribute("data-stream", stream)}>
${content}</div>
`

/** The status line of a live page; `/live.js` replaces its text. */
export const liveState: Html =
  html`<p class="quiet" id="live" role="status">Reload this page to see its current state.</p>
`

/** A secret to copy; `/page.js` adds a button for it. */
export const copyField = (what: string, text: string): Html =>
  html`<span data-copy="${what}"><code>${text}</code></span>`

/** The secrets that only this page shows, each with a label. */
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
