/** Jobs at an interval, which say what happens to the ticks that nobody could process. */
import { become, defineActor, refuse, Schema, stay } from "@restante/runtime"

/** Does a job: called once at most for each tick. */
export type RunJob = (job: string, dueMs: number) => Promise<void>

const everyMinMs = 1_000
/** The last ticks that a job keeps in its log. */
const historyMax = 100

const plan = { everyMs: Schema.Int, missed: Schema.Literals(["skip", "once", "all"]) }

/** A tick: when it was due and when it came, and how many ticks before it did not come. */
const Run = Schema.Struct({
  ...plan,
  startedMs: Schema.Int,
  dueMs: Schema.Int,
  atMs: Schema.Int,
  left: Schema.Int
})

/** One job for each id. `Start` and `Look` reply with its schedule, its log has its last ticks. */
export const cron = (run: RunJob) =>
  defineActor("cron", {
    state: {
      Idle: {},
      Scheduled: {
        ...plan,
        startedMs: Schema.Int,
        // The last tick that came, and the last one whose job has ended.
        dueMs: Schema.NullOr(Schema.Int),
        doneMs: Schema.NullOr(Schema.Int)
      }
    },
    messages: { Start: plan, Stop: {}, Look: {}, Tick: {}, Done: { dueMs: Schema.Int } },
    actions: { Run: { dueMs: Schema.Int } },
    internal: ["Done"],
    log: Run,
    timer: "Tick",
    initial: { _tag: "Idle" },
    table: {
      Idle: {
        Start: (_, { everyMs, missed }, { nowMs }) => {
          if (everyMs < everyMinMs) return refuse("TooOften", `at most each ${everyMinMs} ms`)
          const started = { everyMs, missed, startedMs: nowMs, dueMs: null, doneMs: null }
          return become({ _tag: "Scheduled", ...started })
            .setInterval(everyMs, { missed })
            .reply(started)
        },
        Stop: () => stay().reply("stopped"),
        Look: () => stay().reply(null),
        Tick: () => stay(),
        Done: () => stay()
      },
      Scheduled: {
        // A client repeats a message without an answer: the schedule does not begin again.
        Start: ({ _tag, ...schedule }, { everyMs, missed }) =>
          schedule.everyMs === everyMs && schedule.missed === missed
            ? stay().reply(schedule)
            : refuse("Scheduled", "stop the job first"),
        Stop: () => become({ _tag: "Idle" }).setTimer(null).reply("stopped"),
        Look: ({ _tag, ...schedule }) => stay().reply(schedule),
        Tick: (state, _, { head, nowMs, tick }) => {
          // Only a signal of another actor has no tick, and nobody signals a job.
          if (tick === undefined) return stay()
          const { everyMs, missed, startedMs } = state
          const { dueMs, missed: left } = tick
          const ran = become({ ...state, dueMs })
            .append({ everyMs, missed, startedMs, dueMs, atMs: nowMs, left })
            .perform({ _tag: "Run", dueMs })
          return head < historyMax ? ran : ran.removeItems(head + 1 - historyMax)
        },
        Done: (state, { dueMs }) => become({ ...state, doneMs: dueMs })
      }
    },
    perform: {
      Run: async ({ dueMs }, { self }) => {
        await run(self.id, dueMs)
        return { _tag: "Done", dueMs }
      }
    }
  })
