/** What needs the operator's attention, decided by a table from the figures alone. */
import { sizeText } from "../../formats/html/index.ts"
import { busiestShownMax, fullQuotaPercent, lowDiskFloors,
  openReportsCountedMax } from "../../limits.ts"
import type { OperationFigures } from "./operation-figures.ts"

/** Something that needs attention. */
export interface OperatorAlert {
  readonly type: string
  /** `critical`: something does not work, or is about to stop. */
  readonly severity: "critical" | "warning"
  /** Whether it is about all nodes, or about the one that answers. */
  readonly scope: "cluster" | "node"
  /** The page that has more of it. */
  readonly path: string
  readonly text: string
}

/** An alert, and its text where the figures call for it. */
interface AlertRule extends Omit<OperatorAlert, "text"> {
  readonly textOf: (figures: OperationFigures) => string | undefined
}

const counted = (count: number, one: string, more: string): string =>
  `${count} ${count === 1 ? one : more}`

/** The same, of what is counted up to a bound. */
const countedUpTo = (isBound: boolean, count: number, one: string, more: string): string =>
  `${isBound ? "at least " : ""}${counted(count, one, more)}`

const diskText = (
  { disk }: OperationFigures,
  isAlert: (freeBytes: number, floorBytes: number) => boolean
): string | undefined => {
  if (disk === undefined || !isAlert(disk.freeBytes, disk.floorBytes)) return undefined
  return `${sizeText(disk.freeBytes)} of the disk are free; below ${sizeText(disk.floorBytes)} ` +
    "(DISK_FREE_MIN) nothing is stored for clients without an account"
}

const spentText = ({ spentLimits: { account, address } }: OperationFigures): string | undefined => {
  const count = address + account
  if (count === 0) return undefined
  const isBound = address >= busiestShownMax || account >= busiestShownMax
  return `${countedUpTo(isBound, count, "network or account has", "networks and accounts have")} ` +
    "spent the whole rate limit: the next requests are refused"
}

const anonymousText = ({ anonymous }: OperationFigures): string | undefined => {
  if (anonymous === undefined || anonymous.bytes === 0) return undefined
  const percent = Math.floor(100 * anonymous.bytes / anonymous.bytesMax)
  return percent < fullQuotaPercent
    ? undefined
    : `content of clients without an account takes ${percent} % of its quota ` +
      "(ANONYMOUS_BYTES_MAX)"
}

/** In the order in which the page shows them: critical ones first. */
const rules: ReadonlyArray<AlertRule> = [
  {
    type: "silent-nodes",
    severity: "critical",
    scope: "cluster",
    path: "/cluster",
    textOf: ({ cluster: { silent } }) =>
      silent === 0 ? undefined : `${counted(silent, "node does", "nodes do")} not answer`
  },
  {
    type: "shards-without-owner",
    severity: "critical",
    scope: "cluster",
    path: "/cluster",
    textOf: ({ cluster: { owned, shards } }) =>
      owned === shards
        ? undefined
        : `${shards - owned} of ${shards} shards have no owner: their actors do not answer`
  },
  {
    type: "disconnected",
    severity: "critical",
    scope: "node",
    path: "/cluster/history",
    textOf: ({ isConnected }) =>
      isConnected === false ? "this node has lost its connection to NATS" : undefined
  },
  {
    type: "store",
    severity: "critical",
    scope: "node",
    path: "/reports",
    textOf: ({ reports }) =>
      reports === undefined ? "this node could not read the reports in the store" : undefined
  },
  {
    type: "quarantines",
    severity: "critical",
    scope: "cluster",
    path: "/cluster#quarantines",
    textOf: ({ cluster: { quarantined } }) =>
      quarantined === 0
        ? undefined
        : `${counted(quarantined, "actor is", "actors are")} in quarantine`
  },
  {
    type: "disk-full",
    severity: "critical",
    scope: "node",
    path: "/settings",
    textOf: (figures) => diskText(figures, (free, floor) => free < floor)
  },
  {
    type: "disk-low",
    severity: "warning",
    scope: "node",
    path: "/settings",
    textOf: (figures) =>
      diskText(figures, (free, floor) => free >= floor && free < lowDiskFloors * floor)
  },
  {
    type: "rate-limits",
    severity: "warning",
    scope: "node",
    path: "/limits",
    textOf: spentText
  },
  {
    type: "anonymous-quota",
    severity: "warning",
    scope: "cluster",
    path: "/content?anonymous=true",
    textOf: anonymousText
  },
  {
    type: "circuits",
    severity: "warning",
    scope: "cluster",
    path: "/cluster",
    textOf: ({ cluster: { circuitsOpen } }) =>
      circuitsOpen === 0
        ? undefined
        : `${
          counted(circuitsOpen, "circuit to another service is", "circuits to other services are")
        } open`
  },
  {
    type: "reports",
    severity: "warning",
    scope: "cluster",
    path: "/reports",
    textOf: ({ reports }) =>
      reports === undefined || reports === 0
        ? undefined
        : `${
          countedUpTo(reports >= openReportsCountedMax, reports, "report is", "reports are")
        } open`
  },
  {
    type: "versions",
    severity: "warning",
    scope: "cluster",
    path: "/cluster",
    textOf: ({ cluster: { versions }, format }) =>
      versions.length < 2
        ? undefined
        : `the nodes run ${versions.length} versions; what nodes send to each other keeps to ` +
          `format ${format} until all run the newest`
  }
]

/** The types that an alert can have. */
export const alertTypes: ReadonlyArray<string> = rules.map(({ type }) => type)

/** The alerts that these figures call for. */
export const alertsOf = (figures: OperationFigures): ReadonlyArray<OperatorAlert> =>
  rules.flatMap(({ textOf, ...rule }) => {
    const text = textOf(figures)
    return text === undefined ? [] : [{ ...rule, text }]
  })
