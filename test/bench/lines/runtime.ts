/** The runtime alone, for developers of actors: compared with Effect Cluster and Restate. */
import { atLeast, atMost, type Bench, type Line, median, type Row, thousands,
  withoutTarget } from "../line.ts"
import { runScript } from "../process.ts"
import { restateVersion, startRestate } from "../restate.ts"
import type { Asked } from "../runtime/counters.ts"
import type { Opened, Population } from "../runtime/population.ts"

const rounds = 3
const seconds = 4
const inFlight = 128
const effectClusterLeast = 50
const restateLeast = 10
/** The most that a lone ask took before this line existed. */
const loneAskCpuUsMost = 1_100
const actors = 1_000_000
const idleActorBytesMost = 250

interface Round extends Asked {
  /** Processor time of everything that answers, for each ask, µs. */
  readonly cpuUs: number
}

/** Asks counters of a kind for some seconds; `cpuMs`: of other processes that answer. */
const round = async (
  kind: string,
  asksInFlight: number,
  where = "",
  cpuMs?: () => number
): Promise<Round> => {
  const before = cpuMs?.() ?? 0
  const args = [kind, String(asksInFlight), String(seconds), where]
  // The script prints this.
  const asked = JSON.parse(await runScript("runtime/asks.js", args)) as Asked
  const ms = cpuMs === undefined ? asked.cpuMs : cpuMs() - before
  return { ...asked, cpuUs: ms * 1_000 / asked.asks }
}

const rateOf = ({ asks, seconds }: Asked): number => asks / seconds

interface Compared {
  readonly own: ReadonlyArray<Round>
  readonly peer: ReadonlyArray<Round>
}

const inTurns = async (
  own: (turn: number) => Promise<Round>,
  peer: () => Promise<Round>
): Promise<Compared> => {
  const compared = { own: new Array<Round>(), peer: new Array<Round>() }
  for (let turn = 0; turn < rounds; turn++) {
    compared.own.push(await own(turn))
    compared.peer.push(await peer())
  }
  return compared
}

const figures = (name: string, some: ReadonlyArray<Round>): string =>
  `${name} ${thousands(median(some.map(rateOf)))}/s, ${
    median(some.map(({ cpuUs }) => cpuUs)).toFixed(0)
  } µs`

const ratioRow = (what: string, peerName: string, { own, peer }: Compared, least: number): Row =>
  atLeast(
    what,
    median(own.map((one, at) => rateOf(one) / rateOf(peer[at] ?? one))),
    least,
    `${figures("own", own)}; ${figures(peerName, peer)} of processor time for each ask`
  )

const inFlights: ReadonlyArray<readonly [number, string]> = [
  [1, "one ask at a time"],
  [inFlight, `${inFlight} asks in flight`]
]

const againstEffectCluster = async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const [many, text] of inFlights) {
    const compared = await inTurns(
      () => round("memory", many),
      () => round("effect-cluster", many)
    )
    const what = `100 counters in memory, ${text}, compared with Effect Cluster persisted in memory`
    rows.push(ratioRow(what, "Effect Cluster", compared, effectClusterLeast))
  }
  return rows
}

const againstRestate = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const restate = await startRestate(bench.folder("restate"))
  const rows: Array<Row> = []
  for (const [many, text] of inFlights) {
    const compared = await inTurns(
      (turn) => round("embedded", many, bench.folder(`counters-${many}-${turn}`)),
      () => round("restate", many, restate.origin, restate.cpuMs)
    )
    const what = `100 counters with fsync, ${text}, compared with Restate ${restateVersion} by HTTP`
    rows.push(ratioRow(what, "Restate", compared, restateLeast))
    if (many > 1) continue
    const cpuUs = median(compared.own.map((one) => one.cpuUs))
    const lone = "processor time of a lone durable ask"
    rows.push(atMost(lone, cpuUs, loneAskCpuUsMost, "µs", "not above what it was"))
  }
  await restate.stop()
  return rows
}

/** Runs `runtime/population.ts`; `Result`: what the mode prints. */
const populated = async <Result>(...args: ReadonlyArray<string>): Promise<Result> => {
  const text = await runScript("runtime/population.js", args, process.execPath, ["--expose-gc"])
  return JSON.parse(text) as Result
}

const population = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const count = String(actors)
  const folder = bench.folder("idle-actors")
  const inMemory = await populated<Population>("memory", count)
  bench.say("in memory")
  const onDisk = await populated<Population>("embedded", count, folder)
  const opened = await populated<Opened>("open", folder)
  bench.say("on disk")
  const timers = bench.folder("timers")
  await populated<null>("timers", count, timers)
  const withTimers = await populated<Opened>("open", timers)
  const million = thousands(actors)
  const residentOf = ({ residentBytes }: Population) => `${residentBytes.toFixed(0)} B resident`
  const openedText = ({ residentMb, seconds, timers: inHeap }: Opened) =>
    `${seconds.toFixed(2)} s, ${residentMb.toFixed(0)} MB resident, ${inHeap} timers in memory`
  return [
    withoutTarget(
      `${million} idle counters in memory, their states included`,
      `${inMemory.heapBytes.toFixed(0)} B of heap for each, ${residentOf(inMemory)}`
    ),
    atMost(
      `${million} idle counters on disk: memory for each that the node knows`,
      onDisk.heapBytes,
      idleActorBytesMost,
      "B of heap",
      residentOf(onDisk)
    ),
    withoutTarget(`the same folder: from the start to the first reply`, openedText(opened)),
    withoutTarget(
      `${million} reminders, due in a year: from the start to the first reply`,
      openedText(withTimers)
    )
  ]
}

export const runtimeAlone: Line = {
  name: "runtime",
  run: async (bench) => {
    return [
      ...await againstEffectCluster(),
      ...await againstRestate(bench),
      ...await population(bench)
    ]
  }
}
