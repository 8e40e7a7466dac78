/**
 * The shards over the nodes as a picture: a cell for each shard, coloured by its node and marked
 * with the node's letter, so that it can be read without colours. It needs neither a script nor a
 * stylesheet; the table beside it says the same in words.
 */
import { type Html, html, nothing } from "../html/template.ts"
import type { ClusterStatus, ShardHolding } from "./standing.ts"

/**
 * White letters stand out from each (WCAG 1.4.3), and each from light and dark paper (1.4.11).
 */
const colours = [
  "#0072b2",
  "#c2410c",
  "#00795a",
  "#8e5bb5",
  "#8a6d00",
  "#c0397f",
  "#4d7c0f",
  "#0e7490"
]
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** How a node is shown: no two of the first 52 have the same letter. */
export interface NodeMark {
  readonly letter: string
  readonly colour: string
}

export const markOf = (place: number): NodeMark => ({
  letter: letters[place] ?? "+",
  colour: colours[place % colours.length] ?? "#0072b2"
})

const columns = 16
const cell = 20
const gap = 2
/** Room for the number of the first shard of each row. */
const margin = 32

const xOf = (shard: number): number => margin + shard % columns * cell
const yOf = (shard: number): number => Math.floor(shard / columns) * cell

const square = (shard: number): string =>
  `M${xOf(shard)} ${yOf(shard)}h${cell - gap}v${cell - gap}h-${cell - gap}z`

/** The same letter in the middle of each cell. */
const cellText = (letter: string, shards: ReadonlyArray<number>): Html => {
  const middle = (cell - gap) / 2
  const xs = shards.map((shard) => xOf(shard) + middle).join(" ")
  const ys = shards.map((shard) => yOf(shard) + middle + 4).join(" ")
  return html`<text x="${xs}" y="${ys}">${letter.repeat(shards.length)}</text>`
}

const cells = (mark: NodeMark, shards: ReadonlyArray<number>): Html =>
  html`<g fill="${mark.colour}"><path d="${shards.map(square).join("")}"/><g fill="#fff">${
    cellText(mark.letter, shards)
  }</g></g>
`

/** What nobody holds: an empty frame. */
const frames = (shards: ReadonlyArray<number>): Html =>
  html`<g fill="none" stroke="currentColor" stroke-dasharray="2 2"><path d="${
    shards.map(square).join("")
  }"/></g>
`

const rowNumbers = (count: number): ReadonlyArray<Html> =>
  Array.from(
    { length: Math.ceil(count / columns) },
    (_, row) => html`<text x="${margin - 6}" y="${row * cell + 13}">${row * columns}</text>`
  )

/** A swatch with a node's letter, for beside its name. */
export const swatch = ({ colour, letter }: NodeMark): Html =>
  html`<svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
<path fill="${colour}" d="M0 0h18v18H0z"/>
<text x="9" y="13" fill="#fff" font-family="system-ui,sans-serif" font-size="11"
text-anchor="middle">${letter}</text></svg>`

const area = ({ node, shards }: ShardHolding, place: number): Html => {
  if (shards.length === 0) return nothing
  return node === undefined ? frames(shards) : cells(markOf(place), shards)
}

/** The picture; marks go by the order of the holdings. */
export const picture = ({ holdings, owners }: ClusterStatus): Html => {
  const counts = holdings.map(({ node, shards }) => `${node ?? "nobody"} ${shards.length}`)
  const height = Math.ceil(owners.length / columns) * cell
  const box = `0 0 ${margin + columns * cell} ${height}`
  return html`<svg role="img" aria-labelledby="shards-title shards-about" width="100%"
height="${height}" viewBox="${box}" preserveAspectRatio="xMinYMin meet"
font-family="system-ui,sans-serif" font-size="11" text-anchor="middle">
<title id="shards-title">Shards by node</title>
<desc id="shards-about">${counts.join(", ")}. The table that follows says which.</desc>
<g fill="currentColor" opacity="0.75" font-size="10" text-anchor="end">${
    rowNumbers(owners.length)
  }</g>
${holdings.map(area)}</svg>
`
}
