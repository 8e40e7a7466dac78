/** The inspector: the ids of a kind of actors, and one actor as its node has it. */
import { type Html, html, nothing, type PageLink, timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, listElement,
  optionalElement } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { type Address, type Inspection, type LogItem, shardOf } from "../../../runtime/index.ts"
import { actorPath, actorsPath, clusterPath, quarantinePath } from "./cluster-paths.ts"
import { commitsElement, commitsSection, pastBody, pastElement, pastLinks, type PastMoment,
  type RecordedCommits } from "./recording/index.ts"
import { shownItem, shownJson, withShortLists } from "./shown-fields.ts"

/** An actor with the node that owns it, and the last items of its log. */
export interface InspectedNode {
  readonly address: Address
  /** Undefined while its shard has no owner. */
  readonly node: string | undefined
  readonly inspection: Inspection
  readonly log: ReadonlyArray<LogItem>
  /** What the answering node has recorded of it; undefined where it records nothing. */
  readonly recorded?: RecordedCommits | undefined
  /** The one of the recorded commits whose actor is shown; undefined: as it is now. */
  readonly moment?: PastMoment | undefined
}

const links: ReadonlyArray<PageLink> = [{ rel: "up", href: clusterPath, title: "The cluster" }]

/** Opens an actor by its id: a kind may have more actors than anybody pages through. */
const openForm = (kind: string): Html =>
  html`<form class="find" action="${actorsPath(kind)}" method="get" role="search">
<p><input type="search" name="id" required
aria-label="Id of an actor" placeholder="Id" autocomplete="off" spellcheck="false">
<button type="submit" class="small">Open</button></p></form>
`

/** A page of the actors of a kind that have a record. */
export const actorsView = (
  service: Service,
  kind: string,
  ids: ReadonlyArray<string>,
  next: ReadonlyArray<PageLink>
): ResourceView => ({
  title: `Actors: ${kind}`,
  tree: () =>
    element(
      "actors",
      { kind },
      ...ids.map((id) =>
        element("actor", { id, href: absoluteUri(service, actorPath({ kind, id })) })
      )
    ),
  body: () =>
    html`${openForm(kind)}<ol class="entries">${
      ids.map((id) =>
        html`<li><p><a href="${actorPath({ kind, id })}">${id}</a></p></li>
`
      )
    }</ol>
`,
  links: [...links, ...next]
})

const actorElement = (
  service: Service,
  { address, inspection, log, moment, node, recorded }: InspectedNode
): Element => {
  const { fault, faultAtMs, format, head, isLoaded, oldestMs, quarantine, queued } = inspection
  const { restarts, state, stateChars, timerMs, waiting = [] } = inspection
  return element(
    "actor",
    {
      href: absoluteUri(service, actorPath(address)),
      kind: address.kind,
      id: address.id,
      shard: shardOf(address),
      node,
      loaded: String(isLoaded),
      queued,
      "queued-since": isoTime(oldestMs),
      head,
      format,
      "state-characters": stateChars,
      timer: isoTime(timerMs),
      restarts,
      fault,
      "fault-at": isoTime(faultAtMs),
      "quarantined-since": isoTime(quarantine?.sinceMs),
      "quarantined-until": isoTime(quarantine?.untilMs)
    },
    ...listElement(
      "waiting",
      waiting.map(({ count, message }) => element("message", { name: message, count }))
    ),
    optionalElement("state", state && shownJson(address.kind, state, 0)),
    ...listElement(
      "items",
      log.map((item) => element("item", { n: item.n }, shownItem(address.kind, item)))
    ),
    commitsElement(service, recorded),
    recorded && moment && pastElement(service, recorded, moment)
  )
}

const fact = (name: string, value: Html | string | number | undefined): Html =>
  value === undefined ? nothing : html`<dt>${name}</dt><dd>${value}</dd>
`

/** A link to the shard's cell in the map. */
const shardLink = (address: Address): Html => {
  const shard = shardOf(address)
  return html`<a href="${clusterPath}#shard-${shard}">${shard}</a>`
}

