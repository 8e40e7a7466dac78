/** What the commands on archives have in common: which store, the progress, the table. */
import { Console, Effect, type Option } from "effect"
import { Argument, type Flag } from "effect/cli"
import type { Filled, Seen } from "../archive/index.ts"
import { CommandFailed, exitCodes } from "../failure.ts"
import { settingFlags } from "./flags.ts"
import { table } from "./output.ts"

const progressMs = 500
const mebibyte = 1024 * 1024

const isOfStore = (name: string): boolean =>
  name === "data-dir" || name === "store" || name === "cluster-buckets" || name.startsWith("nats-")

/** Flags that say which store; without NATS_URL it is the one in DATA_DIR. */
export const storeFlags: Record<string, Flag.Flag<Option.Option<string>>> = Object.fromEntries(
  Object.entries(settingFlags).filter(([name]) => isOfStore(name))
)

export const fileArgument = (about: string) =>
  Argument.String("file").pipe(Argument.withDescription(about))

/**
 * Shows the progress in one line of a terminal while `use` runs; elsewhere nothing, as the end
 * tells it all.
 */
export const withProgress = <A, E, R>(
  use: (seen: Seen) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  withLine((line) =>
    use((step, counter) =>
      line(() => {
        const mib = (counter.blobBytes / mebibyte).toFixed(1)
        const { actorCount, blobs, logItems, records } = counter
        return `${step}: ${actorCount} actors, ${logItems} log items, ${records} records, ` +
          `${blobs} blobs (${mib} MiB)`
      })
    )
  )

/** What a signal breaks off is not whole, and no success for the script that goes on from there. */
const wholeOrFailed = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    process.exitCode = exitCodes.failed
    return Effect.tap(work, () =>
      Effect.sync(() => {
        process.exitCode = undefined
      }))
  })

/** One line, written anew now and then. */
const withLine = <A, E, R>(
  use: (line: (text: () => string) => void) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  wholeOrFailed(Effect.suspend(() => {
    if (!process.stderr.isTTY) return use(() => {})
    let nextMs = 0
    const line = (text: () => string): void => {
      const nowMs = performance.now()
      if (nowMs < nextMs) return
      nextMs = nowMs + progressMs
      process.stderr.write(`\r\x1b[K${text()}`)
    }
    return Effect.ensuring(use(line), Effect.sync(() => process.stderr.write("\r\x1b[K")))
  }))

/** The same where only the bytes are known. */
export const bytesProgress = <A, E, R>(
  use: (seen: (bytes: number) => void) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  withLine((line) => use((bytes) => line(() => `${(bytes / mebibyte).toFixed(1)} MiB`)))

/** Prints what was written beside what was read back; fails when they differ. */
export const report = Effect.fnUntraced(function*(
  place: string,
  { rows, same }: Filled,
  json: boolean
): Effect.fn.Return<void, CommandFailed> {
  if (json) yield* Console.log(JSON.stringify({ place, same, counts: rows }, null, 2))
  else {
    const lines = rows.map(({ from, name, same: alike, to }) => [
      name,
      from,
      to,
      alike ? "" : "differs"
    ])
    yield* Console.log(table([["WHAT", "WRITTEN", "READ BACK", ""], ...lines]))
  }
  if (!same) {
    const message = `${place}: what was read back differs from what was written; it stays unserved`
    return yield* new CommandFailed({ message, exitCode: exitCodes.failed })
  }
})
