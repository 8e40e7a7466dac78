/** Operations of clients on push registrations. */
import { registrationKind } from "../../actors/index.ts"
import type { MailboxReply } from "../../actors/mailbox/protocol.ts"
import type { RegistrationReply } from "../../actors/registration/protocol.ts"
import { address } from "../../runtime/index.ts"
import type { RegistrationInput, RegistrationOutput } from "../histories/models/registration.ts"
import type { AnyMessage } from "./requests.ts"
import { mailboxAt, nameOf, reader } from "./mailboxes.ts"
import type { Operation } from "./plan.ts"
import { askOnce, askToCreate, askUntilAnswered, type Operations, owner, reasonOf,
  type Turn } from "./operations.ts"

export const registrationAt = (id: string) => address(registrationKind, id)

/** Greatest number of registrations in a run. */
const registrationsMax = 4

const outputOf = (reported: unknown): RegistrationOutput => {
  if (reasonOf(reported) !== undefined) return { _tag: "Gone" }
  // The replies of a registration have the types of its protocol.
  const reply = reported as RegistrationReply
  if (reply._tag !== "Described") return { _tag: "Done" }
  const { cursor, status } = reply.view
  return { _tag: "Shown", cursor, status }
}

const done = (reported: unknown): RegistrationOutput =>
  reasonOf(reported) === undefined ? { _tag: "Done" } : { _tag: "Gone" }

/** Like HTTP: checks the reader and the start, creates the registration, then lists it. */
const register = async (turn: Turn, operation: Operation): Promise<void> => {
  const { asking, known, records } = turn
  const { mark, nodes, resource } = operation
  const mailbox = `mailbox/${Number(resource.split("/")[1]) % 2}`
  const [node = 0] = nodes
  if (known.registrations.size >= registrationsMax) return
  const start = records.moment()
  const listed = await asking.ask(node, mailboxAt(mailbox), { _tag: "List", reader })
  if (listed._tag !== "Answered" || reasonOf(listed.reply) !== undefined) return
  // The replies of a mailbox have the types of its protocol.
  const listing = listed.reply as Extract<MailboxReply, { readonly _tag: "Listed" }>
  const cursor = listing.view.head
  records.head(mailbox, start, cursor)
  const id = `${nameOf(mailbox)}=native-${mark}`
  const callback = `https://callback.test/${mark}`
  known.registrations.set(id, { callback, cursor })
  const message = {
    _tag: "Create",
    requestId: `register ${mark}`,
    form: "native",
    callback,
    account: owner,
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    leaseSeconds: 0,
    challenge: `challenge-${mark}`,
    cursor
  }
  const made = await askToCreate(turn, operation, registrationAt(id), message, {
    all: records.registration,
    resource: id,
    input: { kind: "register", cursor } as const,
    outputOf: done
  })
  if (made._tag !== "Answered") return
  for (const each of nodes) {
    const entered = await asking.ask(each, mailboxAt(mailbox), { _tag: "Register", id, reader })
    if (entered._tag === "Answered") {
      if (reasonOf(entered.reply) === undefined) known.listed.set(id, asking.nowMs)
      return
    }
  }
}

/** Runs the operation on one of the known registrations, if there is one. */
const toKnown = (
  messageOf: (operation: Operation) => AnyMessage,
  kind: "show" | "lift" | "delete" | undefined
) =>
async (turn: Turn, operation: Operation): Promise<unknown> => {
  const { listed, registrations } = turn.known
  // Other clients do not know an unfinished registration; a repeated one would be another.
  const ids = [...(kind === "delete" ? listed : registrations).keys()]
  const id = ids[Math.floor(operation.choice * ids.length)]
  if (id === undefined) return
  const to = registrationAt(id)
  const message = messageOf(operation)
  const [node = 0] = operation.nodes
  if (kind === undefined) return turn.asking.ask(node, to, message)
  const reported = {
    all: turn.records.registration,
    resource: id,
    input: { kind } satisfies RegistrationInput,
    outputOf: kind === "lift" ? done : outputOf
  }
  return kind === "lift"
    ? askOnce(turn, node, to, message, reported)
    : askUntilAnswered(turn, operation, to, message, reported)
}

const deleteKnown = toKnown(() => ({ _tag: "Delete" }), "delete")

export const registrationVerbs: Operations = {
  register,
  describe: toKnown(() => ({ _tag: "Describe" }), "show"),
  rotate: toKnown(({ mark }) => ({
    _tag: "Rotate",
    secret: `whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La${String(mark).padStart(4, "0")}`
  }), undefined),
  lift: toKnown(({ mark }) => ({ _tag: "Update", challenge: `lift-${mark}` }), "lift"),
  delete: (turn, operation) =>
    operation.mark % 5 === 0 ? deleteKnown(turn, operation) : Promise.resolve()
}
