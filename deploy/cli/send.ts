/** `restante send`: content and a notification of it, to any number of mailboxes. */
import { open } from "node:fs/promises"
import { extname } from "node:path"
import { Console, Effect, Option, Redacted, type Scope } from "effect"
import { Command, Flag } from "effect/cli"
import { type CommandFailed, exitCodes } from "../failure.ts"
import { ownMailbox, publish, type PublishedContent, queue, unpublish } from "../outgoing.ts"
import { failed, notUnderstood, pathOf, type RemoteService } from "../remote.ts"
import { jsonFlag, printJson } from "./output.ts"
import { expectDelivered, showProgress } from "./progress.ts"
import { accountFlags, asAccount } from "./remote.ts"

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
