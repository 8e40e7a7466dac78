/** `restante send` and `restante outbox …`: the account's outgoing mailbox. */
import { Console, Effect, Option, Redacted, type Scope } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { extname } from "node:path"
import { type Client, type NotificationProgress, type Outgoing, type OutgoingPauses, pathOf,
  ProblemError, type Published, type Recipient, type Sent,
  type SentStatus } from "../../client/index.ts"
import { type CommandFailed, failed } from "../command-failure.ts"
import { checkStandardInput, readSecret } from "../secret-input.ts"
import { printAttempts } from "./attempts/index.ts"
import { expectDelivered, showProgress } from "./delivery-progress.ts"
import { accountFlags, jsonFlag, limitFlag, secretFileFlag, sinceFlag, switchFlag, textArgument,
  textFlag, wordFlag } from "./flags.ts"
import { mailboxUri } from "./resource-name/index.ts"
import { asAccount, call, failureOf, ownResourceOf, type ServiceLocation,
  wrongUsage } from "./service/index.ts"
import { bytesOf, endWithReader, jsonText, pageSizeFor, plain, plural, printJson, printLine,
  printOutcome, table, take, webStream } from "./terminal.ts"

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

/** The progress as JSON. */
const documentOf = (
  { href, recipients, replaced, status, time, withdrawn }: NotificationProgress
) => ({
  href,
  time,
  status,
  ...replaced === undefined ? {} : { replaced },
  ...withdrawn === undefined ? {} : { withdrawn },
  recipient: recipients.map(({ code, ...recipient }) => ({ ...recipient, code: code?.toString() }))
})

/** The message: a URI of published content, or a file to publish. */
interface Message {
  readonly url: Option.Option<string>
  readonly content: Option.Option<string>
  readonly type: Option.Option<string>
  readonly "password-file": Option.Option<string>
  readonly "generate-password": boolean
}

const checkMessage = (
  { content, type, url, ...message }: Message
): Effect.Effect<void, CommandFailed> => {
  if (Option.isSome(url) === Option.isSome(content)) {
    return Effect.fail(wrongUsage(
      Option.isSome(url) ? "the message has both --url and --content" : "the message is missing",
      "give either --url or --content"
    ))
  }
  if (Option.isSome(type) && Option.isNone(content)) {
    return Effect.fail(wrongUsage("--type applies to --content only", "leave it out"))
  }
  const isGenerated = message["generate-password"]
  if (isGenerated && Option.isSome(message["password-file"])) {
    return Effect.fail(wrongUsage(
      "the message has two passwords",
      "give either --generate-password or --password-file"
    ))
  }
  return Option.isSome(url) && isGenerated
    ? Effect.fail(wrongUsage(
      "the service generates no password for the message of --url",
      "use --password-file, or --content"
    ))
    : Effect.void
}

/** The chosen password, `generate` for one that the service chooses, or none. */
const passwordOf = Effect.fnUntraced(function*(
  message: Message
): Effect.fn.Return<string | undefined, CommandFailed> {
  if (message["generate-password"]) return "generate"
  const file = message["password-file"]
  if (Option.isNone(file)) return undefined
  const password = Redacted.value(yield* readSecret(file.value, "Password of the message"))
  // The service would choose one, and nobody would know that this one does not work.
  return password === "generate"
    ? yield* wrongUsage(
      "the password of the message would be the word generate",
      "choose another one, or use --generate-password"
    )
    : password
})

/** Publishes the file of the message, if it has one. */
const publish = Effect.fnUntraced(function*(
  service: ServiceLocation,
  { content, type, url }: Message,
  password: string | undefined
): Effect.fn.Return<
  Pick<Published, "href" | "password"> & { readonly edit?: string },
  CommandFailed,
  Scope.Scope
> {
  if (Option.isSome(url)) return { href: url.value, password }
  const file = Option.getOrElse(content, () => "-")
  const bytes = yield* bytesOf(file)
  const contentType = Option.getOrElse(type, () => typeOf(file))
  return yield* call(
    service,
    (client) => client.publish(webStream(bytes), { contentType, password })
  )
})

