/** What jobs must hold on a cluster with faults. */
import { Schema } from "@restante/runtime"
import { noServices, request, type SimulateOptions,
  type SimulationView } from "@restante/runtime/testing"
import { cron } from "./index.ts"

/** The definition as clients use it; each process of a node makes its own, which runs jobs. */
const jobs = cron(noServices())
const plans = {
  skipping: { everyMs: 3_000, missed: "skip" },
  once: { everyMs: 2_000, missed: "once" },
  all: { everyMs: 4_000, missed: "all" }
} as const
const names = Object.keys(plans)

/** What ran: the job and the time of its tick. */
interface Runs {
  readonly ran: Array<string>
}

type View = Pick<SimulationView, "logOf">

/** A reply with a schedule whose job had a tick. */
const isTicking = Schema.is(Schema.Struct({ dueMs: Schema.Int }))

const ticksOf = ({ logOf }: View, job: string) =>
  logOf(jobs(job)).map(({ value }) => jobs.decodeItem(value))

/** A tick that is not where its schedule has one, or that came in spite of what `missed` says. */
const wrongTick = (view: View, job: string): string | undefined => {
  const ticks = ticksOf(view, job)
  return ticks.map(({ atMs, dueMs, everyMs, left, missed, startedMs }, at) => {
    const before = ticks[at - 1]
    const lastMs = before?.startedMs === startedMs ? before.dueMs : startedMs
    if (atMs < dueMs) return `the tick of ${dueMs} came at ${atMs}`
    if (dueMs !== lastMs + (left + 1) * everyMs) return `${lastMs}, ${dueMs}, ${left} left out`
    if (missed === "all" && left > 0) return `${left} ticks were left out before ${dueMs}`
    if (missed === "skip" && atMs - dueMs > everyMs) return `${dueMs} came late, at ${atMs}`
    return undefined
  }).find((wrong) => wrong !== undefined)
}

/** Jobs that are started again and again, and sometimes stopped. */
export const cronSimulation = {
  behaviors: (host, { ran }) => [
    cron((job, dueMs) =>
      host.outside(`job ${job}`, () => {
        ran.push(`${job} ${dueMs}`)
      })
    )
  ],
  services: () => ({ ran: [] }),
  clients: (draw) => {
    const job = draw.pick(["skipping", "once", "all"] as const)
    const start = { _tag: "Start", ...plans[job] } as const
    const stop = draw.chance(0.3) ? { _tag: "Stop" } as const : { _tag: "Look" } as const
    return request(jobs(job), draw.pick([start, start, { _tag: "Look" }, stop]), { attempts: 3 })
  },
  requestsPerMinute: 40,
  lastRequests: names.map((job) => request(jobs(job), { _tag: "Stop" }, { attempts: 3 })),
  // No model: it would search the order of all ticks, which happen without a client.
  invariants: [
    { name: "ticks come as `missed` says", always: (view, { id }) => wrongTick(view, id) },
    {
      name: "a repeated start does not begin again",
      atRest: (view) =>
        names.find((job) => {
          const own = view.attempts.filter(({ to }) => to.id === job)
          const stops = own.filter(({ message }) => message._tag === "Stop").length
          return new Set(ticksOf(view, job).map(({ startedMs }) => startedMs)).size > stops + 1
        })
    },
    {
      name: "a tick runs once at most",
      atRest: ({ services: { ran } }) => ran.find((one, at) => ran.indexOf(one) < at)
    },
    {
      name: "clients see only ticks that were stored",
      atRest: (view) =>
        view.attempts.find(({ reply, to }) =>
          isTicking(reply) && !ticksOf(view, to.id).some(({ dueMs }) => dueMs === reply.dueMs)
        )?.to.id
    },
    {
      name: "only ticks that were stored run",
      atRest: (view) => {
        const stored = names.flatMap((job) =>
          ticksOf(view, job).map(({ dueMs }) => `${job} ${dueMs}`)
        )
        return view.services.ran.find((one) => !stored.includes(one))
      }
    }
  ]
} satisfies SimulateOptions<Runs>
