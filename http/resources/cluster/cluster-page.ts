/** The page of the cluster. It is complete without a script; `/live.js` keeps it current. */
import { badge, type Heading, type Html, html, livePart, liveState, nothing, table, timeAt,
  valueText } from "../../formats/html/index.ts"
import { actorPath, actorsPath, quarantinePath } from "./cluster-paths.ts"
import { type ClusterNode, type ClusterStatus, countHandoffs, countQuarantined, quarantinesOf,
  ranges, type ShardHolding } from "./cluster-status.ts"
import type { KindFigures, NodeFigures, OriginFigures, QuarantineFigures } from "./node-figures.ts"
import { holdingName, shardMap } from "./shard-map.ts"

const plural = (count: number, one: string, more = `${one}s`): string =>
  `${count} ${count === 1 ? one : more}`

const units = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]] as const

/** The two largest units of a duration; no line breaks between a number and its unit. */
const durationText = (seconds: number): string => {
  const parts: Array<string> = []
  let left = Math.max(0, Math.round(seconds))
  for (const [each, unit] of units) {
    const count = Math.floor(left / each)
    left -= count * each
    if (count > 0 || parts.length > 0) parts.push(`${count}\u00a0${unit}`)
  }
  return parts.slice(0, 2).join(" ") || "0\u00a0s"
}

const ms = (value: number | undefined): string | undefined =>
  value === undefined ? undefined : valueText("ms", value)

interface Column<Item> {
  readonly heading: Heading
  readonly cell: (item: Item) => Html
}

/** A column of markup. */
const words = <Item>(heading: string, read: (item: Item) => Html): Column<Item> => ({
  heading,
  cell: (item) => html`<td>${read(item)}</td>`
})

/** A column of numbers, with units or a dash. */
const figure = <Item>(
  heading: string,
  read: (item: Item) => string | number | undefined
): Column<Item> => ({
  heading: { number: heading },
  cell: (item) => {
    const value = read(item) ?? "–"
    const text = typeof value === "number" ? value.toLocaleString("en") : value
    return html`<td class="num">${text}</td>`
  }
})

/** A table with a row for each item; the first column names it. */
const figureTable = <Item>(
  about: string,
  items: ReadonlyArray<Item>,
  [heading, nameOf]: readonly [heading: string, nameOf: (item: Item) => Html | string],
  columns: ReadonlyArray<Column<Item>>
): Html =>
  table(
    about,
    [heading, ...columns.map((column) => column.heading)],
    items.map((item) =>
      html`<tr><th scope="row">${nameOf(item)}</th>${columns.map(({ cell }) => cell(item))}</tr>
`
    ),
    "figures"
  )

const holdingRow = (holding: ShardHolding, position: number): Html =>
  html`<tr><th scope="row">${
    holdingName(holding, position)
  }</th><td class="num">${holding.shards.length}</td><td class="wide"><span class="quiet">${
    holding.shards.length === 0 ? "–" : ranges(holding.shards)
  }</span></td></tr>
`

const sum = (
  nodes: ReadonlyArray<ClusterNode>,
  of: (figures: NodeFigures) => number
): number => nodes.reduce((total, { figures }) => figures ? total + of(figures) : total, 0)

const sumOf = (
  kinds: ReadonlyArray<KindFigures>,
  field: Exclude<keyof KindFigures, "kind">
): number => kinds.reduce((total, kind) => total + kind[field], 0)

const summary = (status: ClusterStatus): Html => {
  const { nodes, owners, self } = status
  const silent = nodes.filter(({ figures }) => figures === undefined).length
  const owned = owners.filter((owner) => owner !== undefined).length
  const waits = sum(nodes, ({ deliveries }) => deliveries.waiting)
  const quarantined = countQuarantined(nodes)
  const handoffs = countHandoffs(status)
  return html`<p><b>${plural(nodes.length, "node")}</b>${
    silent === 0 ? nothing : html`, <b>${silent} not answering</b>`
  } · ${
    owned === owners.length
      ? `all ${owned} shards owned`
      : html`<b>${owned} of ${owners.length} shards owned</b>`
  }${handoffs > 0 && html`, <b>${handoffs} in handoff</b>`} · ${
    plural(waits, "delivery", "deliveries")
  } waiting · ${
    quarantined === 0
      ? "nothing quarantined"
      : html`<a href="#quarantines"><b>${quarantined} quarantined</b></a>`
  }</p>
<p class="quiet">As seen by node ${self}.${
    nodes.length === 1 ? nothing : " The figures of other nodes are up to 3 s old."
  }</p>
`
}

