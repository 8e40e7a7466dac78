/** Any document as HTML: repeated elements become tables or entries, `href` becomes a link. */
import { childrenOf, type Element } from "../xml/index.ts"
import { addressLink, namedLink, shortUri, time } from "./parts.ts"
import { type Html, html, isLinkable } from "./template.ts"

const words = (name: string): string => {
  const text = name.replace(/^.*:/, "").replace(/[-_]/g, " ")
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const ownText = (node: Element): string =>
  node.children.filter((child) => typeof child === "string").join("").trim()

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/

const value = (text: string): Html => {
  if (timePattern.test(text)) {
    return text.endsWith("Z") ? time(text) : html`<time datetime="${text}">${text}</time>`
  }
  return /^https?:/i.test(text) && isLinkable(text) ? namedLink(text) : html`${text}`
}

const isLeaf = (node: Element): boolean => childrenOf(node).length === 0

const labelOf = (node: Element): string => {
  const text = isLeaf(node) ? ownText(node) : ""
  return text === "" ? shortUri(node.attributes["href"] ?? "") : text
}

/** The attributes that a page shows, without the address. */
const attributesOf = (node: Element): ReadonlyArray<readonly [name: string, text: string]> =>
  Object.entries(node.attributes)
    .filter(([key]) => key !== "href" && !key.startsWith("xmlns"))

/** The text and attributes of an element without child elements, on one line. */
const leaf = (node: Element): Html => {
  const href = node.attributes["href"]
  return html`${href === undefined ? value(ownText(node)) : namedLink(href, labelOf(node))}${
    attributesOf(node).map(([key, text]) =>
      html` <span class="quiet">${words(key)}: ${value(text)}</span>`
    )
  }`
}

/** Groups children by name, in the order in which each name first occurs. */
const grouped = (node: Element): ReadonlyMap<string, ReadonlyArray<Element>> => {
  const groups = new Map<string, Array<Element>>()
  for (const child of childrenOf(node)) {
    const group = groups.get(child.name)
    if (group === undefined) groups.set(child.name, [child])
    else group.push(child)
  }
  return groups
}

const columnsOf = (rows: ReadonlyArray<Element>): ReadonlyArray<string> => {
  const columns = new Set<string>()
  for (const row of rows) {
    for (const key in row.attributes) if (!key.startsWith("xmlns")) columns.add(key)
  }
  return [...columns]
}

const cell = (column: string, text: string | undefined): Html =>
  text === undefined
    ? html`<td></td>`
    : html`<td>${column === "href" ? namedLink(text) : value(text)}</td>`

/** A table of elements that only have attributes. */
const table = (rows: ReadonlyArray<Element>): Html => {
  const columns = columnsOf(rows)
  return html`<div class="scroll"><table><thead><tr>${
    columns.map((column) =>
      html`<th scope="col">${column === "href" ? "Address" : words(column)}</th>`
    )
  }</tr></thead><tbody>${
    rows.map((row) =>
      html`<tr>${columns.map((column) => cell(column, row.attributes[column]))}</tr>`
    )
  }</tbody></table></div>
`
}

const isRow = (node: Element): boolean => node.children.length === 0

/** The members of a group: a table, one element, or a list. */
const group = (members: ReadonlyArray<Element>): Html => {
  if (members.length > 1 && members.every(isRow)) return table(members)
  const rendered = members.map((member) => isLeaf(member) ? leaf(member) : renderElement(member))
  return members.length === 1
    ? html`${rendered}`
    : html`<ol class="entries">${rendered.map((member) => html`<li>${member}</li>`)}</ol>`
}

/** The content of an element as HTML; the parser bounds the depth of the recursion. */
export const renderElement = (node: Element): Html => {
  const href = node.attributes["href"]
  const text = ownText(node)
  const rows = attributesOf(node).map(([key, own]) =>
    html`<dt>${words(key)}</dt><dd>${value(own)}</dd>`
  )
  for (const [name, members] of grouped(node)) {
    rows.push(html`<dt>${words(name)}</dt><dd>${group(members)}</dd>`)
  }
  return html`${href !== undefined && html`<p>${addressLink(href)}</p>`}${
    text !== "" && html`<p>${text}</p>`
  }${
    rows.length > 0 && html`<dl>${rows}</dl>
`
  }`
}
