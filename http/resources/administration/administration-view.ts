/** The document and the page of `/admin`. */
import { emptyState, type Html, html, link, livePart, liveScriptPath, liveState, type PageLink,
  share, sizeText, statusBadge, type StatusBadges } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, listElement } from "../../formats/xml/index.ts"
import { busiestShownMax, openReportsCountedMax } from "../../limits.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { accountQuotaElement, accountUsageTable } from "../limit-usage/index.ts"
import { alertsOf, type OperatorAlert } from "./alerts.ts"
import type { OperationFigures } from "./operation-figures.ts"

const administrationPath = "/admin"

/** The pages for the role admin. */
const links: ReadonlyArray<PageLink> = ([
  ["/accounts", "Accounts"],
  ["/limits", "Limits"],
  ["/settings", "Settings"],
  ["/audit", "Audit log"],
  ["/reports", "Reports"],
  ["/blocks", "Blocks"],
  ["/cluster", "Cluster"],
  ["/cluster/history", "History of this node"]
] as const).map(([href, title]) => ({ rel: "related", href, title }))

/** What this node has refused since its start, by the limit and by the kind of client. */
const refusalsOf = ({ overQuota, rateLimited }: OperationFigures) => [
  ...Object.entries(rateLimited).map(([of, count]) => ({ limit: "rate", of, count })),
  ...Object.entries(overQuota).map(([of, count]) => ({ limit: "quota", of, count }))
]

const alertElement = (
  service: Service,
  { path, scope, severity, text, type }: OperatorAlert
): Element => element("alert", { type, severity, scope, href: absoluteUri(service, path) }, text)

/** Only so many clients of a policy are counted. */
const isBound = (spent: number): boolean => spent >= busiestShownMax

const spentElement = ({ account, address }: OperationFigures["spentLimits"]): Element =>
  element("spent-limits", {
    networks: address,
    accounts: account,
    more: isBound(address) || isBound(account) ? "true" : undefined
  })

const tree = (service: Service, figures: OperationFigures): Element => {
  const { accounts, anonymous, cluster, disk, format, isConnected, node, reports, version } =
    figures
  const { circuitsOpen, deliveriesWaiting, nodes, owned, quarantined, shards, silent } = cluster
  const href = absoluteUri(service, administrationPath)
  const isMore = reports !== undefined && reports >= openReportsCountedMax
  return element(
    "administration",
    { href, node, version, format, connected: isConnected?.toString() },
    ...listElement("alerts", alertsOf(figures).map((one) => alertElement(service, one))),
    element("nodes", { count: nodes, silent, versions: cluster.versions.length }),
    ...listElement("versions", cluster.versions.map((one) => element("version", {}, one))),
    element("shards", { count: shards, owned }),
    element("quarantines", { count: quarantined }),
    element("deliveries", { waiting: deliveriesWaiting, "circuits-open": circuitsOpen }),
    reports === undefined
      ? undefined
      : element("reports", { count: reports, more: isMore ? "true" : undefined }),
    anonymous &&
      element("anonymous-content", {
        "used-bytes": anonymous.bytes,
        "max-bytes": anonymous.bytesMax
      }),
    accounts && accountQuotaElement(service, accounts),
    disk && element("disk", { "free-bytes": disk.freeBytes, "floor-bytes": disk.floorBytes }),
    spentElement(figures.spentLimits),
    element("refusals", {}, ...refusalsOf(figures).map((one) => element("refusal", one)))
  )
}

const severities: StatusBadges<OperatorAlert["severity"]> = {
  critical: ["bad", "✗ critical"],
  warning: ["wait", "! warning"]
}

const scopes: Readonly<Record<OperatorAlert["scope"], string>> = {
  cluster: "in the cluster",
  node: "at this node"
}

const entry = ({ path, scope, severity, text }: OperatorAlert): Html =>
  html`<li><p>${link(path, text)}</p>
<p>${statusBadge(severities, severity)} <span class="quiet">${scopes[scope]}</span></p></li>
`

const alertList = (alerts: ReadonlyArray<OperatorAlert>): Html =>
  html`<h2>What needs attention</h2>
${
    alerts.length === 0
      ? emptyState("Nothing needs attention.")
      : html`<ol class="entries">${alerts.map(entry)}</ol>
`
  }`

/** A figure with the page that has more of it. */
const fact = (path: string, name: string, value: Html | string): Html =>
  html`<dt>${link(path, name)}</dt><dd>${value}</dd>
`

