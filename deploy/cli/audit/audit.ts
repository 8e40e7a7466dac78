/** `restante audit …`: the audit log of a running service, and the check of its chain. */
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { type AuditPoint, pathOf } from "../../../client/index.ts"
import { type CommandFailed, failed } from "../../command-failure.ts"
import { storageLocation } from "../../settings/index.ts"
import { adminFlags, jsonFlag, limitFlag, loadSettingsOf, sinceFlag, storeFlags, switchFlag,
  textFlag } from "../flags.ts"
import { AccountText, locatorOf } from "../resource-name/index.ts"
import { asAdmin, assertOwn, call, ownAccountOf, wrongUsage } from "../service/index.ts"
import { endWithReader, jsonText, pageSizeFor, plain, printJson, printLine, table,
  take } from "../terminal.ts"

/**
 * The path and the origin of `--target`: the log has targets of many kinds, so that a name says too
 * little.
 */
const targetOf = (
  text: string
): Effect.Effect<{ readonly path: string; readonly origin: string | undefined }, CommandFailed> => {
  const locator = locatorOf(text)
  return locator === undefined
    ? Effect.fail(wrongUsage(
      `--target is ${plain(text)}, which begins no path`,
      "give one such as /accounts/bob, or a URI"
    ))
    : Effect.succeed({ path: pathOf(text), origin: locator.origin })
}

const list = Command.make(
  "list",
  {
    ...adminFlags,
    account: Flag.String("account").pipe(
      Flag.withSchema(AccountText),
      Flag.withMetavar("name|uri"),
      Flag.withDescription("Only what this account did"),
      Flag.optional
    ),
    action: textFlag("action", "action", "Only this action, such as token.create"),
    outcome: textFlag("outcome", "outcome", "Only begun, done, refused or unknown"),
    target: textFlag("target", "path|uri", "Only paths that begin with this"),
    since: sinceFlag,
    limit: limitFlag("How many at most"),
    json: jsonFlag("One JSON object a line")
  },
  Effect.fnUntraced(
    function*({ account, action, json, limit, outcome, since, target, ...flags }) {
      const named = Option.isNone(target)
        ? undefined
        : { text: target.value, ...yield* targetOf(target.value) }
      const service = yield* asAdmin(flags)
      if (named !== undefined) yield* assertOwn(service, named, named.text)
      endWithReader()
      const filter = {
        account: yield* ownAccountOf(
          service,
          Option.isNone(account) ? undefined : { value: account.value, from: "flag --account" }
        ),
        action: Option.getOrUndefined(action),
        outcome: Option.getOrUndefined(outcome),
        target: named?.path,
        since: Option.getOrUndefined(since)
      }
      const rows: Array<ReadonlyArray<string>> = []
      yield* call(service, async ({ audit }) => {
        const entries = audit.list(filter, { pageSize: pageSizeFor(limit) })
        for await (const entry of take(entries, limit)) {
          if (json) {
            printLine(jsonText(entry))
            continue
          }
          const { account = "", detail = "", from = "" } = entry
          const texts = [entry.time, account, from, entry.action, entry.target, entry.outcome]
          rows.push([...texts, detail].map(plain))
        }
      })
      if (json) return
      const heads = ["TIME", "ACCOUNT", "FROM", "ACTION", "TARGET", "OUTCOME", "DETAIL"]
      yield* Console.log(table([heads, ...rows]))
    }
  )
).pipe(Command.withDescription("List what was done, newest first"))

/** `<number>:<hash>`, as `verify` prints it. */
const pointOf = (text: string): AuditPoint | undefined => {
  const [, number, hash] = /^([1-9]\d{0,14}):([A-Za-z0-9_-]{43})$/.exec(text) ?? []
  return number === undefined || hash === undefined ? undefined : { number: Number(number), hash }
}

interface Checked {
  readonly location: string
  readonly entries: number
  readonly last: AuditPoint | undefined
  readonly fault: { readonly number: number; readonly reason: string } | undefined
}

const checkService = Effect.fnUntraced(function*(
  flags: Parameters<typeof asAdmin>[0],
  noted: AuditPoint | undefined
): Effect.fn.Return<Checked, CommandFailed> {
  const service = yield* asAdmin(flags)
  const checked = yield* call(service, ({ audit }) => audit.verify(noted))
  return { location: service.baseUrl, ...checked }
})

const checkStored = Effect.fnUntraced(function*(
  flags: Parameters<typeof loadSettingsOf>[0]
): Effect.fn.Return<Checked, CommandFailed> {
  const { settings } = yield* loadSettingsOf(flags)
  // Other commands do not load this module, since it needs native modules.
  const { checkStoredAudit } = yield* Effect.promise(() => import("../../doctor/index.ts"))
  const { entries, fault, last } = yield* checkStoredAudit(settings)
  return {
    location: storageLocation(settings),
    entries,
    last: last === undefined ? undefined : { number: last.n, hash: last.hash },
    fault: fault === undefined ? undefined : { number: fault.n, reason: fault.reason }
  }
})

const verify = Command.make(
  "verify",
  {
    ...storeFlags,
    ...adminFlags,
    noted: textFlag("noted", "number:hash", "An entry that an earlier check has printed"),
    stored: switchFlag("stored", "Of a stopped store, or of a cluster, instead of a service"),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ context, json, noted, stored, "token-file": tokenFile, ...flags }) {
    const text = Option.getOrUndefined(noted)
    const point = text === undefined ? undefined : pointOf(text)
    if (text !== undefined && point === undefined) {
      return yield* wrongUsage(
        `--noted is ${plain(text)}, which is no entry of the audit log`,
        "give a number and a hash as verify prints them, such as 17:Zx3…"
      )
    }
    if (stored && point !== undefined) {
      return yield* wrongUsage(
        "--noted is checked by a running service only",
        "leave out --stored"
      )
    }
    const { "base-url": baseUrl = Option.none(), ...store } = flags
    const checked = stored
      ? yield* checkStored(store)
      : yield* checkService({ context, "token-file": tokenFile, "base-url": baseUrl }, point)
    const { entries, fault, last, location } = checked
    if (json) yield* printJson({ location, entries, last, fault })
    if (fault !== undefined) {
      const { number, reason } = fault
      return yield* failed(
        `${location}: entry ${number} of the audit log is not as it was recorded, ${reason}`,
        "compare it with a backup"
      )
    }
    if (json) return
    yield* Console.log(`entries: ${entries}`)
    if (last !== undefined) yield* Console.log(`last: ${last.number}:${plain(last.hash)}`)
    yield* Console.log(`${location}: ok`)
  })
).pipe(
  Command.withDescription("Check the chain of hashes; exits 1 and names the first wrong entry"),
  Command.withExamples([
    { command: "restante audit verify", description: "Of a running service, as an admin" },
    { command: "restante audit verify --stored", description: "Of the stopped store in ./data" }
  ])
)

export const auditCommand = Command.make("audit").pipe(
  Command.withDescription("Read the audit log, and check that nobody has changed it"),
  Command.withSubcommands([list, verify])
)
