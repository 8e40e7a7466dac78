/** `restante outbox …`: the account's outgoing mailbox. */
import { Console, Effect, Option, Redacted, Schema, type Scope } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { open } from "node:fs/promises"
import { extname } from "node:path"
import { CommandFailed, exitCodes } from "../command-failure.ts"
import { failed, follow, notUnderstood, type OutgoingNotification, type OutgoingRecipient,
  ownMailbox, pathOf, publish, type PublishedContent, queue, type RemoteService,
  unpublish } from "./service/index.ts"
import * as outgoing from "./service/outgoing.ts"
import { accountFlags, asAccount, endWithReader, jsonFlag, plain, printJson, some,
  table } from "./terminal.ts"

const tickMs = 1_000

/** Failed recipients that are named when all has ended. */
const namedMax = 20

const spanOf = (ms: number): string => {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}

const countOf = (
  { recipient }: OutgoingNotification,
  wanted: OutgoingRecipient["status"]
): number => recipient.filter(({ status }) => status === wanted).length

const nextMsOf = ({ recipient }: OutgoingNotification): number | undefined => {
  const times = recipient.flatMap(({ next, status }) =>
    next === undefined || status === "success" || status === "failed" ? [] : [Date.parse(next)]
  )
  return times.length === 0 ? undefined : Math.min(...times)
}

/** `3 of 5 delivered, 1 retrying, 1 failed · next attempt in 12 s`; counts of zero are left out. */
export const progressText = (seen: OutgoingNotification, nowMs: number): string => {
  const others = [
    ["waiting", countOf(seen, "waiting")],
    ["retrying", countOf(seen, "retry")],
    ["failed", countOf(seen, "failed")]
  ].map(([name, count]) => count === 0 ? "" : `, ${count} ${name}`).join("")
  const nextMs = nextMsOf(seen)
  const next = nextMs === undefined || nextMs <= nowMs
    ? ""
    : ` · next attempt in ${spanOf(nextMs - nowMs)}`
  return `${countOf(seen, "success")} of ${seen.recipient.length} delivered${others}${next}`
}

/** Where the line goes. */
export interface Screen {
  readonly write: (text: string) => void
  /** Whether a line can be written over. */
  readonly isTerminal: boolean
}

const unanswered = "the service does not answer; trying again"

/** Rewrites its line on a terminal; elsewhere it writes a line for each change. */
export class ProgressLine {
  private readonly screen: Screen
  private seen: OutgoingNotification | undefined
  private written = ""

  constructor(screen: Screen) {
    this.screen = screen
  }

  /** Undefined when the service does not tell. */
  show(seen: OutgoingNotification | undefined, nowMs: number): void {
    const text = seen === undefined ? unanswered : progressText(seen, nowMs)
    this.seen = seen
    // That time passes is no change.
    const change = seen === undefined ? text : `${text.split(" · ")[0]} ${nextMsOf(seen)}`
    if (this.screen.isTerminal) this.screen.write(`\r\x1b[K${text}`)
    else if (change !== this.written) this.screen.write(`${text}\n`)
    this.written = change
  }

  /** The next attempt comes nearer. */
  tick(nowMs: number): void {
    if (this.screen.isTerminal && this.seen !== undefined) this.show(this.seen, nowMs)
  }

  end(): void {
    if (this.screen.isTerminal && this.written !== "") this.screen.write("\n")
  }
}

const standardError: Screen = {
  write: (text) => {
    process.stderr.write(text)
  },
  isTerminal: process.stderr.isTTY
}

/**
 * Shows the progress of a notification until all its recipients have ended. Interrupted before, the
 * process ends with 1: nobody may take that for delivered.
 */
export const showProgress = (
  remote: RemoteService,
  path: string
): Effect.Effect<OutgoingNotification, CommandFailed> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      process.exitCode = exitCodes.failed
      const line = new ProgressLine(standardError)
      return { line, timer: setInterval(() => line.tick(Date.now()), tickMs) }
    }),
    ({ line }) => follow(remote, path, (seen) => line.show(seen, Date.now())),
    ({ line, timer }) =>
      Effect.sync(() => {
        clearInterval(timer)
        line.end()
      })
  ).pipe(
    Effect.tap(() =>
      Effect.sync(() => {
        process.exitCode = undefined
      })
    )
  )

/** Fails, naming them, when recipients of an ended notification have failed. */
export const expectDelivered = (
  { recipient }: OutgoingNotification
): Effect.Effect<void, CommandFailed> => {
  const lost = recipient.filter(({ status }) => status === "failed")
  if (lost.length === 0) return Effect.void
  const named = lost.slice(0, namedMax).map(({ href, problem = "failed" }) =>
    `${plain(href)}: ${plain(problem)}`
  )
  const more = lost.length > namedMax ? [`and ${lost.length - namedMax} more`] : []
  const first = `not delivered to ${some(lost.length, "recipient")} of ${recipient.length}:`
  return Effect.fail(
    new CommandFailed({
      message: [first, ...named, ...more].join("\n"),
      exitCode: exitCodes.failed
    })
  )
}

/* `restante send`: content and a notification of it, to any number of mailboxes. */

const types: Readonly<Record<string, string>> = {
  ".txt": "text/plain; charset=utf-8",
  ".md": "text/markdown; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".json": "application/json",
  ".xml": "application/xml",
  ".pdf": "application/pdf",
  ".zip": "application/zip",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".mp3": "audio/mpeg",
  ".mp4": "video/mp4"
}