/**
 * Removes the content of a notification that was refused, and fails with the refusal. The user
 * repeats the whole command, also after 425 and 429, and that publishes the content again. A
 * notification that may have been accepted needs its content.
 */
const withdrawContent = async (
  client: Client,
  error: unknown,
  href: string,
  edit: string
): Promise<never> => {
  const isRefused = error instanceof ProblemError && !error.isIndeterminate
  if (isRefused && await client.remove(pathOf(edit)).then(() => true, () => false)) throw error
  const { exitCode, message } = failureOf(error)
  const accepted = "; the notification may have been accepted, see `restante outbox`"
  throw failed(
    `${message}${isRefused ? "" : accepted}; the content stays at ${href}`,
    `to delete it, send DELETE to ${edit}`,
    exitCode
  )
}

const send = Effect.fnUntraced(function*(
  service: ServiceLocation,
  message: Message & {
    readonly to: ReadonlyArray<string>
    readonly description: string
    readonly from: boolean
  }
): Effect.fn.Return<string, CommandFailed, Scope.Scope> {
  // A wrong token fails before anything is published.
  yield* call(service, ({ outgoing }) => outgoing.href())
  const { edit, href: url, password } = yield* publish(
    service,
    message,
    yield* passwordOf(message)
  )
  const { description, from } = message
  const to = message.to.map((one) => mailboxUri(one, service))
  const { href } = yield* call(
    service,
    (client) =>
      client.send({ to, from, description, url, password }).catch((error: unknown) =>
        edit === undefined ? Promise.reject(error) : withdrawContent(client, error, url, edit)
      )
  )
  return href
})

/** The flags of what is sent. */
const messageFlags = {
  description: Flag.String("description").pipe(
    Flag.withMetavar("text"),
    Flag.withDescription("What the message is about")
  ),
  url: textFlag("url", "uri", "The URI of the message, if it is already published"),
  content: textFlag("content", "file", "A file to publish as the message; - for standard input"),
  type: textFlag("type", "media-type", "Media type of the content; by the file name by default"),
  "password-file": secretFileFlag("password-file", "File of the message password"),
  "generate-password": switchFlag(
    "generate-password",
    "Let the service choose the password of --content"
  ),
  from: switchFlag("from", "Send the URI of the outgoing mailbox to the recipients")
}

export const sendCommand = Command.make(
  "send",
  {
    ...accountFlags,
    to: Flag.String("to").pipe(
      Flag.withMetavar("uri|name"),
      Flag.withDescription("A mailbox to send to; may be repeated"),
      Flag.atLeast(1)
    ),
    ...messageFlags,
    wait: switchFlag("wait", "Show the progress until every recipient has it or has failed"),
    json: jsonFlag("JSON: its URI, or with --wait its progress")
  },
  Effect.fnUntraced(function*({ json, wait, ...options }) {
    yield* checkMessage(options)
    yield* checkStandardInput(options["token-file"], options["password-file"], options.content)
    const service = yield* asAccount(options)
    const href = yield* Effect.scoped(send(service, options))
    if (!json) yield* Console.log(plain(href))
    else if (!wait) yield* printJson({ href })
    if (!wait) return
    const progress = yield* showProgress(service, pathOf(href))
    if (json) yield* printJson(documentOf(progress))
    yield* expectDelivered(progress)
  })
).pipe(
  Command.withDescription("Send a notification to mailboxes, and print its URI"),
  Command.withExamples([
    {
      command: "restante send --to https://post.example.org/mailboxes/alice " +
        "--description \"The minutes\" --content minutes.pdf --wait",
      description: "Publish a file, notify alice, and wait until she has it"
    }
  ])
)

