/** `restante backup`, `restore`, `migrate` and `check`: whole stores. */
import { Console, Effect, Option } from "effect"
import { Command } from "effect/cli"
import type { OnProgress, RestoreResult } from "../archive/index.ts"
import { type CommandFailed, exitCodes, failed, reasonOf } from "../command-failure.ts"
import { storageLocation } from "../settings/index.ts"
import { adminFlags, jsonFlag, loadSettingsOf, storeFlags, switchFlag, textArgument,
  textFlag } from "./flags.ts"
import { asAdmin, call, type ServiceLocation, wrongUsage } from "./service/index.ts"
import { mustComplete, plural, printJson, progressLine, table } from "./terminal.ts"

const progressIntervalMs = 500

const mebibytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MiB`

/** Loads the module of archives, and its native modules, only for the commands that need it. */
const archiveModule = Effect.promise(() => import("../archive/index.ts"))

/** Runs `use` to its end, and shows its progress. */
export const withProgress = <A, E, R>(
  use: (line: ReturnType<typeof progressLine>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  mustComplete(Effect.suspend(() => {
    const line = progressLine(progressIntervalMs)
    return Effect.ensuring(use(line), Effect.sync(line.clear))
  }))

const partsProgress = (line: ReturnType<typeof progressLine>): OnProgress => (step, counter) =>
  line.show(() => {
    const { actorCount, blobBytes, blobs, logItems, records } = counter
    return `${step}: ${actorCount} actors, ${logItems} log items, ${records} records, ` +
      `${blobs} blobs (${mebibytes(blobBytes)})`
  })

const withoutSecretsFlag = switchFlag(
  "without-secrets",
  "Leave out the secrets that no key here opens, and list them"
)

/** What was left out, a line for each kind. */
const linesOfLost = (
  { answers, messagePasswords, registrations, serviceKeys, webhooks }: RestoreResult["lost"]
): ReadonlyArray<string> =>
  [
    [messagePasswords, "message passwords: the notifications are without them"],
    [
      registrations,
      "push registrations are suspended: rotate each one's secret, or subscribe again, a browser " +
      "after it has unsubscribed"
    ],
    [webhooks, "secrets of webhooks: set each one again, the mailbox refuses webhooks until then"],
    [answers, "answers to requests with an Idempotency-Key: a repetition is a new request"],
    [serviceKeys, "service key: the first start makes a new one"]
  ].flatMap(([count, what]) => count === 0 ? [] : [`lost: ${count} ${what}`])

/** Prints the written counts beside the counts that were read back; fails when they differ. */
const printComparison = Effect.fnUntraced(function*(
  store: string,
  { isSame, lost, rows }: RestoreResult,
  json: boolean
): Effect.fn.Return<void, CommandFailed> {
  if (json) yield* printJson({ location: store, same: isSame, counts: rows, lost })
  else {
    const lines = rows.map(({ from, name, same, to }) => [name, from, to, same ? "" : "differs"])
    yield* Console.log(table([["WHAT", "WRITTEN", "READ BACK", ""], ...lines]))
    for (const line of linesOfLost(lost)) yield* Console.log(line)
  }
  if (!isSame) {
    return yield* failed(
      `${store} is not as it was written: what was read back differs, and no node will serve it`,
      "empty it, and repeat the command with another backup if it fails again"
    )
  }
})

async function* bytesOfService(
  { baseUrl }: ServiceLocation,
  stream: AsyncIterable<Uint8Array>
): AsyncGenerator<Uint8Array> {
  try {
    yield* stream
  } catch (error) {
    throw failed(
      `${baseUrl} cannot be reached, ${reasonOf(error)}`,
      "repeat the command when the service responds",
      exitCodes.unavailable
    )
  }
}

export const backupCommand = Command.make(
  "backup",
  {
    ...storeFlags,
    file: textArgument("file", "The new archive; the file must not exist. -: standard output"),
    url: textFlag("url", "uri", "Of the running service at this address, instead of a store"),
    "token-file": adminFlags["token-file"],
    context: adminFlags.context,
    plain: switchFlag("plain", "Do not compress"),
    "with-key": switchFlag(
      "with-key",
      "Include the key of stored secrets; not of a running service"
    ),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*(
    { context, file, json, plain, "token-file": tokenFile, url, "with-key": withKey, ...flags }
  ) {
    const isRunning = Option.isSome(url) || Option.isSome(context)
    if (withKey && isRunning) {
      return yield* wrongUsage(
        "--with-key cannot be used with --url or --context, as no service sends its key",
        "copy the key file instead"
      )
    }
    const { backUp, backUpRunning, rowsOf } = yield* archiveModule
    const { settings } = yield* loadSettingsOf(isRunning ? {} : flags)
    const service = isRunning
      ? yield* asAdmin({ context, "token-file": tokenFile, "base-url": url })
      : undefined
    const store = service?.baseUrl ?? storageLocation(settings)
    const backup = yield* withProgress(Effect.fnUntraced(function*(line) {
      if (service === undefined) {
        return yield* backUp(settings, file, { isPlain: plain, withKey }, partsProgress(line))
      }
      const stream = yield* call(service, (client) => client.archive())
      const onBytes = (sum: number) => line.show(() => mebibytes(sum))
      return yield* backUpRunning(bytesOfService(service, stream), file, plain, onBytes)
    }))
    const { changedActors, counts, fileBytes, removedBlobs } = backup
    // Standard output may be the archive itself.
    const print = file === "-" ? Console.error : Console.log
    if (json) {
      const document = { location: store, file, fileBytes, counts, changedActors, removedBlobs }
      return yield* print(JSON.stringify(document, null, 2))
    }
    yield* print(table(rowsOf(counts)))
    if (changedActors > 0) {
      yield* print(`${plural(changedActors, "actor")} changed during every read`)
    }
    yield* print(`${store}: ${fileBytes} bytes in ${file}`)
    yield* print(
      withKey
        ? "the archive has the key of stored secrets: whoever has the file can read them"
        : "a restore needs the key of stored secrets too: keep a copy of the key file elsewhere " +
          "(secret-key in DATA_DIR, or SECRET_KEY_FILE)"
    )
  })
).pipe(
  Command.withDescription(
    "Write everything that is stored into one file: of a stopped store, a cluster, or a service"
  ),
  Command.withExamples([
    { command: "restante backup monday.restante", description: "Of the store in ./data" },
    { command: "NATS_URL=nats://a restante backup -", description: "Of a running cluster" },
    {
      command: "restante backup monday.restante --url http://localhost:8080",
      description: "Of a running service, as an admin"
    }
  ])
)

export const checkCommand = Command.make(
  "check",
  { ...storeFlags, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, ...flags }) {
    const { settings } = yield* loadSettingsOf(flags)
    // Other commands do not load this module, since it needs native modules.
    const { check } = yield* Effect.promise(() => import("../doctor/index.ts"))
    const location = storageLocation(settings)
    const { counts, problems, store } = yield* check(settings)
    if (json) yield* printJson({ location, engine: store, counts, problems })
    else {
      if (store !== undefined) yield* Console.log(`store: ${store}`)
      for (const [name, count] of Object.entries(counts)) yield* Console.log(`${name}: ${count}`)
      for (const problem of problems) yield* Console.error(`problem: ${problem}`)
    }
    if (problems.length > 0) {
      return yield* failed(
        `${location} has ${plural(problems.length, "problem")}, listed above`,
        "restore a backup into a new store (restante restore)"
      )
    }
    if (!json) yield* Console.log(`${location}: ok`)
  })
).pipe(
  Command.withDescription(
    "Verify the store of a stopped service, or a cluster; exits 1 when it finds problems"
  )
)

const { "nats-url": _, ...sourceFlags } = storeFlags

export const migrateCommand = Command.make(
  "migrate",
  {
    ...sourceFlags,
    to: textFlag("to", "servers", "The new cluster (NATS_URL)"),
    "without-secrets": withoutSecretsFlag,
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ json, to, "without-secrets": withoutSecrets, ...flags }) {
    const { settings: target } = yield* loadSettingsOf({ ...flags, "nats-url": to })
    if (target.natsUrl === undefined) {
      return yield* wrongUsage(
        "the servers of the new cluster are not named",
        "give --to, or set NATS_URL"
      )
    }
    const { migrate } = yield* archiveModule
    const source = { ...target, natsUrl: undefined }
    const result = yield* withProgress((line) =>
      migrate(source, target, withoutSecrets, partsProgress(line))
    )
    yield* printComparison(storageLocation(target), result, json)
  })
).pipe(
  Command.withDescription(
    "Copy the stopped store of DATA_DIR into a new cluster, and compare the copy"
  ),
  Command.withExamples([
    { command: "restante migrate --to nats://a,nats://b,nats://c", description: "From ./data" }
  ])
)

export const restoreCommand = Command.make(
  "restore",
  {
    ...storeFlags,
    file: textArgument("file", "The archive"),
    "without-secrets": withoutSecretsFlag,
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ file, json, "without-secrets": withoutSecrets, ...flags }) {
    const { settings } = yield* loadSettingsOf(flags)
    const { restore } = yield* archiveModule
    const result = yield* withProgress((line) =>
      restore(settings, file, withoutSecrets, partsProgress(line))
    )
    yield* printComparison(storageLocation(settings), result, json)
  })
).pipe(
  Command.withDescription(
    "Fill a new store from an archive, and compare; no other process may use the store"
  ),
  Command.withExamples([
    { command: "restante restore monday.restante --data-dir new", description: "In a new folder" }
  ])
)
