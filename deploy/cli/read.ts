/** `restante read`: what is in a mailbox now, or one notification and what it points to. */
import { createWriteStream } from "node:fs"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { ReadableStream as NodeStream } from "node:stream/web"
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type CommandFailed, exitCodes } from "../failure.ts"
import {
  listMailbox,
  type MailboxNotification,
  oneNotification,
  openContent
} from "../mailboxes.ts"
import { failed } from "../remote.ts"
import { mailboxFlags, type MailboxLocation, mailboxOf, type Named } from "./mailbox.ts"
import { endWithReader, jsonFlag, plain, printJson, table } from "./output.ts"

const limitDefault = 100
const limitMax = 1_000_000_000

const readable: Named = {
  expected: "the URI or the name of a mailbox, or the URI of a notification in one",
  pattern: /^\/mailboxes\/[^/]+(?:\/notifications\/[^/]+)?$/
}

const cells = ({ item, received }: MailboxNotification): ReadonlyArray<string> =>
  [received, item.description, item.url].map(plain)

/** Writes what a notification points to; a file that is there is not written over. */
const save = (
  { item }: MailboxNotification,
  file: string
): Effect.Effect<void, CommandFailed> =>
  Effect.gen(function*() {
    if (!URL.canParse(item.url)) return yield* failed("the notification points to no URI")
    const { body } = yield* openContent(item.url, item.password, new AbortController().signal)
    if (body === null) return yield* failed("there is nothing at its URI")
    const into = file === "-" ? process.stdout : createWriteStream(file, { flags: "wx" })
    yield* Effect.tryPromise({
      // The same streams by two declarations.
      try: () => pipeline(Readable.fromWeb(body as NodeStream), into, { end: file !== "-" }),
      catch: (cause) => failed(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`)
    })
  })

const one = Effect.fnUntraced(function*(
  { path, remote }: MailboxLocation,
  file: string | undefined,
  json: boolean
): Effect.fn.Return<void, CommandFailed> {
  const found = yield* oneNotification(remote, path)
  if (json) yield* printJson(found)
  else if (file !== "-") yield* Console.log(cells(found).join("\n"))
  if (file !== undefined) yield* save(found, file)
})

export const readCommand = Command.make(
  "read",
  {
    ...mailboxFlags,
    which: Argument.String("mailbox").pipe(
      Argument.withDescription("Its URI or name; or the URI of a notification in it")
    ),
    since: Flag.String("since").pipe(
      Flag.withMetavar("time"),
      Flag.withDescription("Only what was received since, such as 2026-07-01T00:00:00Z"),
      Flag.optional
    ),
    limit: Flag.Int("limit").pipe(
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: limitMax }))),
      Flag.withMetavar("number"),
      Flag.withDescription("How many at most, the oldest first"),
      Flag.withDefault(limitDefault)
    ),
    save: Flag.String("save").pipe(
      Flag.withMetavar("file"),
      Flag.withDescription("Write what the notification points to; - for standard output"),
      Flag.optional
    ),
    json: jsonFlag("JSON; of a mailbox, one object a line")
  },
  Effect.fnUntraced(function*({ json, limit, save: into, since, which, ...flags }) {
    const place = yield* mailboxOf(which, flags, readable)
    const file = Option.getOrUndefined(into)
    endWithReader()
    if (place.path.includes("/notifications/")) return yield* one(place, file, json)
    if (file !== undefined) {
      return yield* failed("--save is of one notification: give its URI", exitCodes.usage)
    }
    const rows: Array<ReadonlyArray<string>> = []
    const { path, remote } = place
    yield* listMailbox(remote, path, Option.getOrUndefined(since), limit, (found) => {
      if (json) process.stdout.write(`${JSON.stringify(found)}\n`)
      else rows.push([...cells(found), found.href])
    })
    if (json) return
    if (rows.length === 0) yield* Console.error("The mailbox is empty.")
    else {yield* Console.log(
        table([["RECEIVED", "DESCRIPTION", "MESSAGE", "NOTIFICATION"], ...rows])
      )}
  })
).pipe(
  Command.withDescription("List what is in a mailbox, or show and save one notification"),
  Command.withExamples([
    { command: "restante read alice", description: "What is in the mailbox, the oldest first" },
    {
      command:
        "restante read https://post.example.org/mailboxes/alice/notifications/1-… --save a.pdf",
      description: "Fetch what a notification points to, with its password"
    }
  ])
)