/** Notifications of a listing whose summaries are requested concurrently. */
const concurrentSummaries = 8

const outbox = Command.make("outbox", {
  status: wordFlag(
    "status",
    ["sent", "waiting", "failed"],
    "Only notifications with this status"
  ),
  limit: limitFlag("How many at most, the newest first")
}).pipe(
  Command.withSharedFlags({ ...accountFlags, json: jsonFlag("JSON; in a list, one object a line") })
)

const which = textArgument(
  "notification",
  "Its URI, ACCOUNT/ID, or its id in the account's outgoing mailbox"
)

/** The notification of a URI, or of an id in the account's own mailbox; with the shared flags. */
const locateNotification = Effect.fnUntraced(function*(which: string) {
  const { json, ...flags } = yield* outbox
  const service = yield* asAccount(flags)
  const path = /^[A-Za-z0-9_=-]+$/.test(which)
    ? `${pathOf(yield* call(service, ({ outgoing }) => outgoing.href()))}/${which}`
    : (yield* ownResourceOf(service, which, "sent")).path
  return { json, path, service }
})

const cells = (recipient: Recipient): ReadonlyArray<string> => {
  const { attempts, code, href, last, next, paused, problem, status } = recipient
  const due = paused === undefined ? next : "paused"
  const values = [status, String(attempts), last, due, code?.toString(), href]
  return [...values.map((value) => value ?? "-"), problem ?? ""].map(plain)
}

const show = Command.make(
  "show",
  {
    which,
    watch: switchFlag("watch", "Show the progress until every recipient has it or has failed")
  },
  Effect.fnUntraced(function*({ watch, which }) {
    const { json, path, service } = yield* locateNotification(which)
    const current = yield* call(service, ({ outgoing }) => outgoing.sent(path).status())
    const progress = watch ? yield* showProgress(service, path) : current
    const { href, recipients, replaced, status, time, withdrawn } = progress
    const followed = `${replaced === undefined ? "" : `  replaced ${plain(replaced)}`}${
      withdrawn === undefined ? "" : `  withdrawn ${plain(withdrawn)}`
    }`
    const heading = ["STATUS", "ATTEMPTS", "LAST", "NEXT", "CODE", "RECIPIENT", "PROBLEM"]
    yield* json ? printJson(documentOf(progress)) : Console.log(
      `${plain(time)}  ${status}  ${plain(href)}${followed}\n${
        table([heading, ...recipients.map(cells)])
      }`
    )
    if (watch) yield* expectDelivered(progress)
  })
).pipe(Command.withDescription("Show the progress of a notification for each recipient"))

const attempts = Command.make(
  "attempts",
  { which },
  Effect.fnUntraced(function*({ which }) {
    const { json, path, service } = yield* locateNotification(which)
    const shown = yield* call(service, ({ outgoing }) => outgoing.sent(path).attempts())
    yield* printAttempts(
      shown.attempts,
      json,
      ({ number, recipient }) => `attempt ${number} at ${recipient}`
    )
    if (shown.dropped > 0) {
      yield* Console.error(`${plural(shown.dropped, "earlier attempt")} not kept.`)
    }
  })
).pipe(Command.withDescription("Show what was sent last to its recipients, and what they answered"))

/** Retries what has failed in a span of time. */
const retrySpan = Effect.fnUntraced(function*(since: string, until: string | undefined) {
  const { json, ...flags } = yield* outbox
  const service = yield* asAccount(flags)
  const retried = yield* call(service, ({ outgoing }) => outgoing.retrySince(since, until))
  const notifications = plural(retried.notifications, "notification")
  const recipients = plural(retried.recipients, "recipient")
  yield* printOutcome(json, retried, `Retrying ${recipients} of ${notifications}.`)
})

