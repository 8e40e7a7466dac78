/** `restante read`, `watch`, `register` and `registrations …`: the mailboxes of a service. */
import { Console, Effect, Option, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import { spawn } from "node:child_process"
import { createWriteStream } from "node:fs"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { ReadableStream as NodeStream } from "node:stream/web"
import { parseUrl } from "../../actors/index.ts"
import { type CallbackAttempt, type Client, type Mailbox, type Notification, pathOf,
  type Registration, type RegistrationEntry, type RegistrationInfo,
  type RegistrationTest } from "../../client/index.ts"
import { type CommandFailed, failed, reasonOf } from "../command-failure.ts"
import { checkStandardInput, readSecret } from "../secret-input.ts"
import { printAttempts, problemBeside } from "./attempts/index.ts"
import { accountFlags, jsonFlag, limitFlag, secretFileFlag, type ServiceFlags, sinceFlag,
  switchFlag, textArgument, textFlag } from "./flags.ts"
import { type ResourceKind, resourceNames } from "./resource-name/index.ts"
import { assertOwn, call, locateService, type Refusals, resourceOf, type ServiceLocation,
  wrongUsage } from "./service/index.ts"
import { checkSignature } from "./signature-check/index.ts"
import { cut, endWithReader, jsonText, pageSizeFor, plain, printJson, printLine, printOutcome,
  table, take } from "./terminal.ts"

const verificationMs = 15_000

/** Flags of commands that read a mailbox. */
const mailboxFlags = {
  ...accountFlags,
  "password-file": secretFileFlag("password-file", "File of the mailbox's password")
}

/** A mailbox, or a resource of one, at a service. */
interface MailboxLocation {
  readonly service: ServiceLocation
  readonly path: string
  readonly password: string | undefined
}

/** What the argument of a command names. */
interface Target {
  readonly kinds: ReadonlyArray<ResourceKind>
  /** Asks for the secret URI. */
  readonly question: string
  /** Whether a secret URI needs an account too: registrations are those of a known reader. */
  readonly needsAccount: boolean
}

const mailboxes: Target = {
  kinds: ["mailbox"],
  question: "Secret URI of the mailbox",
  needsAccount: false
}

const registrars: Target = { ...mailboxes, needsAccount: true }

const readable: Target = {
  kinds: ["mailbox", "notification"],
  question: "Secret URI of the mailbox or of the notification",
  needsAccount: false
}

const registrations: Target = {
  kinds: ["registration"],
  question: "Secret URI of the registration",
  needsAccount: true
}

/**
 * The URI or the name that an argument is, or that `-` stands for. A secret part is no argument,
 * since every user of a machine sees the arguments of processes.
 */
const uriOf = Effect.fnUntraced(function*(
  argument: string,
  question: string
): Effect.fn.Return<string, CommandFailed> {
  if (argument === "-") return Redacted.value(yield* readSecret("-", question))
  if (!/~|%7e/i.test(argument)) return argument
  const shown = argument.replace(/(?:~|%7e)[^/]*/gi, "~…")
  return yield* wrongUsage(
    `the argument ${shown} has the secret part of a URI, which every user of the machine sees`,
    "give -, and the URI on standard input or typed at the prompt"
  )
})

/** The resource of a URI or a name. Without a service of a flag or a variable, the URI names it. */
const locateMailbox = Effect.fnUntraced(function*(
  argument: string,
  flags: ServiceFlags & { readonly "password-file": Option.Option<string> },
  { kinds, needsAccount, question } = mailboxes
): Effect.fn.Return<MailboxLocation, CommandFailed> {
  const passwordFile = flags["password-file"]
  yield* checkStandardInput(flags["token-file"], passwordFile, Option.some(argument))
  const nameOrUri = yield* uriOf(argument, question)
  const named = yield* resourceOf(nameOrUri, kinds, argument)
  const { origin, path } = named
  const { account, baseUrl, token } = yield* locateService(flags, "account", origin)
  yield* assertOwn({ baseUrl }, named, argument)
  const secret = Option.isNone(passwordFile)
    ? undefined
    : yield* readSecret(passwordFile.value, "Password of the mailbox")
  // A password replaces the token.
  const isTokenSent = secret === undefined && (needsAccount || !path.includes("~"))
  return {
    service: { baseUrl, account, token: isTokenSent ? token : undefined },
    path,
    password: secret && Redacted.value(secret)
  }
})

/** A notification or registration of a mailbox, in the path of it. */
const inMailbox = /\/(?:notifications|registrations)\/[^/]+$/

/** The mailbox of a location, which may be of a notification or registration in it. */
const callMailbox = <A>(
  { password, path, service }: MailboxLocation,
  use: (mailbox: Mailbox, client: Client) => Promise<A>,
  refusals?: Refusals
): Effect.Effect<A, CommandFailed> => {
  const mailboxPath = path.replace(inMailbox, "")
  return call(service, (client) => use(client.mailbox(mailboxPath, { password }), client), refusals)
}

const mailboxArgument = textArgument(
  "mailbox",
  "Its URI or its name; - for its secret URI, on standard input or typed on a terminal"
)

const onDiscarded = (): void => {
  process.stderr.write("Notifications since that time were removed; the others follow.\n")
}

const documentOf = ({ href, item, received }: Notification) => ({ href, received, item })

const cells = ({ description, received, url }: Notification): ReadonlyArray<string> =>
  [received, description, url].map(plain)

/** Writes the message of a notification to a file, and does not overwrite a file. */
const saveMessage = (
  location: MailboxLocation,
  { password, url }: Notification,
  file: string
): Effect.Effect<void, CommandFailed> =>
  callMailbox(location, async (_, client) => {
    if (parseUrl(url) === undefined) {
      throw failed(
        `the notification ${url} links to no message, but to a text`,
        "read it without --save"
      )
    }
    const { body } = (await client.get({ url, password })).response
    if (body === null) {
      throw failed(
        `the message at ${url} is empty`,
        "read the notification without --save"
      )
    }
    const target = file === "-" ? process.stdout : createWriteStream(file, { flags: "wx" })
    // Node and the DOM types declare the same stream twice.
    const source = Readable.fromWeb(body as NodeStream)
    await pipeline(source, target, { end: file !== "-" }).catch((error: unknown) => {
      throw failed(
        `the message is not saved in ${file}, ${reasonOf(error)}`,
        "repeat the command, with the name of a new file in a folder that you may write"
      )
    })
  })

const readNotification = Effect.fnUntraced(function*(
  location: MailboxLocation,
  file: string | undefined,
  json: boolean
): Effect.fn.Return<void, CommandFailed> {
  const notification = yield* callMailbox(
    location,
    (mailbox) => mailbox.get(location.path),
    { 401: readerRefusals(location)[401] }
  )
  if (json) yield* printJson(documentOf(notification))
  else if (file !== "-") yield* Console.log(cells(notification).join("\n"))
  if (file !== undefined) yield* saveMessage(location, notification, file)
})

/** The problem and the advice for readers; a token that the service knows is not refused by 401. */
const readerRefusals = ({ service: { token } }: MailboxLocation) => ({
  401: token === undefined
    ? [
      "reading this mailbox needs its secret URI, its password (--password-file), or its owner",
      "use one of them"
    ]
    : [
      "the service does not accept the token, which is unknown, revoked or has expired",
      "use another one (RESTANTE_TOKEN, --token-file, or a context), or the secret URI of the " +
      "mailbox"
    ],
  403: ["this account may not read the mailbox", "use the token of its owner, or its secret URI"],
  404: [
    "there is no such mailbox, or the secret part of its URI is wrong",
    "correct the name or the URI"
  ],
  410: ["the mailbox has been deleted", "name another one"]
} satisfies Refusals)

export const readCommand = Command.make(
  "read",
  {
    ...mailboxFlags,
    which: textArgument(
      "mailbox",
      "Its URI or name, or MAILBOX/ID or the URI of a notification in it; - for a secret URI, on " +
        "standard input or typed on a terminal"
    ),
    since: sinceFlag,
    limit: limitFlag("How many at most, the oldest first"),
    save: textFlag("save", "file", "Write the message of the notification; - for standard output"),
    json: jsonFlag("JSON; of a mailbox, one object a line")
  },
  Effect.fnUntraced(function*({ json, limit, save, since, which, ...flags }) {
    const location = yield* locateMailbox(which, flags, readable)
    const file = Option.getOrUndefined(save)
    endWithReader()
    if (location.path.includes("/notifications/")) {
      return yield* readNotification(location, file, json)
    }
    if (file !== undefined) {
      return yield* wrongUsage(
        `--save needs one notification, and ${plain(which)} is a mailbox`,
        `give ${resourceNames("notification")}`
      )
    }
    const rows: Array<ReadonlyArray<string>> = []
    const after = Option.getOrUndefined(since)
    const options = { after, onDiscarded, pageSize: pageSizeFor(limit) }
    yield* callMailbox(location, async (mailbox) => {
      for await (const notification of take(mailbox.notifications(options), limit)) {
        if (json) printLine(jsonText(documentOf(notification)))
        else {
          const [received = "", description = "", url = ""] = cells(notification)
          rows.push([received, cut(description), url, notification.href])
        }
      }
    }, readerRefusals(location))
    if (json) return
    const heading = ["RECEIVED", "DESCRIPTION", "MESSAGE", "NOTIFICATION"]
    yield* rows.length === 0
      ? Console.error("The mailbox is empty.")
      : Console.log(table([heading, ...rows]))
  })
).pipe(
  Command.withDescription("List the notifications of a mailbox, or show and save one"),
  Command.withExamples([
    { command: "restante read alice", description: "Its notifications, the oldest first" },
    {
      command:
        "restante read https://post.example.org/mailboxes/alice/notifications/1-… --save a.pdf",
      description: "Fetch the message of a notification, with its password"
    },
    {
      command: "restante read - < shared-uri.txt",
      description: "The notifications at the secret URI that is in a file"
    }
  ])
)

/** Characters of a variable, of three bytes at most each: Linux takes 128 KiB of one. */
const variableCharsMax = 32_768

/**
 * Runs a command for a notification, and waits until it ends. The notification is in variables of
 * its environment and not in its text, where a shell would run what a stranger wrote.
 */
const runFor = (
  command: string,
  { description, href, received, url }: Notification,
  document: string
): Promise<void> =>
  new Promise((resolve) => {
    const end = (problem?: string): void => {
      if (problem !== undefined) process.stderr.write(`restante: ${problem} for ${plain(href)}\n`)
      resolve()
    }
    const variables = {
      RESTANTE_DESCRIPTION: description.slice(0, variableCharsMax),
      RESTANTE_HREF: href,
      RESTANTE_RECEIVED: received,
      RESTANTE_URL: url.slice(0, variableCharsMax)
    }
    const child = spawn(command, {
      shell: true,
      env: { ...process.env, ...variables },
      stdio: ["pipe", "inherit", "inherit"]
    })
    child.once("error", (error) => end(`the command cannot run: ${reasonOf(error)}`))
    child.once("close", (code) => end(code === 0 ? undefined : `the command ended with ${code}`))
    // It need not read its input.
    child.stdin.on("error", () => {})
    child.stdin.end(`${document}\n`)
  })

export const watchCommand = Command.make(
  "watch",
  {
    ...mailboxFlags,
    mailbox: mailboxArgument,
    since: sinceFlag,
    exec: textFlag(
      "exec",
      "command",
      "Run this command by the shell for each, with the notification as JSON on its standard input"
    ),
    json: jsonFlag("One JSON object a line")
  },
  Effect.fnUntraced(function*({ exec, json, mailbox, since, ...flags }) {
    const location = yield* locateMailbox(mailbox, flags)
    endWithReader()
    if (process.stderr.isTTY) yield* Console.error("Watching; end with Ctrl-C.")
    let isLost = false
    const onConnection = ({ state }: { readonly state: "open" | "waiting" }): void => {
      const wasLost = isLost
      isLost = state === "waiting"
      if (isLost === wasLost) return
      process.stderr.write(
        isLost ? "The service does not respond; retrying.\n" : "The service responds again.\n"
      )
    }
    yield* callMailbox(location, async (mailbox) => {
      const after = Option.getOrUndefined(since)
      for await (const notification of mailbox.watch({ after, onConnection, onDiscarded })) {
        const { description, href, item, received, url } = notification
        const document = jsonText({ href, received, description, url, item })
        if (Option.isSome(exec)) await runFor(exec.value, notification, document)
        else printLine(json ? document : cells(notification).join("\t"))
      }
    }, readerRefusals(location))
  })
).pipe(
  Command.withDescription("Print the notifications of a mailbox, and new ones as they arrive"),
  Command.withExamples([{
    command: "restante watch alice --exec 'notify-send \"$RESTANTE_DESCRIPTION\"'",
    description: "Run a command for each notification"
  }])
)

const heading = ["STATUS", "FORM", "ATTEMPTS", "NEXT", "CALLBACK", "REGISTRATION", "PROBLEM"]

const registrationCells = (info: RegistrationEntry): ReadonlyArray<string> => {
  const { attempts, callback, form, href, next = "-", problem = "", status } = info
  return [status, form, String(attempts), next, callback, href, problem].map(plain)
}

/** A test event as JSON. */
const testDocument = ({ code, milliseconds, ...test }: RegistrationTest) => ({
  ...test,
  code: code?.toString(),
  milliseconds: milliseconds?.toString()
})

/** An entry of the list as JSON. */
const entryDocument = ({ attempts, code, cursor, ...entry }: RegistrationEntry) => ({
  ...entry,
  cursor: cursor?.toString(),
  attempts: String(attempts),
  code: code?.toString()
})

/** The state as JSON. */
const registrationDocument = ({ test, ...info }: RegistrationInfo) => ({
  ...entryDocument(info),
  ...test === undefined ? {} : { test: testDocument(test) }
})

const printRegistration = (info: RegistrationInfo, json: boolean): Effect.Effect<void> =>
  json
    ? printJson(registrationDocument(info))
    : Console.log(table([heading, registrationCells(info)]))

/** A test event with what was exchanged, as far as the service has kept it. */
interface ObservedTest {
  readonly test: RegistrationTest
  readonly attempt: CallbackAttempt | undefined
}

/** Sends a test event. What was exchanged is the newest attempt of this kind since its start. */
const sendTest = async (registration: Registration): Promise<ObservedTest> => {
  const test = await registration.test()
  // The test is over: it is no failure of it if the attempts cannot be read.
  const attempts = await registration.attempts().catch(() => [])
  const attempt = attempts.find(({ at, kind }) =>
    kind === "test" && Date.parse(at) >= Date.parse(test.started)
  )
  return { test, attempt }
}

const testFailures: ReadonlyMap<string, readonly [problem: string, advice: string]> = new Map([
  ["pending", [
    "the test of the callback has no result yet",
    "see it later with restante registrations show"
  ]],
  ["unknown", [
    "the result of the test of the callback is not known, as the service ended before the answer",
    "repeat the command"
  ]]
])

/** What came of a test event; the command fails if it was not delivered, and shows the answer. */
const printTest = (
  { attempt, test }: ObservedTest,
  json: boolean
): Effect.Effect<void, CommandFailed> => {
  const { code, milliseconds, status } = test
  const problem = problemBeside(test)
  const parts = [
    status,
    ...code === undefined ? [] : [`answered ${code}`],
    ...problem === undefined ? [] : [problem],
    ...milliseconds === undefined ? [] : [`${milliseconds} ms`]
  ]
  const printed = json
    ? printJson({ ...testDocument(test), attempt })
    : Console.log(plain(parts.join(", ")))
  if (status === "delivered") return printed
  const exchanged = json || attempt === undefined
    ? Effect.void
    : printAttempts([attempt], json, ({ kind }) => kind)
  const [what, advice] = testFailures.get(status) ??
    ["the test of the callback has failed", "correct the callback, and repeat the command"]
  const failing = Effect.andThen(exchanged, Effect.fail(failed(what, advice)))
  return Effect.andThen(printed, failing)
}

/** Waits until the callback has echoed its challenge, for a limited time. */
const waitUntilVerified = async (registration: Registration): Promise<void> => {
  const timeout = AbortSignal.timeout(verificationMs)
  try {
    await registration.wait({ signal: timeout })
  } catch (error) {
    if (!timeout.aborted) throw error
    const { problem } = await registration.state()
    const reason = problem === undefined ? "" : `: ${plain(problem)}`
    throw failed(
      `the callback has not echoed its challenge yet${reason}`,
      "let it answer with the challenge; the service tries again, see restante registrations show"
    )
  }
}

export const registerCommand = Command.make(
  "register",
  {
    ...mailboxFlags,
    mailbox: mailboxArgument,
    callback: textArgument("callback", "The URI that receives the pushes"),
    wait: switchFlag("wait", "Wait until the callback has echoed its challenge"),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ callback, json, mailbox, wait, ...flags }) {
    if (parseUrl(callback) === undefined) {
      return yield* wrongUsage(
        `the callback ${plain(callback)} is no URI`,
        "give one that the service can reach, such as https://app.example.org/hook"
      )
    }
    const location = yield* locateMailbox(mailbox, flags, registrars)
    const { secret, state } = yield* callMailbox(
      location,
      (mailbox) => mailbox.register({ callback })
    )
    if (json) yield* printJson({ ...registrationDocument(state), secret })
    else {
      yield* Console.error("The registration, and the secret of its signatures, shown only once:")
      yield* Console.log([state.href, secret].map(plain).join("\n"))
    }
    if (!wait) return
    yield* callMailbox(
      location,
      (mailbox) => waitUntilVerified(mailbox.registration(pathOf(state.href)))
    )
  })
).pipe(
  Command.withDescription("Push the changes of a mailbox to a callback"),
  Command.withExamples([{
    command: "restante register alice https://app.example.org/hooks/alice --wait",
    description: "Push, signed, once the callback has echoed its challenge"
  }])
)

