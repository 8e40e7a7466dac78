/**
 * Deposits and listings, compared with an earlier build of the service. It measures only where
 * `BENCH_EARLIER` names the folder of such a build, since the project holds none.
 */
import { type Bench, type Line, median, type Row } from "../line.ts"
import { openMailbox, openMailboxes } from "../mailboxes.ts"
import type { Running } from "../process.ts"
import { round, type Target } from "../rounds.ts"
import { fill, notifications } from "./listing.ts"

const mailboxes = 100
const depositors = 128
const readers = 64
const warmUpSeconds = 5

/** One start may be 7 % faster than the next, by what the compiler makes of the first requests. */
const starts = 4

/** Of each start. Many short rounds: the machine's other users come and go within seconds. */
const rounds = 10
const roundSeconds = 1

/** Processor time at most, of the earlier build's. */
const ratioMax = 1.05

/** The folder of the earlier build; undefined: there is none to compare with. */
export const earlierBuild = (): string | undefined => process.env["BENCH_EARLIER"]

interface Build {
  readonly node: Running
  /** Path of the read mailbox with its shared secret. */
  readonly shared: string
}

const open = async (bench: Bench, name: string, build?: string): Promise<Build> => {
  const node = await bench.serve(bench.folder(name), build === undefined ? {} : { build })
  await openMailboxes(node, mailboxes)
  const shared = await openMailbox(node, "read")
  await fill(node)
  return { node, shared }
}

/** Processor time of one request to this build and to the earlier one in the same round, in µs. */
type Pair = readonly [now: number, earlier: number]

/** Loads both builds in turns, each round beside its counterpart. */
const compared = async (
  [now, earlier]: readonly [Build, Build],
  connections: number,
  target: (build: Build, turn: number) => Target
): Promise<ReadonlyArray<Pair>> => {
  const measure = async (build: Build, turn: number): Promise<number> => {
    const seconds = turn === 0 ? warmUpSeconds : roundSeconds
    const load = { ...target(build, turn), connections, seconds }
    return (await round(build.node, load)).cpuUs
  }
  const pairs: Array<Pair> = []
  for (let turn = 0; turn <= rounds; turn++) {
    const before = await measure(earlier, turn)
    const after = await measure(now, turn)
    if (turn > 0) pairs.push([after, before])
  }
  return pairs
}

/** The row of all pairs. */
const rowOf = (what: string, pairs: ReadonlyArray<Pair>): Row => {
  const ratios = pairs.map(([now, earlier]) => now / earlier).toSorted((a, b) => a - b)
  const quartiles = [ratios[pairs.length / 4] ?? 0, ratios[3 * pairs.length / 4] ?? 0]
  const [now, earlier] = [median(pairs.map(([us]) => us)), median(pairs.map(([, us]) => us))]
  const ratio = median(ratios)
  return {
    what: `processor time of ${what}, of an earlier build's`,
    measured: `${ratio.toFixed(2)} x (${now.toFixed(1)} µs and ${earlier.toFixed(1)} µs; half ` +
      `of the rounds from ${quartiles.map((one) => one.toFixed(2)).join(" to ")})`,
    target: `≤ ${ratioMax} x`,
    met: ratio <= ratioMax
  }
}

export const earlier: Line = {
  name: "earlier",
  run: async (bench) => {
    const folder = earlierBuild()
    if (folder === undefined) throw new Error("set BENCH_EARLIER to the folder of a build")
    const [deposits, again, made]: [Array<Pair>, Array<Pair>, Array<Pair>] = [[], [], []]
    for (let start = 0; start < starts; start++) {
      const builds = [
        await open(bench, `now-${start}`),
        await open(bench, `earlier-${start}`, folder)
      ] as const
      deposits.push(
        ...await compared(builds, depositors, (_, turn) => ({
          script: "deposit",
          args: [`start${start}turn${turn}`, "/mailboxes/m", String(mailboxes)]
        }))
      )
      again.push(
        ...await compared(builds, readers, ({ shared }) => ({ script: "get", args: [shared] }))
      )
      made.push(
        ...await compared(builds, readers, (build) => ({
          script: "get",
          args: [build.shared, "?limit=", String(notifications), "1000"]
        }))
      )
      await Promise.all(builds.map(({ node }) => node.stop()))
    }
    const listing = `a listing of ${notifications}`
    return [
      rowOf("a durable deposit", deposits),
      rowOf(listing, again),
      rowOf(`${listing} that is made from the log`, made)
    ]
  }
}
