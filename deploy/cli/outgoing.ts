/** `restante send` and `restante outbox …`: the account's outgoing mailbox. */
import { Console, Effect, Option, type Scope } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { parseUrl } from "../../actors/index.ts"
import { type NotificationProgress, type Outgoing, type OutgoingPauses, pathOf, type Recipient,
  type Sent, type SentStatus } from "../../client/index.ts"
import { type CommandFailed, failed } from "../command-failure.ts"
import { checkStandardInput } from "../secret-input.ts"
import { printAttempts } from "./attempts/index.ts"
import { expectDelivered, showProgress } from "./delivery-progress.ts"
import { accountFlags, jsonFlag, limitFlag, sinceFlag, switchFlag, textArgument, textFlag,
  wordFlag } from "./flags.ts"
import { checkMessage, type Message, messageFlags, publish,
  withdrawContent } from "./message/index.ts"
import { asAccount, call, ownResourceOf, recipientUris, type ServiceLocation,
  wrongUsage } from "./service/index.ts"
import { endWithReader, jsonText, pageSizeFor, plain, plural, printJson, printLine, printOutcome,
  table, take } from "./terminal.ts"

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

const send = Effect.fnUntraced(function*(
  service: ServiceLocation,
  message: Message & { readonly to: ReadonlyArray<string> }
): Effect.fn.Return<string, CommandFailed, Scope.Scope> {
  // A wrong token fails before anything is published.
  yield* call(service, ({ outgoing }) => outgoing.href())
  const to = yield* recipientUris(service, message.to)
  const { edit, input } = yield* publish(service, message)
  const { href } = yield* call(
    service,
    (client) =>
      client.send({ ...input, to }).catch((error: unknown) =>
        withdrawContent(client, error, input.url, edit)
      )
  )
  return href
})

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
    },
    {
      command: "restante send --to alice --description \"The disk is full\" --priority high",
      description: "A note, whose description is all that it says"
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

/** Retries what has failed in a span of time, or sends it again to some recipients. */
const retrySpan = Effect.fnUntraced(function*(
  since: string,
  until: string | undefined,
  to: ReadonlyArray<string>
) {
  const { json, ...flags } = yield* outbox
  const service = yield* asAccount(flags)
  const named = to.length === 0 ? {} : { to: yield* recipientUris(service, to) }
  const retried = yield* call(service, ({ outgoing }) => outgoing.retrySince(since, until, named))
  const notifications = plural(retried.notifications, "notification")
  const recipients = plural(retried.recipients, "recipient")
  const outcome = to.length === 0
    ? `Retrying ${recipients} of ${notifications}.`
    : `Sending ${notifications} again, to ${recipients} in all.`
  yield* printOutcome(json, retried, outcome)
  if (retried.refused > 0) {
    yield* Console.error(
      `${plural(retried.refused, "notification")} not sent again: too often, or replaced since.`
    )
  }
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
      return yield* retrySpan(since.value, Option.getOrUndefined(until), to)
    }
    if (Option.isSome(until)) {
      return yield* wrongUsage("--until is without --since", "give --since, too")
    }
    if (Option.isNone(which)) return
    const { json, path, service } = yield* locateNotification(which.value)
    const only = to.length === 0 ? {} : { to: yield* recipientUris(service, to) }
    const progress = yield* call(service, ({ outgoing }) => outgoing.sent(path).retry(only))
    const outcome = to.length === 0
      ? "Retrying its failed recipients."
      : `Sending it again to ${plural(to.length, "recipient")}.`
    yield* printOutcome(json, documentOf(progress), outcome)
  })
).pipe(Command.withDescription("Retry failed recipients, or send again to some"))

const replacement = Effect.fnUntraced(function*(
  service: ServiceLocation,
  path: string,
  message: Message
): Effect.fn.Return<NotificationProgress, CommandFailed, Scope.Scope> {
  // One that does not exist, or is withdrawn, fails before anything is published.
  const { withdrawn } = yield* call(service, ({ outgoing }) => outgoing.sent(path).status())
  if (withdrawn !== undefined) {
    return yield* failed(
      `the notification ${path} was withdrawn at ${plain(withdrawn)}`,
      "send a new one"
    )
  }
  const { edit, input } = yield* publish(service, message)
  return yield* call(
    service,
    (client) =>
      client.outgoing.sent(path).replace(input).catch((error: unknown) =>
        withdrawContent(client, error, input.url, edit)
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
    const progress = yield* call(service, ({ outgoing }) => outgoing.sent(path).withdraw(), {
      409: [
        "the notification was withdrawn before",
        "see with restante outbox show what its recipients have got"
      ]
    })
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

/** What is paused, for a person; undefined if nothing is. */
const pausesText = ({ origins, since }: OutgoingPauses): string | undefined => {
  const all = since === undefined ? [] : [`All relays are paused since ${plain(since)}.`]
  const some = origins.map((one) =>
    `Relays to ${plain(one.origin)} are paused since ${plain(one.since)}.`
  )
  const lines = [...all, ...some]
  return lines.length === 0 ? undefined : lines.join(" ")
}

/** What was resumed, if it was paused, and what is paused yet. */
const resumedText = (
  before: OutgoingPauses,
  after: OutgoingPauses,
  only: string | undefined
): string => {
  const origin = only === undefined ? undefined : new URL(only).origin
  const wasPaused = origin === undefined
    ? before.since !== undefined
    : before.origins.some((one) => one.origin === origin)
  const subject = origin === undefined ? "The relays" : `Relays to ${plain(origin)}`
  const first = `${subject} ${wasPaused ? "are resumed" : "were not paused"}.`
  return [first, pausesText(after) ?? []].flat().join(" ")
}

/** What has changed, for a person. */
interface PausesChange {
  readonly pauses: OutgoingPauses
  readonly message: string
}

/** The command that pauses or resumes the outgoing mailbox of the account, or an origin. */
const pausing = (
  name: "pause" | "resume",
  description: string,
  change: (outgoing: Outgoing, origin: string | undefined) => Promise<PausesChange>
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
      if (only !== undefined && !/^https?:$/.test(parseUrl(only)?.protocol ?? "")) {
        return yield* wrongUsage(
          `--origin is ${plain(only)}, which is no http or https URI`,
          "give one such as https://receiver.example"
        )
      }
      const { json, ...flags } = yield* outbox
      const service = yield* asAccount(flags)
      const { message, pauses } = yield* call(service, ({ outgoing }) => change(outgoing, only))
      yield* printOutcome(json, pausesDocument(pauses), message)
    })
  ).pipe(Command.withDescription(description))

const pause = pausing(
  "pause",
  "Pause the relays of the account, or those to an origin: what is sent waits",
  async (outgoing, origin) => {
    const pauses = await outgoing.pause(origin)
    return { pauses, message: pausesText(pauses) ?? "Others have resumed the relays meanwhile." }
  }
)

const resume = pausing(
  "resume",
  "Resume the relays of the account, or those to an origin: what has waited is sent",
  async (outgoing, origin) => {
    const before = await outgoing.pauses()
    const pauses = await outgoing.resume(origin)
    return { pauses, message: resumedText(before, pauses, origin) }
  }
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
