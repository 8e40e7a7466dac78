/** What `restante send` and `outbox replace` send: the message, and what the notification says. */
import { Effect, Option, Redacted, type Scope } from "effect"
import { Flag } from "effect/cli"
import { extname } from "node:path"
import { parseUrl } from "../../../actors/index.ts"
import { type Client, type NotificationInput, pathOf, ProblemError } from "../../../client/index.ts"
import { type CommandFailed, failed } from "../../command-failure.ts"
import { messageTagsMax } from "../../limits.ts"
import { readSecret } from "../../secret-input.ts"
import { secretFileFlag, switchFlag, textFlag } from "../flags.ts"
import { call, failureOf, type ServiceLocation, wrongUsage } from "../service/index.ts"
import { bytesOf, plain, webStream } from "../terminal.ts"

/** The flags of what is sent. */
export const messageFlags = {
  description: Flag.String("description").pipe(
    Flag.withMetavar("text"),
    Flag.withDescription("What the message is about")
  ),
  priority: textFlag(
    "priority",
    "1-5",
    "Its priority, 3 by default: 1 to 5, or min, low, default, high, max, urgent"
  ),
  tags: textFlag("tags", "tags", "Its tags, between commas, such as backup,disk"),
  click: textFlag("click", "uri", "What a reader is to open by a click, http or https"),
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

/** What is sent: a URI of published content, a file to publish, or the description alone. */
export interface Message {
  readonly description: string
  readonly priority: Option.Option<string>
  readonly tags: Option.Option<string>
  readonly click: Option.Option<string>
  readonly url: Option.Option<string>
  readonly content: Option.Option<string>
  readonly type: Option.Option<string>
  readonly "password-file": Option.Option<string>
  readonly "generate-password": boolean
  readonly from: boolean
}

const priorities: Readonly<Record<string, 1 | 2 | 3 | 4 | 5>> = {
  "1": 1,
  min: 1,
  "2": 2,
  low: 2,
  "3": 3,
  default: 3,
  "4": 4,
  high: 4,
  "5": 5,
  max: 5,
  urgent: 5
}

const tagsOf = (text: string): ReadonlyArray<string> => text.split(",").map((tag) => tag.trim())

/** What is wrong with the labels, and what to do; protocol section 7 has these rules for fields. */
const labelFault = (
  { click, priority, tags }: Pick<Message, "priority" | "tags" | "click">
): readonly [problem: string, advice: string] | undefined => {
  if (Option.isSome(priority) && !Object.hasOwn(priorities, priority.value)) {
    return [
      `--priority is ${plain(priority.value)}, which is no priority`,
      "give 1 to 5, or min, low, default, high, max or urgent"
    ]
  }
  const all = Option.isNone(tags) ? [] : tagsOf(tags.value)
  if (all.includes("") || all.length > messageTagsMax) {
    return [
      all.includes("") ? "--tags has an empty tag" : `--tags has ${all.length} tags`,
      `give 1 to ${messageTagsMax}, between commas`
    ]
  }
  if (Option.isSome(click) && !/^https?:$/.test(parseUrl(click.value)?.protocol ?? "")) {
    return [
      `--click is ${plain(click.value)}, which is no http or https URI`,
      "give one such as https://dashboard.example.org/disks"
    ]
  }
  return undefined
}

/** What is wrong with the message, and what to do. */
const messageFault = (
  { content, type, url, ...message }: Message
): readonly [problem: string, advice: string] | undefined => {
  if (Option.isSome(url) && Option.isSome(content)) {
    return ["the message has both --url and --content", "give either --url or --content"]
  }
  if (Option.isSome(type) && Option.isNone(content)) {
    return ["--type applies to --content only", "leave it out"]
  }
  const isGenerated = message["generate-password"]
  const hasFile = Option.isSome(message["password-file"])
  if (isGenerated && hasFile) {
    return ["the message has two passwords", "give either --generate-password or --password-file"]
  }
  if (Option.isSome(url) && isGenerated) {
    return [
      "the service generates no password for the message of --url",
      "use --password-file, or --content"
    ]
  }
  return Option.isNone(url) && Option.isNone(content) && (isGenerated || hasFile)
    ? [
      "a password protects the message, and there is none but the description",
      "give --url or --content, or leave out the password"
    ]
    : undefined
}

/** Fails with exit code 2 for flags that make no message. */
export const checkMessage = (message: Message): Effect.Effect<void, CommandFailed> => {
  const fault = messageFault(message) ?? labelFault(message)
  return fault === undefined ? Effect.void : Effect.fail(wrongUsage(...fault))
}

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

/** What the notification says of the message. */
const labelsOf = (
  { click, description, from, priority, tags }: Message
): NotificationInput & { readonly from: boolean } => ({
  description,
  from,
  priority: Option.isNone(priority) ? undefined : priorities[priority.value],
  tags: Option.isNone(tags) ? undefined : tagsOf(tags.value),
  click: Option.getOrUndefined(click)
})

/** A notification to send, and the edit URI of the content that was published for it. */
interface PublishedMessage {
  readonly input: NotificationInput & { readonly from: boolean }
  readonly edit?: string
}

/**
 * Publishes the file of the message, if it has one. A note has its description as its content,
 * which the service publishes, as it does for a deposit of plain text.
 */
export const publish = Effect.fnUntraced(function*(
  service: ServiceLocation,
  message: Message
): Effect.fn.Return<PublishedMessage, CommandFailed, Scope.Scope> {
  const { content: file, description: data, type, url } = message
  const labels = labelsOf(message)
  const password = yield* passwordOf(message)
  if (Option.isSome(url)) return { input: { ...labels, url: url.value, password } }
  if (Option.isNone(file)) {
    return { input: { ...labels, content: { type: "text/plain; charset=utf-8", data } } }
  }
  const bytes = yield* bytesOf(file.value)
  const contentType = Option.getOrElse(type, () => typeOf(file.value))
  const { edit, href, password: chosen } = yield* call(
    service,
    (client) => client.publish(webStream(bytes), { contentType, password })
  )
  return { input: { ...labels, url: href, password: chosen }, edit }
})

/**
 * Removes the content of a notification that was refused, and fails with the refusal. The user
 * repeats the whole command, also after 425 and 429, and that publishes the content again. A
 * notification that may have been accepted needs its content.
 */
export const withdrawContent = async (
  client: Client,
  error: unknown,
  href: string | undefined,
  edit: string | undefined
): Promise<never> => {
  if (edit === undefined) throw error
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