const reportsText = (reports: number | undefined): string =>
  reports === undefined
    ? "not known: the store did not answer"
    : `${reports}${reports >= openReportsCountedMax ? " or more" : ""}`

const anonymousText = (anonymous: OperationFigures["anonymous"]): Html | string =>
  anonymous === undefined
    ? "not read so far"
    : html`${sizeText(anonymous.bytes)} of ${sizeText(anonymous.bytesMax)}, ${
      share("Share of the quota", anonymous.bytes, anonymous.bytesMax)
    }`

/** What all nodes have together. */
const clusterFacts = ({ anonymous, cluster, format, reports }: OperationFigures): Html => {
  const { nodes, owned, shards, silent, versions } = cluster
  return html`<h2>In the cluster</h2>
<dl class="facts">${fact("/cluster", "Nodes", `${nodes}, of which ${nodes - silent} answer`)}${
    fact("/cluster", "Versions", `${versions.join(", ")}; messages of format ${format}`)
  }${fact("/cluster", "Shards with an owner", `${owned} of ${shards}`)}${
    fact("/cluster#quarantines", "Actors in quarantine", String(cluster.quarantined))
  }${
    fact(
      "/cluster",
      "Deliveries",
      `${cluster.deliveriesWaiting} wait, ${cluster.circuitsOpen} circuits are open`
    )
  }${fact("/reports", "Open reports", reportsText(reports))}${
    fact("/content?anonymous=true", "Content without an account", anonymousText(anonymous))
  }</dl>
`
}

/** The accounts that use most of their quota, and where it is changed. */
const accountPart = (service: Service, { accounts }: OperationFigures): Html =>
  accounts === undefined
    ? html`<h2>Content of accounts</h2>
${emptyState("Not known.", "The store did not answer.")}`
    : html`${accountUsageTable(service, accounts)}<p class="quiet">Each account has the same quota,
${sizeText(service.usage.limits.accountBytesMax)}: it is the setting ${
      link("/settings#ACCOUNT_BYTES_MAX", "ACCOUNT_BYTES_MAX")
    }. These are the accounts that have stored most; ${
      link("/accounts", "all accounts")
    } have their own pages, and ${link("/limits", "the limits")} show their requests.</p>
`

const spentText = (spent: number): string => `${spent}${isBound(spent) ? " or more" : ""}`

const diskText = (disk: OperationFigures["disk"]): string =>
  disk === undefined
    ? "not measured at this node"
    : `${sizeText(disk.freeBytes)} free; the floor is ${sizeText(disk.floorBytes)}`

const connectionText = (isConnected: boolean | undefined): string =>
  isConnected === undefined ? "none, as this node is alone" : isConnected ? "there" : "lost"

/** What the node that answers has alone. */
const nodeFacts = (figures: OperationFigures): Html => {
  const { disk, isConnected, node, overQuota, rateLimited, spentLimits, version } = figures
  return html`<h2>At this node</h2>
<dl class="facts">${fact("/cluster/history", "Node", `${node}, version ${version}`)}${
    fact("/cluster/history", "Connection to NATS", connectionText(isConnected))
  }${fact("/settings", "Disk", diskText(disk))}${
    fact(
      "/limits",
      "Whole rate limit spent now",
      `${spentText(spentLimits.address)} networks, ${spentText(spentLimits.account)} accounts`
    )
  }${
    fact(
      "/limits",
      "Refused by rate limits",
      `${rateLimited.address} requests of networks, ${rateLimited.account} of accounts`
    )
  }${
    fact(
      "/limits",
      "Refused by quotas",
      `${overQuota.account} bodies of accounts, ${overQuota.network} of networks, ` +
        `${overQuota.anonymous} of all clients without an account`
    )
  }</dl>
<p class="quiet">Refusals are counted since the start of this node, and each node counts for itself.
The figures of other nodes are up to 3 s old. Suspended registrations are not counted: the mailboxes
show theirs, and failure reports name them.</p>
`
}

/** The operator's page. */
export const administrationView = (service: Service, figures: OperationFigures): ResourceView => ({
  title: "Administration",
  tree: () => tree(service, figures),
  body: () => {
    const parts = html`${alertList(alertsOf(figures))}${clusterFacts(figures)}${
      accountPart(service, figures)
    }${nodeFacts(figures)}`
    return html`${livePart("administration", parts)}${liveState}`
  },
  scripts: [liveScriptPath],
  links
})
