/** The documents of `/cluster`. */
import { liveScriptPath } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, listElement } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { clusterPage } from "./cluster-page.ts"
import { clusterPath, historyPath, messagesPath, quarantinePath } from "./cluster-paths.ts"
import { type ClusterNode, type ClusterStatus, countHandoffs, ranges,
  type ShardHolding } from "./cluster-status.ts"
import { byDocumentName, type NodeFigures, type OriginFigures,
  type QuarantineFigures } from "./node-figures.ts"

const quarantineElement = (service: Service, node: string, one: QuarantineFigures): Element =>
  element("quarantine", {
    href: absoluteUri(service, quarantinePath(one)),
    node,
    kind: one.kind,
    id: one.id,
    since: isoTime(one.sinceMs),
    until: isoTime(one.untilMs),
    reason: one.reason
  })

const originElement = ({ circuitOpen, origin, ...figures }: OriginFigures): Element =>
  element("origin", {
    uri: origin,
    circuit: circuitOpen ? "open" : "closed",
    ...byDocumentName(figures)
  })

const figureElements = (
  service: Service,
  node: string,
  { commits, deliveries, kinds, quarantines, timers }: NodeFigures
): ReadonlyArray<Element> => {
  const { nextMs, ...timerFigures } = timers
  const { origins, ...deliveryFigures } = deliveries
  return [
    element(
      "kinds",
      {},
      ...kinds.map(({ kind, ...counts }) => element("kind", { name: kind, ...counts }))
    ),
    element("timers", {
      ...byDocumentName(timerFigures),
      next: isoTime(nextMs)
    }),
    element("commits", byDocumentName(commits)),
    element(
      "deliveries",
      byDocumentName(deliveryFigures),
      ...listElement("origins", origins.map(originElement))
    ),
    ...listElement("quarantines", quarantines.map((one) => quarantineElement(service, node, one)))
  ]
}

const nodeElement = (service: Service, one: ClusterNode): Element => {
  const { figures, incarnation, isSelf, leaving, node } = one
  return element(
    "node",
    {
      name: node,
      incarnation,
      self: String(isSelf),
      leaving: String(leaving),
      answers: String(figures !== undefined),
      version: figures?.version,
      engine: figures?.engine,
      since: isoTime(figures?.startedMs),
      "uptime-seconds": figures?.uptimeSeconds,
      "memory-bytes": figures?.memoryBytes
    },
    ...figures === undefined ? [] : figureElements(service, node, figures)
  )
}

const ownerElement = ({ node, shards }: ShardHolding): Element =>
  element("owner", { node, count: shards.length }, ...shards.length === 0 ? [] : [ranges(shards)])

const clusterElement = (service: Service, status: ClusterStatus): Element => {
  const { holdings, nodes, owners, self } = status
  return element(
    "cluster",
    {
      node: self,
      shards: owners.length,
      owned: owners.filter((owner) => owner !== undefined).length,
      handoff: countHandoffs(status)
    },
    element("nodes", {}, ...nodes.map((one) => nodeElement(service, one))),
    element("owners", {}, ...holdings.map(ownerElement))
  )
}

/** The cluster as a document and a page. */
export const clusterView = (service: Service, status: ClusterStatus): ResourceView => ({
  title: "Cluster",
  tree: () => clusterElement(service, status),
  body: () => clusterPage(status),
  scripts: [liveScriptPath],
  links: [
    { rel: "related", href: historyPath, title: "History of this node" },
    { rel: "related", href: messagesPath(), title: "Messages of this node" }
  ]
})

/** One quarantined actor. */
export const quarantineView = (
  service: Service,
  node: string,
  one: QuarantineFigures
): ResourceView => ({
  title: "A quarantined actor",
  tree: quarantineElement(service, node, one),
  links: [{ rel: "up", href: clusterPath, title: "The cluster" }]
})