const typeOf = (file: string): string =>
  file === "-"
    ? "text/plain; charset=utf-8"
    : types[extname(file).toLowerCase()] ?? "application/octet-stream"

/** The bytes of a file, or of standard input. */
const bytesOf = (
  file: string
): Effect.Effect<AsyncIterable<Uint8Array>, CommandFailed, Scope.Scope> =>
  file === "-" ? Effect.succeed(process.stdin) : Effect.gen(function*() {
    const unreadable = (cause: unknown): CommandFailed =>
      failed(`${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`)
    const handle = yield* Effect.acquireRelease(
      Effect.tryPromise({ try: () => open(file), catch: unreadable }),
      (handle) => Effect.promise(() => handle.close())
    )
    const stat = yield* Effect.tryPromise({ try: () => handle.stat(), catch: unreadable })
    if (stat.isDirectory()) return yield* unreadable("it is a folder")
    return handle.createReadStream({ autoClose: false })
  })

const flags = {
  to: Flag.String("to").pipe(
    Flag.withMetavar("uri"),
    Flag.withDescription("A mailbox to send to; may be repeated"),
    Flag.atLeast(1)
  ),
  description: Flag.String("description").pipe(
    Flag.withMetavar("text"),
    Flag.withDescription("What the message is about")
  ),
  url: Flag.String("url").pipe(
    Flag.withMetavar("uri"),
    Flag.withDescription("Where the message is, when it is published already"),
    Flag.optional
  ),
  content: Flag.String("content").pipe(
    Flag.withMetavar("file"),
    Flag.withDescription("A file to publish as the message; - for standard input"),
    Flag.optional
  ),
  type: Flag.String("type").pipe(
    Flag.withMetavar("media-type"),
    Flag.withDescription("Media type of the content; by the file's name unless given"),
    Flag.optional
  ),
  password: Flag.Redacted("password").pipe(
    Flag.withDescription("Message password; with --content, generate has one chosen"),
    Flag.optional
  ),
  from: Flag.Boolean("from").pipe(
    Flag.withDescription("Tell the recipients whose outgoing mailbox it came from"),
    Flag.withDefault(false)
  ),
  wait: Flag.Boolean("wait").pipe(
    Flag.withDescription("Show the progress until every recipient has it or has failed"),
    Flag.withDefault(false)
  )
}

interface Source {
  readonly url: Option.Option<string>
  readonly content: Option.Option<string>
  readonly type: Option.Option<string>
  readonly password: Option.Option<Redacted.Redacted>
}

const wrong = (message: string): CommandFailed => failed(message, exitCodes.usage)

/** The message: one that is somewhere already, or a file that is published now. */
const messageOf = Effect.fnUntraced(function*(
  remote: RemoteService,
  { content, password, type, url }: Source
): Effect.fn.Return<PublishedContent, CommandFailed, Scope.Scope> {
  const secret = Option.getOrUndefined(password)
  if (Option.isSome(url)) return { href: url.value, edit: undefined, password: secret }
  const file = Option.getOrElse(content, () => "-")
  return yield* publish(remote, {
    bytes: yield* bytesOf(file),
    type: Option.getOrElse(type, () => typeOf(file)),
    password: secret
  })
})

const check = ({ content, password, type, url }: Source): Effect.Effect<void, CommandFailed> => {
  if (Option.isSome(url) === Option.isSome(content)) {
    return Effect.fail(wrong("give the message: either --url or --content"))
  }
  if (Option.isSome(type) && Option.isNone(content)) {
    return Effect.fail(wrong("--type is of --content"))
  }
  if (Option.isSome(url) && Option.isSome(password)) {
    const isChosen = Redacted.value(password.value) === "generate"
    if (isChosen) return Effect.fail(wrong("only the password of --content can be generated"))
  }
  return Effect.void
}

const send = Effect.fnUntraced(function*(
  remote: RemoteService,
  letter: Source & {
    readonly to: ReadonlyArray<string>
    readonly description: string
    readonly from: boolean
  }
): Effect.fn.Return<string, CommandFailed, Scope.Scope> {
  // A wrong token is told before anything is published.
  const mailbox = yield* ownMailbox(remote)
  const message = yield* messageOf(remote, letter)
  const { description, from, to } = letter
  const { href: url, password } = message
  return yield* queue(remote, mailbox, { to, from, description, url, password }).pipe(
    Effect.tapError(() => unpublish(remote, message))
  )
})

export const sendCommand = Command.make(
  "send",
  { ...accountFlags, ...flags, json: jsonFlag("JSON: its URI, or with --wait how it stands") },
  Effect.fnUntraced(function*({ json, wait, ...given }) {
    yield* check(given)
    const remote = yield* asAccount(given)
    const uri = yield* Effect.scoped(send(remote, given))
    if (!json) yield* Console.log(uri)
    else if (!wait) yield* printJson({ href: uri })
    if (!wait) return
    const path = pathOf(uri) ?? (yield* notUnderstood())
    const seen = yield* showProgress(remote, path)
    if (json) yield* printJson(seen)
    yield* expectDelivered(seen)
  })
).pipe(
  Command.withDescription("Send a notification to mailboxes, and print its URI"),
  Command.withExamples([
    {
      command: "restante send --to https://post.example.org/mailboxes/alice " +
        "--description \"The minutes\" --content minutes.pdf --wait",
      description: "Publish a file, tell alice, and wait until she has it"
    }
  ])
)

/* How a notification that is under way stands: one line on standard error. */

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