const registrationArgument = textArgument(
  "registration",
  "MAILBOX/ID, or its URI; - for a secret URI, on standard input or typed on a terminal"
)

/** A command about one registration. */
const registrationCommand = <A>(
  name: string,
  description: string,
  use: (registration: Registration) => Promise<A>,
  print: (result: A, json: boolean, path: string) => Effect.Effect<void, CommandFailed>
) =>
  Command.make(
    name,
    {
      ...mailboxFlags,
      which: registrationArgument,
      json: jsonFlag()
    },
    Effect.fnUntraced(function*({ json, which, ...flags }) {
      const location = yield* locateMailbox(which, flags, registrations)
      const result = yield* callMailbox(
        location,
        (mailbox) => use(mailbox.registration(location.path))
      )
      yield* print(result, json, location.path)
    })
  ).pipe(Command.withDescription(description))

const replay = Command.make(
  "replay",
  {
    ...mailboxFlags,
    which: registrationArgument,
    since: Flag.String("since").pipe(
      Flag.withMetavar("time"),
      Flag.withDescription("What came since, such as 2026-07-01T00:00:00Z, or after a position")
    ),
    until: textFlag("until", "time", "Only what came until then; later changes follow in any case"),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ json, since, until, which, ...flags }) {
    const location = yield* locateMailbox(which, flags, registrations)
    const info = yield* callMailbox(
      location,
      (mailbox) => mailbox.registration(location.path).replay(since, Option.getOrUndefined(until))
    )
    yield* printRegistration(info, json)
  })
).pipe(Command.withDescription("Push again what came in a span of time"))