const nameOf = ({ figures, isSelf, leaving, node }: ClusterNode): Html =>
  html`${node}${isSelf ? html` <b>(this node)</b>` : nothing}${
    leaving ? html` <b>leaving</b>` : nothing
  }${figures === undefined ? html` <b>not answering</b>` : nothing}`

const aboutOf = ({ figures, incarnation }: ClusterNode): Html =>
  html`${figures?.version ?? "–"} ${
    figures === undefined ?
      nothing :
      html`<span class="quiet">since ${timeAt(figures.startedMs)}, ${
        durationText(figures.uptimeSeconds)
      }</span> `
  }<span class="quiet">incarnation ${incarnation}</span>`

const nodeTable = (nodes: ReadonlyArray<ClusterNode>): Html =>
  figureTable("Nodes", nodes, ["Node", nameOf], [
    figure("Actors", ({ figures }) => figures && sumOf(figures.kinds, "active")),
    figure("Queue", ({ figures }) => figures && sumOf(figures.kinds, "queued")),
    figure("Memory", ({ figures }) => figures && valueText("bytes", figures.memoryBytes)),
    words("Storage", ({ figures }) => html`${figures?.engine ?? "–"}`),
    words("Version", aboutOf)
  ])

/** A node that answers, with its figures. */
interface AnsweringNode {
  readonly node: string
  readonly figures: NodeFigures
}

const answering = (nodes: ReadonlyArray<ClusterNode>): ReadonlyArray<AnsweringNode> =>
  nodes.flatMap(({ figures, node }) => figures === undefined ? [] : [{ node, figures }])

const nodeColumn = ["Node", ({ node }: AnsweringNode) => node] as const

const commitTable = (nodes: ReadonlyArray<AnsweringNode>): Html =>
  figureTable("Commits", nodes, nodeColumn, [
    figure("Median", ({ figures: { commits } }) => ms(commits.p50Ms)),
    figure("99th percentile", ({ figures: { commits } }) => ms(commits.p99Ms)),
    figure(
      "Group size",
      ({ figures: { commits: { groupSize, groupSizeMax = "–" } } }) =>
        groupSize === undefined ? undefined : `${groupSize}, at most ${groupSizeMax}`
    ),
    figure("Commits", ({ figures: { commits } }) => commits.commits),
    figure("Conflicts", ({ figures: { commits } }) => commits.conflicts),
    figure("Failures", ({ figures: { commits } }) => commits.failures)
  ])

const timerTable = (nodes: ReadonlyArray<AnsweringNode>): Html =>
  figureTable("Timers", nodes, nodeColumn, [
    figure("Due", ({ figures: { timers } }) => timers.due),
    figure("In flight", ({ figures: { timers } }) => timers.underWay),
    figure("In memory", ({ figures: { timers } }) => timers.known),
    words(
      "Next",
      ({ figures: { timers: { nextMs } } }) => nextMs === undefined ? html`–` : timeAt(nextMs)
    )
  ])

/** The age of the oldest of the waiting deliveries. */
const oldestWait = (
  { oldestWaitingMs, waiting }: { readonly waiting: number; readonly oldestWaitingMs: number }
): string | undefined => waiting === 0 ? undefined : durationText(oldestWaitingMs / 1_000)

const deliveryTable = (nodes: ReadonlyArray<AnsweringNode>): Html =>
  figureTable("Deliveries", nodes, nodeColumn, [
    figure("Waiting", ({ figures: { deliveries } }) => deliveries.waiting),
    figure("In flight", ({ figures: { deliveries } }) => deliveries.inFlight),
    figure("Oldest wait", ({ figures: { deliveries } }) => oldestWait(deliveries)),
    figure("Circuits open", ({ figures: { deliveries } }) => deliveries.circuitsOpen)
  ])

