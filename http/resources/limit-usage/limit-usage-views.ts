/** The document and the page of `/limits`. */
import type { OwnerUse } from "../../../actors/index.ts"
import { emptyState, type Html, html, link, share, sizeText,
  table } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import type { PolicyUse } from "../../rates/index.ts"

const limitsPath = "/limits"

/** Who uses most of what. */
interface LimitUsage {
  /** The node that has counted the requests. */
  readonly node: string
  readonly rates: ReadonlyArray<PolicyUse>
  readonly nowMs: number
  readonly networks: ReadonlyArray<OwnerUse>
  readonly accounts: ReadonlyArray<OwnerUse>
}

const msPerSecond = 1000

/** The day of UTC that the bytes of networks are counted for. */
const dayOf = (nowMs: number): string => new Date(nowMs).toISOString().slice(0, 10)

const accountContent = (account: string): string => `/content?owner=${account}`

/** A container of elements; none if it is empty. */
const listOf = (name: string, children: ReadonlyArray<Element>): Element | undefined =>
  children.length === 0 ? undefined : element(name, {}, ...children)

const rateElement = ({ clients, policy, rate }: PolicyUse): Element => {
  const attributes = { policy, requests: rate.quota, "window-seconds": rate.windowMs / msPerSecond }
  const elements = clients.map(({ key, used }) =>
    element("client", policy === "account" ? { account: key, used } : { network: key, used })
  )
  return element("rate", attributes, listOf("clients", elements))
}

const quotaElements = (
  service: Service,
  { accounts, networks, nowMs }: LimitUsage
): ReadonlyArray<Element> => {
  const { networkBytesMax } = service.usage.limits
  const ofNetworks = networks.map(({ bytes, name }) =>
    element("client", { network: name, "used-bytes": bytes })
  )
  return [
    element(
      "quota",
      { name: "network", "max-bytes": networkBytesMax, day: dayOf(nowMs) },
      listOf("clients", ofNetworks)
    ),
    accountQuotaElement(service, accounts)
  ]
}

/** The quota of accounts, with those that use most of it. */
export const accountQuotaElement = (
  service: Service,
  accounts: ReadonlyArray<OwnerUse>
): Element => {
  const clients = accounts.map(({ bytes, name }) => {
    const href = absoluteUri(service, accountContent(name))
    return element("client", { account: name, "used-bytes": bytes, href })
  })
  const { accountBytesMax } = service.usage.limits
  return element(
    "quota",
    { name: "account", "max-bytes": accountBytesMax },
    listOf("clients", clients)
  )
}

interface Row {
  readonly name: string
  /** Where the content of the client is listed. */
  readonly path?: string
  readonly used: number
  readonly max: number
}

/** A number of requests, or of bytes, for people. */
type AmountText = (amount: number) => string

const usageRow = ({ max, name, path, used }: Row, textOf: AmountText): Html =>
  html`<tr><th scope="row">${path === undefined ? name : link(path, name)}</th><td class="num">${
    textOf(used)
  }</td><td class="num">${textOf(max)}</td>
<td class="num">${share(`Share of ${name}`, used, max)}</td></tr>
`

const usageTable = (
  title: string,
  client: string,
  textOf: AmountText,
  rows: ReadonlyArray<Row>
): Html =>
  html`<h2>${title}</h2>
${
    rows.length === 0
      ? emptyState("There is nothing here.", "Nobody uses any of it now.")
      : table(
        title,
        [client, { number: "Used" }, { number: "Of" }, { number: "Share" }],
        rows.map((row) => usageRow(row, textOf))
      )
  }`

/** The accounts that have stored most, with their quota. */
export const accountUsageTable = (
  { usage }: Pick<Service, "usage">,
  accounts: ReadonlyArray<OwnerUse>
): Html =>
  usageTable(
    "Content of accounts",
    "Account",
    sizeText,
    accounts.map(({ bytes, name }) => ({
      name,
      path: accountContent(name),
      used: bytes,
      max: usage.limits.accountBytesMax
    }))
  )

const page = (service: Service, usage: LimitUsage): Html => {
  const { networkBytesMax } = service.usage.limits
  const networks = usage.networks.map(({ bytes, name }) => ({
    name,
    used: bytes,
    max: networkBytesMax
  }))
  return html`<p class="quiet">Requests are those that the node ${usage.node} has counted.</p>
${
    usage.rates.map(({ clients, policy, rate: { quota, windowMs } }) =>
      usageTable(
        `Requests of ${policy === "account" ? "accounts" : "networks"} in ${
          windowMs / msPerSecond
        } s`,
        policy === "account" ? "Account" : "Network",
        String,
        clients.map(({ key, used }) => ({ name: key, used, max: quota }))
      )
    )
  }${usageTable("Content that networks published today", "Network", sizeText, networks)}${
    accountUsageTable(service, usage.accounts)
  }`
}

/** The busiest clients. */
export const limitsView = (service: Service, usage: LimitUsage): ResourceView => ({
  title: "Limits",
  tree: element(
    "limit-usage",
    { href: absoluteUri(service, limitsPath), node: usage.node },
    listOf("rates", usage.rates.map(rateElement)),
    listOf("quotas", quotaElements(service, usage))
  ),
  body: () => page(service, usage),
  links: [
    { rel: "related", href: "/blocks", title: "Blocks of depositors" },
    { rel: "related", href: "/cluster", title: "The cluster" }
  ]
})
