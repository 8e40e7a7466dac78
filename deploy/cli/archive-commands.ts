/** `restante restore`. */
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { BackedUp, Filled, Seen } from "../archive/index.ts"
import { CommandFailed, exitCodes } from "../command-failure.ts"
import { storageLocation } from "../settings/index.ts"
import { load, settingFlags } from "./flags.ts"
import { adminFlags, asAdmin, jsonFlag, table } from "./terminal.ts"

const progressMs = 500

const mebibyte = 1024 * 1024

const isOfStore = (name: string): boolean =>
  name === "data-dir" || name === "storage-engine" || name === "cluster-buckets" ||
  name.startsWith("nats-")

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

/* `restante backup`. */

export const backupCommand = Command.make(
  "backup",
  {
    ...storeFlags,
    file: fileArgument("Where the archive goes; it must not be there. -: standard output"),
    url: Flag.String("url").pipe(
      Flag.withDescription("Of the service that runs at this address, instead of a store"),
      Flag.optional
    ),
    token: adminFlags.token,
    plain: Flag.Boolean("plain").pipe(
      Flag.withDescription("Do not compress"),
      Flag.withDefault(false)
    ),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ file, json, plain, token, url, ...flags }) {
    // Only the commands on stores need the native modules.
    const { backUp, backUpRunning, rowsOf, explained } = yield* Effect.promise(() =>
      import("../archive/index.ts")
    )
    const address = Option.getOrUndefined(url)
    const { settings } = yield* load(address === undefined ? flags : {})
    const place = address ?? storageLocation(settings)
    const ofStore = (seen: Seen) => Effect.scoped(backUp(settings, file, plain, seen))
    const saved: Effect.Effect<BackedUp, Error> = address === undefined
      ? withProgress(ofStore)
      : Effect.flatMap(
        asAdmin({ token, "base-url": url }),
        (remote) => bytesProgress((seen) => backUpRunning(remote, file, plain, seen))
      )
    const { counts, fileBytes, lost, unsteady } = yield* Effect.mapError(
      saved,
      (failure) => explained(place, file, failure)
    )
    // Standard output may be the archive itself.
    const print = file === "-" ? Console.error : Console.log
    if (json) {
      const told = { place, file, fileBytes, counts, unsteady, lost }
      yield* print(JSON.stringify(told, null, 2))
    } else {
      yield* print(table(rowsOf(counts)))
      if (unsteady > 0) {
        yield* print(`${unsteady} actor(s) were changed all the while they were read`)
      }
      yield* print(`${place}: ${fileBytes} bytes in ${file}`)
    }
  })
).pipe(
  Command.withDescription(
    "Write everything that is kept into one file: of a stopped store, a cluster, or --url"
  ),
  Command.withExamples([
    { command: "restante backup monday.restante", description: "Of the store in ./data" },
    { command: "NATS_URL=nats://a restante backup -", description: "Of a cluster that runs" },
    {
      command: "restante backup monday.restante --url http://localhost:8080",
      description: "Of a service that runs, as an admin"
    }
  ])
)

/* `restante check`. */

export const checkCommand = Command.make(
  "check",
  { ...storeFlags, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, ...flags }) {
    const { settings } = yield* load(flags)
    // Only the commands on stores need the native modules.
    const { check } = yield* Effect.promise(() => import("../doctor/index.ts"))
    const place = storageLocation(settings)
    const { counts, problems, store } = yield* check(settings)
    if (json) yield* Console.log(JSON.stringify({ place, store, counts, problems }, null, 2))
    else {
      if (store !== undefined) yield* Console.log(`store: ${store}`)
      for (const [name, count] of Object.entries(counts)) yield* Console.log(`${name}: ${count}`)
      for (const problem of problems) yield* Console.error(`problem: ${problem}`)
    }
    if (problems.length > 0) {
      const message = `${place}: ${problems.length} problem(s) found`
      return yield* new CommandFailed({ message, exitCode: exitCodes.failed })
    }
    if (!json) yield* Console.log(`${place}: ok`)
  })
).pipe(
  Command.withDescription(
    "Verify the store of a stopped service, or a cluster; exits 1 when it finds problems"
  )
)

/* `restante migrate`. */

const { "nats-url": _, ...flagsOfStore } = storeFlags

export const migrateCommand = Command.make(
  "migrate",
  {
    ...flagsOfStore,
    to: Flag.String("to").pipe(
      Flag.withMetavar("servers"),
      Flag.withDescription("The cluster to be filled (NATS_URL)"),
      Flag.optional
    ),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ json, to, ...flags }) {
    const { settings } = yield* load({ ...flags, "nats-url": to })
    const { natsUrl, ...rest } = settings
    if (natsUrl === undefined) {
      return yield* new CommandFailed({
        message: "where to is needed: give --to, or set NATS_URL",
        exitCode: exitCodes.usage
      })
    }
    const { explained, migrate } = yield* Effect.promise(() => import("../archive/index.ts"))
    const from = { ...rest, natsUrl: undefined }
    const place = storageLocation(settings)
    const filled = yield* withProgress((seen) => Effect.scoped(migrate(from, settings, seen)))
      .pipe(
        Effect.mapError((failure) =>
          explained(`${storageLocation(from)} or ${place}`, undefined, failure)
        )
      )
    yield* report(place, filled, json)
  })
).pipe(
  Command.withDescription(
    "Copy the stopped store of DATA_DIR into a new cluster, and compare what came there"
  ),
  Command.withExamples([
    { command: "restante migrate --to nats://a,nats://b,nats://c", description: "From ./data" }
  ])
)

/* What the commands on archives have in common: which store, the progress, the table. */

export const restoreCommand = Command.make(
  "restore",
  { ...storeFlags, file: fileArgument("The archive"), json: jsonFlag() },
  Effect.fnUntraced(function*({ file, json, ...flags }) {
    const { settings } = yield* load(flags)
    const { explained, restore } = yield* Effect.promise(() => import("../archive/index.ts"))
    const place = storageLocation(settings)
    const filled = yield* withProgress((seen) => Effect.scoped(restore(settings, file, seen)))
      .pipe(Effect.mapError((failure) => explained(place, file, failure)))
    yield* report(place, filled, json)
  })
).pipe(
  Command.withDescription(
    "Fill a new store from an archive, and compare; nothing else may use it meanwhile"
  ),
  Command.withExamples([
    { command: "restante restore monday.restante --data-dir new", description: "In a new folder" }
  ])
)
