/** `restante watch`: what comes into a mailbox, as it comes. */
import { Console, Effect, Option, type Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { createWriteStream } from "node:fs"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { ReadableStream as NodeStream } from "node:stream/web"
import { type CommandFailed, exitCodes } from "../command-failure.ts"
import { byPassword, byToken, failed, listMailbox, type MailboxNotification, oneNotification,
  openContent, type RemoteService, type StreamListener, watchMailbox } from "./service/index.ts"
import { accountFlags, endWithReader, jsonFlag, plain, printJson, type RemoteFlags, serviceLocation,
  table } from "./terminal.ts"

/** Flags of commands that read a mailbox. */
export const mailboxFlags = {
  ...accountFlags,
  password: Flag.Redacted("password").pipe(
    Flag.withDescription("Password of the mailbox"),
    Flag.optional
  )
}

export const mailboxArgument = Argument.String("mailbox").pipe(
  Argument.withDescription("Its URI, with or without the secret part, or its name")
)

/** The values of these flags. */
export interface MailboxFlags extends RemoteFlags {
  readonly password: Option.Option<Redacted.Redacted>
}

/** Where a mailbox is, or what belongs to it, and as whom it is asked. */
export interface MailboxLocation {
  readonly remote: RemoteService
  readonly path: string
}

/** What a URI may name. */
export interface Named {
  readonly expected: string
  /** Of its path. */
  readonly pattern: RegExp
}

const mailboxes: Named = {
  expected: "the URI or the name of a mailbox",
  pattern: /^\/mailboxes\/[^/]+$/
}

/**
 * The mailbox of a URI or a name. Unless it was said where the service is, a URI says so itself;
 * a token of the environment is for no other service than the one that was said.
 */
export const mailboxOf = Effect.fnUntraced(function*(
  given: string,
  { password: secret, ...flags }: MailboxFlags,
  { expected, pattern }: Named = mailboxes
): Effect.fn.Return<MailboxLocation, CommandFailed> {
  const password = Option.getOrUndefined(secret)
  const place = yield* serviceLocation(flags, "account")
  const isName = /^[a-z0-9][a-z0-9-]{0,63}$/.test(given)
  const uri = isName ? `${place.baseUrl}/mailboxes/${given}` : given
  const { origin, pathname: path, protocol } = URL.canParse(uri)
    ? new URL(uri)
    : { origin: "", pathname: "", protocol: "" }
  if (!/^https?:$/.test(protocol) || !pattern.test(path)) {
    return yield* failed(`expected ${expected}`, exitCodes.usage)
  }
  const baseUrl = place.isGiven ? place.baseUrl : origin
  const isElsewhere = baseUrl !== place.baseUrl
  const token = isElsewhere ? Option.getOrUndefined(flags.token) : place.token
  if (password !== undefined) {
    return { remote: { baseUrl, authorization: byPassword(password) }, path }
  }
  // A secret URI needs nothing else.
  const authorization = token === undefined || path.includes("~") ? undefined : byToken(token)
  return { remote: { baseUrl, authorization }, path }
})

/* `restante read`: what is in a mailbox now, or one notification and what it points to. */

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

/* The mailbox that a command is told: its name, its URI, or its secret URI. */

const listener = (json: boolean): StreamListener => ({
  received: (one) => {
    const { description, received, url } = one
    const line = json ? JSON.stringify(one) : [received, description, url].map(plain).join("\t")
    process.stdout.write(`${line}\n`)
  },
  answers: (does) => {
    const text = does ? "The service answers again." : "The service does not answer; trying again."
    process.stderr.write(`${text}\n`)
  }
})

export const watchCommand = Command.make(
  "watch",
  {
    ...mailboxFlags,
    mailbox: mailboxArgument,
    since: Flag.String("since").pipe(
      Flag.withMetavar("time"),
      Flag.withDescription("Only what was received since, such as 2026-07-01T00:00:00Z"),
      Flag.optional
    ),
    json: jsonFlag("One JSON object a line")
  },
  Effect.fnUntraced(function*({ json, mailbox, since, ...flags }) {
    const { path, remote } = yield* mailboxOf(mailbox, flags)
    endWithReader()
    if (process.stderr.isTTY) yield* Console.error("Watching; end with Ctrl-C.")
    yield* watchMailbox(remote, path, Option.getOrUndefined(since), listener(json))
  })
).pipe(Command.withDescription("Print what is in a mailbox, and what comes into it"))
