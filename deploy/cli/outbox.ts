/** `restante outbox …`: the account's outgoing mailbox. */
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type CommandFailed, exitCodes } from "../failure.ts"
import * as outgoing from "../outgoing.ts"
import { failed } from "../remote.ts"
import { endWithReader, jsonFlag, plain, printJson, some, table } from "./output.ts"
import { expectDelivered, showProgress } from "./progress.ts"
import { accountFlags, asAccount } from "./remote.ts"

const limitDefault = 100
const limitMax = 1_000_000

const outbox = Command.make("outbox", {
  status: Flag.Literals("status", outgoing.standings).pipe(
    Flag.withDescription("Only those that stand so"),
    Flag.optional
  ),
  limit: Flag.Int("limit").pipe(
    Flag.withSchema(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: limitMax }))
    ),
    Flag.withMetavar("number"),
    Flag.withDescription("How many at most, the newest first"),
    Flag.withDefault(limitDefault)
  )
}).pipe(
  Command.withSharedFlags({ ...accountFlags, json: jsonFlag("JSON; in a list, one object a line") })
)

const which = Argument.String("notification").pipe(
  Argument.withDescription("Its URI, or its id in the account's outgoing mailbox")
)

const cells = (recipient: outgoing.OutgoingRecipient): ReadonlyArray<string> => {
  const { attempts, code, href, last, next, problem, status } = recipient
  const given = [status, String(attempts), last, next, code, href]
  return [...given.map((cell) => cell ?? "-"), problem ?? ""].map(plain)
}

const heading = ["STATUS", "ATTEMPTS", "LAST", "NEXT", "CODE", "RECIPIENT", "PROBLEM"]

const show = Command.make(
  "show",
  {
    which,
    watch: Flag.Boolean("watch").pipe(
      Flag.withDescription("Show the progress until every recipient has it or has failed"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ watch, which }) {
    const { json, ...flags } = yield* outbox
    const remote = yield* asAccount(flags)
    const path = yield* outgoing.notificationPath(remote, which)
    const found = yield* outgoing.standing(remote, path)
    const seen = watch ? yield* showProgress(remote, path) : found
    yield* json ? printJson(seen) : Console.log(
      `${seen.time}  ${seen.status}  ${plain(seen.href)}\n` +
        table([heading, ...seen.recipient.map(cells)])
    )
    if (watch) yield* expectDelivered(seen)
  })
).pipe(Command.withDescription("Show how each recipient of a notification stands"))

const onlyOne = (): CommandFailed =>
  failed("give either a notification or --since", exitCodes.usage)

const retry = Command.make(
  "retry",
  {
    which: which.pipe(Argument.optional),
    since: Flag.String("since").pipe(
      Flag.withMetavar("time"),
      Flag.withDescription("All that were sent since, such as 2026-07-01T00:00:00Z"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function*({ since, which }) {
    if (Option.isSome(since) === Option.isSome(which)) return yield* onlyOne()
    const { json, ...flags } = yield* outbox
    const remote = yield* asAccount(flags)
    if (Option.isSome(since)) {
      const replayed = yield* outgoing.replay(remote, since.value)
      if (json) return yield* printJson(replayed)
      const { notifications, recipients } = replayed
      const of = some(notifications, "notification")
      yield* Console.error(`Trying again: ${some(recipients, "recipient")} of ${of}.`)
    } else if (Option.isSome(which)) {
      const path = yield* outgoing.notificationPath(remote, which.value)
      const retried = yield* outgoing.retry(remote, path)
      if (json) return yield* printJson(retried)
      yield* Console.error("Its failed recipients are tried again.")
    }
  })
).pipe(Command.withDescription("Try failed recipients again"))

const remove = Command.make(
  "delete",
  { which },
  Effect.fnUntraced(function*({ which }) {
    const { json, ...flags } = yield* outbox
    const remote = yield* asAccount(flags)
    const path = yield* outgoing.notificationPath(remote, which)
    yield* outgoing.remove(remote, path)
    yield* json ? printJson({ deleted: path }) : Console.error("The notification is deleted.")
  })
).pipe(Command.withDescription("Delete a notification; no attempt starts afterwards"))

export const outboxCommand = outbox.pipe(
  Command.withHandler(Effect.fnUntraced(function*({ json, limit, status, ...flags }) {
    const remote = yield* asAccount(flags)
    endWithReader()
    const row = (listed: outgoing.ListedNotification) => {
      const { counts, href, status, time } = listed
      const cells = [time, status, counts, href].map(plain)
      return Console.log(json ? JSON.stringify(listed) : cells.join("\t"))
    }
    yield* outgoing.list(remote, Option.getOrUndefined(status), limit, row)
  })),
  Command.withDescription("List what was sent, or show, retry and delete a notification"),
  Command.withSubcommands([show, retry, remove])
)