const originTable = (
  origins: ReadonlyArray<OriginFigures & { readonly node: string }>
): Html =>
  figureTable("Origins", origins, ["Origin", ({ origin }) => origin], [
    words("Node", ({ node }) => html`${node}`),
    words("Circuit", ({ circuitOpen }) =>
      circuitOpen ? badge("bad", "✗ open") : badge("good", "✓ closed")),
    figure("Waiting", ({ waiting }) =>
      waiting),
    figure("In flight", ({ inFlight }) => inFlight),
    figure("Oldest wait", oldestWait)
  ])

const kindColumns = [
  ["In memory", "active"],
  ["Queue", "queued"],
  ["Decisions", "decisions"],
  ["Refusals", "refusals"],
  ["Restarts", "restarts"],
  ["Quarantined", "quarantined"]
] as const

/** The actors of all nodes that answer, by kind. */
const kindTable = (nodes: ReadonlyArray<AnsweringNode>): Html => {
  const all = nodes.flatMap(({ figures }) => figures.kinds)
  const kinds = [...new Set(all.map(({ kind }) => kind))]
  const columns = kindColumns.map(([heading, field]) =>
    figure(heading, (name: string) => sumOf(all.filter(({ kind }) => kind === name), field))
  )
  const linkOf = (kind: string) => html`<a href="${actorsPath(kind)}">${kind}</a>`
  return figureTable("Actors", kinds, ["Kind", linkOf], columns)
}

/** A quarantined actor, and the form that lifts its quarantine. */
const entry = (one: QuarantineFigures & { readonly node: string }): Html => {
  const { id, kind, node, reason, sinceMs, untilMs } = one
  return html`<li><p><a href="${actorPath({ kind, id })}">${kind}/${id}</a> · ${reason}</p>
<p class="quiet">at node ${node}, since ${timeAt(sinceMs)}, until ${timeAt(untilMs)}</p>
<form action="${
    quarantinePath(one)
  }" method="post"><button type="submit" class="small" id="lift-${kind}-${id}"
aria-label="Lift the quarantine of ${kind}/${id}">Lift</button></form></li>
`
}

const quarantines = (status: ClusterStatus): Html => {
  const listed = quarantinesOf(status)
  const others = countQuarantined(status.nodes) - listed.length
  return html`<h2 id="quarantines">Quarantined actors</h2>
${
    listed.length === 0
      ? html`<p>None.</p>`
      : html`<ol class="entries">${listed.map(entry)}</ol>`
  }${others > 0 ? html`<p>And ${others} more.</p>` : nothing}
`
}

const deliveries = (nodes: ReadonlyArray<AnsweringNode>): Html => {
  const origins = nodes.flatMap(({ figures, node }) =>
    figures.deliveries.origins.map((origin) => ({ ...origin, node }))
  )
  return html`<h2>Deliveries to other services</h2>
${deliveryTable(nodes)}${
    origins.length === 0
      ? html`<p>No origin has waiting deliveries or an open circuit.</p>`
      : html`<p>The origins with an open circuit, and those with the most deliveries:</p>
${originTable(origins)}`
  }`
}

/** The whole page. */
export const clusterPage = (status: ClusterStatus): Html => {
  const { holdings, nodes } = status
  const answers = answering(nodes)
  const shards = table(
    "Shards",
    ["Node", { number: "Count" }, "Which"],
    holdings.map(holdingRow),
    "figures"
  )
  const all = html`${summary(status)}<h2>Shards</h2>
${shardMap(status)}${shards}${quarantines(status)}<h2>Nodes</h2>
${nodeTable(nodes)}<h2>Actors</h2>
${kindTable(answers)}<h2>Commits</h2>
<p class="quiet">Latency and size of the last 512 groups; totals since the start.</p>
${commitTable(answers)}<h2>Timers</h2>
${timerTable(answers)}${deliveries(answers)}`
  return html`${livePart("cluster", all)}${liveState}`
}