const retry = Command.make(
  "retry",
  {
    which: which.pipe(Argument.optional),
    to: Flag.String("to").pipe(
      Flag.withMetavar("uri|name"),
      Flag.withDescription("A recipient to send it to again, whatever it has got; may be repeated"),
      Flag.atLeast(0)
    ),
    since: sinceFlag,
    until: textFlag("until", "time", "Only what was sent until then, RFC 3339; with --since")
  },
  Effect.fnUntraced(function*({ since, to, until, which }) {
    if (Option.isSome(since) === Option.isSome(which)) {
      return yield* wrongUsage(
        Option.isSome(which)
          ? "both a notification and --since are given"
          : "nothing is named to retry",
        "give either a notification or --since"
      )
    }
    if (Option.isSome(since)) {
      if (to.length > 0) {
        return yield* wrongUsage(
          "--to is of one notification",
          "give the notification, or leave out --to"
        )
      }
      return yield* retrySpan(since.value, Option.getOrUndefined(until))
    }
    if (Option.isSome(until)) {
      return yield* wrongUsage("--until is without --since", "give --since, too")
    }
    if (Option.isNone(which)) return
    const { json, path, service } = yield* locateNotification(which.value)
    const progress = yield* call(
      service,
      ({ outgoing }) =>
        outgoing.sent(path).retry(
          to.length === 0 ? {} : { to: to.map((one) => mailboxUri(one, service)) }
        )
    )
    const outcome = to.length === 0
      ? "Retrying its failed recipients."
      : `Sending it again to ${plural(to.length, "recipient")}.`
    yield* printOutcome(json, documentOf(progress), outcome)
  })
).pipe(Command.withDescription("Retry failed recipients, or send again to some"))

const replacement = Effect.fnUntraced(function*(
  service: ServiceLocation,
  path: string,
  message: Message & { readonly description: string; readonly from: boolean }
): Effect.fn.Return<NotificationProgress, CommandFailed, Scope.Scope> {
  // One that does not exist, or is withdrawn, fails before anything is published.
  const { withdrawn } = yield* call(service, ({ outgoing }) => outgoing.sent(path).status())
  if (withdrawn !== undefined) {
    return yield* failed(
      `the notification ${path} was withdrawn at ${plain(withdrawn)}`,
      "send a new one"
    )
  }
  const { edit, href: url, password } = yield* publish(
    service,
    message,
    yield* passwordOf(message)
  )
  const { description, from } = message
  return yield* call(
    service,
    (client) =>
      client.outgoing.sent(path).replace({ description, from, password, url })
        .catch((error: unknown) =>
          edit === undefined ? Promise.reject(error) : withdrawContent(client, error, url, edit)
        )
  )
})

const replace = Command.make(
  "replace",
  { which, ...messageFlags },
  Effect.fnUntraced(function*({ which, ...options }) {
    yield* checkMessage(options)
    const shared = yield* outbox
    yield* checkStandardInput(shared["token-file"], options["password-file"], options.content)
    const { json, path, service } = yield* locateNotification(which)
    const progress = yield* Effect.scoped(replacement(service, path, options))
    yield* printOutcome(json, documentOf(progress), "The notification is replaced.")
  })
).pipe(Command.withDescription("Send another message to its recipients, in place of the first"))

const withdraw = Command.make(
  "withdraw",
  { which },
  Effect.fnUntraced(function*({ which }) {
    const { json, path, service } = yield* locateNotification(which)
    const progress = yield* call(service, ({ outgoing }) => outgoing.sent(path).withdraw())
    yield* printOutcome(json, documentOf(progress), "The notification is withdrawn.")
  })
).pipe(Command.withDescription("Withdraw a notification: its recipients see when it was withdrawn"))

const remove = Command.make(
  "delete",
  { which },
  Effect.fnUntraced(function*({ which }) {
    const { json, path, service } = yield* locateNotification(which)
    yield* call(service, ({ outgoing }) => outgoing.sent(path).delete())
    yield* printOutcome(json, { deleted: path }, "The notification is deleted.")
  })
).pipe(Command.withDescription("Delete a notification; no attempt starts afterwards"))

