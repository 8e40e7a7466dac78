/** Operations of clients on mailboxes. */
import { mailboxKind } from "../../actors/index.ts"
import { decodeItem, isRemoval } from "../../actors/mailbox/log-item.ts"
import type { MailboxReply } from "../../actors/mailbox/protocol.ts"
import { address, type LogItem } from "../../runtime/index.ts"
import type { Entry, MailboxOutput } from "../histories/models/mailbox.ts"
import type { Answer } from "./requests.ts"
import { markIn } from "./notifications.ts"
import type { Operation } from "./plan.ts"
import { askOnce, askToCreate, askUntilAnswered, caller, type Operations, owner, paddedName,
  reasonOf, type Turn } from "./operations.ts"
import type { VersionedInput, VersionedOutput } from "./versioned.ts"
import { defaultSettings } from "../actors/mailbox-settings.ts"

export const reader = { account: owner }

/** The mailbox name of a resource of the plan. */
export const nameOf = (resource: string): string => resource.replace("/", "-")

export const mailboxAt = (resource: string) => address(mailboxKind, nameOf(resource))

const settingsOf = (mark: number) => ({ ...defaultSettings, title: `title ${mark}` })

/** The replies of a mailbox have the types of its protocol. */
const asReply = (reported: unknown): MailboxReply => reported as MailboxReply

const settled = (reported: unknown): VersionedOutput => {
  if (reasonOf(reported) === "PreconditionFailed") return { _tag: "Outdated" }
  if (reasonOf(reported) !== undefined) return { _tag: "Gone" }
  const reply = asReply(reported)
  if (reply._tag === "Described") {
    const { settings: { title = "" }, version } = reply.view
    return { _tag: "Shown", version, contents: title }
  }
  if (reply._tag === "Configured" || reply._tag === "Created") {
    return { _tag: "Done", version: reply.version }
  }
  return { _tag: "Deleted" }
}

const stored = (reported: unknown): MailboxOutput => {
  if (reasonOf(reported) !== undefined) return { _tag: "Gone" }
  const reply = asReply(reported)
  return reply._tag === "Deposited" ? { _tag: "Deposited", place: reply.n } : { _tag: "Done" }
}

/** Records the operation for the settings too. */
const alsoSettings = (
  { name, records }: Turn,
  resource: string,
  input: VersionedInput,
  start: number,
  answer: Answer<unknown>
): void =>
  records.note(
    records.versioned,
    { client: name, resource: `${resource} settings`, input },
    start,
    answer,
    settled
  )

const entriesOf = (items: ReadonlyArray<LogItem>): ReadonlyArray<Entry> =>
  items.flatMap(({ n, value }) =>
    isRemoval(value) ? [] : [{ id: decodeItem(value).digest, place: n }]
  )

/** Lists a mailbox: asks it for its head, then reads the log up to there. */
const list = async (turn: Turn, node: number, resource: string): Promise<boolean> => {
  const { asking, known, name, records, trace } = turn
  const to = mailboxAt(resource)
  const start = records.moment()
  const answer = await asking.ask(node, to, { _tag: "List", reader })
  const what = { client: name, resource, input: { kind: "list" } as const }
  if (answer._tag !== "Answered") return false
  if (reasonOf(answer.reply) !== undefined) {
    records.note(records.mailbox, what, start, answer, () => ({ _tag: "Gone" }) as const)
    return true
  }
  const reply = asReply(answer.reply)
  if (reply._tag !== "Listed") throw new Error(`a mailbox answered ${reply._tag}`)
  records.head(resource, start, reply.view.head)
  const read = await asking.read(node, to)
  // A read during the removal of the mailbox may be incomplete.
  if (read._tag !== "Answered" || known.destroyed.has(resource)) return false
  trace.note("client", () => `${name} read ${JSON.stringify(entriesOf(read.reply))}`)
  records.note(records.mailbox, what, start, read, (items) => ({
    _tag: "Listed" as const,
    entries: entriesOf(items)
  }))
  known.entries.set(
    resource,
    read.reply.flatMap(({ n, value }) => {
      if (isRemoval(value)) return []
      const { fragment, idRandom } = decodeItem(value)
      return [{ n, idRandom, isRelayed: markIn(fragment) >= 0 }]
    })
  )
  return true
}

