/** The command line of `npm run simulate`. */
import { parseArgs } from "node:util"
import { type Planted, planted } from "./planted.ts"
import { type StoreKind, storeKinds } from "./plan.ts"
import { minutesDefault } from "./report.ts"

export interface Asked {
  readonly _tag: "Asked"
  /** The first seed, and how many seeds run. */
  readonly seed: number
  readonly runs: number
  readonly minutes: number
  readonly store: StoreKind
  readonly seams: Planted
  readonly isTraced: boolean
}

/** The help text, or why the arguments are invalid. */
export interface Reported {
  readonly _tag: "Reported"
  readonly isWrong: boolean
  readonly text: string
}

/** The random generator takes seeds of this size. */
const SEED_MAX = 2 ** 31 - 1
/** A day; one simulated minute takes about one second. */
const MINUTES_MAX = 24 * 60

const faults = Object.keys(planted).join(", ")

const usage = `npm run simulate -- [flags]

  --seed N      the first seed (1)
  --runs N      how many seeds are played, up to the first that fails (1)
  --minutes M   with clients and faults for so long (${minutesDefault})
  --store NAME  what the nodes store in: ${storeKinds.join(", ")} (contract)
  --fault NAME  with a bug planted: ${faults}
  --trace       shows all that happens
  --help        shows this`

const numberIn = (name: string, text: string, least: number, most: number): number => {
  const value = text.trim() === "" ? NaN : Number(text)
  const isHealthy = least < 1 || Number.isInteger(value)
  if (isHealthy && value >= least && value <= most) return value
  throw new RangeError(
    `--${name} is ${least < 1 ? "a" : "a whole"} number from ${least} to ${most}`
  )
}

const faultOf = (name: string | undefined): Planted => {
  if (name === undefined) return {}
  const fault = Object.hasOwn(planted, name) ? planted[name] : undefined
  if (fault === undefined) throw new RangeError(`--fault is one of ${faults}`)
  return fault
}

const storeOf = (name: string): StoreKind => {
  const store = storeKinds.find((kind) => kind === name)
  if (store === undefined) throw new RangeError(`--store is one of ${storeKinds.join(", ")}`)
  return store
}

const parsed = (args: ReadonlyArray<string>): Asked | Reported => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: "string", default: "1" },
      runs: { type: "string", default: "1" },
      minutes: { type: "string", default: String(minutesDefault) },
      store: { type: "string" },
      fault: { type: "string" },
      trace: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false }
    }
  })
  if (values.help) return { _tag: "Reported", isWrong: false, text: usage }
  const seams = faultOf(values.fault)
  return {
    _tag: "Asked",
    seed: numberIn("seed", values.seed, 1, SEED_MAX),
    runs: numberIn("runs", values.runs, 1, SEED_MAX),
    minutes: numberIn("minutes", values.minutes, 0.01, MINUTES_MAX),
    store: storeOf(values.store ?? seams.store ?? "contract"),
    seams,
    isTraced: values.trace
  }
}

/** Parses the arguments, or returns why they are invalid. */
export const read = (args: ReadonlyArray<string>): Asked | Reported => {
  try {
    return parsed(args)
  } catch (cause) {
    if (!(cause instanceof TypeError || cause instanceof RangeError)) throw cause
    return { _tag: "Reported", isWrong: true, text: `${cause.message}\n\n${usage}` }
  }
}