/** What is paused, as JSON. */
const pausesDocument = ({ origins, since }: OutgoingPauses) => ({
  status: since === undefined ? "active" : "paused",
  ...since === undefined ? {} : { since },
  pause: origins
})

/** What is paused, for a person. */
const pausesText = ({ origins, since }: OutgoingPauses): string => {
  const all = since === undefined ? [] : [`All relays are paused since ${plain(since)}.`]
  const some = origins.map((one) =>
    `Relays to ${plain(one.origin)} are paused since ${plain(one.since)}.`
  )
  return [...all, ...some].join("\n") || "No relay is paused."
}

/** The command that pauses or resumes the outgoing mailbox of the account, or an origin. */
const pausing = (
  name: "pause" | "resume",
  description: string,
  change: (outgoing: Outgoing, origin: string | undefined) => Promise<OutgoingPauses>
) =>
  Command.make(
    name,
    {
      origin: textFlag(
        "origin",
        "uri",
        "Only relays to this origin, such as https://receiver.example"
      )
    },
    Effect.fnUntraced(function*({ origin }) {
      const only = Option.getOrUndefined(origin)
      if (only !== undefined && !/^https?:\/\/[^/?#]/i.test(only)) {
        return yield* wrongUsage(
          `--origin is ${plain(only)}, which is no http or https URI`,
          "give one such as https://receiver.example"
        )
      }
      const { json, ...flags } = yield* outbox
      const service = yield* asAccount(flags)
      const pauses = yield* call(service, ({ outgoing }) => change(outgoing, only))
      yield* printOutcome(json, pausesDocument(pauses), pausesText(pauses))
    })
  ).pipe(Command.withDescription(description))

const pause = pausing(
  "pause",
  "Pause the relays of the account, or those to an origin: what is sent waits",
  (outgoing, origin) => outgoing.pause(origin)
)

const resume = pausing(
  "resume",
  "Resume the relays of the account, or those to an origin: what has waited is sent",
  (outgoing, origin) => outgoing.resume(origin)
)

/** Prints the newest notifications with their counts, such as `success=3 retry=1`. */
const list = (
  service: ServiceLocation,
  { json, limit, status }: {
    readonly json: boolean
    readonly limit: number
    readonly status: SentStatus | undefined
  }
): Effect.Effect<void, CommandFailed> =>
  call(service, async ({ outgoing }) => {
    const print = async (batch: ReadonlyArray<Sent>): Promise<void> => {
      const summaries = await Promise.all(
        batch.map(({ href }) => outgoing.sent(pathOf(href)).summary())
      )
      for (const [at, { href, time }] of batch.entries()) {
        const summary = summaries[at]
        if (summary === undefined) continue
        const counts = Object.entries(summary.counts).map(([name, count]) => `${name}=${count}`)
          .join(" ")
        const row = { href, time, status: summary.status, counts }
        const cells = [time, summary.status, counts, href].map(plain)
        printLine(json ? jsonText(row) : cells.join("\t"))
      }
    }
    let batch: Array<Sent> = []
    const listed = take(outgoing.list({ pageSize: pageSizeFor(limit), status }), limit)
    for await (const one of listed) {
      if (batch.push(one) < concurrentSummaries) continue
      await print(batch)
      batch = []
    }
    await print(batch)
  })

export const outboxCommand = outbox.pipe(
  Command.withHandler(Effect.fnUntraced(function*({ json, limit, status, ...flags }) {
    const service = yield* asAccount(flags)
    endWithReader()
    yield* list(service, { json, limit, status: Option.getOrUndefined(status) })
  })),
  Command.withDescription(
    "List what was sent; show, retry, replace, withdraw or delete it; pause and resume its relays"
  ),
  Command.withSubcommands([show, attempts, retry, replace, withdraw, remove, pause, resume])
)