const listRegistrations = Command.make(
  "list",
  { ...mailboxFlags, mailbox: mailboxArgument, json: jsonFlag("One JSON object a line") },
  Effect.fnUntraced(function*({ json, mailbox, ...flags }) {
    const location = yield* locateMailbox(mailbox, flags, registrars)
    const infos = yield* callMailbox(location, (mailbox) => mailbox.registrations())
    if (json) {
      for (const info of infos) yield* Console.log(jsonText(entryDocument(info)))
    } else if (infos.length === 0) yield* Console.error("The mailbox has no registrations.")
    else yield* Console.log(table([heading, ...infos.map(registrationCells)]))
  })
).pipe(Command.withDescription("List the registrations of a mailbox"))

export const registrationsCommand = Command.make("registrations").pipe(
  Command.withDescription("Manage the callbacks of a mailbox"),
  Command.withSubcommands([
    listRegistrations,
    registrationCommand(
      "show",
      "Show the state of a registration",
      (registration) => registration.state(),
      printRegistration
    ),
    registrationCommand(
      "attempts",
      "Show what was sent last to the callback, and what it has answered",
      (registration) => registration.attempts(),
      (attempts, json) => printAttempts(attempts, json, ({ kind }) => kind)
    ),
    registrationCommand(
      "pause",
      "Pause the pushes, which go on from there when it is lifted",
      (registration) => registration.pause(),
      printRegistration
    ),
    registrationCommand(
      "lift",
      "Lift a suspension or a pause, push at once what waits, or verify again",
      (registration) => registration.lift(),
      printRegistration
    ),
    registrationCommand(
      "test",
      "Send one push without a new change, and print what came of it",
      sendTest,
      printTest
    ),
    replay,
    registrationCommand(
      "rotate",
      "Create a new secret; both sign for a day",
      (registration) => registration.renewSecret(),
      (secret, json) => json ? printJson({ secret }) : Console.log(plain(secret))
    ),
    registrationCommand(
      "delete",
      "End a registration",
      (registration) => registration.delete(),
      (_, json, path) => printOutcome(json, { deleted: path }, "The registration is deleted.")
    ),
    checkSignature
  ])
)
