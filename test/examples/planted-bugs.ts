/**
 * One planted bug in the table of each example: an error that its author could have made. The
 * simulation of the example must find it.
 */
import { cartSimulation } from "../../examples/shopping-cart/simulation.ts"
import { chatSimulation } from "../../examples/chat-room/simulation.ts"
import { cronSimulation } from "../../examples/cron/simulation.ts"
import { leaderboardSimulation } from "../../examples/leaderboard/simulation.ts"
import { limiterSimulation } from "../../examples/rate-limiter/simulation.ts"
import { simulate, type SimulationSummary } from "../../runtime/testing/index.ts"
import { twinSimulation } from "../../examples/device-twin/simulation.ts"
import { withCell } from "../simulation/planted-cells.ts"

type Plant = Pick<ReturnType<typeof withCell>, "behaviors">

export interface PlantedExample {
  readonly name: string
  readonly bug: string
  readonly plant: Plant
  /** What the report of the simulation says of it. */
  readonly found: RegExp
  /** Runs seeds of the example's simulation, with a planted bug or as it is. */
  readonly run: (seeds: ReadonlyArray<number>, plant?: Plant) => Promise<SimulationSummary>
}

/** The window of the simulated limiter, ms. */
const windowMs = 10_000

const limiter = withCell(
  "rate-limiter",
  "Limiting",
  "Take",
  (take) => (state, message, context) => {
    // The list and the context have lost their types; these are those of the limiter.
    const given = state["givenMs"] as ReadonlyArray<number>
    const { nowMs } = context as { readonly nowMs: number }
    const windowOf = (ms: number): number => Math.floor(ms / windowMs)
    const current = windowOf(Math.max(nowMs, given.at(-1) ?? 0))
    return take(
      { ...state, givenMs: given.filter((ms) => windowOf(ms) === current) },
      message,
      context
    )
  }
)

const leaderboard = withCell(
  "leaderboard",
  "Open",
  "Score",
  (score) => (state, message, context) =>
    score(state, message, Object.assign({}, context, { findDuplicate: () => undefined }))
)

const twin = withCell(
  "device-twin",
  "Twin",
  "Report",
  (report) => (state, message, context) => report({ ...state, sequence: 0 }, message, context)
)

const cart = withCell(
  "shopping-cart",
  "Ordering",
  "Retry",
  (retry) => (state, message, context) => {
    const decision = retry(state, message, context)
    const { nowMs } = context as { readonly nowMs: number } // as for the limiter
    // The actions of a cart are its calls.
    const calls = decision.actions as unknown as ReadonlyArray<{ readonly key: string }> | undefined
    return Object.assign(decision, {
      actions: calls?.map((call) => ({ ...call, key: `${call.key}/${nowMs}` }))
    })
  }
)

/** A copy of another cell, whose message looks the same. */
const chat = withCell("chat-room", "Open", "Leave", (leave, { Open }) => Open?.["Enter"] ?? leave)

const cron = withCell("cron", "Scheduled", "Start", (start, { Idle }) => Idle?.["Start"] ?? start)

export const plantedExamples: ReadonlyArray<PlantedExample> = [
  {
    name: "rate-limiter",
    bug: "counts in windows that begin at full times, so that two of them meet",
    plant: limiter,
    found: /no window has more permits than the limit: (ann|ben) has/,
    run: (seeds, plant = {}) => simulate({ ...limiterSimulation, seeds, plant })
  },
  {
    name: "shopping-cart",
    bug: "makes a key for each attempt",
    plant: cart,
    found: /no order is charged twice|an order ends shipped, or with all undone/,
    run: (seeds, plant = {}) => simulate({ ...cartSimulation, seeds, plant })
  },
  {
    name: "chat-room",
    bug: "takes who leaves for one who enters",
    plant: chat,
    found: /who has left is not shown/,
    run: (seeds, plant = {}) => simulate({ ...chatSimulation, seeds, plant })
  },
  {
    name: "cron",
    bug: "begins a schedule again when its start is repeated",
    plant: cron,
    found: /a repeated start does not begin again/,
    run: (seeds, plant = {}) => simulate({ ...cronSimulation, seeds, plant })
  },
  {
    name: "device-twin",
    bug: "takes reports in any order",
    plant: twin,
    found: /versions only grow/,
    run: (seeds, plant = {}) => simulate({ ...twinSimulation, seeds, plant })
  },
  {
    name: "leaderboard",
    bug: "counts a repeated score again",
    plant: leaderboard,
    found: /a score counts once/,
    run: (seeds, plant = {}) => simulate({ ...leaderboardSimulation, seeds, plant })
  }
]
