/**
 * The shards as a map: a cell for each, in a frame for its node. The frames are the legend, with
 * the name of each node and the count of its shards. Letters and titles say what colors say.
 */
import { type Html, html, nothing } from "../../formats/html/index.ts"
import { type ClusterStatus, countHandoffs, receiverOf,
  type ShardHolding } from "./cluster-status.ts"

/** The stylesheet has so many colors of nodes: `n0`, `n1`, and so on. */
const colorsCount = 8

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** The letter and the class of a node. The letters of the first 52 nodes differ. */
interface NodeMark {
  readonly letter: string
  readonly color: string
}

const markOf = ({ node }: ShardHolding, position: number): NodeMark =>
  node === undefined
    ? { letter: "?", color: "none" }
    : { letter: letters[position] ?? "+", color: `n${position % colorsCount}` }

/** The mark of a node beside its name. */
const sample = ({ color, letter }: NodeMark, kind = ""): Html =>
  html`<i class="cell ${color}${kind}" aria-hidden="true">${letter}</i>`

/** The mark of a holding, and its name. */
export const holdingName = (holding: ShardHolding, position: number): Html =>
  html`${sample(markOf(holding, position))} ${holding.node ?? "no owner"}`

/** The cell of a shard. `/live.js` moves it from where the cell with this id was before. */
const cell = (status: ClusterStatus, { color, letter }: NodeMark, shard: number): Html => {
  const receiver = receiverOf(status, shard)
  const about = receiver === undefined ? "" : `, in handoff to ${receiver}`
  return html`<i class="cell ${color}${
    receiver !== undefined && " handoff"
  }" id="shard-${shard}" title="Shard ${shard}${about}">${letter}</i>`
}

const frame = (status: ClusterStatus) => (holding: ShardHolding, position: number): Html => {
  const { node, shards } = holding
  if (node === undefined && shards.length === 0) return nothing
  const mark = markOf(holding, position)
  const count = countHandoffs(status, shards)
  return html`<li><p><b>${holdingName(holding, position)}</b> <small>${shards.length} ${
    shards.length === 1 ? "shard" : "shards"
  }${count > 0 && `, ${count} in handoff`}</small></p>
<div class="cells" role="img" aria-label="The shards of ${node ?? "no owner"}">${
    shards.map((shard) => cell(status, mark, shard))
  }</div></li>
`
}

/**
 * The map. It can be read without colors and without a stylesheet; the order of the holdings
 * decides the marks.
 */
export const shardMap = (status: ClusterStatus): Html =>
  html`<ul class="shards" aria-label="Shards by node" data-moving>
${status.holdings.map(frame(status))}</ul>
<p class="quiet">${sample({ letter: "A", color: "n0" })} has an owner, ${
    sample({ letter: "A", color: "n0" }, " handoff")
  } is in handoff to another node, ${sample({ letter: "?", color: "none" })} has no owner.</p>
`