const deposit = async (turn: Turn, operation: Operation): Promise<void> => {
  const { mark, nodes, resource } = operation
  const digest = paddedName("digest", mark)
  const fragment = `<item><description>d${mark}</description></item>`
  for (const [at, node] of nodes.entries()) {
    const idRandom = paddedName(`id-${at}-`, mark)
    const message = { _tag: "Deposit", fragment, digest, idRandom }
    const start = turn.records.moment()
    const answer = await askOnce(turn, node, mailboxAt(resource), message, {
      all: turn.records.mailbox,
      resource,
      input: { kind: "deposit", id: digest } as const,
      outputOf: stored
    })
    if (answer._tag !== "Answered") continue
    const output = stored(answer.reply)
    if (output._tag === "Deposited") {
      const reply = asReply(answer.reply)
      const isRepeated = reply._tag === "Deposited" && reply.repeated
      turn.records.head(resource, start, Number(output.place), isRepeated)
    }
    return
  }
}

const create: Operations[string] = async (turn, operation) => {
  const { mark, resource } = operation
  const start = turn.records.moment()
  const settings = settingsOf(mark)
  const message = {
    _tag: "Create",
    requestId: `make ${resource}`,
    owner,
    settings,
    passwordHash: "p".repeat(43),
    sharedHash: "s".repeat(43)
  }
  const answer = await askToCreate(turn, operation, mailboxAt(resource), message, {
    all: turn.records.mailbox,
    resource,
    input: { kind: "create" } as const,
    outputOf: stored
  })
  // A first or a repeated request: either returns the initial version.
  const input = { kind: "create", contents: settings.title } as const
  const what = { client: turn.name, resource: `${resource} settings`, input }
  turn.records.note(turn.records.versioned, what, start, answer, () => undefined)
}

const configure: Operations[string] = (turn, operation) => {
  const { choice, mark, resource } = operation
  const settings = settingsOf(mark)
  const seen = choice < 0.5 ? turn.known.versions.get(resource) : undefined
  const ifVersion = seen === undefined ? {} : { ifVersion: seen }
  const message = { _tag: "Configure", caller, settings, ...ifVersion }
  return askUntilAnswered(turn, operation, mailboxAt(resource), message, {
    all: turn.records.versioned,
    resource: `${resource} settings`,
    input: { kind: "replace", contents: settings.title, ...ifVersion } as const,
    outputOf: settled
  })
}

const describe: Operations[string] = async (turn, operation) => {
  const { resource } = operation
  const answer = await askUntilAnswered(
    turn,
    operation,
    mailboxAt(resource),
    { _tag: "Describe", reader },
    {
      all: turn.records.versioned,
      resource: `${resource} settings`,
      input: { kind: "show" } as const,
      outputOf: settled
    }
  )
  if (answer?._tag !== "Answered" || reasonOf(answer.reply) !== undefined) return
  const reply = asReply(answer.reply)
  if (reply._tag === "Described") turn.known.versions.set(resource, reply.view.version)
}

const readEntries: Operations[string] = async (turn, { nodes, resource }) => {
  for (const node of nodes) if (await list(turn, node, resource)) return
}

/** Half of the time removes the last relay, which may still be repeated. */
const remove: Operations[string] = async (turn, operation) => {
  const { choice, resource } = operation
  if (choice < 0.5) await readEntries(turn, operation)
  const entries = turn.known.entries.get(resource) ?? []
  const relay = choice < 0.5 ? entries.findLast(({ isRelayed }) => isRelayed) : undefined
  const entry = relay ?? entries[Math.floor(choice * entries.length)]
  if (entry === undefined) return
  const { idRandom, n } = entry
  const message = { _tag: "Remove", n, idRandom, reader }
  return askUntilAnswered(turn, operation, mailboxAt(resource), message, {
    all: turn.records.mailbox,
    resource,
    input: { kind: "remove", place: n } as const,
    outputOf: stored
  })
}

const destroy: Operations[string] = async (turn, operation) => {
  const { nodes, resource } = operation
  turn.known.destroyed.add(resource)
  for (const node of nodes) {
    const start = turn.records.moment()
    const answer = await askOnce(turn, node, mailboxAt(resource), { _tag: "Destroy", caller }, {
      all: turn.records.mailbox,
      resource,
      input: { kind: "destroy" } as const,
      outputOf: stored
    })
    alsoSettings(turn, resource, { kind: "delete" }, start, answer)
    if (answer._tag === "Answered") return
  }
}

export const mailboxVerbs: Operations = {
  create,
  deposit,
  read: readEntries,
  describe,
  remove,
  configure,
  destroy
}