/** How many messages wait, of which kinds, and since when. */
const waitingMessages = ({ oldestMs, queued, waiting = [] }: Inspection): Html =>
  html`${queued}${
    waiting.length === 0
      ? nothing
      : html` (${waiting.map(({ count, message }) => `${count} ${message}`).join(", ")})`
  }${oldestMs === undefined ? nothing : html`, the oldest since ${timeAt(oldestMs)}`}`

/** An older node does not report the time of a fault. */
const lastFault = ({ fault, faultAtMs }: Inspection): Html =>
  html`${fault}${faultAtMs === undefined ? nothing : html`, ${timeAt(faultAtMs)}`}
<br><small>The node forgets it when it restarts.</small>`

const facts = ({ address, inspection, node }: InspectedNode): Html => {
  const { fault, format, head, isLoaded, quarantine, restarts, timerMs } = inspection
  return html`<dl class="facts">${fact("Node", node ?? "none")}${
    fact("Shard", shardLink(address))
  }${fact("In memory", isLoaded ? "yes" : "no")}${
    fact("Messages without a reply", waitingMessages(inspection))
  }${fact("Last log item", head)}${fact("Format of the state", format)}${
    fact("Timer", timerMs === undefined ? "none" : timeAt(timerMs))
  }${fact("Restarts in the last minute", restarts)}${
    fact("Last fault", fault && lastFault(inspection))
  }${fact("In quarantine until", quarantine && timeAt(quarantine.untilMs))}</dl>
`
}

/** The button that ends the quarantine. */
const liftForm = ({ address, inspection }: InspectedNode): Html =>
  inspection.quarantine === undefined
    ? nothing
    : html`<form action="${quarantinePath(address)}" method="post">
<button type="submit">Lift the quarantine</button></form>
`

const stateOf = (
  { address: { kind }, inspection: { isLoaded, state, stateChars } }: InspectedNode
): Html => {
  if (stateChars === undefined) return html`<p>It has no record.</p>`
  if (state === undefined) {
    return html`<p>Its ${stateChars} characters are too many to be shown.</p>`
  }
  const text = shownJson(kind, state, 2)
  if (text === undefined) {
    return html`<p>Its record, of ${stateChars} characters, cannot be read.</p>`
  }
  const about = isLoaded
    ? "In memory; the store may not have all of it yet."
    : "From the store; the actor is not in memory."
  return html`<p class="quiet">${about}</p>
<pre tabindex="0" aria-label="State">${withShortLists(text)}</pre>
`
}

const logOf = ({ address: { kind }, log }: InspectedNode): Html =>
  log.length === 0
    ? html`<p>The log is empty.</p>`
    : html`<ol class="entries">${
      log.map((item) =>
        html`<li><p>Item ${item.n}</p>
<pre>${shownItem(kind, item)}</pre></li>
`
      )
    }</ol>
`

/** One actor as it is now. */
const presentBody = (inspected: InspectedNode): Html =>
  html`${facts(inspected)}${liftForm(inspected)}<h2>State</h2>
${stateOf(inspected)}<h2>Last items of the log</h2>
${logOf(inspected)}${commitsSection(inspected.recorded)}`

/** One actor: its document has how it is now, and how it was after the commit that is asked for. */
export const actorView = (service: Service, inspected: InspectedNode): ResourceView => {
  const { address: { id, kind }, moment, recorded } = inspected
  const isPast = recorded !== undefined && moment !== undefined
  return {
    title: isPast ? `${kind}/${id}, as it was` : `${kind}/${id}`,
    tree: () => actorElement(service, inspected),
    body: () => isPast ? pastBody(recorded, moment) : presentBody(inspected),
    links: [
      ...isPast ? pastLinks(service, recorded, moment) : [],
      { rel: "up", href: actorsPath(kind), title: `Actors: ${kind}` }
    ]
  }
}
