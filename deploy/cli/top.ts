/** `restante top`: a live view of a node or a whole cluster. */
import { Console, Effect, Option, Result } from "effect"
import { Command, Flag } from "effect/cli"
import type { ClusterReport, NodeStatus } from "../../client/index.ts"
import { exitCodes } from "../command-failure.ts"
import { adminFlags, countFlag, jsonFlag } from "./flags.ts"
import { asAdmin, call } from "./service/index.ts"
import { endWithReader, jsonText, plain, plural, table } from "./terminal.ts"

const clear = "\x1b[H\x1b[2J"

const alternateOn = "\x1b[?1049h\x1b[?25l"

const alternateOff = "\x1b[?25h\x1b[?1049l"

const total = (
  { kinds }: NodeStatus,
  count: "active" | "queued" | "decisions" | "quarantined"
): number => kinds.reduce((sum, kind) => sum + kind[count], 0)

/** A counter that decreased belongs to a process that restarted. */
const perSecond = (
  now: number | undefined,
  before: number | undefined,
  seconds: number
): number | undefined =>
  now === undefined || before === undefined || now < before || seconds <= 0
    ? undefined
    : (now - before) / seconds

/** One node in numbers; `before` is its sample some seconds ago, which rates need. */
const lineOf = (node: NodeStatus, before: NodeStatus | undefined, seconds: number) => ({
  name: node.name,
  state: node.state,
  uptimeSeconds: node.uptimeSeconds,
  memoryBytes: node.memoryBytes,
  shards: node.shards,
  actors: total(node, "active"),
  queued: total(node, "queued"),
  quarantined: total(node, "quarantined"),
  decisionsPerSecond: before &&
    perSecond(total(node, "decisions"), total(before, "decisions"), seconds),
  commitsPerSecond: perSecond(node.commits, before?.commits, seconds),
  commitP99Ms: node.commitP99Ms,
  timersDue: node.timersDue ?? 0,
  deliveriesWaiting: node.deliveriesWaiting ?? 0,
  deliveriesInFlight: node.deliveriesInFlight ?? 0,
  circuitsOpen: node.circuitsOpen ?? 0
})

type NodeLine = ReturnType<typeof lineOf>

/** Conditions that need an operator. */
const noticesOf = (
  { owned, shards }: ClusterReport,
  lines: ReadonlyArray<NodeLine>
): ReadonlyArray<string> => [
  ...owned < shards ? [`${shards - owned} of ${shards} shards have no owner`] : [],
  ...lines.flatMap(({ circuitsOpen, name, quarantined, state }) => [
    ...state === "silent" ? [`${name} does not respond to the other nodes`] : [],
    ...quarantined > 0 ? [`${name} has ${quarantined} actors in quarantine: see /cluster`] : [],
    ...circuitsOpen > 0 ? [`${name} has ${circuitsOpen} open circuits: see /cluster`] : []
  ])
]

const durationText = (seconds: number | undefined): string => {
  if (seconds === undefined) return "-"
  if (seconds < 120) return `${Math.round(seconds)}s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)}min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)}h` : `${Math.round(seconds / 86_400)}d`
}

const numberText = (value: number | undefined): string =>
  value === undefined ? "-" : value < 10 ? String(Math.round(value * 10) / 10) : value.toFixed(0)

const columns: ReadonlyArray<readonly [heading: string, cell: (line: NodeLine) => string]> = [
  ["NODE", (line) => line.name],
  ["STATE", (line) => line.state],
  ["UP", (line) => durationText(line.uptimeSeconds)],
  [
    "MEMORY",
    ({ memoryBytes: bytes }) => bytes === undefined ? "-" : `${numberText(bytes / 1e6)} MB`
  ],
  ["SHARDS", (line) => numberText(line.shards)],
  ["ACTORS", (line) => numberText(line.actors)],
  ["QUEUED", (line) => numberText(line.queued)],
  ["DECISIONS/S", (line) => numberText(line.decisionsPerSecond)],
  ["COMMITS/S", (line) => numberText(line.commitsPerSecond)],
  ["P99 MS", (line) => numberText(line.commitP99Ms)],
  ["DUE", (line) => numberText(line.timersDue)],
  ["WAITING", (line) => numberText(line.deliveriesWaiting)],
  ["SENDING", (line) => numberText(line.deliveriesInFlight)]
]

const screenOf = (
  cluster: ClusterReport,
  lines: ReadonlyArray<NodeLine>,
  time: string
): string => {
  const { owned, shards } = cluster
  const summary = `${time}  ${plural(lines.length, "node")}, ${owned} of ${shards} shards owned`
  const headings = columns.map(([heading]) => heading)
  const rows = lines.map((line) => columns.map(([, cell]) => cell(line)))
  const notices = noticesOf(cluster, lines).map((notice) => plain(`! ${notice}`))
  return [summary, "", table([headings, ...rows]), ...notices].join("\n")
}

export const topCommand = Command.make(
  "top",
  {
    ...adminFlags,
    interval: countFlag("interval", "seconds", 3_600, "Time between two samples").pipe(
      Flag.withDefault(2)
    ),
    count: countFlag(
      "count",
      "number",
      Number.MAX_SAFE_INTEGER,
      "Number of samples; until Ctrl-C by default"
    ).pipe(Flag.optional),
    json: jsonFlag("One JSON object for each sample, one a line")
  },
  Effect.fnUntraced(function*({ count, interval, json, ...flags }) {
    const service = yield* asAdmin(flags)
    const samples = Option.getOrElse(count, () => Infinity)
    const isLive = process.stdout.isTTY && !json && samples > 1
    endWithReader()
    let before: ClusterReport | undefined
    let beforeMs = 0
    const sample = Effect.fnUntraced(function*() {
      const nowMs = performance.now()
      const cluster = yield* call(service, (client) => client.cluster())
      const seconds = (nowMs - beforeMs) / 1_000
      const earlier = new Map(before?.nodes.map((node) => [node.name, node]))
      const lines = cluster.nodes.map((node) => lineOf(node, earlier.get(node.name), seconds))
      before = cluster
      beforeMs = nowMs
      const time = new Date().toISOString()
      if (!json) return screenOf(cluster, lines, time)
      const { owned, shards } = cluster
      const notices = noticesOf(cluster, lines)
      return jsonText({ time, shards, owned, nodes: lines, notices })
    })
    const run = Effect.gen(function*() {
      for (let at = 0; at < samples; at++) {
        if (at > 0) yield* Effect.sleep(interval * 1_000)
        const result = yield* Effect.result(sample())
        // After a first response, the command waits for a service that is away.
        if (Result.isFailure(result)) {
          const { exitCode, message } = result.failure
          if (before === undefined || exitCode !== exitCodes.unavailable) {
            return yield* result.failure
          }
          yield* Console.error(plain(message))
        } else yield* Console.log(isLive ? `${clear}${result.success}` : result.success)
      }
    })
    if (!isLive) return yield* run
    yield* Effect.acquireUseRelease(
      Effect.sync(() => void process.stdout.write(alternateOn)),
      () => run,
      () => Effect.sync(() => void process.stdout.write(alternateOff))
    )
  })
).pipe(Command.withDescription("Show the nodes of a running service, repeatedly"))
