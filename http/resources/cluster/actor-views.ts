/** The inspector: the ids of a kind of actors, and one actor as its node has it. */
import { type Html, html, nothing, type PageLink, timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, listElement, printable } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { inspectedItemCharsMax, inspectedStateCharsMax } from "../../limits.ts"
import { type Address, type Inspection, type LogItem, shardOf } from "../../../runtime/index.ts"
import { actorPath, actorsPath, clusterPath, quarantinePath } from "./cluster-paths.ts"

/** An actor with the node that owns it, and the last items of its log. */
export interface InspectedNode {
  readonly address: Address
  /** Undefined while its shard has no owner. */
  readonly node: string | undefined
  readonly inspection: Inspection
  readonly log: ReadonlyArray<LogItem>
}

const links: ReadonlyArray<PageLink> = [{ rel: "up", href: clusterPath, title: "The cluster" }]

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
    html`<ol class="entries">${
      ids.map((id) =>
        html`<li><p><a href="${actorPath({ kind, id })}">${id}</a></p></li>
`
      )
    }</ol>
`,
  links: [...links, ...next]
})

/** A text as documents show it: what XML can hold, up to a bound. */
const shown = (text: string, charsMax: number): string =>
  printable(text.length > charsMax ? `${text.slice(0, charsMax)}…` : text)

/** Fields of states with secrets, encrypted or hashed: nobody needs them to find a fault. */
const secretField = /hash$|secret|password|challenge$/i

/** A state without its secrets, with as many spaces of indentation; other text as it is. */
const withoutSecretFields = (text: string, indentation: number): string => {
  try {
    const state: unknown = JSON.parse(
      text,
      (name, value) => secretField.test(name) && value !== null ? "not shown" : value
    )
    return JSON.stringify(state, null, indentation)
  } catch {
    return text
  }
}

const itemText = ({ value }: LogItem): string => shown(value, inspectedItemCharsMax)

const actorElement = (
  service: Service,
  { address, inspection, log, node }: InspectedNode
): Element => {
  const { fault, format, head, isLoaded, quarantine, queued, restarts, state, timerMs } = inspection
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
      head,
      format,
      timer: isoTime(timerMs),
      restarts,
      fault,
      "quarantined-since": isoTime(quarantine?.sinceMs),
      "quarantined-until": isoTime(quarantine?.untilMs)
    },
    ...state === undefined
      ? []
      : [element("state", {}, shown(withoutSecretFields(state, 0), inspectedStateCharsMax))],
    ...listElement("items", log.map((item) => element("item", { n: item.n }, itemText(item))))
  )
}

const fact = (name: string, value: Html | string | number | undefined): Html =>
  value === undefined ? nothing : html`<dt>${name}</dt><dd>${value}</dd>
`

const facts = ({ address, inspection, node }: InspectedNode): Html => {
  const { fault, format, head, isLoaded, quarantine, queued, restarts, timerMs } = inspection
  return html`<dl class="facts">${fact("Node", node ?? "none")}${fact("Shard", shardOf(address))}${
    fact("In memory", isLoaded ? "yes" : "no")
  }${fact("Messages without a reply", queued)}${fact("Last log item", head)}${
    fact("Format of the state", format)
  }${fact("Timer", timerMs === undefined ? "none" : timeAt(timerMs))}${
    fact("Restarts of late", restarts)
  }${fact("Last fault", fault)}${
    fact("In quarantine until", quarantine && timeAt(quarantine.untilMs))
  }</dl>
`
}

/** The button that ends the quarantine. */
const liftForm = ({ address, inspection }: InspectedNode): Html =>
  inspection.quarantine === undefined
    ? nothing
    : html`<form action="${quarantinePath(address)}" method="post">
<button type="submit">Lift the quarantine</button></form>
`

const stateOf = ({ inspection: { isLoaded, state } }: InspectedNode): Html => {
  if (state === undefined) return html`<p>It has no record.</p>`
  const about = isLoaded
    ? "In memory; the store may not have all of it yet."
    : "From the store; the actor is not in memory."
  return html`<p class="quiet">${about}</p>
<pre tabindex="0" aria-label="State">${
    shown(withoutSecretFields(state, 2), inspectedStateCharsMax)
  }</pre>
`
}

const logOf = (log: ReadonlyArray<LogItem>): Html =>
  log.length === 0
    ? html`<p>The log is empty.</p>`
    : html`<ol class="entries">${
      log.map((item) =>
        html`<li><p>Item ${item.n}</p>
<pre>${itemText(item)}</pre></li>
`
      )
    }</ol>
`

/** One actor. */
export const actorView = (service: Service, inspected: InspectedNode): ResourceView => {
  const { address: { id, kind }, log } = inspected
  return {
    title: `${kind}/${id}`,
    tree: () => actorElement(service, inspected),
    body: () =>
      html`${facts(inspected)}${liftForm(inspected)}<h2>State</h2>
${stateOf(inspected)}<h2>End of the log</h2>
${logOf(log)}`,
    links: [{ rel: "up", href: actorsPath(kind), title: `Actors: ${kind}` }]
  }
}
