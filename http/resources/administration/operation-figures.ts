/**
 * What the operator's page shows. It is in the memory of the node that answers, or was published by
 * the other nodes, as for `/cluster`. Two things are read from the store: the open reports, by
 * their keys, and the totals of accounts, at most once in `usageShownMs`.
 */
import { Effect } from "effect"
import type { OwnerUse } from "../../../actors/index.ts"
import type { HttpMetrics, Service } from "../../pipeline/index.ts"
import type { DiskFloor, PolicyUse } from "../../rates/index.ts"
import { type ClusterStatus, clusterStatus, countQuarantined } from "../cluster/index.ts"
import { countReports } from "../moderation/index.ts"

/** Figures of all nodes; those of nodes that do not answer are missing. */
interface ClusterFigures {
  readonly nodes: number
  /** Nodes that do not answer. */
  readonly silent: number
  /** The versions of the nodes that answer. */
  readonly versions: ReadonlyArray<string>
  readonly shards: number
  /** Shards that have an owner. */
  readonly owned: number
  readonly quarantined: number
  readonly deliveriesWaiting: number
  /** Of each node: two nodes count a circuit to the same origin twice. */
  readonly circuitsOpen: number
}

export interface OperationFigures {
  /** The node that answers, and its version. */
  readonly node: string
  readonly version: string
  /** The newest format of messages that every node reads. */
  readonly format: number
  readonly cluster: ClusterFigures
  /** Open reports, of which at most `openReportsCountedMax` are counted; undefined: not read. */
  readonly reports: number | undefined
  /** Content of clients without an account, at all nodes; undefined before it was first read. */
  readonly anonymous: { readonly bytes: number; readonly bytesMax: number } | undefined
  /** The accounts that have stored most, at all nodes; undefined: not read. */
  readonly accounts: ReadonlyArray<OwnerUse> | undefined
  /* Of this node. */
  /** Whether it is connected to NATS; undefined where there is none. */
  readonly isConnected: boolean | undefined
  readonly disk: DiskFloor["figures"]
  /**
   * The clients that have spent their whole rate limit now: the next request of each is refused. At
   * most `busiestShownMax` are counted for each policy.
   */
  readonly spentLimits: Readonly<Record<PolicyUse["policy"], number>>
  /** Requests over a rate limit, and bodies over a quota, since its start. */
  readonly rateLimited: HttpMetrics["rateLimited"]
  readonly overQuota: HttpMetrics["overQuota"]
}

const clusterFigures = (status: ClusterStatus): ClusterFigures => {
  const { nodes, owners } = status
  const answering = nodes.flatMap(({ figures }) => figures === undefined ? [] : [figures])
  const deliveries = answering.map((figures) => figures.deliveries)
  return {
    nodes: nodes.length,
    silent: nodes.length - answering.length,
    versions: [...new Set(answering.map(({ version }) => version))].sort(),
    shards: owners.length,
    owned: owners.filter((owner) => owner !== undefined).length,
    quarantined: countQuarantined(nodes),
    deliveriesWaiting: deliveries.reduce((sum, { waiting }) => sum + waiting, 0),
    circuitsOpen: deliveries.reduce((sum, one) => sum + one.circuitsOpen, 0)
  }
}

const spentLimitsOf = (
  uses: ReadonlyArray<PolicyUse>
): OperationFigures["spentLimits"] => {
  const spent = { address: 0, account: 0 }
  for (const { clients, policy, rate } of uses) {
    spent[policy] = clients.filter(({ used }) => used >= rate.quota).length
  }
  return spent
}

const anonymousContent = (
  { anonymousTotal, limits }: Service["usage"]
): OperationFigures["anonymous"] =>
  anonymousTotal === undefined
    ? undefined
    : { bytes: anonymousTotal.bytes, bytesMax: limits.anonymousBytesMax }

/** Collects the figures. It waits for those of other nodes, as `clusterStatus` does. */
export const operationFigures = Effect.fnUntraced(function*(
  service: Service
): Effect.fn.Return<OperationFigures> {
  const { diskFloor, httpMetrics, rateLimiter, settings, system, usage } = service
  const status = yield* clusterStatus(service)
  // The page is needed most while the store fails.
  const reports = yield* Effect.orElseSucceed(countReports(service), () => undefined)
  const accounts = yield* Effect.orElseSucceed(
    usage.recentLargestAccounts(service.nowMs()),
    () => undefined
  )
  return {
    node: status.self,
    version: settings.version,
    format: system.format(),
    cluster: clusterFigures(status),
    reports,
    anonymous: anonymousContent(usage),
    accounts,
    isConnected: system.snapshot().traffic?.isConnected,
    disk: diskFloor?.figures,
    spentLimits: spentLimitsOf(rateLimiter?.busiest() ?? []),
    rateLimited: httpMetrics.rateLimited,
    overQuota: httpMetrics.overQuota
  }
})
