/** The inspector: the ids of a kind of actors, and one actor as its node has it. */
import { type Html, html, nothing, type PageLink, timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, listElement, optionalElement,
  printable } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { inspectedItemCharsMax } from "../../limits.ts"
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

/**
 * Fields with secrets, encrypted or hashed, which nobody needs to find a fault; and `answer`, which
 * the resource of a registration shows to those who may see what a receiver has answered.
 */
const secretField = /hash$|secret|password|challenge$|fingerprint|^sealed$|^tried$|^answer$/i

/**
 * A state without its secrets, with as many spaces of indentation; undefined for a record that is
 * no JSON, since nobody knows what is secret in it.
 */
const withoutSecretFields = (text: string, indentation: number): string | undefined => {
  try {
    const state: unknown = JSON.parse(
      text,
      (name, value) => secretField.test(name) && value !== null ? "not shown" : value
    )
    return printable(JSON.stringify(state, null, indentation))
  } catch {
    return undefined
  }
}

/** The encrypted password of a stored notification (`actors/sealed-fragment.ts`). */
const sealedLine = /^~[0-9a-z]+ [^\n]*\n/m

/** The start of an item as documents show it; an item in JSON as a state. */
const itemText = ({ value }: LogItem): string => {
  const text = withoutSecretFields(value, 0) ?? value.replace(sealedLine, "~ not shown\n")
  return printable(
    text.length > inspectedItemCharsMax ? `${text.slice(0, inspectedItemCharsMax)}…` : text
  )
}

const actorElement = (
  service: Service,
  { address, inspection, log, node }: InspectedNode
): Element => {
  const { fault, format, head, isLoaded, quarantine, queued, restarts, stateChars } = inspection
  const { state, timerMs } = inspection
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
      "state-characters": stateChars,
      timer: isoTime(timerMs),
      restarts,
      fault,
      "quarantined-since": isoTime(quarantine?.sinceMs),
      "quarantined-until": isoTime(quarantine?.untilMs)
    },
    optionalElement("state", state === undefined ? undefined : withoutSecretFields(state, 0)),
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
    fact("Restarts in the last minute", restarts)
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

const stateOf = ({ inspection: { isLoaded, state, stateChars } }: InspectedNode): Html => {
  if (stateChars === undefined) return html`<p>It has no record.</p>`
  if (state === undefined) {
    return html`<p>Its ${stateChars} characters are too many to be shown.</p>`
  }
  const text = withoutSecretFields(state, 2)
  if (text === undefined) {
    return html`<p>Its record, of ${stateChars} characters, cannot be read.</p>`
  }
  const about = isLoaded
    ? "In memory; the store may not have all of it yet."
    : "From the store; the actor is not in memory."
  return html`<p class="quiet">${about}</p>
<pre tabindex="0" aria-label="State">${text}</pre>
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
${stateOf(inspected)}<h2>Last items of the log</h2>
${logOf(log)}`,
    links: [{ rel: "up", href: actorsPath(kind), title: `Actors: ${kind}` }]
  }
}
