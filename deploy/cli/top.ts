/** `restante top`: a live view of a node or a whole cluster. */
import { Console, Effect, Option, Result, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { exitCodes } from "../command-failure.ts"
import { type Cluster, linesOf, lookAt, type NodeLine, noticesOf } from "./service/index.ts"
import { adminFlags, asAdmin, endWithReader, jsonFlag, table } from "./terminal.ts"

const intervalMin = 1

const intervalMax = 3_600

const intervalDefault = 2

const clear = "\x1b[H\x1b[2J"

const alternateOn = "\x1b[?1049h\x1b[?25l"

const alternateOff = "\x1b[?25h\x1b[?1049l"

const spanOf = (seconds: number | undefined): string => {
  if (seconds === undefined) return "-"
  if (seconds < 120) return `${Math.round(seconds)}s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)}min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)}h` : `${Math.round(seconds / 86_400)}d`
}

const number = (value: number | undefined): string =>
  value === undefined ? "-" : value < 10 ? String(Math.round(value * 10) / 10) : value.toFixed(0)

const heading = [
  "NODE",
  "STATE",
  "UP",
  "MEMORY",
  "SHARDS",
  "ACTORS",
  "QUEUED",
  "DECISIONS/S",
  "COMMITS/S",
  "P99 MS",
  "DUE",
  "WAITING",
  "SENDING"
]

const cells = (line: NodeLine): ReadonlyArray<string> => [
  line.name,
  line.state,
  spanOf(line.uptimeSeconds),
  line.memoryBytes === undefined ? "-" : `${(line.memoryBytes / 1e6).toFixed(0)} MB`,
  ...[
    line.shards,
    line.actors,
    line.queued,
    line.decisionsPerSecond,
    line.commitsPerSecond,
    line.commitP99Ms,
    line.timersDue,
    line.deliveriesWaiting,
    line.deliveriesInFlight
  ].map(number)
]

/** The whole picture as text. */
export const screenOf = (
  cluster: Cluster,
  lines: ReadonlyArray<NodeLine>,
  time: string
): string => {
  const { owned, shards } = cluster
  const first = `${time}  ${lines.length} node(s), ${owned} of ${shards} shards served`
  const notices = noticesOf(cluster, lines).map((notice) => `! ${notice}`)
  return [first, "", table([heading, ...lines.map(cells)]), ...notices].join("\n")
}

export const topCommand = Command.make(
  "top",
  {
    ...adminFlags,
    interval: Flag.Int("interval").pipe(
      Flag.withSchema(
        Schema.Int.check(Schema.isBetween({ minimum: intervalMin, maximum: intervalMax }))
      ),
      Flag.withMetavar("seconds"),
      Flag.withDescription("Time between two looks"),
      Flag.withDefault(intervalDefault)
    ),
    count: Flag.Int("count").pipe(
      Flag.withSchema(Schema.Int.check(Schema.isGreaterThan(0))),
      Flag.withMetavar("number"),
      Flag.withDescription("End after so many looks; until Ctrl-C unless given"),
      Flag.optional
    ),
    json: jsonFlag("One JSON object a look, one a line")
  },
  Effect.fnUntraced(function*({ count, interval, json, ...flags }) {
    const remote = yield* asAdmin(flags)
    const looks = Option.getOrElse(count, () => Infinity)
    const isLive = process.stdout.isTTY && !json && looks > 1
    endWithReader()
    let before: Cluster | undefined
    let beforeMs = 0
    const look = Effect.fnUntraced(function*() {
      const nowMs = performance.now()
      const cluster = yield* lookAt(remote)
      const lines = linesOf(cluster, before, (nowMs - beforeMs) / 1_000)
      before = cluster
      beforeMs = nowMs
      const time = new Date().toISOString()
      if (!json) return screenOf(cluster, lines, time)
      const { owned, shards } = cluster
      const notices = noticesOf(cluster, lines)
      return JSON.stringify({ time, shards, owned, nodes: lines, notices })
    })
    const run = Effect.gen(function*() {
      for (let at = 0; at < looks; at++) {
        if (at > 0) yield* Effect.sleep(interval * 1_000)
        const seen = yield* Effect.result(look())
        // A service that goes away for a while is waited for, once it has answered.
        if (Result.isFailure(seen)) {
          const { exitCode, message } = seen.failure
          if (before === undefined || exitCode !== exitCodes.unavailable) return yield* seen.failure
          yield* Console.error(message)
        } else yield* Console.log(isLive ? `${clear}${seen.success}` : seen.success)
      }
    })
    if (!isLive) return yield* run
    yield* Effect.acquireUseRelease(
      Effect.sync(() => void process.stdout.write(alternateOn)),
      () => run,
      () => Effect.sync(() => void process.stdout.write(alternateOff))
    )
  })
).pipe(Command.withDescription("Show the nodes of a running service, again and again"))
